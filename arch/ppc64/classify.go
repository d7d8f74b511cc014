package ppc64

import (
	"xol/classify"
	"xol/decode"
)

// Profile returns the ISA's rules under one of the names of package classify.
func (a ISA) Profile(name string, opt classify.KernelOptions) (classify.Profile, bool) {
	return known.Profile(name, opt, classify.Judges{
		ISA:     func() classify.Judge { return newISAJudge(a) },
		Kprobes: func(classify.Version, classify.KernelOptions) classify.Judge { return &kprobeJudge{a} },
		Uprobes: func(classify.Version) classify.Judge { return &uprobeJudge{a} },
	})
}

// isaJudge says what a probe mechanism can do that rewrites instructions as
// it moves them. All but a few then run in a slot, and a jump back may end it:
//
//   - Between lwarx and stwcx. and their kin no breakpoint works, since any
//     interrupt loses the reservation [Power ISA 3.1, Book II, 1.7.4]. The
//     load itself may be probed where the slot is left by a jump.
//   - While SRR0 and SRR1 hold something no breakpoint works, since its
//     interrupt overwrites them [Book III, 7.5].
//   - Traps are emulated, since their handlers look at the address.
type isaJudge struct {
	ISA
	classify.Boundaries
}

func newISAJudge(a ISA) *isaJudge {
	return &isaJudge{a, classify.Boundaries{
		Outside: &isaRules[isaOutside], Inside: &isaRules[isaMisaligned],
		Truncated: &isaRules[isaTruncated], Invalid: &isaRules[isaInvalid],
	}}
}

// Insts judges instructions of f; see classify.Judge.
func (*isaJudge) Insts(verdicts []classify.Verdict, f *classify.Func, first int) {
	insts := f.Insts[first:][:len(verdicts)]
	for i := range insts {
		judgeISA(&verdicts[i], &insts[i])
	}
	eachSequence(f.Insts, first, len(verdicts), func(s sequence, i int) {
		if v := &verdicts[i-first]; v.OK() && i > s.first {
			*v = s.isaVerdict(f.Insts)
		}
	})
}

// Elsewhere tells suffixes from other words; see classify.Judge.
func (p *isaJudge) Elsewhere(f *classify.Func, addr uint64, holder int) classify.Verdict {
	v := p.Boundaries.Elsewhere(f, addr, holder)
	if holder >= 0 && addr == f.Insts[holder].Addr+wordSize {
		v.Rule = &isaRules[isaSuffix]
	}
	return v
}

// judgeISA fills in v, the zero verdict, for an instruction by itself.
func judgeISA(v *classify.Verdict, inst *decode.Inst) {
	switch {
	case inst.Addr&3 != 0:
		v.Rule = &isaRules[isaMisaligned]
	case inst.Has(decode.Invalid):
		v.Rule = &isaRules[isaInvalid]
	case crossesBoundary(inst.Addr, inst.Detail):
		v.Rule = &isaRules[isaBoundary]
	case usesSRR(inst):
		v.Rule = &isaRules[isaSaveRestore]
	case OpOf(inst) == OpTrap:
		v.Exec, v.Emulator = classify.ExecEmulate, "trap"
	default:
		v.Exec, v.Boost, v.Boosted = classify.ExecSlot, true, true
	}
}

// crossesBoundary reports whether word is a prefixed instruction that would
// cross a 64-byte boundary [Power ISA 3.1, Book I, 1.6].
func crossesBoundary(addr, word uint64) bool { return word>>32 != 0 && addr&63 == 60 }

// sequence is a run of instructions that an interrupt must not break, as
// indices of its first and last one: from a load-and-reserve instruction to
// its store-conditional, or from the first write of SRR0 or SRR1 to the return
// from the interrupt.
type sequence struct {
	first, last int
	srr         bool
}

// isaVerdict refuses what stands after the first instruction of s.
func (s sequence) isaVerdict(insts []decode.Inst) classify.Verdict {
	first := insts[s.first].Addr
	if s.srr {
		return classify.Verdict{Rule: &isaRules[isaSaveRestore], Culprit: first}
	}
	return classify.Verdict{Rule: &isaRules[isaReservation], Culprit: first, Instead: first}
}

