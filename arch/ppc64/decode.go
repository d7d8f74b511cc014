package ppc64

import (
	"encoding/binary"

	"xol/decode"
)

//go:generate go run gen.go

// Op is the class of an instruction, as it stands in decode.Inst.Op.
type Op uint8

// The classes. Everything that a probe mechanism need not tell apart is
// OpOther.
const (
	OpOther            Op = iota
	OpBranch              // b, I-form
	OpBranchCond          // bc, B-form
	OpBranchLR            // bclr
	OpBranchCTR           // bcctr
	OpBranchTAR           // bctar
	OpSyscall             // sc, scv
	OpReturn              // rfid and its kin, rfebb
	OpTrap                // tw, td, twi, tdi
	OpHalt                // stop, wait, attn and older power-saving instructions
	OpLoadReserve         // lbarx, lharx, lwarx, ldarx, lqarx
	OpStoreConditional    // stbcx., sthcx., stwcx., stdcx., stqcx.
	OpMoveMSR             // mtmsr, mtmsrd
	OpMoveSPR             // mfspr, mtspr
	OpAddPCIS             // addpcis
	OpPCMemory            // a prefixed load or store with R=1
	OpPCAddress           // paddi with R=1
	OpPrefixedNop         // pnop
)

// OpOf returns the class of an instruction that this package decoded.
func OpOf(i *decode.Inst) Op { return Op(i.Op) }

// WordOf returns the instruction word of an instruction that this package
// decoded, or the suffix of a prefixed one, whatever the byte order.
func WordOf(i *decode.Inst) uint32 { return uint32(i.Detail) }

// PrefixOf returns the prefix of a prefixed instruction, 0 of another.
func PrefixOf(i *decode.Inst) uint32 { return uint32(i.Detail >> 32) }

// prefixOpcode is the primary opcode of prefixes.
const prefixOpcode = 1

// opcode says where in index the instructions of a primary opcode start and
// which bits of the word are added.
type opcode struct {
	start uint16
	shift uint8
	mask  uint16
}

// code is an instruction, or some words of one: those with word&mask == value
// that meet the conditions.
type code struct {
	mask, value uint32
	op          Op
	privileged  bool
	cond, conds uint8 // place in the list conds and number of them
}

// prefix is the same for the prefix of an instruction.
type prefix struct{ mask, value uint32 }

// format says how an instruction is written.
type format struct {
	name                 string
	args                 [6]uint8 // in the assembler's order
	firstAlias, numAlias uint16
}

// alias is another way to write some words of an instruction.
type alias struct {
	code
	format
}

// matches reports whether word is one of c.
func (c *code) matches(word uint64) bool {
	return uint32(word)&c.mask == c.value && (c.conds == 0 || c.allows(word))
}

// allows reports whether word meets the conditions of c.
func (c *code) allows(word uint64) bool {
	for i := c.cond; i < c.cond+c.conds; i++ {
		if !conds[i].holds(word) {
			return false
		}
	}
	return true
}

// lookup returns the number of the instruction that word is, 0 where it is
// none. A prefix stands in the upper half of word.
func lookup(word uint64) uint16 {
	if word>>32 != 0 {
		return lookupPrefixed(word)
	}
	o := &opcodes[word>>26&63]
	i := index[o.start+uint16(word>>(o.shift&31))&o.mask]
	if i&indexChain == 0 {
		if codes[i].matches(word) {
			return i
		}
		return 0
	}
	for chain := chains[i&^indexChain:]; chain[0] != 0; chain = chain[1:] {
		if codes[chain[0]].matches(word) {
			return chain[0]
		}
	}
	return 0
}

func lookupPrefixed(word uint64) uint16 {
	o := &opcodes[64+word>>56&3]
	i := index[o.start+uint16(word>>(o.shift&31))&o.mask]
	single := [...]uint16{i, 0}
	chain := single[:]
	if i&indexChain != 0 {
		chain = chains[i&^indexChain:]
	}
	for ; chain[0] != 0; chain = chain[1:] {
		p := &prefixes[chain[0]-firstPrefixed]
		if uint32(word>>32)&p.mask == p.value && codes[chain[0]].matches(word) {
			return chain[0]
		}
	}
	return 0
}

