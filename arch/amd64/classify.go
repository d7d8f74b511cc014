package amd64

import (
	"encoding/binary"

	"xol/classify"
	"xol/decode"
	"xol/place"
)

// Profile returns the ISA's rules under one of the names of package classify.
func (ISA) Profile(name string, opt classify.KernelOptions) (classify.Profile, bool) {
	return known.Profile(name, opt, classify.Judges{
		ISA:     func() classify.Judge { return newISAJudge() },
		Kprobes: func(v classify.Version, opt classify.KernelOptions) classify.Judge { return newKprobeJudge(v, opt) },
		Uprobes: func(v classify.Version) classify.Judge { return newUprobeJudge(v) },
	})
}

// isaJudge says what a probe mechanism can do that rewrites instructions as
// it moves them: branches and RIP-relative operands get new displacements or
// other instructions with the same effect, calls and syscall leave the original
// next address. Then all but a few run in a slot, and a jump back may end it:
// no CPU comes to that end from the taken side of a branch.
//
//   - What raises an exception on purpose is emulated, since its handler looks
//     at the address: ud0, ud1, ud2, int1.
//   - Alternatives may be probed: the kernel rewrites them once, before probes
//     can be registered.
//   - A 66 prefix on a near branch is refused where REX.W does not overrule it
//     [Intel SDM vol. 2 appendix A, AMD APM vol. 3 section 1.2.2].
type isaJudge struct {
	ISA
	classify.Boundaries
}

func newISAJudge() *isaJudge {
	return &isaJudge{Boundaries: classify.Boundaries{
		Outside: &isaRules[isaOutside], Inside: &isaRules[isaInside],
		Truncated: &isaRules[isaTruncated], TooLong: &isaRules[isaTooLong], Invalid: &isaRules[isaInvalid],
	}}
}

// Insts judges instructions of f; see classify.Judge.
func (*isaJudge) Insts(verdicts []classify.Verdict, f *classify.Func, first int) {
	insts := f.Insts[first:][:len(verdicts)]
	for i := range insts {
		judgeISA(&verdicts[i], &insts[i])
	}
}

// judgeISA fills in v, the zero verdict, for an instruction by itself.
func judgeISA(v *classify.Verdict, inst *decode.Inst) {
	d := DetailOf(inst)
	switch {
	case inst.Has(decode.Invalid):
		v.Rule = &isaRules[isaInvalid]
		return
	case d.Prefixes()&Prefix66 != 0 && d.W() == 0 && nearBranches.has(inst):
		v.Rule = &isaRules[isaBranch66]
		return
	}
	v.Exec, v.Boost, v.Boosted = classify.ExecSlot, true, true
	switch OpOf(inst) {
	case OpBreakpoint:
		*v = classify.Refuse(&isaRules[isaBreakpoint])
	case OpDebugTrap, OpUndefined:
		*v = classify.Verdict{Exec: classify.ExecEmulate, Emulator: "trap"}
	case OpSetInterrupts:
		v.Hazard = &isaHazards[isaShadow]
	case OpMoveToSegment:
		if d.Reg() == 2 {
			v.Hazard = &isaHazards[isaShadow]
		}
	}
}

// nearBranches are those whose operand size 66 would change.
var nearBranches = opsOf(OpJump, OpJumpIf, OpLoop, OpCall, OpReturn, OpJumpIndirect, OpCallIndirect)

// kprobeJudge answers as kprobes of one version of Linux do, as far as the rules are
// x86's own [arch/x86/kernel/kprobes/core.c]. The kernel decodes a function
// from its start by its own decoder, so that what follows bytes that it cannot
// decode is refused as well.
//
// Where bytes end early, NOPs are taken to follow. The ranges of alternatives
// are not refused: running kernels accept them, and check only the places of
// LOCK prefixes while they run on one CPU.
type kprobeJudge struct {
	version classify.Version
	cfi     bool
	boosts  bool // copies end in a jump back where they may
	ibt     bool // functions start with landing pads that the kernel knows
	open    openThunks
	decoder *kernelDecoder
	paddedISA
}

