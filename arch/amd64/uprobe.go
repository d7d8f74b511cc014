package amd64

import (
	"xol/classify"
	"xol/decode"
)

// uprobeProfile answers as uprobes of Linux 6.12 do [arch/x86/kernel/uprobes.c].
// They judge an instruction by its bytes alone, at any address: the kernel
// knows no boundaries in user text.
//
// Where bytes end early, NOPs are taken to follow.
type uprobeProfile struct{}

// Name returns "uprobe-linux-6.12".
func (uprobeProfile) Name() string { return classify.Uprobe612 }

// Func judges every instruction of f.
func (p uprobeProfile) Func(dst []classify.Verdict, f *classify.Func) []classify.Verdict {
	dst, verdicts := classify.Extend(dst, len(f.Insts))
	var buf [kernelWindow]byte
	for i := range verdicts {
		inst := &f.Insts[i]
		if !p.plain(&verdicts[i], inst) {
			p.judge(&verdicts[i], window(f.Code, inst.Addr-f.Addr, &buf), inst)
		}
	}
	return dst
}

// At judges the bytes at addr, be it the start of an instruction or not.
func (p uprobeProfile) At(f *classify.Func, addr uint64) (v classify.Verdict) {
	if addr-f.Addr >= uint64(len(f.Code)) {
		return classify.Refuse(&uprobeRules[uprobeOutside])
	}
	var buf [kernelWindow]byte
	b := window(f.Code, addr-f.Addr, &buf)
	i, start := decode.Find(f.Insts, addr)
	if start {
		p.judge(&v, b, &f.Insts[i])
		return v
	}
	p.judge(&v, b, &decode.Inst{Addr: addr, Props: decode.Invalid})
	if i >= 0 {
		v.Culprit = f.Insts[i].Addr
		v.Instead = v.Culprit
		if v.OK() {
			v.Hazard = &uprobeHazards[uprobeInside]
		}
	}
	return v
}

// Lone judges the instruction that code starts with.
func (p uprobeProfile) Lone(code []byte, addr uint64) (v classify.Verdict) {
	if len(code) == 0 {
		return classify.Refuse(&uprobeRules[uprobeOutside])
	}
	var buf [kernelWindow]byte
	b := window(code, 0, &buf)
	var inst decode.Inst
	if (ISA{}).Decode(&inst, b[:], addr) != nil {
		inst = decode.Inst{Addr: addr, Props: decode.Invalid}
	}
	p.judge(&v, b, &inst)
	return v
}

// judge fills in v, the zero verdict, for the bytes b. inst is what they truly
// are; it is Invalid where they are no instruction, or not the start of one.
func (uprobeProfile) judge(v *classify.Verdict, b *[kernelWindow]byte, inst *decode.Inst) {
	var k kernelInsn
	if !k.decode(b) {
		v.Rule = &uprobeRules[uprobeUnknown]
		if inst.Has(decode.Invalid) {
			v.Rule = &uprobeRules[uprobeNotInstruction]
		}
		return
	}
	if r := k.uprobeRule(); r != uprobeAccepted {
		v.Rule = &uprobeRules[r]
		return
	}
	switch k.uprobeMethod() {
	case uprobeBranch:
		v.Exec, v.Emulator = classify.ExecEmulate, "branch_xol_ops"
	case uprobePush:
		v.Exec, v.Emulator = classify.ExecEmulate, "push_xol_ops"
	default:
		v.Exec, v.Fixups = classify.ExecSlot, k.uprobeFixups()
	}
	if h := k.uprobeHazard(v, inst); h != uprobeRight {
		v.Hazard = &uprobeHazards[h]
	}
}

// uprobeBadPrefixes are refused whatever the instruction
// [arch/x86/kernel/uprobes.c, is_prefix_bad].
const (
	uprobeBadSegments = PrefixES | PrefixCS | PrefixSS | PrefixDS
	uprobeBadPrefixes = uprobeBadSegments | PrefixLock
)

