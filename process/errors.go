package process

import (
	"errors"
	"fmt"
)

// What an *Error can be.
var (
	ErrPermission   = errors.New("no permission to trace it")
	ErrTraced       = errors.New("already traced")
	ErrNoProcess    = errors.New("no such process")
	ErrZombie       = errors.New("it has ended, and waits for its parent")
	ErrKernelThread = errors.New("a thread of the kernel")
	ErrWidth        = errors.New("a 32-bit program")
	ErrISA          = errors.New("a program for another instruction set")
	ErrTaken        = errors.New("there is memory at the address already")
	ErrGone         = errors.New("it has ended")
	ErrNoThread     = errors.New("no thread that can call the system")
	ErrFiltered     = errors.New("a filter of its system calls (seccomp) may end it for those of a tracer")
	ErrInterrupted  = errors.New("another event came first")
	ErrClosed       = errors.New("the tracer has been closed")
)

// Error says what could not be done with a process, in one line.
type Error struct {
	PID    int
	Err    error  // one of this package's, or of the system's
	Detail string // what is known besides, and what to do; may be empty
}

func (e *Error) Error() string {
	s := fmt.Sprintf("process %d: %v", e.PID, e.Err)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// AddressError says that memory cannot be accessed.
type AddressError struct {
	PID    int
	Addr   uint64
	Access string // "read" or "write"
	Err    error
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("process %d: cannot %s memory at %#x: %v", e.PID, e.Access, e.Addr, e.Err)
}

// Unwrap returns e.Err.
func (e *AddressError) Unwrap() error { return e.Err }
