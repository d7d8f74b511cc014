package amd64

import (
	"xol/decode"
	"xol/machine"
)

// Interpret does what a near jump, call, return or loop does. It does not know
// those whose operand is in r16 to r31, which are not in the register file; nor
// those on which processors disagree: with a prefix for operands of 16 bits, and
// loops with one for another condition; nor xbegin and far transfers.
//
// Control-flow enforcement is taken to be off. A target that is not canonical
// becomes the program counter, where a processor raises #GP at the branch.
func (ISA) Interpret(inst *decode.Inst, r machine.Registers, m machine.Memory) (done bool, err error) {
	d := DetailOf(inst)
	if d.Encoding() > EncREX2 || d.operandIs16() {
		return false, nil
	}
	c := cpu{r, m}
	switch inst.Flow {
	case decode.FlowJump:
		c.SetReg(RIP, inst.Target)
		return true, nil
	case decode.FlowJumpIf:
		return c.jumpIf(inst), nil
	case decode.FlowCall:
		return c.call(inst, inst.Target)
	case decode.FlowReturn:
		if OpOf(inst) == OpReturn {
			return c.ret(inst)
		}
	case decode.FlowJumpIndirect:
		if OpOf(inst) == OpJumpIndirect && !d.usesR16() {
			return c.jumpIndirect(inst)
		}
	case decode.FlowCallIndirect:
		if OpOf(inst) == OpCallIndirect && !d.usesR16() {
			return c.callIndirect(inst)
		}
	}
	return false, nil
}

// usesR16 reports whether some operand in ModRM may be in r16 to r31.
func (d Detail) usesR16() bool { return d.B4()|d.X4() != 0 }

// cpu is what an instruction is done to.
type cpu struct {
	machine.Registers
	machine.Memory
}

// jumpIf does jcc, loop, loope, loopne and jrcxz.
func (c cpu) jumpIf(inst *decode.Inst) bool {
	d, taken := DetailOf(inst), false
	switch OpOf(inst) {
	case OpJumpIf:
		taken = conditionHolds(d.Opcode(), c.Reg(RFLAGS))
	case OpLoop:
		if d.repeats() {
			return false
		}
		taken = c.loop(d)
	default:
		return false
	}
	pc := inst.Next()
	if taken {
		pc = inst.Target
	}
	c.SetReg(RIP, pc)
	return true
}

// conditionFlags are the flags of which one must be set, by the condition's bits
// 1 to 3. Conditions 6 and 7 also hold where SF is not OF.
var conditionFlags = [8]uint64{
	FlagOF, FlagCF, FlagZF, FlagCF | FlagZF, FlagSF, FlagPF, 0, FlagZF,
}

// conditionHolds tests the condition in the low bits of an opcode [Intel SDM,
// volume 1, appendix B]. The lowest bit negates it.
func conditionHolds(opcode byte, flags uint64) bool {
	which := opcode >> 1 & 7
	holds := flags&conditionFlags[which] != 0 ||
		which >= 6 && (flags&FlagSF != 0) != (flags&FlagOF != 0)
	return holds != (opcode&1 != 0)
}

// The second opcode bits of loops.
const (
	loopNotEqual = iota
	loopEqual
	loopAlways
	jumpCountZero
)

// repeats reports whether prefixes contradict the condition of loope or loopne.
// AMD's processors take the prefix's.
func (d Detail) repeats() bool {
	repetitions := d.Prefixes() & repPrefixes
	switch d.Opcode() & 3 {
	case loopNotEqual:
		return repetitions&PrefixF3 != 0
	case loopEqual:
		return repetitions&PrefixF2 != 0
	}
	return false
}

