package arm64

import (
	"encoding/binary"

	"xol/classify"
	"xol/decode"
	"xol/place"
)

// Profile returns the ISA's rules under one of the names of package classify.
func (ISA) Profile(name string, opt classify.KernelOptions) (classify.Profile, bool) {
	opt.FtraceProbes = false // arm64 has no CONFIG_KPROBES_ON_FTRACE
	return known.Profile(name, opt, classify.Judges{
		ISA:     func() classify.Judge { return newISAJudge() },
		Kprobes: func(v classify.Version, _ classify.KernelOptions) classify.Judge { return newKprobeJudge(v) },
		Uprobes: func(v classify.Version) classify.Judge { return newUprobeJudge(v) },
	})
}

// isaJudge says what a probe mechanism can do that rewrites instructions as
// it moves them. All but a few then run in a slot, and a jump back may end it:
//
//   - Between ldxr and stxr and their kin no breakpoint works, since the return
//     from any exception clears the exclusive monitor [Arm ARM, B2.12]. The load
//     itself may be probed where the slot is left by a jump.
//   - The three instructions of a memory copy or set must follow one another
//     [Arm ARM, C6.2, CPYFP].
//   - brk belongs to who put it there. Other instructions that raise an
//     exception on purpose are emulated, since handlers look at the address.
//   - What signs or authenticates with the PC as a modifier gives another
//     result elsewhere.
type isaJudge struct {
	ISA
	classify.Boundaries
}

func newISAJudge() *isaJudge {
	return &isaJudge{Boundaries: classify.Boundaries{
		Outside: &isaRules[isaOutside], Inside: &isaRules[isaMisaligned],
		Truncated: &isaRules[isaTruncated], Invalid: &isaRules[isaInvalid],
	}}
}

// Insts judges instructions of f; see classify.Judge.
func (*isaJudge) Insts(verdicts []classify.Verdict, f *classify.Func, first int) {
	insts := f.Insts[first:][:len(verdicts)]
	for i := range insts {
		judgeISA(&verdicts[i], &insts[i])
		followPACM(&verdicts[i], f.Insts, first+i)
	}
	eachSequence(f.Insts, first, len(verdicts), func(s sequence, i int) {
		s.refuse(&verdicts[i-first], f.Insts, i)
	})
}

// judgeISA fills in v, the zero verdict, for an instruction by itself.
func judgeISA(v *classify.Verdict, inst *decode.Inst) {
	switch {
	case inst.Addr&3 != 0:
		v.Rule = &isaRules[isaMisaligned]
		return
	case inst.Has(decode.Invalid):
		v.Rule = &isaRules[isaInvalid]
		return
	}
	switch OpOf(inst) {
	case OpOther:
		v.Exec, v.Boost, v.Boosted = classify.ExecSlot, true, true
	case OpBRK:
		v.Rule = &isaRules[isaBreakpoint]
	case OpStoreExclusive:
		v.Rule = &isaRules[isaExclusive] // wherever its load-exclusive is
	case OpMOPSPrologue, OpMOPSMain, OpMOPSEpilogue:
		v.Rule = &isaRules[isaMemoryCopy]
	case OpSignPC, OpSignPCLandingPad, OpAuthPC, OpReturnAuthPC:
		v.Rule = &isaRules[isaModifier]
	case OpHLT, OpDCPS, OpUDF:
		v.Exec, v.Emulator = classify.ExecEmulate, "trap"
	default:
		v.Exec, v.Boost, v.Boosted = classify.ExecSlot, true, true
		if WordOf(inst) == hintPACM {
			*v = classify.Refuse(&isaRules[isaModifier])
		}
	}
}

// followPACM refuses instruction i if pacm before it makes it sign or
// authenticate with its own address.
func followPACM(v *classify.Verdict, insts []decode.Inst, i int) {
	if i > 0 && v.OK() && WordOf(&insts[i-1]) == hintPACM {
		*v = classify.Verdict{Rule: &isaRules[isaModifier], Culprit: insts[i-1].Addr}
	}
}

// sequence is a run of instructions from a load-exclusive to its
// store-exclusive, or to the clrex where the store is not wanted, as indices of
// the first and last one.
type sequence struct{ first, last int }

// refuse refuses instruction i of s where it stands after the first and no
// other rule forbids it.
func (s sequence) refuse(v *classify.Verdict, insts []decode.Inst, i int) {
	rule, first := &isaRules[isaExclusive], insts[s.first].Addr
	if i > s.first && (v.OK() || v.Rule == rule) {
		*v = classify.Verdict{Rule: rule, Culprit: first, Instead: first}
	}
}

// eachSequence calls visit with every instruction from index first on, n of
// them, that is part of a sequence on a straight path: from one instruction to
// the next, past branches that may not be taken.
func eachSequence(insts []decode.Inst, first, n int, visit func(s sequence, i int)) {
	const none = -1
	from, to := decode.Paths(insts, first, n)
	open := none
	paths := insts[from:to]
	for i := range paths {
		inst := &paths[i]
		switch {
		case inst.Has(decode.LoadExclusive):
			open = i
		case open == none:
		case inst.Has(decode.StoreExclusive), OpOf(inst) == OpCLREX:
			s := sequence{first: from + open, last: from + i}
			for k := max(s.first, first); k < first+n && k <= s.last; k++ {
				visit(s, k)
			}
			open = none
		case !inst.FallsThrough():
			open = none
		}
	}
}

