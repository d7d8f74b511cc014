package runtime

import "xol/machine"

// Signal is the number of a signal of Linux.
type Signal uint8

// The signals that a program gets for what it executes.
const (
	SIGILL  Signal = 4
	SIGTRAP Signal = 5
	SIGSEGV Signal = 11
)

// Signal returns what a program would get for the event, with the registers as
// they are: a breakpoint that is no probe's is its own. ok is false where
// that is no signal, or depends on more than is known.
func (e *StopError) Signal() (s Signal, ok bool) {
	switch e.Event.Kind {
	case machine.EventBreakpoint, machine.EventStep:
		return SIGTRAP, true
	case machine.EventUndefined:
		return SIGILL, true
	}
	return 0, false
}

// Signal returns SIGILL.
func (e *ReturnError) Signal() Signal { return SIGILL }

// Signal returns SIGSEGV.
func (e *FaultError) Signal() Signal { return SIGSEGV }
