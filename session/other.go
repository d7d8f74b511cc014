//go:build !linux || !(amd64 || arm64 || ppc64 || ppc64le)

package session

type (
	countRef struct{}
	laid     struct{}
)
