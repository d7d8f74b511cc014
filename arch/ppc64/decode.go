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

	opCount
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
	start, mask uint16
	shift       uint32
}

// code is an instruction, or some words of one: those with word&mask == value
// that meet the conditions.
type code struct {
	mask, value uint32
	class       class // and privileged
	cond, conds uint8 // place in the list conds and number of them
}

// op returns the class of the instruction for the users of this package.
func (c *code) op() Op { return classes[c.class&^privileged].op }

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

// entry returns what index says of a word, or of a suffix of a given type of
// prefix: primary is its opcode, or 64 and the type.
func entry(primary, word uint32) uint16 {
	o := &opcodes[primary]
	return index[(o.start+uint16(word>>(o.shift&31))&o.mask)%uint16(len(index))]
}

// lookup returns the number of the instruction that word is, 0 where it is
// none. A prefix stands in the upper half of word.
func lookup(word uint64) uint16 {
	primary := uint32(word >> 26 & 63)
	if word>>32 != 0 {
		primary = uint32(64 + word>>56&3)
	}
	i := entry(primary, uint32(word))
	if i&indexChain == 0 {
		if isInstruction(i, word) {
			return i
		}
		return 0
	}
	for chain := chains[i&^indexChain:]; chain[0] != 0; chain = chain[1:] {
		if isInstruction(chain[0], word) {
			return chain[0]
		}
	}
	return 0
}

// isInstruction reports whether word is instruction number i.
func isInstruction(i uint16, word uint64) bool {
	if i >= firstPrefixed {
		p := &prefixes[i-firstPrefixed]
		if uint32(word>>32)&p.mask != p.value {
			return false
		}
	}
	return codes[i].matches(word)
}

// segment is a run of bits of a word.
type segment struct{ shift, width uint8 }

