package amd64

import (
	"xol/classify"
	"xol/decode"
)

// uprobeNOPHazard says what is lost when the kernel takes inst for a NOP.
func (k *kernelInsn) uprobeNOPHazard(inst *decode.Inst) uint8 {
	op := k.op[0]
	switch {
	case op == nop && (k.nvex != 0 || k.nrex == 2 && k.payload[0]&0x80 != 0):
		return uprobeAsNOP
	case op == nop && (k.nrex == 2 && k.payload[0]&0x11 != 0 || k.nrex == 1 && k.rex&1 != 0):
		return uprobeXCHG
	case k.nrex == 2:
		return uprobeREX2NOP
	case (op == 0xE9 || op == 0xEB) && Branch66(inst):
		return uprobeBranchAMD
	}
	return uprobeRight
}

// uprobeEmulationHazard says what emulation makes of an instruction that only
// shares the opcode byte with a branch.
func (k *kernelInsn) uprobeEmulationHazard() uint8 {
	switch {
	case !k.borrowed():
		return uprobeRight
	case k.op[0] == 0xE8:
		return uprobeAsCall
	}
	return uprobeAsJump
}

// uprobeSlotHazard says what goes wrong when inst runs in the slot that the
// kernel made for k, with the fix-ups afterwards.
func (k *kernelInsn) uprobeSlotHazard(v *classify.Verdict, inst *decode.Inst) uint8 {
	if h := k.uprobeAddressHazard(v.Scratch != 0, inst); h != uprobeRight {
		return h
	}
	if h := k.uprobeFlowHazard(v.Fixups, inst); h != uprobeRight {
		return h
	}
	return uprobeStepHazard(v.Fixups, inst)
}

// uprobeAddressHazard compares how an operand is addressed in the slot with
// how it should be.
func (k *kernelInsn) uprobeAddressHazard(rewritten bool, inst *decode.Inst) uint8 {
	relative := (inst.PCRel.Kind == decode.PCRelMemory || inst.PCRel.Kind == decode.PCRelAddress) && !isHintNOP(inst)
	switch {
	case !relative:
		return uprobeRight
	case !rewritten, k.len != inst.Len:
		return uprobeWrongAddress
	case k.nrex == 2:
		return uprobeREX2Broken
	case k.nvex == 4 && k.payload[0]&8 != 0:
		// EVEX.B4, without effect before, now extends the register.
		return uprobeWrongAddress
	}
	return uprobeRight
}

// uprobeFlowHazard compares what the fix-ups do to the instruction pointer and
// the stack with what inst needs.
func (k *kernelInsn) uprobeFlowHazard(fix classify.Fixups, inst *decode.Inst) uint8 {
	ip, call := fix&classify.FixPC != 0, fix&classify.FixReturn != 0
	switch inst.Flow {
	case decode.FlowReturn, decode.FlowJumpIndirect:
		if ip || call {
			return uprobeMovedTarget
		}
		return uprobeRight
	case decode.FlowCall, decode.FlowCallIndirect:
		switch {
		case !call:
			return uprobeSlotReturn
		case k.reg() == 3:
			return uprobeFarCall
		case Branch66(inst):
			return uprobeCallAMD
		}
		return uprobeRight
	}
	switch {
	case call:
		return uprobeSlotReturn
	case !ip:
		return uprobeAsReturn
	case inst.PCRel.Kind == decode.PCRelBranch:
		return uprobeBranchHazard(inst)
	case inst.Flow == decode.FlowJump:
		return uprobeMovedTarget
	}
	return uprobeRight
}

// uprobeBranchHazard says what goes wrong when the direct branch inst runs in the
// slot and the instruction pointer is then moved back.
func uprobeBranchHazard(inst *decode.Inst) uint8 {
	switch {
	case Branch66(inst):
		return uprobeBranchAMD
	case inst.PCRel.Width == 32:
		return uprobeFarBranch
	}
	return uprobeRight
}

// uprobeStepHazard says how the single step over inst differs from its execution
// in the program.
func uprobeStepHazard(fix classify.Fixups, inst *decode.Inst) uint8 {
	switch OpOf(inst) {
	case OpPushFlags:
		return uprobePushFlags
	case OpMoveToSegment:
		if DetailOf(inst).Reg() == 2 {
			return uprobeStackDelay
		}
	case OpSyscall:
		return uprobeSyscall
	case OpReadSystem:
		return uprobeUMIP // where programs may be kept from it: then the kernel emulates it
	}
	switch setsFlags, popsFlags := fix&classify.FixFlags != 0, OpOf(inst) == OpPopFlags; {
	case popsFlags && !setsFlags:
		return uprobePopFlags
	case setsFlags && !popsFlags:
		return uprobeTrapFlag
	}
	return uprobeRight
}

// uprobeNotes returns what else is to be known of a probe on inst, which runs in
// the slot that the kernel made for k.
func (k *kernelInsn) uprobeNotes(rewritten bool, inst *decode.Inst) (notes classify.Notes) {
	if rewritten && k.nprefix == 0 && k.nrex == 1 && k.rex&1 != 0 {
		notes |= classify.NoteFirstByte
	}
	if inst.Flow == decode.FlowTrap {
		notes |= classify.NoteTrapNumber
	}
	if isRepeated(inst) {
		notes |= classify.NoteIterations
	}
	return notes
}

// isRepeated reports whether inst is a string instruction with a rep prefix.
func isRepeated(inst *decode.Inst) bool {
	return OpOf(inst) == OpString && DetailOf(inst).Prefixes()&(PrefixF2|PrefixF3) != 0
}

// hintNOPs are 0F 18 to 0F 1F.
var hintNOPs = opsOf(OpHint, OpLongNop, OpEndbr)

// isHintNOP reports whether inst is one of the NOPs and hints 0F 18-1F, which do
// not access their operand.
func isHintNOP(inst *decode.Inst) bool { return hintNOPs.has(inst) }
