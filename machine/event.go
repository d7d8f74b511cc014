package machine

import "xol/decode"

// Perm is what a program may do with memory.
type Perm uint8

// The permissions.
const (
	PermRead Perm = 1 << iota
	PermWrite
	PermExec
)

// Access is a kind of access to memory.
type Access uint8

// The kinds of access.
const (
	AccessRead Access = iota
	AccessWrite
	AccessFetch
)

var accessNames = [...]string{"read", "write", "fetch"}

// String returns the kind in a word.
func (a Access) String() string {
	if int(a) < len(accessNames) {
		return accessNames[a]
	}
	return "invalid"
}

// Perm returns the permission that the access needs.
func (a Access) Perm() Perm { return 1 << a }

// Event is why a CPU stopped, or how a run of an Engine ended. The registers are those
// that the architecture would have the handler of the exception see.
type Event struct {
	Kind EventKind
	// Addr is the instruction that caused the event: the breakpoint itself,
	// the instruction that faulted or was refused, the one after a step or a
	// system call.
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
	EventStep                        // the exception after a single-stepped instruction
	EventFault                       // memory that is not there, or must not be accessed so
	EventSyscall                     // a system call, not carried out
	EventUndefined                   // not an instruction
	EventRefused                     // an instruction that the machine would run wrongly
	EventHalt                        // the CPU waits for an interrupt
	EventException                   // another exception; any, in a run of an Engine
	EventWatch                       // an access to data that is watched (see Watcher)
	EventLeft                        // the program counter left the range of a run of an Engine
)

var eventNames = [...]string{
	"budget used up", "returned", "breakpoint", "step", "memory fault", "system call",
	"undefined instruction", "refused instruction", "halt", "exception",
	"watched access", "left",
}

// String returns the kind in words.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "invalid"
}
