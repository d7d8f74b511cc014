//go:build unicorn

package guest

import (
	"fmt"

	"xol/decode"
	"xol/internal/unicorn"
)

// Event is why a CPU stopped. The registers are those that the architecture
// would have the handler of the exception see.
type Event struct {
	Kind EventKind
	// Addr is the instruction that caused the event: the breakpoint itself,
	// the instruction that faulted or was refused, the one behind a step or a
	// system call. For EventReturned it is ExitAddress.
	Addr uint64
	// Number is the immediate operand of an arm64 breakpoint, the number of an
	// EventException as the engine has it.
	Number uint64
	// Access and Page tell what an EventFault could not do, and in which page.
	Access Access
	Page   uint64
	// Inst is the instruction of an EventRefused, and Reason says in words of
	// a class of instructions why it is.
	Inst   decode.Inst
	Reason string
}

// EventKind is a kind of Event.
type EventKind uint8

// The kinds.
const (
	EventBudget     EventKind = iota // as many instructions ran as were asked for
	EventReturned                    // a called function returned
	EventBreakpoint                  // int3, brk, trap
	EventStep                        // the exception behind a single-stepped instruction
	EventFault                       // memory that is not there, or must not be accessed so
	EventSyscall                     // a system call, not carried out
	EventUndefined                   // not an instruction
	EventRefused                     // an instruction that the engine would run wrongly
	EventHalt                        // the CPU waits for an interrupt
	EventException                   // another exception
)

var eventNames = [...]string{
	"budget used up", "returned", "breakpoint", "step", "memory fault", "system call",
	"undefined instruction", "refused instruction", "halt", "exception",
}

// String returns the kind in words.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "invalid"
}

// Access is a kind of access to memory.
type Access = unicorn.Access

// The kinds of access.
const (
	AccessRead  = unicorn.Read
	AccessWrite = unicorn.Write
	AccessFetch = unicorn.Fetch
)

// UnexpectedError is an event where none of its kind was expected.
type UnexpectedError struct {
	Event Event
	Text  string // of the refused instruction
}

func (e *UnexpectedError) Error() string {
	ev := &e.Event
	switch ev.Kind {
	case EventRefused:
		return fmt.Sprintf("guest: %#x: %s not executed: %s", ev.Addr, e.Text, ev.Reason)
	case EventFault:
		return fmt.Sprintf("guest: %#x: %v of the page at %#x", ev.Addr, ev.Kind, ev.Page)
	}
	return fmt.Sprintf("guest: %#x: %v (%d)", ev.Addr, ev.Kind, ev.Number)
}
