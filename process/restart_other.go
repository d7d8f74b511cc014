//go:build linux && (arm64 || ppc64 || ppc64le)

package process

// startedAgain is empty: the arguments of these system calls are lost.
var startedAgain map[uint64]bool
