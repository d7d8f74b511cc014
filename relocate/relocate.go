// Package relocate holds the model of moved code: a plan of what becomes of
// every instruction, with size bounds, and then the bytes that have the same
// effect at a given address, as an instruction slot or as part of a detour
// buffer. The forms of one ISA are in arch/<isa>.
package relocate

import (
	"cmp"
	"sort"

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
	// Function is instructions of a function in the order of addresses, with
	// gaps where execution does not go on. Branches to the start of one of them
	// stay inside, and all others go to their original target. What cannot be
	// moved is left where it is: the moved code jumps there.
	Function
)

// Back is how moved code returns to the instruction after the original.
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
	// dead, before every instruction that moves, by number: bit 0 is rax,
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
	// Before, where it is not nil, writes code that runs before instructions.
	Before Inserter
}

// Inserter writes code of the caller's own that runs before moved instructions. Who
// branches to such an instruction runs it as well.
type Inserter interface {
	// InsertSize returns bounds of the bytes before step i at any address.
	InsertSize(i int) (least, most int)
	// Insert appends the code before step i, which stands at an address. It
	// answers ErrRange.
	Insert(code []byte, i int, at uint64) ([]byte, error)
}

// RefuseFar returns rule, which forbids the far form of an instruction, where
// only far forms are used, and nil where the near form is left.
func (o *Options) RefuseFar(rule *classify.Rule) *classify.Rule {
	if o.Reach == Far {
		return rule
	}
	return nil
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
	// Left says that the instruction cannot be moved: its moved form is a jump
	// to the original.
	Left bool
	// Offset is where the step starts, and Body where the moved instruction does,
	// after what is inserted before it; bytes from the start of the code, set by
	// Encode.
	Offset, Body uint32
	// Clobbers is the set of registers that the moved form may change though
	// the instruction does not, by their index in the ISA's register file.
	Clobbers uint64
	Form     uint8 // the ISA's own: how the step is emitted; 0 keeps the bytes
	Scratch  Scratch
}

// NoRegister is the number of no register.
const NoRegister = 0xff

// Scratch is the register that a moved form needs besides those of the
// instruction.
type Scratch struct {
	Reg   uint8 // its number; NoRegister where there is none
	Saved bool  // it is live, and the stack keeps it meanwhile
}

// None reports whether there is no register.
func (r Scratch) None() bool { return r.Reg == NoRegister }

// Changed returns the set of registers that the form loses with r.
func (r Scratch) Changed() uint64 {
	if r.Saved || r.None() {
		return 0
	}
	return 1 << r.Reg
}

// SetForms sets bounds and action of a step whose near and far forms have near
// and far bytes. The near form is the instruction itself, with another
// displacement, where it is as long.
func (s *Step) SetForms(reach Reach, near, far int) {
	s.Min, s.Max, s.Action = uint8(near), uint8(near), Rebased
	if near != int(s.Inst.Len) {
		s.Action = Expanded
	}
	s.AddFar(reach, far, far)
}

// AddFar adds a far form of least to most bytes to the near form that s has so
// far; Reach says which of them are used.
func (s *Step) AddFar(reach Reach, least, most int) {
	switch reach {
	case Near:
	case Far:
		s.Action, s.Min, s.Max = Expanded, uint8(least), uint8(most)
	default:
		s.Min, s.Max = min(s.Min, uint8(least)), max(s.Max, uint8(most))
	}
}

// Plan is what becomes of a run of instructions, before the new address is
// known. The zero value is ready; a Plan may be used again.
type Plan struct {
	Steps   []Step
	Options Options
	Min     int // bounds of the encoded size in bytes at any address, way back included
	Max     int
	Align   int // what the new address must be a multiple of, in bytes: a power of 2

	// Detail is the ISA's own, of the whole plan.
	Detail uint8

	code   []byte
	layout Layout
}

// From returns the address of the first instruction.
func (p *Plan) From() uint64 { return p.Steps[0].Inst.Addr }

// Next returns the address after the last instruction, where the way back leads.
func (p *Plan) Next() uint64 { return p.Steps[len(p.Steps)-1].Inst.Next() }

// Torn returns the first step that is a part of a load-exclusive …
// store-exclusive sequence whose other end does not move with it; nil where there
// is none. clears is the Op of what ends a sequence without a store.
func (p *Plan) Torn(clears uint16) *Step {
	var open *Step
	for i := range p.Steps {
		s := &p.Steps[i]
		switch store := s.Inst.Has(decode.StoreExclusive); {
		case s.Inst.Has(decode.LoadExclusive):
			open = s
		case store && open == nil:
			return s
		case store, s.Inst.Op == clears:
			open = nil
		}
	}
	return open
}

// BranchInto returns the address of the first step that branches into the
// middle of an instruction of the region.
func (p *Plan) BranchInto() (addr uint64, found bool) {
	if p.Options.Form != Region {
		return 0, false
	}
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
func (p *Plan) Inside(addr uint64) bool { return p.Options.Form != Slot && p.inside(addr) }

func (p *Plan) inside(addr uint64) bool {
	if p.Options.Form == Function {
		_, start := p.step(addr)
		return start
	}
	return addr-p.From() < p.Next()-p.From() && !(p.Options.Reenter && addr == p.From())
}

// step returns the step of the instruction that starts at addr.
func (p *Plan) step(addr uint64) (*Step, bool) {
	i, found := sort.Find(len(p.Steps), func(i int) int { return cmp.Compare(addr, p.Steps[i].Inst.Addr) })
	if !found {
		return nil, false
	}
	return &p.Steps[i], true
}

// Relocator moves instructions of one ISA.
type Relocator interface {
	// Plan fills p for instructions that follow one another. It answers a
	// *RefusedError, ErrEmpty, ErrNotContiguous or decode.ErrInvalid; with
	// Options.Form Slot, more than one instruction is ErrNotContiguous, and with
	// Function gaps are not.
	Plan(p *Plan, insts []decode.Inst, opt Options) error
	// Encode writes the code of p for the address to into dst and returns its
	// length in bytes. It answers ErrTooSmall, ErrRange or ErrMisaligned, and
	// dst is untouched then.
	Encode(dst []byte, p *Plan, to uint64) (int, error)
}

// Refuse returns the error that rule r forbids moving the instruction at addr.
func Refuse(r *classify.Rule, addr uint64) error { return &RefusedError{Rule: r, Addr: addr} }
