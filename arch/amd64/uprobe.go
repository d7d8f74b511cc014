package amd64

import (
	"xol/classify"
	"xol/decode"
)

// uprobeJudge answers as uprobes of one version of Linux do
// [arch/x86/kernel/uprobes.c]. They judge an instruction by its bytes, at any
// address: the kernel knows no boundaries in user text. Only where its page ends
// matters.
//
// Where bytes end early, NOPs are taken to follow.
type uprobeJudge struct {
	version classify.Version
	does    behavior
	decoder *kernelDecoder
	paddedISA
}

func newUprobeJudge(v classify.Version) *uprobeJudge {
	return &uprobeJudge{version: v, does: behaviorOf(v), decoder: newKernelDecoder(v)}
}

// Insts judges instructions of f; see classify.Judge.
func (p *uprobeJudge) Insts(verdicts []classify.Verdict, f *classify.Func, first int) {
	var buf [kernelWindow]byte
	insts := f.Insts[first:][:len(verdicts)]
	for i := range insts {
		inst := &insts[i]
		if !p.plain(&verdicts[i], inst) {
			p.judge(&verdicts[i], window(f.Code, inst.Addr-f.Addr, &buf), inst)
		}
	}
}

// Elsewhere judges an address where no instruction starts; see classify.Judge.
func (p *uprobeJudge) Elsewhere(f *classify.Func, addr uint64, holder int) (v classify.Verdict) {
	if addr-f.Addr >= uint64(len(f.Code)) {
		return classify.Refuse(&uprobeRules[uprobeOutside])
	}
	var buf [kernelWindow]byte
	p.judge(&v, window(f.Code, addr-f.Addr, &buf), &decode.Inst{Addr: addr, Props: decode.Invalid})
	if holder >= 0 {
		v.Culprit = f.Insts[holder].Addr
		v.Instead = v.Culprit
		if v.OK() {
			v.Hazard = &uprobeHazards[uprobeInside]
		}
	}
	return v
}

// Lone refuses a probe where there are no bytes; see classify.Judge.
func (p *uprobeJudge) Lone(v *classify.Verdict, inst *decode.Inst, _ error) {
	if inst.Len == 0 {
		*v = classify.Refuse(&uprobeRules[uprobeOutside])
	}
}

// judge fills in v, the zero verdict, for the bytes b. inst is what they truly
// are; it is Invalid where they are no instruction, or not the start of one.
func (p *uprobeJudge) judge(v *classify.Verdict, b *[kernelWindow]byte, inst *decode.Inst) {
	var k kernelInsn
	if !p.decoder.decode(&k, b) {
		v.Rule = &uprobeRules[uprobeUnknown]
		if inst.Has(decode.Invalid) {
			v.Rule = &uprobeRules[uprobeNotInstruction]
		}
		return
	}
	if p.does&uprobeCallNOP10 != 0 && k.len == nop10Len {
		if isNOP10(b) && fitsPage(inst.Addr, nop10Len) {
			v.Exec, v.Emulator, v.Notes = classify.ExecEmulate, branchOps, classify.NoteNOPOperand
			return
		}
		k.takeMap()
	}
	if r := k.uprobeRule(); r != uprobeAccepted {
		v.Rule = &uprobeRules[r]
		return
	}
	if p.does&uprobeAllNOPs != 0 && p.does&uprobeCallNOP5 != 0 && k.len == nop5Len {
		k.takeMap()
	}
	h := uint8(uprobeRight)
	isNOP := p.takesForNOP(&k, b)
	switch {
	case isNOP:
		v.Exec, v.Emulator = classify.ExecEmulate, branchOps
		h = k.uprobeNOPHazard(inst)
	case k.uprobeJumps():
		if k.prefixes&Prefix66 != 0 {
			v.Rule = &uprobeRules[uprobeBranch66]
			return
		}
		v.Exec, v.Emulator = classify.ExecEmulate, branchOps
		h = k.uprobeEmulationHazard()
	default:
		h = p.slot(v, &k, inst)
	}
	if h == uprobeRight && p.becomesCall(&k, isNOP) && fitsPage(inst.Addr, nop5Len) {
		h = uprobeRedZone
	}
	if h != uprobeRight {
		v.Hazard = &uprobeHazards[h]
	}
}

// slot fills in v for k, which is neither a NOP nor a branch to the kernel, and
// returns the way in which it goes wrong; inst is what stands there.
func (p *uprobeJudge) slot(v *classify.Verdict, k *kernelInsn, inst *decode.Inst) (hazard uint8) {
	if p.does&uprobeAllNOPs != 0 {
		k.takeMap()
	}
	if k.uprobePushes() {
		v.Exec, v.Emulator = classify.ExecEmulate, "push_xol_ops"
		return uprobeRight
	}
	v.Exec = classify.ExecSlot
	v.Fixups, v.Scratch = k.uprobeFixups()
	if inst.Has(decode.Invalid) || inst.Has(decode.Privileged) {
		return uprobeRight // it faults in the slot as it does in place
	}
	v.Notes = k.uprobeNotes(v.Scratch != 0, inst)
	return k.uprobeSlotHazard(v, inst)
}

