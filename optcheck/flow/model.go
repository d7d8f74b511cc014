// Package flow goes backward from an instruction over all ways that lead to it,
// and computes what registers hold there: whole addresses, constants, and the
// forms that compilers make of jump tables. What an instruction does to
// registers is an ISA's to say, in a few plain values; the walk, the values, how
// they merge and how far an index goes are the same for all.
package flow

import (
	"encoding/binary"

	"xol/classify"
	"xol/decode"
)

// Reg is the number of a register, below 48, by the ISA's own count.
type Reg = uint8

// NoReg stands for no register; as an operand it is 0.
const NoReg Reg = 0xff

// Set is what an instruction may change: registers by number, fields of
// condition flags, and memory.
type Set uint64

const (
	registers = 48 // bits of a Set that are registers
	// Flags is the first field of condition flags; there are up to eight.
	Flags Set = 1 << registers
	// Memory: some of memory may change, be it by what a called function does.
	MemoryWritten Set = 1 << 56
)

// has reports whether register r is in s. NoReg is in no set.
func (s Set) has(r Reg) bool { return s>>r&1 != 0 }

// Op is how a value comes about.
type Op uint8

const (
	OpOther   Op = iota // in a way that addresses are not computed
	OpNone              // it is left undefined, as by a call: nothing reads it
	OpWhole             // it comes whole from elsewhere, as what a function returns
	OpAddress           // K, an address that the instruction forms of its own
	OpAdd               // A + B<<Shift + K, B being extended from Bits
	OpField             // Bits of A from From on, extended, shifted left by Shift
	OpMask              // A & K
	OpInsert            // A with K in the place of Bits from From on
	OpLoad              // Width bytes at A + B<<Shift + K
	OpEither            // A or B
	OpGuard             // A ^ B: a pointer that is kept in memory in disguise
)

// Expr is what a register holds, from other registers before the instruction.
type Expr struct {
	Op    Op
	A, B  Reg
	Width uint8 // OpLoad: bytes
	Bits  uint8 // see Op; of OpLoad, 32 where the sign is extended to so many bits only
	From  uint8
	Shift uint8
	// IndexBits are those that B of OpLoad is extended from, 0 for all.
	IndexBits uint8
	Signed    bool  // OpField, OpLoad: the sign is extended; OpAdd: that of B is
	Part      uint8 // the lowest bits that are set so, if the others stay what they were
	K         uint64
}

// Address, Const, Copy, Add and Field return frequent expressions.
func Address(k uint64) Expr    { return Expr{Op: OpAddress, A: NoReg, B: NoReg, K: k} }
func Const(k uint64) Expr      { return Expr{Op: OpAdd, A: NoReg, B: NoReg, K: k} }
func Copy(a Reg) Expr          { return Add(a, 0) }
func Add(a Reg, k uint64) Expr { return Expr{Op: OpAdd, A: a, B: NoReg, K: k} }

// Field returns the lowest bits of a, extended.
func Field(a Reg, bits uint8, signed bool) Expr {
	return Expr{Op: OpField, A: a, B: NoReg, Bits: bits, Signed: signed}
}

// Store is what an instruction stores at a register, as that is before it, and a
// displacement.
type Store struct {
	Base  Reg
	Disp  uint64
	Size  uint8  // bytes
	Width uint8  // bytes of each register
	Regs  [2]Reg // one after the other; NoReg for what is none
}

// Relation is a set of how one number may stand to another.
type Relation uint8

const (
	Less Relation = 1 << iota
	Equal
	Greater
	AnyRelation = Less | Equal | Greater
)

// Comparison is that of a value with a number.
type Comparison struct {
	X     Expr  // OpAdd of one register, or OpLoad
	Width uint8 // bits that are compared
	Field uint8 // of flags
	B     Reg   // that holds the number, with K added
	K     uint64
	// Passed is the relation after an instruction that traps else; of others it
	// is AnyRelation.
	Passed Relation
}

// Condition is what a branch says of the last comparison.
type Condition struct {
	Holds  Relation
	Field  uint8
	Signed bool // of numbers with a sign
}

// Facts are what is true of a function as a whole.
type Facts struct {
	// Frame is the set of registers that point at the stack frame: no other
	// function writes there.
	Frame Set
	// Fixed is a register that holds Value wherever it is read; NoReg for none.
	Fixed Reg
	Value uint64
}

// Model is what an ISA tells of its instructions. Its values are constant.
type Model interface {
	ByteOrder() binary.ByteOrder
	// Changes returns all that inst may change.
	Changes(inst *decode.Inst) Set
	// Result returns what inst leaves in a register that it changes.
	Result(inst *decode.Inst, r Reg) Expr
	// Target returns where an indirect jump goes, OpWhole where that can only be
	// a whole pointer; or why it is not known, in one clause.
	Target(inst *decode.Inst) (x Expr, what string)
	// Store returns where inst stores, and what, if that is a register. ok is
	// false where it stores to another kind of address.
	Store(inst *decode.Inst) (s Store, ok bool)
	// Compare returns the comparison that inst makes.
	Compare(inst *decode.Inst) (c Comparison, ok bool)
	// Condition returns under what condition execution comes from a branch.
	Condition(inst *decode.Inst, taken bool) (c Condition, ok bool)
	// IsPadding recognises nops that are put between blocks.
	IsPadding(inst *decode.Inst) bool
	// IsEntry recognises the first instruction of functions, IsLabel that of
	// blocks that indirect jumps lead to.
	IsEntry(inst *decode.Inst) bool
	IsLabel(inst *decode.Inst) bool
	// IsTailCall reports whether the indirect jump insts[i] leaves the function
	// for sure: the frame is taken down before it.
	IsTailCall(insts []decode.Inst, i int) bool
	// Facts returns what is true of a function as a whole.
	Facts(f *classify.Func, mem Memory) Facts
	// Pieces reports whether addresses of code are put together from pieces in
	// several instructions, and pointers to data loaded from a table of
	// contents: then an address in the function that a register holds is told
	// by no single instruction.
	Pieces() bool
}