func newKprobeJudge(v classify.Version, opt classify.KernelOptions) *kprobeJudge {
	p := &kprobeJudge{version: v, cfi: opt.CFI, boosts: !opt.Preemption, ibt: opt.IBT, decoder: newKernelDecoder(v)}
	p.open.returns = p.differ(jumpThunk, thunklessReturn)
	p.open.jumps = p.differ(jumpThunk, thunklessJump)
	p.open.calls = p.differ(callThunk, thunklessCall)
	return p
}

// openThunks says which branches to thunks are executed otherwise than what stands there
// on CPUs that need none.
type openThunks struct{ returns, jumps, calls bool }

// has reports whether inst, which m marks as a branch to a thunk or what has taken its
// place, is such a branch.
func (o *openThunks) has(m *place.Mark, inst *decode.Inst) bool {
	switch inst.Flow {
	case decode.FlowCall:
		return o.calls
	case decode.FlowJump:
		return m.Kind&place.ReturnThunk != 0 && o.returns || m.Kind&place.BranchThunk != 0 && o.jumps
	}
	return false
}

// Branches to thunks, and what the kernel writes over them on CPUs that need none
// [arch/x86/kernel/alternative.c, patch_return, patch_retpoline].
const (
	jumpThunk       = "\xe9\x00\x00\x00\x00"
	callThunk       = "\xe8\x00\x00\x00\x00"
	thunklessReturn = "\xc3\xcc\xcc\xcc\xcc"
	thunklessJump   = "\xff\xe0\xcc\x90\x90"
	thunklessCall   = "\xff\xd0\x0f\x1f\x00"
)

// differ reports whether the kernel executes the instructions that a and b start with
// in different ways.
func (p *kprobeJudge) differ(a, b string) bool {
	var verdicts [2]classify.Verdict
	for i, code := range []string{a, b} {
		var k kernelInsn
		var inst decode.Inst
		var buf [kernelWindow]byte
		if (paddedISA{}).Decode(&inst, []byte(code), 0) == nil && p.decoder.decode(&k, window([]byte(code), 0, &buf)) {
			k.kprobeVerdict(&verdicts[i], &inst, p.boosts)
		}
	}
	return verdicts[0].Exec != verdicts[1].Exec || verdicts[0].OK() != verdicts[1].OK()
}

// Insts judges instructions of f; see classify.Judge.
func (p *kprobeJudge) Insts(verdicts []classify.Verdict, f *classify.Func, first int) {
	w := kernelWalk{decoder: p.decoder, code: f.Code}
	insts := f.Insts[first:][:len(verdicts)]
	for i := range verdicts {
		inst := &insts[i]
		if w.next == inst.Addr-f.Addr && !w.lost && p.common(&verdicts[i], inst) {
			w.start = w.next
			w.next += uint64(inst.Len)
			continue
		}
		p.reach(&verdicts[i], &w, f, inst.Addr-f.Addr, inst)
	}
	kinds := place.ExTable
	if p.open != (openThunks{}) {
		kinds |= place.ReturnThunk | place.BranchThunk
	}
	last := &insts[len(insts)-1]
	for _, m := range f.Marks.Starting(insts[0].Addr, last.Addr+1) {
		if m.Kind&kinds == 0 {
			continue
		}
		i, start := decode.Find(insts, m.Addr)
		switch {
		case !start:
		case m.Kind&place.ExTable != 0:
			p.forbidBoost(&verdicts[i], f, &insts[i])
		case p.open.has(&m, &insts[i]):
			verdicts[i].Depends = true
		}
	}
}

// Elsewhere judges an address where no instruction starts; see classify.Judge.
func (p *kprobeJudge) Elsewhere(f *classify.Func, addr uint64, _ int) (v classify.Verdict) {
	inst := &decode.Inst{Addr: addr, Props: decode.Invalid}
	w := kernelWalk{decoder: p.decoder, code: f.Code}
	p.reach(&v, &w, f, addr-f.Addr, inst)
	for _, m := range f.Marks.Starting(addr, addr+1) {
		if m.Kind&place.ExTable != 0 {
			p.forbidBoost(&v, f, inst)
		}
	}
	// On a CPU that needs no thunk INT3s follow the return that is there instead,
	// which older kernels refuse by another rule.
	for _, m := range f.Marks.Starting(addr-min(addr, jumpNear-1), addr) {
		if m.Kind&place.ReturnThunk != 0 && addr < m.End() && p.decoder.knows&kprobeRefusesTraps == 0 {
			v.Depends = true
		}
	}
	return v
}

