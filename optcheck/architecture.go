package optcheck

import (
	"encoding/binary"

	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// Architecture is what the checks ask of one ISA. Its values are constant.
type Architecture interface {
	decode.Decoder
	// Name returns the ISA's name.
	Name() string
	// ByteOrder returns the order of bytes in data.
	ByteOrder() binary.ByteOrder
	// JumpLen returns the length in bytes of the jump that takes the
	// breakpoint's place.
	JumpLen() int
	// RegionRules returns the ISA's rules, by reason.
	RegionRules() *Rules
	// Immovable returns the rule that keeps inst from being moved into a
	// detour buffer in reach of the original; nil where it can be. It agrees
	// with what Plan says of inst alone in form relocate.Region, and costs a
	// few nanoseconds.
	Immovable(inst *decode.Inst) *classify.Rule
	// IndirectJump says where the indirect jump f.Insts[i] goes. All jumps of a
	// function are asked about with one t, which is ended after it. It looks at
	// no more than a bounded number of instructions. f.Insts need not all
	// decode.
	IndirectJump(t *flow.Tracer, f *classify.Func, i int, mem flow.Memory) flow.Jump
	// TablesInText reports whether compilers put jump tables among the
	// instructions, so that only a survey tells them apart.
	TablesInText() bool
	// FormsAddress returns the absolute address that inst makes as an
	// immediate, besides a PC-relative operand, in a program that is not
	// position-independent.
	FormsAddress(inst *decode.Inst) (addr uint64, ok bool)
}
