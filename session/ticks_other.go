//go:build !amd64

package session

// nanosecondsPerTick is not asked where there are no timers.
func nanosecondsPerTick() uint64 { return 0 }