// Lone adds nothing; see classify.Judge.
func (*kprobeJudge) Lone(*classify.Verdict, *decode.Inst, error) {}

// paddedISA decodes lone instructions as the kernel's judges take them: NOPs
// follow bytes that end early.
type paddedISA struct{ ISA }

// Decode decodes the instruction that code starts with.
func (a paddedISA) Decode(inst *decode.Inst, code []byte, addr uint64) error {
	var buf [kernelWindow]byte
	if len(code) == 0 {
		return decode.ErrTruncated
	}
	return a.ISA.Decode(inst, window(code, 0, &buf)[:], addr)
}

// forbidBoost changes the verdict on inst, an instruction of f whose faults
// the exception table handles, which are looked up by the address.
func (p *kprobeJudge) forbidBoost(v *classify.Verdict, f *classify.Func, inst *decode.Inst) {
	if v.Boosted {
		var k kernelInsn
		var buf [kernelWindow]byte
		p.decoder.decode(&k, window(f.Code, inst.Addr-f.Addr, &buf))
		*v = classify.Verdict{}
		k.kprobeVerdict(v, inst, false)
	}
	v.Boost = false
}

// endbrLen is the length of an ENDBR, and of the NOP that seals one.
const endbrLen = 4

// Entry returns where a probe on the entry of f is put: after an ENDBR, or after
// the NOP that the kernel puts over one that no branch needs
// [arch_adjust_kprobe_addr].
func (p *kprobeJudge) Entry(f *classify.Func) uint64 {
	if p.movesEntry(f.Code) {
		return f.Addr + endbrLen
	}
	return f.Addr
}

// movesEntry reports whether a probe on a function with this code is put after
// its first instruction.
func (p *kprobeJudge) movesEntry(code []byte) bool {
	if len(code) <= endbrLen || !p.ibt || p.decoder.knows&kprobeMovesEntry == 0 {
		return false
	}
	switch word := binary.LittleEndian.Uint32(code); word {
	case 0xFA1E0FF3, 0xFB1E0FF3:
		return true
	case 0x001F0F66:
		return until(linux7_3).Holds(p.version)
	case 0xD6401F0F:
		return since(linux7_3).Holds(p.version)
	}
	return false
}

// kernelWalk decodes code from its start as the kernel does, always forward.
type kernelWalk struct {
	decoder *kernelDecoder
	code    []byte
	start   uint64 // offset of the instruction decoded last, or of what cannot be decoded
	next    uint64 // offset after it
	lost    bool   // what stands at start cannot be decoded
	insn    kernelInsn
	buf     [kernelWindow]byte
}

// seek walks on until an instruction starts at or after off, or holds it, and
// reports whether one starts there; insn is it. Offsets must not decrease.
func (w *kernelWalk) seek(off uint64) bool {
	for w.next <= off && !w.lost {
		w.start = w.next
		if !w.decoder.decode(&w.insn, window(w.code, w.start, &w.buf)) {
			w.lost = true
			return false
		}
		w.next += uint64(w.insn.len)
	}
	return !w.lost && w.start == off
}

// reach fills in v, the zero verdict, for the offset off of f, to which it
// advances w. inst is what truly stands there, Invalid where nothing starts.
func (p *kprobeJudge) reach(v *classify.Verdict, w *kernelWalk, f *classify.Func, off uint64, inst *decode.Inst) {
	switch {
	case off >= uint64(len(f.Code)):
		v.Rule = &kprobeRules[kprobeOutside]
	case w.seek(off):
		if p.cfi && w.insn.checksCFI(f.Marks, inst.Addr) {
			v.Rule = &kprobeRules[kprobeCFI]
			return
		}
		w.insn.kprobeVerdict(v, inst, p.boosts)
	case w.lost:
		v.Rule = &kprobeRules[kprobeUndecodable]
		if w.start != off {
			v.Culprit = f.Addr + w.start
		}
	default:
		v.Rule = &kprobeRules[kprobeInside]
		v.Culprit = f.Addr + w.start
		v.Instead = v.Culprit
	}
}

