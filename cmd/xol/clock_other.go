//go:build !linux

package main

import "time"

func uptime() time.Duration { return 0 }
