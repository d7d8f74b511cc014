//go:build unix

package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func makeFIFO(path string) error { return unix.Mkfifo(path, 0o600) }

// exited is how a program ends that returns a status.
func exited(status int) syscall.WaitStatus { return syscall.WaitStatus(status << 8) }

// killed is how a program ends by a signal.
func killed(by syscall.Signal) syscall.WaitStatus { return syscall.WaitStatus(by) }

// protect has pages be executed, and written to or not.
func protect(pages []byte, writable bool) error {
	prot := unix.PROT_READ | unix.PROT_EXEC
	if writable {
		prot |= unix.PROT_WRITE
	}
	return unix.Mprotect(pages, prot)
}
