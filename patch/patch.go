// Package patch says how text is changed under the eyes of other CPUs: the
// ordered writes and synchronizations that put a breakpoint on an instruction,
// make a jump of it and undo both, as plain data. A runtime carries them out; a
// checker tries what a CPU may meet between any two of them. What an ISA may
// write is in arch/<isa>.
package patch

import (
	"bytes"
	"errors"

	"xol/machine"
)

// Errors of PlanPatch, for errors.Is.
var (
	// ErrShort: the original text has fewer bytes than what takes its place.
	ErrShort = errors.New("original text too short")
	// ErrOperation: there is no such operation.
	ErrOperation = errors.New("no such operation")
)

// Operation is what is done to a site.
type Operation uint8

// The operations.
const (
	Arm        Operation = iota // the original becomes a breakpoint
	Disarm                      // the breakpoint becomes the original
	Optimize                    // the breakpoint becomes a jump to the detour buffer
	Unoptimize                  // the jump becomes a breakpoint
)

var operationNames = [...]string{"arm", "disarm", "optimize", "unoptimize"}

// String returns the operation in a word.
func (o Operation) String() string {
	if int(o) < len(operationNames) {
		return operationNames[o]
	}
	return "invalid"
}

// Kind is a kind of step.
type Kind uint8

const (
	// Write stores Step.New at Step.Addr.
	Write Kind = iota
	// Sync makes every CPU see all writes before it, and nothing that it has
	// fetched before: when it is done, each of them has executed what the
	// architecture asks for.
	//
	//	amd64    a serializing instruction on every CPU, by an interrupt
	//	         [Intel SDM, volume 3, 9.1.3; AMD APM, volume 2, 7.6.1]
	//	arm64    DC CVAU, DSB, IC IVAU, DSB by the writer, then a context
	//	         synchronization event on every CPU, as ISB is
	//	         [Arm ARM, B2.2.5 and B2.4.4]
	//	ppc64    dcbst, sync, icbi, sync by the writer, then isync on every
	//	         CPU [Power ISA 3.1, Book II, 1.8]
	Sync
	// Redirect makes Step.Hits the way that breakpoint hits are resolved, for
	// all that happen from then on.
	Redirect
	// Quiesce waits until no CPU is in the range of Step, and no thread will
	// come back to it: from an interrupt or a preemption, from a function that
	// it called there, or from a hit that was taken before this step.
	Quiesce
)

var kindNames = [...]string{"write", "sync", "redirect", "quiesce"}

// String returns the kind in a word.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Hits is how a breakpoint hit is resolved once the handlers have run.
type Hits uint8

const (
	// HitSlot executes the first instruction out of line, in its slot or by
	// emulation, and continues after it: inside the region.
	HitSlot Hits = iota
	// HitDetour continues at the moved instructions of the detour buffer, and
	// so after the region.
	HitDetour
)

var hitsNames = [...]string{"slot", "detour"}

// String returns the way in a word.
func (h Hits) String() string {
	if int(h) < len(hitsNames) {
		return hitsNames[h]
	}
	return "invalid"
}

// Step is one step of a plan. Only the fields that its kind names count.
type Step struct {
	Kind Kind
	Addr uint64 // Write: of the first byte
	New  []byte // Write: the bytes in the order of memory
	// Alone, of a Write: the architecture says what CPUs do only if none of the
	// others executes the old or the new instruction before the Sync that
	// follows. They have to be kept elsewhere meanwhile.
	Alone bool
	Hits  Hits          // Redirect
	Range machine.Range // Quiesce
}

// Plan is an operation on one site.
type Plan struct {
	Operation Operation
	Addr      uint64
	Old       []byte // the text at Addr before
	Hits      Hits   // how hits are resolved before
	Steps     []Step
}

// State is what CPUs may meet: the text, and what becomes of hits.
type State struct {
	Text []byte // at Plan.Addr
	Hits Hits
}

// States returns the state before the first step and those after each of them.
func (p *Plan) States() []State {
	state := State{Text: p.Old, Hits: p.Hits}
	states := append(make([]State, 0, len(p.Steps)+1), state)
	for i := range p.Steps {
		switch s := &p.Steps[i]; s.Kind {
		case Write:
			state.Text = bytes.Clone(state.Text)
			copy(state.Text[s.Addr-p.Addr:], s.New)
		case Redirect:
			state.Hits = s.Hits
		}
		states = append(states, state)
	}
	return states
}

// Site is what is patched.
type Site struct {
	Addr uint64
	// Original is the text without a probe: for Optimize and Unoptimize the
	// whole instructions that the jump replaces, and what is dead after them,
	// for the others at least the first instruction.
	Original []byte
	// Detour is where the detour buffer is. Arm and Disarm do not need it.
	Detour machine.Range
	// Kernel says that the text is the kernel's; on arm64 its breakpoints are
	// others than those of programs.
	Kernel bool
}

// Patcher makes the plans of one ISA.
type Patcher interface {
	// PlanPatch returns how an operation is done. Of Optimize the breakpoint
	// stands before, of Unoptimize the jump. It answers ErrShort,
	// ErrOperation, relocate.ErrRange or relocate.ErrMisaligned.
	PlanPatch(op Operation, s *Site) (*Plan, error)
	// Breakpoint returns the breakpoint's bytes.
	Breakpoint(kernel bool) []byte
	// Traps returns bytes that trap where an instruction starts with them, whatever
	// follows and in every mode, the breakpoint first. A jump whose bytes are such
	// where the instructions start that it has replaced catches who lands there. nil
	// where jumps replace one instruction only, inside which no other starts.
	Traps() []byte
}
