package runtime

import (
	"cmp"
	"errors"
	"fmt"

	"xol/classify"
	"xol/machine"
)

// Rules of the runtime itself; those of instructions are in arch/<isa>.
var (
	rulePlace = classify.Rule{ID: "runtime/place", Errno: classify.EINVAL,
		Reason: "a probe is put at a symbol or at an address, with an offset: one of the two",
		Remedy: "set Symbol, or Addr"}
	ruleSymbol = classify.Rule{ID: "runtime/symbol", Errno: classify.ENOENT,
		Reason: "no image has a symbol of that name"}
	ruleUnregistered = classify.Rule{ID: "runtime/not-registered", Errno: classify.EINVAL,
		Reason: "the probe is not attached: it has been closed"}
	ruleGone = classify.Rule{ID: "runtime/gone", Errno: classify.EINVAL,
		Reason: "the text that the probe was in has been unloaded",
		Remedy: "close it"}
	ruleNotText = classify.Rule{ID: "runtime/not-text", Errno: classify.EINVAL,
		Reason: "the address is in no image's text"}
	ruleBlacklist = classify.Rule{ID: "runtime/blacklist", Errno: classify.EINVAL,
		Reason: "the address is blacklisted"}
	ruleOwnArea = classify.Rule{ID: "runtime/own-area", Errno: classify.EINVAL,
		Reason: "the address is in a slot, a detour buffer or another part of the probe runtime"}
	ruleClosed = classify.Rule{ID: "runtime/closed", Errno: classify.ENODEV,
		Reason: "the machine has been closed"}
	ruleNoRoom = classify.Rule{ID: "runtime/no-room", Errno: classify.ENOMEM,
		Reason: "there is no room for an instruction slot in reach of the text"}
	ruleNoExecution = classify.Rule{ID: "runtime/no-execution", Errno: classify.EOPNOTSUPP,
		Reason: "the instruction transfers control in a way that is not interpreted, and the machine cannot single-step",
		Remedy: "probe the instruction before it"}
)

var (
	// ErrInHandler: a handler, or what else is called in the middle of a run, tried
	// to run the machine.
	ErrInHandler = errors.New("runtime: a handler cannot run the machine that runs it: use Context.Call, or wait until the handler has returned")
	// ErrNoCPU: the machine has fewer CPUs.
	ErrNoCPU = errors.New("runtime: the machine has no such CPU")
)

// RegisterError says why a probe cannot be registered, enabled or unregistered.
// errors.Is tells its error number.
type RegisterError struct {
	Place string // as the probe names it
	Addr  uint64 // 0 where it is not known
	Errno classify.Errno
	Rule  *classify.Rule
	Err   error // the cause, where there is one
}

func (e *RegisterError) Error() string {
	text := fmt.Sprintf("runtime: %s: %v: %s (%s)", e.Place, e.Errno, e.Rule.Reason, e.Rule.ID)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the error number and the cause.
func (e *RegisterError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Errno}
	}
	return []error{e.Errno, e.Err}
}

// placed is what an error names by its place.
type placed interface{ place() string }

// refuse returns the error that rule forbids p.
func refuse(p placed, addr uint64, rule *classify.Rule, cause error) error {
	return &RegisterError{Place: p.place(), Addr: addr, Errno: cmp.Or(rule.Errno, classify.EINVAL), Rule: rule, Err: cause}
}

// nowhere is the place of no probe.
const nowhere = somewhere("a probe")

type somewhere string

func (s somewhere) place() string { return string(s) }

// FaultError says that a program, or a handler, accessed memory that is not
// there or not for that, and that nothing handled it. The CPU's registers are
// those before the instruction, and it can go on; see Run.
type FaultError struct {
	CPU int
	Fault
}

func (e *FaultError) Error() string {
	who := "instruction"
	if e.InHandler {
		who = "handler"
	}
	return fmt.Sprintf("runtime: CPU %d: %s at %#x: %v of the page at %#x", e.CPU, who, e.Addr, e.Access, e.Page)
}

// ReenterError is the unrecoverable case: a probe was hit while the instruction
// of another one was executed that itself had been hit inside a hit. Nothing runs any
// more until what the CPU does is given up.
type ReenterError struct {
	CPU  int
	Addr uint64 // of the probe
}

func (e *ReenterError) Error() string {
	return fmt.Sprintf("runtime: CPU %d: the probe at %#x was hit inside a hit inside a hit", e.CPU, e.Addr)
}

// StopError says that the program stopped for a reason that is not the
// runtime's. The CPU is as it would be without probes, and can go on; see Run.
type StopError struct {
	CPU   int
	Event machine.Event
}

func (e *StopError) Error() string {
	if e.Event.Kind == machine.EventRefused {
		return fmt.Sprintf("runtime: CPU %d: %v at %#x: %s", e.CPU, e.Event.Kind, e.Event.Addr, e.Event.Reason)
	}
	return fmt.Sprintf("runtime: CPU %d: %v at %#x", e.CPU, e.Event.Kind, e.Event.Addr)
}

// Fault is an access to memory that is not there, or must not be accessed so.
type Fault struct {
	Addr      uint64 // of the instruction, in its original place; for an access of a handler that of its probe
	Page      uint64 // the page that was accessed
	Access    machine.Access
	InHandler bool // a handler's access, or that of a function it calls
}