// segment is a run of bits of a word.
type segment struct{ shift, width uint8 }

// arg is an operand and how it is printed.
type arg struct {
	kind     argKind
	segments [3]segment // high part first
	scale    uint8      // the value is shifted left by this
	base     bool       // an address register, printed in parentheses
	optional bool       // not printed where it is def, and so is all behind it
	def      uint8      // also the number that an argLiteral is
}

// raw returns the operand's bits, neither scaled nor sign-extended, and their
// number.
func (a *arg) raw(word uint64) (value uint64, width uint8) {
	for _, s := range a.segments {
		value = value<<s.width | word>>s.shift&(1<<s.width-1)
		width += s.width
	}
	return value, width
}

// signed returns the operand as a signed number, scaled.
func (a *arg) signed(word uint64) int64 {
	v, width := a.raw(word)
	return int64(v<<(64-width)) >> (64 - width) << a.scale
}

// condOp is a kind of condition.
type condOp uint8

const (
	condEqual  condOp = iota // a = b
	condDiffer               // a ≠ b or n
	condLess                 // a < b or n
	condSum                  // a + b = n
	condEven                 // a is even
	condOneBit               // a is a power of two
	condApart                // VSX register a is not part of accumulator b
)

// cond restricts operands; a and b are places in args, 0 for none.
type cond struct {
	op   condOp
	a, b uint8
	n    uint8
}

func (c *cond) holds(word uint64) bool {
	a, _ := args[c.a].raw(word)
	b, _ := args[c.b].raw(word)
	n := uint64(c.n)
	switch c.op {
	case condEqual:
		return a == b
	case condDiffer:
		return a != b+n
	case condLess:
		return a < b+n
	case condSum:
		return a+b == n
	case condEven:
		return a&1 == 0
	case condApart:
		return a/4 != b
	default:
		return a != 0 && a&(a-1) == 0
	}
}

// classes are the flow and properties of each Op, where they do not depend on
// the operands.
var classes = [...]struct {
	flow  decode.Flow
	props decode.Props
}{
	OpBranch:           {decode.FlowJump, decode.HasTarget},
	OpBranchCond:       {decode.FlowJump, decode.HasTarget},
	OpBranchLR:         {decode.FlowReturn, 0},
	OpBranchCTR:        {decode.FlowJumpIndirect, 0},
	OpBranchTAR:        {decode.FlowJumpIndirect, 0},
	OpSyscall:          {decode.FlowSyscall, 0},
	OpReturn:           {decode.FlowReturn, 0},
	OpTrap:             {decode.FlowTrap, 0},
	OpHalt:             {decode.FlowHalt, 0},
	OpLoadReserve:      {0, decode.LoadExclusive},
	OpStoreConditional: {0, decode.StoreExclusive},
	OpMoveMSR:          {},
	OpMoveSPR:          {},
	OpAddPCIS:          {0, decode.HasTarget},
	OpPCMemory:         {0, decode.HasTarget},
	OpPCAddress:        {0, decode.HasTarget},
	OpPrefixedNop:      {},
}

// Decode decodes the instruction at code[0], which stands at addr. Reserved
// bits must be 0, and the invalid forms of the manual are no instructions;
// but the hint bits of conditional branches that the manual says are ignored
// may have any value. A prefixed instruction that crosses a 64-byte boundary
// is decoded, although the CPU will not execute it.
func (a ISA) Decode(inst *decode.Inst, code []byte, addr uint64) error {
	*inst = decode.Inst{Addr: addr}
	if len(code) < 4 {
		return decode.ErrTruncated
	}
	word, n := uint64(a.word(code)), uint8(4)
	if word>>26 == prefixOpcode {
		if len(code) < 8 {
			return decode.ErrTruncated
		}
		word, n = word<<32|uint64(a.word(code[4:])), 8
	}
	number := lookup(word)
	c := &codes[number]
	if number == 0 || c.op == OpPrefixedNop && !nopSuffix(word) {
		return decode.ErrInvalid
	}
	copy(inst.Raw[:n], code)
	inst.Len = n
	inst.Detail = word
	inst.Op = uint16(c.op)
	if c.privileged {
		inst.Props = decode.Privileged
	}
	if c.op != OpOther {
		finish(inst, c.op)
	}
	return nil
}