// uprobeOpcodes says which opcode bytes are refused [good_insns_64]: i for
// instructions that 64-bit mode lacks, p for port access, t for traps, r for
// iret, s for what faults without privilege. What has a question mark is accepted,
// but treated in a way of its own. Bytes of other maps are looked up here as well.
const uprobeOpcodes = "" +
	"......ii......i?" + // 00
	"......ii......ii" + // 10
	".......i.......i" + // 20
	".......i.......i" + // 30
	"................" + // 40
	"????????........" + // 50
	"iii.........pppp" + // 60
	"????????????????" + // 70
	"..i...........?." + // 80
	"?.........i.??.." + // 90
	"................" + // A0
	"................" + // B0
	"..??......??ttir" + // C0
	"....iii........." + // D0
	"....pppp??i?pppp" + // E0
	".t..s.....ss...?" //   F0

var uprobeOpcodeRules = [128]uint8{
	'i': uprobeNot64, 'p': uprobePort, 't': uprobeTrap, 'r': uprobeIRET, 's': uprobePrivileged,
}

// plain fills in v for the common instructions that the opcode alone decides,
// and reports whether inst is one of them.
func (uprobeProfile) plain(v *classify.Verdict, inst *decode.Inst) bool {
	d := DetailOf(inst)
	if !isPlain(inst, d) || inst.PCRel.Kind != decode.PCRelNone || uprobeOpcodes[d.Opcode()] != '.' {
		return false
	}
	v.Exec, v.Fixups = classify.ExecSlot, classify.FixIP
	return true
}

// uprobeRule returns the rule that refuses k, or uprobeAccepted.
func (k *kernelInsn) uprobeRule() uint8 {
	if k.prefixes&uprobeBadPrefixes != 0 {
		if k.prefixes&PrefixLock != 0 {
			return uprobeLock
		}
		return uprobeSegment
	}
	op := k.op[0]
	rule := uprobeOpcodeRules[uprobeOpcodes[op]&127]
	if op == 0x8E && k.reg() == 2 {
		rule = uprobeStackSegment
	}
	if rule != uprobeAccepted && k.borrowed() {
		return uprobeClash
	}
	if rule == uprobeAccepted && k.prefixes&Prefix66 != 0 && k.uprobeJumps() {
		return uprobeBranch66
	}
	return rule
}

// borrowed reports whether the opcode byte may belong to another map than the
// kernel looks it up in.
func (k *kernelInsn) borrowed() bool { return k.nvex != 0 || k.nrex == 2 }

// The ways in which a uprobe executes an instruction.
const (
	uprobeSlot = iota
	uprobeBranch
	uprobePush
)

// uprobeJumps reports whether the kernel takes k for a direct branch.
func (k *kernelInsn) uprobeJumps() bool {
	switch op := k.op[0]; {
	case op&0xF0 == 0x70, op == 0xE8, op == 0xE9, op == 0xEB:
		return true
	case op == 0x0F:
		return k.nop == 2 && k.op[1]&0xF0 == 0x80
	}
	return false
}

func (k *kernelInsn) uprobeMethod() int {
	switch op := k.op[0]; {
	case op == nop, k.uprobeJumps():
		return uprobeBranch
	case op&0xF8 == 0x50:
		if k.len == 1 || k.len == 2 && k.nrex == 1 && k.rex == 0x41 {
			return uprobePush
		}
	}
	return uprobeSlot
}

// uprobeFixups returns what the kernel repairs after k ran out of line.
func (k *kernelInsn) uprobeFixups() classify.Fixups {
	fix := classify.FixIP
	switch k.op[0] {
	case 0x9D:
		fix = classify.FixIP | classify.FixFlags
	case 0xC2, 0xC3, 0xCA, 0xCB, 0xEA:
		// The kernel looks no further for these.
		return 0
	case 0xFF:
		switch k.reg() {
		case 2, 3:
			fix = classify.FixCall
		case 4, 5:
			fix = 0
		}
	}
	if k.ripRelative() && k.op[0] != 0x9D {
		fix |= k.scratch()
	}
	return fix
}