// branchOps is what emulates branches and NOPs.
const branchOps = "branch_xol_ops"

// fitsPage reports whether n bytes from addr on lie in one page.
func fitsPage(addr uint64, n uint64) bool {
	const page = 4096
	return addr%page+n <= page
}

// uprobeBadPrefixes are refused whatever the instruction
// [arch/x86/kernel/uprobes.c, is_prefix_bad].
const (
	uprobeBadSegments = PrefixES | PrefixCS | PrefixSS | PrefixDS
	uprobeBadPrefixes = uprobeBadSegments | PrefixLock
)

// uprobeOpcodes says which opcode bytes are refused [good_insns_64]: i for
// instructions that 64-bit mode lacks, p for port access, t for traps, r for
// iret, s for what faults without privilege. What else is no dot is accepted, but
// treated in a way of its own: B as a branch, P as a push. Bytes of other maps are
// looked up here as well.
const uprobeOpcodes = "" +
	"......ii......i?" + // 00
	"......ii......ii" + // 10
	".......i.......i" + // 20
	".......i.......i" + // 30
	"................" + // 40
	"PPPPPPPP........" + // 50
	"iii.........pppp" + // 60
	"BBBBBBBBBBBBBBBB" + // 70
	"..i...........?." + // 80
	"?.........i.??.." + // 90
	"................" + // A0
	"................" + // B0
	"..??......??ttir" + // C0
	"....iii........." + // D0
	"....ppppBBiBpppp" + // E0
	".t..s.....ss...?" //   F0

var uprobeOpcodeRules = [128]uint8{
	'i': uprobeNot64, 'p': uprobePort, 't': uprobeTrap, 'r': uprobeIRET, 's': uprobePrivileged,
}

// plain fills in v for the common instructions that the opcode alone decides,
// and reports whether inst is one of them.
func (p *uprobeJudge) plain(v *classify.Verdict, inst *decode.Inst) bool {
	d := DetailOf(inst)
	if !isCommon(inst, d) || d.Map() != MapOneByte {
		return false
	}
	switch op := d.Opcode(); uprobeOpcodes[op] {
	case '.':
		if inst.PCRel.Kind != decode.PCRelNone || p.does&uprobeAllNOPs != 0 && (op == 0x89 || op == 0x8D) && d.W() != 0 {
			return false
		}
		v.Exec, v.Fixups = classify.ExecSlot, classify.FixPC
	case 'B':
		if inst.Target == inst.Addr+uint64(inst.Len) {
			return false // it may be taken for a NOP
		}
		v.Exec, v.Emulator = classify.ExecEmulate, branchOps
	default:
		return false
	}
	return true
}

// uprobeRule returns the rule by which k's prefixes or opcode are refused, or
// uprobeAccepted.
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
	return rule
}

// borrowed reports whether the opcode byte may belong to another map than the
// kernel looks it up in.
func (k *kernelInsn) borrowed() bool { return k.nvex != 0 || k.nrex == 2 }

// uprobeJumps reports whether the kernel takes k for a direct branch.
func (k *kernelInsn) uprobeJumps() bool {
	if k.op[0] == 0x0F {
		return k.nop == 2 && k.op[1]&0xF0 == 0x80
	}
	return uprobeOpcodes[k.op[0]] == 'B'
}

// uprobePushes reports whether the kernel takes k for a push that it emulates.
func (k *kernelInsn) uprobePushes() bool {
	return uprobeOpcodes[k.op[0]] == 'P' && (k.len == 1 || k.len == 2 && k.nrex == 1 && k.rex == 0x41)
}

// uprobeFixups returns what the kernel repairs after k ran out of line, and the
// register through which it addresses the operand, 0 for none.
func (k *kernelInsn) uprobeFixups() (fix classify.Fixups, scratch uint8) {
	fix = classify.FixPC
	switch k.op[0] {
	case 0x9D:
		fix = classify.FixPC | classify.FixFlags
	case 0xC2, 0xC3, 0xCA, 0xCB, 0xEA:
		// The kernel looks no further for these.
		return 0, 0
	case 0xFF:
		switch k.reg() {
		case 2, 3:
			fix = classify.FixReturn
		case 4, 5:
			fix = 0
		}
	}
	if k.ripRelative() && k.op[0] != 0x9D {
		scratch = k.scratch()
	}
	return fix, scratch
}

// scratch returns the register through which the kernel addresses a
// RIP-relative operand: one that neither ModRM.reg nor vvvv names, as far as
// their low three bits tell.
func (k *kernelInsn) scratch() uint8 {
	reg, vvvv := k.reg(), byte(0xFF)
	if k.nvex != 0 {
		vvvv = ^k.payload[1] >> 3 & 7
	}
	switch {
	case reg != RSI && vvvv != RSI:
		return RSI
	case reg != RDI && vvvv != RDI:
		return RDI
	}
	return RBX
}