// word reads an instruction word.
func (a ISA) word(code []byte) uint32 {
	if a.LittleEndian {
		return binary.LittleEndian.Uint32(code)
	}
	return binary.BigEndian.Uint32(code)
}

// finish fills in flow, target and properties.
func finish(inst *decode.Inst, op Op) {
	c := &classes[op]
	inst.Flow = c.flow
	inst.Props |= c.props
	word := uint32(inst.Detail)
	switch op {
	case OpBranch:
		direct(inst, int64(int32(word<<6)>>6&^3))
		link(inst)
	case OpBranchCond:
		direct(inst, int64(int16(word&^3)))
		link(inst)
		conditional(inst)
	case OpBranchLR, OpBranchCTR, OpBranchTAR:
		link(inst)
		conditional(inst)
	case OpTrap:
		if boField(word) != trapAlways {
			inst.Props |= decode.Conditional
		}
	case OpMoveSPR:
		// This bit of the number of an SPR marks those that problem state
		// cannot read or write [Power ISA 3.1, Book III, table of SPRs].
		if word>>20&1 != 0 {
			inst.Props |= decode.Privileged
		}
	case OpAddPCIS:
		high := int16(word&0xffc0 | word>>15&0x3e | word&1)
		relative(inst, decode.PCRelAddress, 4+int64(high)<<16)
	case OpPCMemory:
		relative(inst, decode.PCRelMemory, displacement34(inst.Detail))
	case OpPCAddress:
		relative(inst, decode.PCRelAddress, displacement34(inst.Detail))
	}
}

// relative notes an operand that lies offset bytes from the instruction.
func relative(inst *decode.Inst, kind decode.PCRelKind, offset int64) {
	inst.Target = inst.Addr + uint64(offset)
	inst.PCRel = decode.PCRel{Kind: kind, Width: inst.Len * 8}
}

// direct notes the target of a branch, relative or absolute.
func direct(inst *decode.Inst, offset int64) {
	const absolute = 2 // AA
	if inst.Detail&absolute == 0 {
		relative(inst, decode.PCRelBranch, offset)
	} else {
		inst.Target = uint64(offset)
	}
}

// link turns a branch with LK set into a call.
func link(inst *decode.Inst) {
	if inst.Detail&1 == 0 {
		return
	}
	inst.Props |= decode.Link
	if inst.Flow == decode.FlowJump {
		inst.Flow = decode.FlowCall
	} else {
		inst.Flow = decode.FlowCallIndirect
	}
}

// conditional marks a branch that its field BO does not make unconditional.
func conditional(inst *decode.Inst) {
	if boField(uint32(inst.Detail))&boAlways == boAlways {
		return
	}
	inst.Props |= decode.Conditional
	if inst.Flow == decode.FlowJump {
		inst.Flow = decode.FlowJumpIf
	}
}

// Bits of the field BO [Power ISA 3.1, Book I, 2.4], and the value of TO that
// always traps.
const (
	boIgnoreCR  = 0x10 // do not test the CR bit BI
	boTrue      = 0x08 // branch where it is 1; without a test: a hint follows
	boIgnoreCTR = 0x04 // do not decrement and test CTR
	boZero      = 0x02 // branch where CTR became 0; without a test: a hint follows
	boAlways    = boIgnoreCR | boIgnoreCTR
	trapAlways  = 31
)

// boField returns BO or TO.
func boField(word uint32) uint32 { return word >> 21 & 31 }

// displacement34 returns the displacement or immediate operand of a prefixed
// D-form.
func displacement34(word uint64) int64 {
	v := word>>16&0x3_ffff_0000 | word&0xffff
	return int64(v<<30) >> 30
}

// nopSuffix reports whether the suffix of word may stand behind the prefix of
// pnop: no branch, no return, no system call and no attn or stop, and nothing
// else that synchronizes the context but isync [Power ISA 3.1, Book I, 3.3.19].
func nopSuffix(word uint64) bool {
	switch codes[lookup(word&0xffff_ffff)].op {
	case OpBranch, OpBranchCond, OpBranchLR, OpBranchCTR, OpBranchTAR,
		OpSyscall, OpReturn, OpHalt, OpMoveMSR:
		return false
	}
	return true
}
