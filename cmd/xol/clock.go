package main

import "time"

// clock tells times as the events of tracefs have them: since the machine started.
type clock struct {
	at     time.Time
	uptime time.Duration
}

func newClock() clock { return clock{time.Now(), uptime()} }

func (c clock) since(t time.Time) time.Duration { return c.uptime + t.Sub(c.at) }