// arg is an operand and how it is printed.
type arg struct {
	kind     argKind
	segments [3]segment // high part first
	scale    uint8      // the value is shifted left by this
	base     bool       // an address register, printed in parentheses
	optional bool       // not printed where it is def, and so is all after it
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

// class says what to do when an instruction has been found.
type class uint8

const (
	classOther class = iota
	classB
	classBL
	classBA
	classBLA
	classBC
	classBCL
	classBCA
	classBCLA
	classBCLR
	classBCLRL
	classBCCTR
	classBCCTRL
	classBCTAR
	classBCTARL
	classSyscall
	classReturn
	classTrap
	classHalt
	classLoadReserve
	classStoreConditional
	classMoveMSR
	classMoveSPR
	classAddPCIS
	classPCMemory
	classPCAddress
	classPrefixedNop

	// privileged: the instruction faults in problem state.
	privileged class = 0x80
)

// classes are what the instructions of each class have in common. Where the
// field BO may make a branch unconditional, the table has the conditional form.
var classes = [...]struct {
	op     Op
	flow   decode.Flow
	bo     bool
	direct uint8 // a direct branch: the bits before its displacement
	kind   decode.PCRelKind
	props  decode.Props
}{
	classB:    {OpBranch, decode.FlowJump, false, 6, decode.PCRelBranch, decode.HasTarget},
	classBL:   {OpBranch, decode.FlowCall, false, 6, decode.PCRelBranch, decode.HasTarget | decode.Link},
	classBA:   {OpBranch, decode.FlowJump, false, 6, decode.PCRelNone, decode.HasTarget},
	classBLA:  {OpBranch, decode.FlowCall, false, 6, decode.PCRelNone, decode.HasTarget | decode.Link},
	classBC:   {OpBranchCond, decode.FlowJumpIf, true, 16, decode.PCRelBranch, decode.HasTarget | decode.Conditional},
	classBCL:  {OpBranchCond, decode.FlowCall, true, 16, decode.PCRelBranch, decode.HasTarget | decode.Conditional | decode.Link},
	classBCA:  {OpBranchCond, decode.FlowJumpIf, true, 16, decode.PCRelNone, decode.HasTarget | decode.Conditional},
	classBCLA: {OpBranchCond, decode.FlowCall, true, 16, decode.PCRelNone, decode.HasTarget | decode.Conditional | decode.Link},

	classBCLR:   {op: OpBranchLR, flow: decode.FlowReturn, bo: true, props: decode.Conditional},
	classBCLRL:  {op: OpBranchLR, flow: decode.FlowCallIndirect, bo: true, props: decode.Conditional | decode.Link},
	classBCCTR:  {op: OpBranchCTR, flow: decode.FlowJumpIndirect, bo: true, props: decode.Conditional},
	classBCCTRL: {op: OpBranchCTR, flow: decode.FlowCallIndirect, bo: true, props: decode.Conditional | decode.Link},
	classBCTAR:  {op: OpBranchTAR, flow: decode.FlowJumpIndirect, bo: true, props: decode.Conditional},
	classBCTARL: {op: OpBranchTAR, flow: decode.FlowCallIndirect, bo: true, props: decode.Conditional | decode.Link},

	classSyscall:          {op: OpSyscall, flow: decode.FlowSyscall},
	classReturn:           {op: OpReturn, flow: decode.FlowReturn},
	classTrap:             {op: OpTrap, flow: decode.FlowTrap, props: decode.Conditional},
	classHalt:             {op: OpHalt, flow: decode.FlowHalt},
	classLoadReserve:      {op: OpLoadReserve, props: decode.LoadExclusive},
	classStoreConditional: {op: OpStoreConditional, props: decode.StoreExclusive},
	classMoveMSR:          {op: OpMoveMSR},
	classMoveSPR:          {op: OpMoveSPR},
	classAddPCIS:          {op: OpAddPCIS, kind: decode.PCRelAddress, props: decode.HasTarget},
	classPCMemory:         {op: OpPCMemory, kind: decode.PCRelMemory, props: decode.HasTarget},
	classPCAddress:        {op: OpPCAddress, kind: decode.PCRelAddress, props: decode.HasTarget},
	classPrefixedNop:      {op: OpPrefixedNop},
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
	word := a.word(code)
	if word>>26 == prefixOpcode {
		return a.decodePrefixed(inst, code)
	}
	i := entry(word>>26, word)
	c := &codes[i%uint16(len(codes))]
	if i >= indexChain || word&c.mask != c.value || c.conds != 0 {
		// One of several, restricted, or nothing.
		if i = lookup(uint64(word)); i == 0 {
			return decode.ErrInvalid
		}
		c = &codes[i]
	}
	inst.Detail = uint64(word)
	inst.Len = 4
	*(*[4]byte)(inst.Raw[:]) = [4]byte(code)
	if c.class != classOther {
		finish(inst, c.class)
	}
	return nil
}

// decodePrefixed is Decode for code that starts with a prefix.
func (a ISA) decodePrefixed(inst *decode.Inst, code []byte) error {
	if len(code) < 8 {
		return decode.ErrTruncated
	}
	word := uint64(a.word(code))<<32 | uint64(a.word(code[4:]))
	i := lookup(word)
	c := &codes[i]
	if i == 0 || c.class == classPrefixedNop && !nopSuffix(word) {
		return decode.ErrInvalid
	}
	inst.Detail = word
	inst.Len = 8
	*(*[8]byte)(inst.Raw[:]) = [8]byte(code)
	finish(inst, c.class)
	return nil
}

// word reads an instruction word.
func (a ISA) word(code []byte) uint32 {
	if a.LittleEndian {
		return binary.LittleEndian.Uint32(code)
	}
	return binary.BigEndian.Uint32(code)
}

// finish fills in what depends on the class of an instruction.
func finish(inst *decode.Inst, cl class) {
	c := &classes[cl&^privileged]
	inst.Op = uint16(c.op)
	inst.Flow = c.flow
	inst.Props = c.props
	if cl&privileged != 0 {
		inst.Props |= decode.Privileged
	}
	if c.kind != decode.PCRelNone {
		inst.PCRel = decode.PCRel{Kind: c.kind, Width: inst.Len * 8}
		inst.Target = inst.Addr
	}
	word := uint32(inst.Detail)
	if c.direct != 0 {
		inst.Target += uint64(int32(word<<c.direct)>>c.direct) &^ 3
	}
	if c.bo && boField(word)&boAlways == boAlways {
		inst.Props &^= decode.Conditional
		if inst.Flow == decode.FlowJumpIf {
			inst.Flow = decode.FlowJump
		}
	}
	switch cl {
	case classTrap:
		if boField(word) == trapAlways {
			inst.Props = 0
		}
	case classMoveSPR:
		// This bit of the number of an SPR marks those that problem state
		// cannot read or write [Power ISA 3.1, Book III, table of SPRs].
		if word>>20&1 != 0 {
			inst.Props = decode.Privileged
		}
	case classAddPCIS:
		high := int16(word&0xffc0 | word>>15&0x3e | word&1)
		inst.Target += 4 + uint64(int64(high)<<16)
	case classPCMemory, classPCAddress:
		inst.Target += displacement34(inst.Detail)
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
func displacement34(word uint64) uint64 {
	v := word>>16&0x3_ffff_0000 | word&0xffff
	return uint64(int64(v<<30) >> 30)
}

// nopSuffix reports whether the suffix of word may stand after the prefix of
// pnop: no branch, no return, no system call and no attn or stop, and nothing
// else that synchronizes the context but isync [Power ISA 3.1, Book I, 3.3.19].
func nopSuffix(word uint64) bool {
	switch codes[lookup(word&0xffff_ffff)].op() {
	case OpBranch, OpBranchCond, OpBranchLR, OpBranchCTR, OpBranchTAR,
		OpSyscall, OpReturn, OpHalt, OpMoveMSR:
		return false
	}
	return true
}