// eachSequence calls visit with every instruction from index first on, n of
// them, that is part of a sequence on a straight path: from one instruction to
// the next, past branches that may not be taken.
func eachSequence(insts []decode.Inst, first, n int, visit func(s sequence, i int)) {
	const none = -1
	from, to := decode.Paths(insts, first, n)
	reserved, srr := none, none
	visitAll := func(s sequence) {
		for i := max(s.first, first); i < first+n && i <= s.last; i++ {
			visit(s, i)
		}
	}
	for i := from; i < to; i++ {
		inst := &insts[i]
		switch OpOf(inst) {
		case OpOther:
			if !inst.Has(decode.Invalid) {
				continue
			}
		case OpLoadReserve:
			reserved = i
		case OpStoreConditional:
			if reserved != none {
				visitAll(sequence{first: reserved, last: i})
			}
			reserved = none
		case OpMoveSPR:
			if srr == none && usesSRR(inst) && inst.Detail&moveTo != 0 {
				srr = i
			}
		case OpReturn:
			if srr != none && usesSRR(inst) {
				visitAll(sequence{first: srr, last: i, srr: true})
			}
		}
		if !inst.FallsThrough() {
			reserved, srr = none, none
		}
	}
}

const (
	srr0, srr1 = 26, 27
	moveTo     = 1 << 8 // set in mtspr, clear in mfspr
	rfidWord   = 0x4c000024
	rfiWord    = 0x4c000064
)

// usesSRR reports whether inst reads or writes SRR0 or SRR1.
func usesSRR(inst *decode.Inst) bool {
	switch OpOf(inst) {
	case OpReturn:
		return inst.Detail == rfidWord || inst.Detail == rfiWord
	case OpMoveSPR:
		word := inst.Detail
		spr := word>>16&31 | word>>11&31<<5
		return spr == srr0 || spr == srr1
	}
	return false
}

// kprobeJudge answers as kprobes of Linux do, as far as the rules are
// powerpc's own [arch/powerpc/kernel/kprobes.c]. Words are judged by the few
// opcodes that the kernel refuses; whether they are instructions does not
// matter.
//
// Whether an instruction is emulated shows at the first hit. Then its probe
// becomes boostable, which the verdict tells in advance; where it is not
// emulated it is single-stepped in the slot for good.
type kprobeJudge struct{ ISA }

// Insts judges instructions of f; see classify.Judge.
func (p *kprobeJudge) Insts(verdicts []classify.Verdict, f *classify.Func, first int) {
	before := p.wordBefore(f, f.Insts[first].Addr)
	insts := f.Insts[first:][:len(verdicts)]
	for i := range insts {
		inst := &insts[i]
		p.judge(&verdicts[i], p.kernelWord(codeAt(f, inst.Addr), inst), before, inst)
		before = p.lastWord(inst)
	}
	markHazards(verdicts, f.Insts, first)
}

// Elsewhere judges an address where no instruction starts; see classify.Judge.
func (p *kprobeJudge) Elsewhere(f *classify.Func, addr uint64, holder int) (v classify.Verdict) {
	code := codeAt(f, addr)
	if code == nil {
		return classify.Refuse(&kprobeRules[kprobeOutside])
	}
	inst := decode.Inst{Addr: addr, Props: decode.Invalid}
	p.judge(&v, p.kernelWord(code, &inst), p.wordBefore(f, addr), &inst)
	if holder >= 0 {
		v.Culprit = f.Insts[holder].Addr
		v.Instead = v.Culprit
	}
	return v
}

// Lone marks what must be part of a sequence; see classify.Judge.
func (*kprobeJudge) Lone(v *classify.Verdict, inst *decode.Inst, _ error) { loneHazard(v, inst) }

// wordBefore returns the word of f before addr, 0 where there is none.
func (p *kprobeJudge) wordBefore(f *classify.Func, addr uint64) uint32 {
	if code := codeAt(f, addr-wordSize); len(code) >= wordSize {
		return p.word(code)
	}
	return 0
}

// codeAt returns the bytes of f from addr on, none where addr lies outside.
func codeAt(f *classify.Func, addr uint64) []byte {
	if off := addr - f.Addr; off < uint64(len(f.Code)) {
		return f.Code[off:]
	}
	return nil
}

// pageSize is that of Debian's kernels. The kernel does not look for a prefix
// at the end of the page before.
const pageSize = 1 << 16