// checksCFI reports whether k, at addr, is one of the two instructions before
// a kCFI trap that the kernel reads back: mov imm32 to r10d, or the
// add after it.
func (k *kernelInsn) checksCFI(marks place.Marks, addr uint64) bool {
	if k.nop != 1 {
		return false
	}
	switch k.op[0] {
	case 0xBA:
		addr += 12
	case 0x03:
		addr += 6
	default:
		return false
	}
	for _, m := range marks.Starting(addr, addr+1) {
		if m.Kind&place.CFITrap != 0 {
			return true
		}
	}
	return false
}

// kprobeActions says what the kernel does with an opcode: T trap, refused;
// K S what loads ss, refused when copied; J jcc, U jmp, C call, R return,
// I changes the interrupt flag, L loop: emulated; D far branch, Q iret: not
// emulated; G group 5; 2 second opcode byte decides; a dot runs in the slot.
// Bytes of other maps are looked up here as well.
const kprobeActions = "" +
	"...............2" + // 00
	"...............K" + // 10
	"................" + // 20
	"................" + // 30
	"................" + // 40
	"................" + // 50
	"................" + // 60
	"JJJJJJJJJJJJJJJJ" + // 70
	"..............S." + // 80
	"..........D.II.." + // 90
	"................" + // A0
	"................" + // B0
	"..RR......RRTTTQ" + // C0
	"................" + // D0
	"LLLL....CUDU...." + // E0
	".T........II...G" //   F0

// kprobeEmulators are the names of what emulates an opcode
// [kprobe_emulate_jcc and its kin].
var kprobeEmulators = [128]string{
	'J': "jcc", 'U': "jmp", 'C': "call", 'R': "ret", 'I': "ifmodifiers", 'L': "loop",
}

// kprobeBoosts says which one-byte opcodes pass the kernel's boost test
// [can_boost]: + always, - never, otherwise by ModRM.reg: s shifts unless /6,
// u unless /1, i /0 and /1, f /0 /1 and /4.
const kprobeBoosts = "" +
	"++++++++++++++++" + // 00
	"++++++++++++++++" + // 10
	"++++++++++++++++" + // 20
	"++++++++++++++++" + // 30
	"++++++++++++++++" + // 40
	"++++++++++++++++" + // 50
	"++-+++++++++++++" + // 60
	"----------------" + // 70
	"++++++++++++++++" + // 80
	"++++++++++-+++++" + // 90
	"++++++++++++++++" + // A0
	"++++++++++++++++" + // B0
	"ss++++++++++---+" + // C0
	"ssss++-+--------" + // D0
	"----++++--+-++++" + // E0
	"-----+uu++++++if" //   F0

// kprobeBoosts0F are the second bytes of 0F opcodes that pass it
// [twobyte_is_boostable].
const kprobeBoosts0F = "" +
	"--++--+-++------" + // 00
	"---------------+" + // 10
	"++++------------" + // 20
	"-+--------------" + // 30
	"++++++++++++++++" + // 40
	"----------------" + // 50
	"++++++++++++--++" + // 60
	"----++++------++" + // 70
	"----------------" + // 80
	"++++++++++++++++" + // 90
	"++-+++--++-+++-+" + // A0
	"++++++++---+++++" + // B0
	"++------++++++++" + // C0
	"-+++-+--++-+++-+" + // D0
	"-++--+--++-+++-+" + // E0
	"-+++-+--+++-+++-" //   F0

// kprobeBoost returns the result of the kernel's boost test, but for the
// exception table.
func (k *kernelInsn) kprobeBoost() bool {
	switch k.nop {
	case 1:
	case 2:
		return kprobeBoosts0F[k.op[1]] == '+'
	default:
		return false
	}
	if k.prefixes&(PrefixCS|Prefix67) != 0 {
		return false
	}
	return kprobeBoosts[k.op[0]] == '+' || k.does.boostsReg(k.op[0], k.reg())
}

