// Package detour holds the model of a detour buffer, what an optimized probe
// jumps to: it saves the registers, calls the handlers' entry, restores the
// registers, executes the moved instructions and jumps back after them. Like
// package relocate it plans first, for sizes and reach, and writes bytes once
// an address is known. The templates are in arch/<isa>.
package detour

import (
	"errors"

	"xol/decode"
	"xol/relocate"
)

// ErrShort: the instructions, and what is dead after them, have fewer bytes
// than the jump that would replace them.
var ErrShort = errors.New("instructions shorter than the jump")

// Options are what the caller chooses.
type Options struct {
	// Kernel asks for the template of kernel mode: on amd64 there is no red
	// zone then, on ppc64 one of 288 bytes as Linux keeps it, and fields of the
	// frame that only kernel mode can read are filled.
	Kernel bool
	// Callback is the address of the code that is called as
	// callback(probe, regs), by the ISA's calling convention for C. regs points
	// to the frame (see Builder.PtRegs). On ppc64 it is an address of code, in
	// ELFv2 that of the global entry, and never a function descriptor.
	Callback uint64
	// Probe is the callback's first argument.
	Probe uint64
	// Count, where it is not 0, is the address of an 8-byte word that the buffer
	// adds 1 to, atomically, in place of the call: by an Insertion. There is no
	// frame.
	Count uint64
	// TOC is the value of r2 in the callback, on ppc64; 0 leaves r2 alone.
	TOC uint64
	// TrapIP says that the frame's instruction pointer is what a breakpoint's
	// exception leaves there. On amd64 that is one after the probed address,
	// as handlers on Linux see it; elsewhere it is that address anyway.
	TrapIP bool
	// Dead is the number of bytes after the instructions that the jump may
	// overwrite because nothing executes them (see optcheck.Verdict.Moved): the
	// last instruction leads elsewhere.
	Dead uint64
	// Move says how the instructions are moved. Form, Back, Kernel and Reenter
	// are set by PlanDetour.
	Move relocate.Options
}

// Parts are the offsets, in bytes from the start of the buffer, of what comes
// after the saving of the registers.
type Parts struct {
	Call    int // the call of the callback
	Restore int // its return address: the registers are restored
	Moved   int // the moved instructions
	Back    int // the jump back
	End     int // the size
}

// Plan is a detour buffer before its address is known. The zero value is ready;
// a Plan may be used again.
type Plan struct {
	Relocation relocate.Plan
	Options    Options
	Min, Max   int // bounds of the size in bytes at any address
	Align      int // what the address must be a multiple of, in bytes: a power of 2
	// Stack bounds the bytes below the stack pointer that the buffer uses, the
	// red zone among them, the callback's own not.
	Stack int
	// ReachBack and ReachForward are how far before the probed address,
	// and after it, the buffer may stand in bytes for the jumps there and back
	// to reach. What the moved instructions refer to may be out of reach all
	// the same: EncodeDetour says so.
	ReachBack, ReachForward int64
	Parts                   Parts // set by EncodeDetour

	code []byte
}

// From returns the probed address.
func (p *Plan) From() uint64 { return p.Relocation.From() }

// Next returns the address after the instructions, where the buffer jumps back
// to.
func (p *Plan) Next() uint64 { return p.Relocation.Next() }

// Field is a field of the frame.
type Field struct {
	Name     string // as in Linux's struct pt_regs, but for arrays: "x0", "gpr0"
	Offset   int    // bytes
	Size     int    // bytes
	Register int    // index in the ISA's register file; NoRegister where it has none
	// Restored says that a value the callback leaves there becomes the
	// register's.
	Restored bool
}

// NoRegister is the Register of a field that stands for none.
const NoRegister = -1

// Frame is the layout of what the callback gets a pointer to: the fields of
// struct pt_regs of Linux in their order, as programs see it.
type Frame struct {
	Size   int // bytes
	Fields []Field
}

// Field returns the field of that name.
func (f *Frame) Field(name string) (Field, bool) {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			return f.Fields[i], true
		}
	}
	return Field{}, false
}

// Builder makes detour buffers for one ISA.
//
// The general registers and the flags are saved before the callback and taken
// from the frame after it, so that handlers may change them. Changes of the
// instruction pointer and of the stack pointer have no effect. Floating-point,
// SIMD and system registers are not saved: as in a kernel, the callback and all
// it calls must leave them alone, or save what they use. The stack pointer is
// lowered, by the red zone first, before anything is stored, so that signals
// and interrupts may come at any time.
type Builder interface {
	// PlanDetour fills p for instructions that follow one another, the first of
	// which is probed, and of which there are enough for the jump. A branch
	// from one of them to the first goes to the original address: the probe is
	// hit again. It answers ErrShort and the errors of relocate.Relocator.Plan.
	PlanDetour(p *Plan, insts []decode.Inst, opt Options) error
	// EncodeDetour writes the buffer for the address at into dst and returns
	// its size in bytes. It answers relocate.ErrTooSmall, ErrMisaligned or
	// ErrRange, and dst is untouched then.
	EncodeDetour(dst []byte, p *Plan, at uint64) (int, error)
	// JumpTo returns the jump at the probed address to a buffer. It answers
	// relocate.ErrRange or ErrMisaligned.
	JumpTo(at, detour uint64) ([]byte, error)
	// PtRegs returns the layout of the frame. It must not be changed.
	PtRegs() *Frame
}