// judge fills in v, the zero verdict, for word; before is the word before
// it, inst what truly stands there, Invalid where that is no instruction.
func (p *kprobeJudge) judge(v *classify.Verdict, word uint64, before uint32, inst *decode.Inst) {
	if rule := kprobeRule(word, before, inst.Addr); rule != steppable {
		v.Rule = &kprobeRules[rule]
		if rule == kprobeSuffix {
			v.Culprit = inst.Addr - 4
		}
		return
	}
	step := mode{isa30: p.CPU == POWER9}.emulate(word)
	if step == emuUnknown {
		v.Exec, v.Hazard = classify.ExecSlot, slotHazard(inst)
		return
	}
	v.Exec, v.Emulator, v.Boost = classify.ExecEmulate, step.name(), true
}

// kprobeRule returns the rule by which a probe at addr is refused, or
// steppable.
func kprobeRule(word uint64, before uint32, addr uint64) uint8 {
	if addr&3 != 0 {
		return kprobeMisaligned
	}
	if word == noWord {
		return kprobeOutside
	}
	if rule := stepRule(word); rule != steppable {
		return rule
	}
	if before>>26 == prefixOpcode && addr%pageSize != 0 {
		return kprobeSuffix
	}
	return steppable
}

// noWord is what kernelWord returns for bytes that end early. As a prefix it
// would have another opcode.
const noWord = ^uint64(0)

// kernelWord reads an instruction as the kernel does: a word, and one more
// where the first is a prefix. inst is what code starts with. A missing suffix
// counts as 0.
func (a ISA) kernelWord(code []byte, inst *decode.Inst) uint64 {
	if !inst.Has(decode.Invalid) {
		return inst.Detail
	}
	if len(code) < 4 {
		return noWord
	}
	word := uint64(a.word(code))
	if word>>26 == prefixOpcode {
		word <<= 32
		if len(code) >= 8 {
			word |= uint64(a.word(code[4:]))
		}
	}
	return word
}

// lastWord returns the last word of what inst stands for.
func (a ISA) lastWord(inst *decode.Inst) uint32 {
	if inst.Has(decode.Invalid) {
		return a.word(inst.Raw[:])
	}
	return uint32(inst.Detail)
}

// stepRule returns the rule by which the kernel refuses to single-step word,
// or steppable [arch/powerpc/include/asm/probes.h, can_single_step].
func stepRule(word uint64) uint8 {
	switch word >> 26 {
	case 2, 3: // tdi twi
		return noStepTrap
	case 17:
		return noStepSyscall
	case 19:
		switch word >> 1 & 1023 {
		case 18, 38, 39, 50, 51, 82, 274, 306: // rfid rfmci rfdi rfi rfci rfscv hrfid urfid
			return noStepReturn
		case 370, 402, 434, 466, 498: // stop doze nap sleep rvwinkle
			return noStepPowerSaving
		}
	case 31:
		switch word >> 1 & 1023 {
		case 4, 68: // tw td
			return noStepTrap
		case 146, 178: // mtmsr mtmsrd
			return noStepMSR
		}
	}
	return steppable
}

// slotHazard returns what goes wrong when inst runs in a slot, whose address
// the kernel then replaces by that of the next instruction; nil where nothing
// does.
func slotHazard(inst *decode.Inst) *classify.Hazard {
	switch {
	case OpOf(inst) == OpBranchTAR, OpOf(inst) == OpReturn:
		return &hazards[hazardLostBranch]
	case inst.PCRel.Kind != decode.PCRelNone:
		return &hazards[hazardWrongAddress]
	}
	return nil
}

// mark gives v, which belongs to an instruction of s, the hazard of s.
func (s sequence) mark(v *classify.Verdict) {
	switch {
	case !v.OK():
	case s.srr:
		v.Hazard = &hazards[hazardSaveRestore]
	default:
		v.Hazard = &hazards[hazardReservation]
	}
}

// markHazards gives the verdicts on insts, from index first on, the hazards of
// the sequences.
func markHazards(verdicts []classify.Verdict, insts []decode.Inst, first int) {
	eachSequence(insts, first, len(verdicts), func(s sequence, i int) {
		s.mark(&verdicts[i-first])
	})
}

// loneHazard gives the verdict on inst, of whose neighbours nothing is known,
// the hazard of a sequence that it must belong to.
func loneHazard(v *classify.Verdict, inst *decode.Inst) {
	switch op := OpOf(inst); {
	case op == OpLoadReserve, op == OpStoreConditional:
		sequence{}.mark(v)
	case usesSRR(inst):
		sequence{srr: true}.mark(v)
	}
}
