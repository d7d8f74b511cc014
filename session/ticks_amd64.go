package session

import (
	"math"
	"time"
)

// ticks reads the CPU's clock, which inserted code takes the time by.
func ticks() uint64

// nanosecondsPerTick measures the clock: nanoseconds in a tick, times 2^32.
func nanosecondsPerTick() uint64 {
	const while = 20 * time.Millisecond
	started, from := time.Now(), ticks()
	time.Sleep(while)
	passed, to := time.Since(started), ticks()
	return uint64(math.Round(float64(passed) / float64(to-from) * (1 << 32)))
}