// scratch returns the register through which the kernel addresses a
// RIP-relative operand: one that neither ModRM.reg nor vvvv names, as far as
// their low three bits tell.
func (k *kernelInsn) scratch() classify.Fixups {
	reg, vvvv := k.reg(), byte(0xFF)
	if k.nvex != 0 {
		vvvv = ^k.payload[1] >> 3 & 7
	}
	switch {
	case reg != 6 && vvvv != 6:
		return classify.ScratchSI
	case reg != 7 && vvvv != 7:
		return classify.ScratchDI
	}
	return classify.ScratchBX
}

const uprobeScratch = classify.ScratchSI | classify.ScratchDI | classify.ScratchBX

// uprobeHazard returns the way in which the kernel executes inst wrongly when
// it takes it for k and treats it as v says, or uprobeRight.
func (k *kernelInsn) uprobeHazard(v *classify.Verdict, inst *decode.Inst) uint8 {
	if v.Exec == classify.ExecEmulate {
		return k.uprobeEmulationHazard()
	}
	if inst.Has(decode.Invalid) || inst.Has(decode.Privileged) {
		// It faults in the slot as it does in place.
		return uprobeRight
	}
	if h := k.uprobeAddressHazard(v.Fixups, inst); h != uprobeRight {
		return h
	}
	if h := k.uprobeFlowHazard(v.Fixups, inst); h != uprobeRight {
		return h
	}
	if v.Fixups&uprobeScratch != 0 && k.nprefix == 0 && k.nrex == 1 && k.rex&1 != 0 {
		return uprobeRexLeft
	}
	return uprobeRight
}

// uprobeEmulationHazard says what emulation makes of an instruction that only
// shares the opcode byte with a branch.
func (k *kernelInsn) uprobeEmulationHazard() uint8 {
	op := k.op[0]
	if op == nop {
		switch {
		case k.nvex != 0, k.nrex == 2 && k.payload[0]&0x80 != 0:
			return uprobeAsNOP
		case k.nrex == 2 && k.payload[0]&0x11 != 0, k.nrex == 1 && k.rex&1 != 0:
			return uprobeXCHG
		}
		return uprobeRight
	}
	switch {
	case !k.borrowed():
		return uprobeRight
	case op == 0xE8:
		return uprobeAsCall
	}
	return uprobeAsJump
}

// uprobeAddressHazard compares how an operand is addressed in the slot with
// how it should be.
func (k *kernelInsn) uprobeAddressHazard(fix classify.Fixups, inst *decode.Inst) uint8 {
	relative := (inst.PCRel.Kind == decode.PCRelMemory || inst.PCRel.Kind == decode.PCRelAddress) && !isHintNOP(DetailOf(inst))
	rewritten := fix&uprobeScratch != 0
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

// uprobeFlowHazard compares what the fix-ups do to the instruction pointer,
// stack and flags with what inst needs.
func (k *kernelInsn) uprobeFlowHazard(fix classify.Fixups, inst *decode.Inst) uint8 {
	ip, call := fix&classify.FixIP != 0, fix&classify.FixCall != 0
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
		case k.reg() == 3 && !k.wide():
			return uprobeFarCall
		}
		return uprobeRight
	case decode.FlowJump:
		if ip && inst.PCRel.Kind != decode.PCRelBranch {
			return uprobeMovedTarget
		}
	}
	switch {
	case call:
		return uprobeSlotReturn
	case !ip:
		return uprobeAsReturn
	case isOneByte(inst, 0x9C):
		return uprobePushFlags
	case fix&classify.FixFlags != 0 && !isOneByte(inst, 0x9D):
		return uprobeTrapFlag
	}
	return uprobeRight
}

// isOneByte reports whether inst has that opcode in the one-byte map.
func isOneByte(inst *decode.Inst, op byte) bool {
	d := DetailOf(inst)
	return d.Map() == MapOneByte && d.Opcode() == op
}

// isHintNOP reports whether d is one of the NOPs and hints 0F 18-1F, which do
// not access their operand.
func isHintNOP(d Detail) bool {
	return d.Map() == Map0F && d.Opcode()&0xF8 == 0x18 && d.Encoding() <= EncREX2
}
