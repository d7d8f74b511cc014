package arm64

import (
	"xol/decode"
	"xol/machine"
)

// Interpret does what a branch does, and what makes or loads from an address
// relative to its own: those that Linux simulates [arch/arm64/kernel/probes/
// simulate-insn.c], and the indirect branches. Branches that authenticate, or
// compare registers, are not known, nor are loads of SIMD registers.
//
// Addresses are taken not to be tagged, and branch target identification to be
// off.
func (ISA) Interpret(inst *decode.Inst, r machine.Registers, m machine.Memory) (done bool, err error) {
	f := interpretations[OpOf(inst)%opCount]
	if f == nil {
		return false, nil
	}
	pc, err := f(inst, r, m)
	if err != nil {
		return false, err
	}
	r.SetReg(PC, pc)
	return true, nil
}

// An interpretation does what an instruction does, and returns the program
// counter after it. Nothing has changed where there is an error.
type interpretation func(inst *decode.Inst, r machine.Registers, m machine.Memory) (pc uint64, err error)

// interpretations are indexed by Op; nil where none is known.
var interpretations = [opCount]interpretation{
	OpADR:               interpretAddress,
	OpADRP:              interpretAddress,
	OpLoadLiteral:       interpretLoad,
	OpLoadLiteralSigned: interpretLoad,
	OpB:                 interpretJump,
	OpBL:                interpretCall,
	OpBCond:             interpretCondition,
	OpBCondAlways:       interpretJump,
	OpCompareBranch:     interpretCompare,
	OpTestBranch:        interpretTestBit,
	OpBR:                interpretJumpRegister,
	OpBLR:               interpretCallRegister,
	OpRET:               interpretJumpRegister,
}

// readRegister and writeRegister access a general register; number 31 is the
// zero register.
func readRegister(r machine.Registers, n uint32) uint64 {
	if n == zeroOrSP {
		return 0
	}
	return r.Reg(X0 + int(n))
}

func writeRegister(r machine.Registers, n uint32, v uint64) {
	if n != zeroOrSP {
		r.SetReg(X0+int(n), v)
	}
}

func interpretAddress(inst *decode.Inst, r machine.Registers, _ machine.Memory) (uint64, error) {
	writeRegister(r, fieldRd(inst), inst.Target)
	return inst.Next(), nil
}

// interpretLoad reads the doubleword that a word is in: it lies in one page.
func interpretLoad(inst *decode.Inst, r machine.Registers, m machine.Memory) (uint64, error) {
	const doubleword = 1 << 30
	addr := inst.Target
	if WordOf(inst)&doubleword != 0 {
		v, err := m.ReadWord(addr)
		if err != nil {
			return 0, err
		}
		writeRegister(r, fieldRd(inst), v)
		return inst.Next(), nil
	}
	v, err := m.ReadWord(addr &^ 7)
	if err != nil {
		return 0, err
	}
	v = v >> (addr & 4 * 8) & (1<<32 - 1)
	if OpOf(inst) == OpLoadLiteralSigned {
		v = uint64(int64(int32(v)))
	}
	writeRegister(r, fieldRd(inst), v)
	return inst.Next(), nil
}

func interpretJump(inst *decode.Inst, _ machine.Registers, _ machine.Memory) (uint64, error) {
	return inst.Target, nil
}

func interpretCall(inst *decode.Inst, r machine.Registers, _ machine.Memory) (uint64, error) {
	r.SetReg(X0+linkRegister, inst.Next())
	return inst.Target, nil
}

func interpretJumpRegister(inst *decode.Inst, r machine.Registers, _ machine.Memory) (uint64, error) {
	return readRegister(r, fieldRn(inst)), nil
}

// interpretCallRegister reads the target first: it may be in the link register.
func interpretCallRegister(inst *decode.Inst, r machine.Registers, _ machine.Memory) (uint64, error) {
	target := readRegister(r, fieldRn(inst))
	r.SetReg(X0+linkRegister, inst.Next())
	return target, nil
}

// branchIfTaken returns where a conditional branch goes.
func branchIfTaken(inst *decode.Inst, taken bool) (uint64, error) {
	if taken {
		return inst.Target, nil
	}
	return inst.Next(), nil
}

func interpretCondition(inst *decode.Inst, r machine.Registers, _ machine.Memory) (uint64, error) {
	return branchIfTaken(inst, conditionHolds(WordOf(inst)&15, r.Reg(NZCV)))
}

// The condition flags.
const (
	flagN = 1 << 31
	flagZ = 1 << 30
	flagC = 1 << 29
	flagV = 1 << 28
)

// conditionHolds tests a condition but al and nv [Arm ARM, C1.2.4]. The lowest
// bit negates it.
func conditionHolds(cond uint32, nzcv uint64) bool {
	n, z, c, v := nzcv&flagN != 0, nzcv&flagZ != 0, nzcv&flagC != 0, nzcv&flagV != 0
	holds := [8]bool{z, c, n, v, c && !z, n == v, n == v && !z}[cond>>1&7]
	return holds != (cond&1 != 0)
}

// interpretCompare does cbz and cbnz.
func interpretCompare(inst *decode.Inst, r machine.Registers, _ machine.Memory) (uint64, error) {
	const wide, notZero = 1 << 31, 1 << 24
	v := readRegister(r, fieldRd(inst))
	if WordOf(inst)&wide == 0 {
		v &= 1<<32 - 1
	}
	return branchIfTaken(inst, (v == 0) != (WordOf(inst)&notZero != 0))
}

// interpretTestBit does tbz and tbnz.
func interpretTestBit(inst *decode.Inst, r machine.Registers, _ machine.Memory) (uint64, error) {
	w := WordOf(inst)
	bit := w>>31<<5 | w>>19&31
	set := readRegister(r, fieldRd(inst))>>bit&1 != 0
	return branchIfTaken(inst, set == (w>>24&1 != 0))
}
