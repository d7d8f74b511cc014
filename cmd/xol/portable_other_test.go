//go:build !unix

package main

import (
	"errors"
	"syscall"
)

func makeFIFO(string) error { return errors.ErrUnsupported }

// exited is how a program ends that returns a status.
func exited(status int) syscall.WaitStatus { return syscall.WaitStatus{ExitCode: uint32(status)} }

// killed is how a program ends by a signal.
func killed(by syscall.Signal) syscall.WaitStatus { return exited(128 + int(by)) }

func protect([]byte, bool) error { return errors.ErrUnsupported }