// loop counts down, but for jrcxz, and reports whether to jump. With 32-bit
// addresses, the count is ecx.
func (c cpu) loop(d Detail) bool {
	count, mask := c.Reg(RCX), ^uint64(0)
	if d.addressIs32() {
		mask = 1<<32 - 1
	}
	if d.Opcode()&3 == jumpCountZero {
		return count&mask == 0
	}
	count = (count - 1) & mask
	c.SetReg(RCX, count)
	equal := c.Reg(RFLAGS)&FlagZF != 0
	switch d.Opcode() & 3 {
	case loopNotEqual:
		return count != 0 && !equal
	case loopEqual:
		return count != 0 && equal
	}
	return count != 0
}

const addressBytes = 8

func (c cpu) call(inst *decode.Inst, target uint64) (bool, error) {
	sp := c.Reg(RSP) - addressBytes
	if err := c.WriteWord(sp, inst.Next()); err != nil {
		return false, err
	}
	c.SetReg(RSP, sp)
	c.SetReg(RIP, target)
	return true, nil
}

// ret also does the form that drops arguments.
func (c cpu) ret(inst *decode.Inst) (bool, error) {
	sp := c.Reg(RSP)
	target, err := c.ReadWord(sp)
	if err != nil {
		return false, err
	}
	c.SetReg(RSP, sp+addressBytes+immediate16(inst))
	c.SetReg(RIP, target)
	return true, nil
}

// immediate16 returns the immediate operand of two bytes, 0 where there is none.
func immediate16(inst *decode.Inst) uint64 {
	if inst.Fields.ImmLen != 2 {
		return 0
	}
	at := inst.Fields.Imm
	return uint64(inst.Raw[at]) | uint64(inst.Raw[at+1])<<8
}

func (c cpu) jumpIndirect(inst *decode.Inst) (bool, error) {
	target, err := c.operand(inst)
	if err != nil {
		return false, err
	}
	c.SetReg(RIP, target)
	return true, nil
}

// callIndirect reads its operand before it pushes the return address.
func (c cpu) callIndirect(inst *decode.Inst) (bool, error) {
	target, err := c.operand(inst)
	if err != nil {
		return false, err
	}
	return c.call(inst, target)
}

// operand returns the 64-bit operand that ModRM.rm designates.
func (c cpu) operand(inst *decode.Inst) (uint64, error) {
	d := DetailOf(inst)
	if d.Mod() == 3 {
		return c.Reg(int(d.B()<<3 | d.RM())), nil
	}
	return c.ReadWord(c.segmentBase(inst) + c.effectiveAddress(inst))
}

// effectiveAddress returns the address of an operand in memory, without its
// segment's base [Intel SDM, volume 2, 2.1.5 and 2.2.1].
func (c cpu) effectiveAddress(inst *decode.Inst) uint64 {
	d := DetailOf(inst)
	addr := uint64(int64(displacement(inst)))
	switch {
	case inst.Has(decode.HasTarget): // RIP-relative
		addr = inst.Target
	case d.RM() == RSP:
		addr += c.scaledIndexBase(inst)
	default:
		addr += c.Reg(int(d.B()<<3 | d.RM()))
	}
	if d.addressIs32() {
		addr &= 1<<32 - 1
	}
	return addr
}

// scaledIndexBase returns what the SIB byte designates.
func (c cpu) scaledIndexBase(inst *decode.Inst) (addr uint64) {
	d, sib := DetailOf(inst), inst.Raw[inst.Fields.Operands+1]
	if hasIndex(inst) {
		addr = c.Reg(int(d.X()<<3|sib>>3&7)) << (sib >> 6)
	}
	if base := sib & 7; base != RBP || d.Mod() != 0 {
		addr += c.Reg(int(d.B()<<3 | base))
	}
	return addr
}

// segmentBase returns the base of the segment that a prefix chooses: the last of
// FS and GS counts, the others have no base in 64-bit mode.
func (c cpu) segmentBase(inst *decode.Inst) uint64 {
	if DetailOf(inst).Prefixes()&basedSegments == 0 {
		return 0
	}
	if lastPrefix(inst, basedSegments) == PrefixFS {
		return c.Reg(FSBase)
	}
	return c.Reg(GSBase)
}