// boostsReg returns the result of the boost test for an opcode that asks for
// ModRM.reg.
func (b behavior) boostsReg(op, reg byte) bool {
	letter := kprobeBoosts[op]
	if b&kprobeBoostsGroups == 0 {
		return letter == 'f' && reg == 4
	}
	switch letter {
	case 's':
		return reg != 6
	case 'u':
		return reg != 1
	case 'i':
		return reg < 2
	case 'f':
		return reg < 2 || reg == 4
	}
	return false
}

// common fills in v for the common instructions, and reports whether inst is one
// of them.
func (p *kprobeJudge) common(v *classify.Verdict, inst *decode.Inst) bool {
	if p.cfi {
		return false
	}
	switch kind := p.decoder.kindOf(inst); kind {
	case commonMoves, commonStays:
		if !copyReaches(inst) {
			return false
		}
		v.Exec, v.Boost = classify.ExecSlot, kind == commonMoves
		v.Boosted = v.Boost && p.boosts && inst.Len <= maxBoosted
	case commonBranch:
		v.Exec, v.Emulator = classify.ExecEmulate, "jcc"
		if d := DetailOf(inst); d.Map() == MapOneByte {
			v.Emulator = kprobeEmulators[kprobeActions[d.Opcode()]&127]
		}
	default:
		return false
	}
	return true
}

// maxBoosted is the length of the longest copy with room for a jump back, of
// 5 bytes, in a slot of 15 [prepare_singlestep].
const maxBoosted = 10

// kprobeVerdict fills in v, the zero verdict, with what the kernel makes of k,
// which truly is inst. Where the kernel boosts, it does so before it emulates.
func (k *kernelInsn) kprobeVerdict(v *classify.Verdict, inst *decode.Inst, boosts bool) {
	rule, emulator := k.kprobeRule(inst.Addr)
	if rule != kprobeAccepted {
		v.Rule = &kprobeRules[rule]
		return
	}
	v.Exec, v.Emulator, v.Boost = classify.ExecSlot, emulator, k.kprobeBoost()
	v.Boosted = boosts && v.Boost && k.len <= maxBoosted
	hazard := uint8(kprobeRight)
	switch {
	case emulator != "" && !v.Boosted:
		v.Exec = classify.ExecEmulate
		hazard = k.kprobeEmulationHazard(inst)
	case !inst.Has(decode.Invalid):
		hazard = k.kprobeSlotHazard(inst)
	}
	if v.Boosted {
		v.Emulator = ""
		if hazard == kprobeLeavesSlot {
			hazard = kprobeRight // the kernel does not wait for the end of the copy
		}
	}
	if hazard != kprobeRight {
		v.Hazard = &kprobeHazards[hazard]
	}
}

// kprobeRule returns the rule that refuses k at addr, or kprobeAccepted and
// what emulates it.
func (k *kernelInsn) kprobeRule(addr uint64) (rule uint8, emulator string) {
	action := kprobeActions[k.op[0]]
	switch isTrap := action == 'T' || action == '2' && k.isUD(); {
	case isTrap && k.does&kprobeRefusesTraps != 0:
		return kprobeTrap, ""
	case k.op[0] == 0xCC:
		return kprobeINT3, ""
	}
	if rule := k.kprobeCopyRule(action, addr); rule != kprobeAccepted {
		return rule, ""
	}
	emulator = kprobeEmulators[action&127]
	switch action {
	case 'D', 'Q':
		switch {
		case k.borrowed():
			return kprobeClash, ""
		case action == 'Q':
			return kprobeIRET, ""
		}
		return kprobeFarDirect, ""
	case 'G':
		rule, emulator = k.kprobeGroup5()
	case '2':
		switch {
		case k.op[1]&0xF0 == 0x80:
			emulator = "jcc"
		case k.op[1] == 0x01 && k.modrm&0xF8 == 0xC0:
			rule = kprobeVM
		}
	}
	if rule == kprobeAccepted && k.len == maxInsnLen {
		rule = kprobeNoRoom
	}
	return rule, emulator
}

// isUD reports whether k is ud0, ud1 or ud2.
func (k *kernelInsn) isUD() bool { return k.op[1] == 0xFF || k.op[1] == 0xB9 || k.op[1] == 0x0B }

