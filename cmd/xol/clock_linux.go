package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime returns for how long the machine has run, as clocks of the kernel count.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
