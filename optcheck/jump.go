package optcheck

import (
	"encoding/binary"

	"xol/classify"
	"xol/decode"
)

// Memory is what a program's data holds before it runs. image.Image is one.
type Memory interface {
	// Data returns size bytes at addr, in dst's memory where that suffices.
	Data(dst []byte, addr, size uint64) ([]byte, error)
	// Pointer returns the address that the 8-byte word at addr holds when the
	// program runs, as far as it is an address in the file.
	Pointer(addr uint64) (target uint64, ok bool)
	// DataEnd returns the address behind the section that holds addr.
	DataEnd(addr uint64) (end uint64, ok bool)
}

// JumpKind says what is known of where an indirect jump goes.
type JumpKind uint8

const (
	// JumpUnresolved: the target is computed in a way that is not understood.
	JumpUnresolved JumpKind = iota
	// JumpTable: the target comes from a table.
	JumpTable
	// JumpPointer: the target is a whole address that was in memory or in a
	// register before: a function pointer, a computed goto's label, a link
	// register. It can only be an address that is written down somewhere.
	JumpPointer
)

var jumpNames = [...]string{"unresolved", "table", "pointer"}

// String returns the kind in one word.
func (k JumpKind) String() string {
	if int(k) < len(jumpNames) {
		return jumpNames[k]
	}
	return "invalid"
}

// Bound says how the number of a table's entries is known.
type Bound uint8

const (
	// BoundNone: not at all; entries are taken while they make sense.
	BoundNone Bound = iota
	// BoundCompare: from the comparison in front of the jump.
	BoundCompare
	// BoundMask: the index is masked, or its type is too small for more. The
	// table may be shorter.
	BoundMask
)

// Table describes a jump table in memory. A target is Base plus the entry,
// sign- or zero-extended from Width bytes and shifted left by Shift; where
// Width is 8 and Base 0, an entry is the address itself.
type Table struct {
	Addr   uint64 // of the first entry
	Base   uint64
	Count  int    // entries, with BoundMask at most; 0 where Bound is BoundNone
	Check  uint64 // address of the comparison or mask; 0 where there is none
	Width  uint8  // bytes of an entry: 1, 2, 4 or 8
	Shift  uint8
	Signed bool
	Bound  Bound
}

// Jump is what is known of an indirect jump.
type Jump struct {
	Kind  JumpKind
	Table Table  // where Kind is JumpTable
	What  string // where Kind is JumpUnresolved: one clause, constant
}

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
	// IndirectJump says where the indirect jump f.Insts[i] goes. It looks at
	// no more than a bounded number of instructions. f.Insts need not all
	// decode.
	IndirectJump(f *classify.Func, i int, mem Memory) Jump
	// TablesInText reports whether compilers put jump tables among the
	// instructions, so that only a survey tells them apart.
	TablesInText() bool
	// FormsAddress returns the absolute address that inst makes as an
	// immediate, besides a PC-relative operand, in a program that is not
	// position-independent.
	FormsAddress(inst *decode.Inst) (addr uint64, ok bool)
}