// kprobeCopyRule returns the rule by which k cannot be copied to a slot, or
// kprobeAccepted [__copy_instruction].
func (k *kernelInsn) kprobeCopyRule(action byte, addr uint64) uint8 {
	switch {
	case k.forced:
		return kprobeForced
	case action == 'K', action == 'S' && k.reg() == 2:
		return kprobeStackSegment
	case k.ripRelative() && !reachesSlots(addr+uint64(int64(k.disp))):
		return kprobeCopyRange
	}
	return kprobeAccepted
}

// The kernel's slots lie where it loads modules
// [arch/x86/include/asm/pgtable_64_types.h].
const (
	slotsFrom = 0xffffffffc0000000
	slotsTo   = 0xffffffffff000000
)

// reachesSlots reports whether a 32-bit displacement can lead from some slot to
// target.
func reachesSlots(target uint64) bool {
	near := func(slot uint64) bool { return int64(target-slot) == int64(int32(target-slot)) }
	return near(slotsFrom) || near(slotsTo)
}

// kprobeGroup5 says what becomes of opcode FF.
func (k *kernelInsn) kprobeGroup5() (rule uint8, emulator string) {
	switch k.reg() {
	case 2:
		emulator = "call_indirect"
	case 4:
		emulator = "jmp_indirect"
	case 3, 5:
		return kprobeFarIndirect, ""
	default:
		return kprobeAccepted, ""
	}
	switch {
	case k.prefixes&Prefix67 != 0:
		return kprobeIndirectSize, ""
	case k.modrm>>6 != 3:
		return kprobeIndirectMemory, ""
	}
	return kprobeAccepted, emulator
}

// kprobeEmulationHazard returns the way in which the kernel emulates inst
// wrongly when it takes it for k, or kprobeRight.
func (k *kernelInsn) kprobeEmulationHazard(inst *decode.Inst) uint8 {
	if k.borrowed() && !k.sameAsOneByte() {
		return kprobeBorrowed
	}
	switch kprobeActions[k.op[0]] {
	case 'L':
		if k.op[0] != 0xE3 {
			return kprobeLoop
		}
	case 'R':
		switch {
		case k.op[0]&0xFE == 0xCA:
			return kprobeFarReturn
		case k.op[0] == 0xC2 && inst.Raw[k.len-2]|inst.Raw[k.len-1] != 0:
			return kprobeReturnImm
		}
	case 'I':
		if k.op[0]&0xFE == 0x9C && k.prefixes&Prefix66 != 0 && !k.wide() {
			return kprobeFlags16
		}
	case 'G':
		switch {
		case k.nrex == 2 && k.payload[0]&0x11 != 1:
			return kprobeREX2Register
		case k.nrex != 2 && k.modrm == 0xD4 && k.rex&1 == 0:
			return kprobeCallSP
		}
	}
	return kprobeRight
}

// sameAsOneByte reports whether k is what its opcode byte means in the one-byte
// map. After REX2, branches with a displacement do not exist.
func (k *kernelInsn) sameAsOneByte() bool {
	action := kprobeActions[k.op[0]]
	return k.nvex == 0 && k.payload[0]&0x80 == 0 && (action == 'R' || action == 'I' || action == 'G')
}

// kprobeSlotHazard returns the way in which inst runs wrongly in a slot that
// the kernel made for k, or kprobeRight.
func (k *kernelInsn) kprobeSlotHazard(inst *decode.Inst) uint8 {
	switch inst.PCRel.Kind {
	case decode.PCRelBranch:
		return kprobeSlotRelative
	case decode.PCRelMemory, decode.PCRelAddress:
		if !k.ripRelative() {
			return kprobeWrongAddress
		}
	}
	if k.len != inst.Len {
		return kprobeWrongLength
	}
	switch inst.Flow {
	case decode.FlowHalt:
		if k.op[0] == 0xF4 {
			return kprobeHalt
		}
	case decode.FlowTrap:
		return kprobeTrapInSlot
	case decode.FlowNone, decode.FlowSyscall:
	default:
		return kprobeLeavesSlot
	}
	return kprobeRight
}