// kprobeJudge answers as kprobes of one version of Linux do, as far as the
// rules are arm64's own [arch/arm64/kernel/probes]. Words are judged by masks;
// whether they are instructions does not matter. Nothing is boosted.
type kprobeJudge struct {
	ISA
	classify.Boundaries
	version classify.Version
	words   wordRules
}

func newKprobeJudge(v classify.Version) *kprobeJudge {
	return &kprobeJudge{
		Boundaries: classify.Boundaries{Outside: &kprobeRules[kprobeOutside], Inside: &kprobeRules[kprobeMisaligned]},
		version:    v,
		words:      newWordRules(v),
	}
}

// Insts judges instructions of f; see classify.Judge.
func (p *kprobeJudge) Insts(verdicts []classify.Verdict, f *classify.Func, first int) {
	insts := f.Insts[first:][:len(verdicts)]
	scan := newExclusiveScan(p.version, f, (insts[0].Addr-f.Addr)/wordSize)
	for i := range insts {
		inst := &insts[i]
		w, ok := kernelWord(inst.Bytes())
		p.judge(&verdicts[i], w, ok, inst)
		scan.reject(&verdicts[i], f, (inst.Addr-f.Addr)/wordSize)
		if ok {
			scan.add(w, (inst.Addr-f.Addr)/wordSize)
		}
	}
	for _, m := range f.Marks.Starting(insts[0].Addr, insts[len(insts)-1].Addr+1) {
		if m.Kind&place.ExTable == 0 {
			continue
		}
		if i, start := decode.Find(insts, m.Addr); start {
			faultHandled(&verdicts[i])
		}
	}
	markHazards(verdicts, f.Insts, first)
}

// kernelWord reads the word that code starts with, and reports whether it is
// there.
func kernelWord(code []byte) (w uint32, ok bool) {
	if len(code) < wordSize {
		return 0, false
	}
	return binary.LittleEndian.Uint32(code), true
}

// judge fills in v, the zero verdict, for the word w; inst is what truly
// stands there, Invalid where that is no instruction.
func (p *kprobeJudge) judge(v *classify.Verdict, w uint32, whole bool, inst *decode.Inst) {
	switch {
	case inst.Addr&3 != 0:
		v.Rule = &kprobeRules[kprobeMisaligned]
		return
	case !whole:
		v.Rule = &kprobeRules[kprobeOutside]
		return
	}
	rule, simulator := p.words.judge(w)
	if rule == rejectedLiteral {
		rule, simulator = steppable, literalSimulator(w)
	}
	answer(v, kprobeRules[:], rule, simulator, inst)
}

// exclusiveScan finds out what the kernel does by a scan backwards from each
// probe: whether a load-exclusive is the nearest of the last 32 instructions
// of the function that look like an exclusive one.
type exclusiveScan struct {
	last int64 // word offset of the nearest one; -1 where there is none
	load bool
	mask uint32
}

// maxScan is the number of instructions that the kernel looks back.
const maxScan = 32

// newExclusiveScan returns the scan of f as it is at the offset, in words.
func newExclusiveScan(v classify.Version, f *classify.Func, offset uint64) exclusiveScan {
	s := exclusiveScan{last: -1, mask: exclusiveMask(v)}
	for k := offset - min(offset, maxScan); k < offset; k++ {
		s.add(binary.LittleEndian.Uint32(f.Code[k*wordSize:]), k)
	}
	return s
}

// add takes note of the word at the offset, in words.
func (s *exclusiveScan) add(w uint32, offset uint64) {
	switch w & s.mask {
	case 0x08000000:
		s.last, s.load = int64(offset), false
	case 0x08400000:
		s.last, s.load = int64(offset), true
	}
}

// reject refuses the probe at the offset, in words, if the scan forbids it.
func (s *exclusiveScan) reject(v *classify.Verdict, f *classify.Func, offset uint64) {
	if v.OK() && s.last >= 0 && s.load && int64(offset)-s.last <= maxScan {
		from := f.Addr + uint64(s.last)*wordSize
		*v = classify.Verdict{Rule: &kprobeRules[kprobeAtomic], Culprit: from}
	}
}

// faultHandled refuses a probe at an entry of the exception table, which the
// kernel checks before the instruction.
func faultHandled(v *classify.Verdict) {
	if v.Rule != &kprobeRules[kprobeMisaligned] {
		*v = classify.Refuse(&kprobeRules[kprobeExTable])
	}
}

// mark gives v, the verdict on instruction i, the hazard of the sequence that
// it is part of.
func (s sequence) mark(v *classify.Verdict, i int) {
	if v.OK() && s.first < i {
		v.Hazard = &hazards[hazardExclusive]
	}
}

// markHazards gives the verdicts on insts, from index first on, the hazards of
// the sequences.
func markHazards(verdicts []classify.Verdict, insts []decode.Inst, first int) {
	eachSequence(insts, first, len(verdicts), func(s sequence, i int) {
		s.mark(&verdicts[i-first], i)
	})
}
