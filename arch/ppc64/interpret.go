package ppc64

import (
	"xol/decode"
	"xol/machine"
)

// Interpret does what a branch does, and addpcis, as Linux does [analyse_instr in
// arch/powerpc/lib/sstep.c], in 64-bit mode. Returns from interrupts are not
// known, nor is bcctr that counts down: an invalid form, on which processors
// disagree.
func (ISA) Interpret(inst *decode.Inst, r machine.Registers, _ machine.Memory) (done bool, err error) {
	switch OpOf(inst) {
	case OpBranch:
		branch(inst, r, inst.Target, true)
	case OpBranchCond:
		branch(inst, r, inst.Target, conditionHolds(inst, r))
	case OpBranchLR:
		branchRegister(inst, r, LR)
	case OpBranchCTR:
		if countsDown(inst) {
			return false, nil
		}
		branchRegister(inst, r, CTR)
	case OpBranchTAR:
		branchRegister(inst, r, TAR)
	case OpAddPCIS:
		r.SetReg(R0+int(WordOf(inst)>>21&31), inst.Target)
		r.SetReg(PC, inst.Next())
	default:
		return false, nil
	}
	return true, nil
}

// branchRegister reads the target first: it may be in the link register.
func branchRegister(inst *decode.Inst, r machine.Registers, register int) {
	target := r.Reg(register) &^ (wordSize - 1)
	branch(inst, r, target, conditionHolds(inst, r))
}

// branch goes to target where taken is set, and saves the address of the next
// instruction in any case if the branch links.
func branch(inst *decode.Inst, r machine.Registers, target uint64, taken bool) {
	if inst.Has(decode.Link) {
		r.SetReg(LR, inst.Next())
	}
	if !taken {
		target = inst.Next()
	}
	r.SetReg(PC, target)
}

// Bits of BO [Power ISA 3.1, Book I, 2.4]. The others are hints.
const (
	boAnyCondition = 16
	boIfSet        = 8
	boAnyCount     = 4
	boIfZero       = 2
)

func fieldBO(word uint32) uint32 { return word >> 21 & 31 }

// countsDown reports whether a conditional branch changes CTR.
func countsDown(inst *decode.Inst) bool { return fieldBO(WordOf(inst))&boAnyCount == 0 }

// conditionHolds reports whether to branch, as the fields BO and BI say. It
// counts down, unless BO says that the count does not matter.
func conditionHolds(inst *decode.Inst, r machine.Registers) bool {
	word := WordOf(inst)
	bo, bi := fieldBO(word), word>>16&31
	count := true
	if countsDown(inst) {
		next := r.Reg(CTR) - 1
		r.SetReg(CTR, next)
		count = (next == 0) == (bo&boIfZero != 0)
	}
	set := r.Reg(CR)>>(31-bi)&1 != 0
	return count && (bo&boAnyCondition != 0 || set == (bo&boIfSet != 0))
}
