// Package relocate holds the model of moved code: a plan of what becomes of
// every instruction, with size bounds, and then the bytes that have the same
// effect at a given address, as an instruction slot or as part of a detour
// buffer. The forms of one ISA are in arch/<isa>.
package relocate

import (
	"xol/classify"
	"xol/decode"
)

// Form is the use that moved code is put to.
type Form uint8

const (
	// Slot is an instruction slot: one instruction and its way back.
	Slot Form = iota
	// Region is the moved part of a detour buffer: a run of whole
	// instructions, then a jump back. Branches from one of them to another
	// stay inside.
	Region
)

// Back is how moved code returns to the instruction behind the original.
type Back uint8

const (
	BackJump       Back = iota // a jump: a boosted slot, a detour buffer
	BackBreakpoint             // a breakpoint: the probe mechanism sets the instruction pointer
	BackNone                   // nothing: the caller appends what it needs
)

// Reach is how far moved code may be from what it refers to.
type Reach uint8

const (
	// Anywhere chooses near forms where they reach and far forms where not.
	Anywhere Reach = iota
	// Near uses only forms that keep an instruction's own field; Encode
	// answers ErrRange where they do not reach.
	Near
	// Far uses far forms throughout, so that the code may be moved again.
	Far
)

// ScratchPolicy says where a far form takes a register from. A dead one saves
// the way over the stack.
type ScratchPolicy uint8

const (
	ScratchStack ScratchPolicy = iota // one of Options.Registers, else one that is saved on the stack
	ScratchGiven                      // only one of Options.Registers
	ScratchNone                       // there is none: forms that need one are refused
)

// Options are what the caller chooses. The zero value asks for a boosted slot
// in user mode, anywhere, with the stack for scratch and the red zone kept.
type Options struct {
	Form    Form
	Back    Back
	Reach   Reach
	Scratch ScratchPolicy
	// Registers is the set of general registers that the caller knows to be
	// dead, in front of every instruction that moves, by number: bit 0 is rax,
	// x0 or r0. A far jump on arm64 needs one.
	Registers uint32
	// NoRedZone says that nothing below the stack pointer has to be kept:
	// 128 bytes on amd64, 288 (ELFv1) or 512 (ELFv2) on ppc64; arm64 has none.
	NoRedZone bool
	// Kernel says that the code runs in kernel mode; on amd64 it implies
	// NoRedZone.
	Kernel bool
	// Linux asks for the bytes of Linux 6.12: only displacements are
	// re-based, by Near rules.
	Linux bool
	// Reenter says that branches of a region to its own first instruction
	// leave it, for the original address: the probe there is then hit once
	// for every round of a loop.
	Reenter bool
}

// Dead returns the registers that may be changed.
func (o *Options) Dead() uint32 {
	if o.Scratch == ScratchNone {
		return 0
	}
	return o.Registers
}

// Action is what becomes of an instruction.
type Action uint8

const (
	Kept     Action = iota // the same bytes
	Rebased                // the same instruction with another displacement, where that reaches
	Expanded               // other instructions with the same effect
)

var actionNames = [...]string{"kept", "re-based", "expanded"}

// String returns the action in a word.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return "invalid"
}

// Note is a remark on how an instruction is moved. Notes are constant tables.
type Note struct {
	ID   string // stable: "amd64/push-return-address"
	Text string // one plain sentence
}

// Step is one instruction of a plan.
type Step struct {
	Inst   decode.Inst
	Action Action
	Note   *Note // nil where the bytes are kept
	Min    uint8 // bounds of its bytes at any address
	Max    uint8
	Offset uint16 // bytes from the start of the code; set by Encode
	// Clobbers is the set of registers that the moved form may change though
	// the instruction does not, by their index in the ISA's register file.
	Clobbers uint64
	// Detail is the ISA's own: which form, which scratch register.
	Detail uint32
}

// Plan is what becomes of a run of instructions, before the new address is
// known. The zero value is ready; a Plan may be used again.
type Plan struct {
	Steps   []Step
	Options Options
	Min     int // bounds of the encoded size in bytes at any address, way back included
	Max     int
	Align   int // what the new address must be a multiple of, in bytes: a power of 2

	code   []byte
	layout Layout
}

// From returns the address of the first instruction.
func (p *Plan) From() uint64 { return p.Steps[0].Inst.Addr }

// Next returns the address behind the last instruction.
func (p *Plan) Next() uint64 { return p.Steps[len(p.Steps)-1].Inst.Next() }

// Start empties the plan and fills it with steps for insts, all Kept, after
// checking that they may be planned together. align is the alignment of code.
// It is for the ISAs' own use.
func (p *Plan) Start(insts []decode.Inst, opt Options, align int) error {
	if len(insts) == 0 {
		return ErrEmpty
	}
	if opt.Form == Slot && len(insts) > 1 {
		return ErrNotContiguous
	}
	p.Steps, p.Options = p.Steps[:0], opt
	p.Min, p.Max, p.Align = 0, 0, align
	for i := range insts {
		inst := &insts[i]
		if inst.Len == 0 || inst.Has(decode.Invalid) {
			return decode.ErrInvalid
		}
		if i > 0 && insts[i-1].Next() != inst.Addr {
			return ErrNotContiguous
		}
		p.Steps = append(p.Steps, Step{Inst: *inst, Min: inst.Len, Max: inst.Len})
	}
	return nil
}

// BranchInto returns the address of the first step that branches into the
// middle of an instruction of the region.
func (p *Plan) BranchInto() (addr uint64, found bool) {
	for i := range p.Steps {
		inst := &p.Steps[i].Inst
		target, direct := inst.BranchTarget()
		if !direct || !p.Inside(target) {
			continue
		}
		if _, start := p.step(target); !start {
			return inst.Addr, true
		}
	}
	return 0, false
}

// Inside reports whether a branch to an original address stays in a region
// that moves. A single instruction's branch to itself leaves its slot.
func (p *Plan) Inside(addr uint64) bool {
	if p.Options.Form != Region || p.Options.Reenter && addr == p.From() {
		return false
	}
	return addr-p.From() < p.Next()-p.From()
}

// step returns the step of the instruction that starts at addr.
func (p *Plan) step(addr uint64) (*Step, bool) {
	for i := range p.Steps {
		if p.Steps[i].Inst.Addr == addr {
			return &p.Steps[i], true
		}
	}
	return nil, false
}

// Finish sums the bounds of the steps up. near and far are the sizes in bytes
// of a jump back. It is for the ISAs' own use.
func (p *Plan) Finish(near, far int) {
	for i := range p.Steps {
		p.Min += int(p.Steps[i].Min)
		p.Max += int(p.Steps[i].Max)
	}
	switch p.Options.Reach {
	case Near:
		far = near
	case Far:
		near = far
	}
	p.Min += near
	p.Max += far
}

// Relocator moves instructions of one ISA.
type Relocator interface {
	// Plan fills p for instructions that follow one another. It answers a
	// *RefusedError, ErrEmpty, ErrNotContiguous or decode.ErrInvalid; with
	// Options.Form Slot, more than one instruction is ErrNotContiguous.
	Plan(p *Plan, insts []decode.Inst, opt Options) error
	// Encode writes the code of p for the address to into dst and returns its
	// length in bytes. It answers ErrTooSmall, ErrRange or ErrMisaligned, and
	// dst is untouched then.
	Encode(dst []byte, p *Plan, to uint64) (int, error)
}

// Refuse returns the error that rule r forbids moving the instruction at addr.
func Refuse(r *classify.Rule, addr uint64) error { return &RefusedError{Rule: r, Addr: addr} }
