package arm64

import (
	"encoding/binary"
	"errors"

	"xol/classify"
	"xol/decode"
	"xol/place"
)

// Profile returns the ISA's rules under one of the names of package classify.
func (ISA) Profile(name string, opt classify.KernelOptions) (classify.Profile, bool) {
	mechanism, v, ok := known.Find(name)
	if !ok {
		return nil, false
	}
	switch mechanism {
	case classify.Architecture:
		return classify.WithOwnedText(isaProfile{}), true
	case classify.Uprobes:
		return classify.WithCheckedPlaces(newUprobeProfile(v)), true
	}
	opt.FtraceProbes = false // arm64 has no CONFIG_KPROBES_ON_FTRACE
	return classify.WithKernelChecks(newKprobeProfile(v), opt), true
}

// isaProfile says what a probe mechanism can do that rewrites instructions as
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
type isaProfile struct{}

// Name returns "isa".
func (isaProfile) Name() string { return classify.ISA }

// Func judges every instruction of f.
func (p isaProfile) Func(dst []classify.Verdict, f *classify.Func) []classify.Verdict {
	dst, verdicts := classify.Extend(dst, len(f.Insts))
	for i := range f.Insts {
		p.judge(&verdicts[i], &f.Insts[i])
		followPACM(&verdicts[i], f.Insts, i)
	}
	eachSequence(f.Insts, func(s sequence) {
		for i := s.first; i <= s.last; i++ {
			s.refuse(&verdicts[i], f.Insts, i)
		}
	})
	return dst
}

// At judges the address addr of f.
func (p isaProfile) At(f *classify.Func, addr uint64) (v classify.Verdict) {
	i, start := decode.Find(f.Insts, addr)
	if i < 0 {
		return classify.Refuse(&isaRules[isaOutside])
	}
	inst := &f.Insts[i]
	if !start {
		return classify.Verdict{Rule: &isaRules[isaMisaligned], Culprit: inst.Addr, Instead: inst.Addr}
	}
	p.judge(&v, inst)
	followPACM(&v, f.Insts, i)
	if s, ok := sequenceAt(f.Insts, i); ok {
		s.refuse(&v, f.Insts, i)
	}
	return v
}

// Lone judges the instruction that code starts with.
func (p isaProfile) Lone(code []byte, addr uint64) (v classify.Verdict) {
	var inst decode.Inst
	switch err := (ISA{}).Decode(&inst, code, addr); {
	case err == nil:
		p.judge(&v, &inst)
	case errors.Is(err, decode.ErrTruncated):
		v.Rule = &isaRules[isaTruncated]
	default:
		v.Rule = &isaRules[isaInvalid]
	}
	return v
}

// judge fills in v, the zero verdict, for an instruction by itself.
func (isaProfile) judge(v *classify.Verdict, inst *decode.Inst) {
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

// followPACM refuses instruction i if pacm in front of it makes it sign or
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

// refuse refuses instruction i of s where it stands behind the first and no
// other rule forbids it.
func (s sequence) refuse(v *classify.Verdict, insts []decode.Inst, i int) {
	rule, first := &isaRules[isaExclusive], insts[s.first].Addr
	if i > s.first && (v.OK() || v.Rule == rule) {
		*v = classify.Verdict{Rule: rule, Culprit: first, Instead: first}
	}
}

// eachSequence calls visit for every sequence that lies on a straight path: from
// one instruction to the next, past branches that may not be taken.
func eachSequence(insts []decode.Inst, visit func(sequence)) {
	const none = -1
	open := none
	for i := range insts {
		inst := &insts[i]
		switch {
		case inst.Has(decode.LoadExclusive):
			open = i
		case open == none:
		case inst.Has(decode.StoreExclusive), OpOf(inst) == OpCLREX:
			visit(sequence{first: open, last: i})
			open = none
		case !inst.FallsThrough():
			open = none
		}
	}
}

// sequenceAt returns the sequence that instruction i belongs to.
func sequenceAt(insts []decode.Inst, i int) (found sequence, ok bool) {
	from, to := decode.Path(insts, i)
	eachSequence(insts[from:to], func(s sequence) {
		s.first += from
		s.last += from
		if s.first <= i && i <= s.last {
			found, ok = s, true
		}
	})
	return found, ok
}

// kprobeProfile answers as kprobes of one version of Linux do, as far as the
// rules are arm64's own [arch/arm64/kernel/probes]. Words are judged by masks;
// whether they are instructions does not matter. Nothing is boosted.
type kprobeProfile struct {
	version classify.Version
	words   wordRules
}

func newKprobeProfile(v classify.Version) *kprobeProfile {
	return &kprobeProfile{v, newWordRules(v)}
}

// Name returns "linux-6.12" or that of another version.
func (p *kprobeProfile) Name() string { return classify.ProfileName(classify.Kprobes, p.version) }

// Func judges every instruction of f.
func (p *kprobeProfile) Func(dst []classify.Verdict, f *classify.Func) []classify.Verdict {
	dst, verdicts := classify.Extend(dst, len(f.Insts))
	scan := exclusiveScan{last: -1, mask: exclusiveMask(p.version)}
	for i := range f.Insts {
		inst := &f.Insts[i]
		w, ok := kernelWord(inst.Bytes())
		p.judge(&verdicts[i], w, ok, inst)
		scan.reject(&verdicts[i], f, (inst.Addr-f.Addr)/wordSize)
		if ok {
			scan.add(w, (inst.Addr-f.Addr)/wordSize)
		}
	}
	for _, m := range f.Marks {
		if m.Kind&place.ExTable == 0 {
			continue
		}
		if i := decode.From(f.Insts, m.Addr); i < len(f.Insts) && f.Insts[i].Addr == m.Addr {
			faultHandled(&verdicts[i])
		}
	}
	markHazards(verdicts, f.Insts)
	return dst
}

// At judges the address addr of f.
func (p *kprobeProfile) At(f *classify.Func, addr uint64) (v classify.Verdict) {
	i, start := decode.Find(f.Insts, addr)
	switch {
	case i < 0:
		return classify.Refuse(&kprobeRules[kprobeOutside])
	case !start:
		from := f.Insts[i].Addr
		return classify.Verdict{Rule: &kprobeRules[kprobeMisaligned], Culprit: from, Instead: from}
	}
	inst := &f.Insts[i]
	w, ok := kernelWord(inst.Bytes())
	p.judge(&v, w, ok, inst)
	scan := exclusiveScan{last: -1, mask: exclusiveMask(p.version)}
	n := (addr - f.Addr) / wordSize
	for k := n - min(n, maxScan); k < n; k++ {
		scan.add(binary.LittleEndian.Uint32(f.Code[k*wordSize:]), k)
	}
	scan.reject(&v, f, n)
	for _, m := range f.Marks.Starting(addr, addr+1) {
		if m.Kind&place.ExTable != 0 {
			faultHandled(&v)
		}
	}
	if s, ok := sequenceAt(f.Insts, i); ok {
		s.mark(&v, i)
	}
	return v
}

// Lone judges the instruction that code starts with.
func (p *kprobeProfile) Lone(code []byte, addr uint64) (v classify.Verdict) {
	inst := lone(code, addr)
	w, ok := kernelWord(code)
	p.judge(&v, w, ok, &inst)
	return v
}

// lone returns the instruction that code starts with, Invalid where that is
// none.
func lone(code []byte, addr uint64) decode.Inst {
	inst := decode.Inst{Addr: addr}
	if (ISA{}).Decode(&inst, code, addr) != nil {
		inst.Props = decode.Invalid
	}
	return inst
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
func (p *kprobeProfile) judge(v *classify.Verdict, w uint32, whole bool, inst *decode.Inst) {
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

// markHazards gives the verdicts on insts the hazards of the sequences.
func markHazards(verdicts []classify.Verdict, insts []decode.Inst) {
	eachSequence(insts, func(s sequence) {
		for i := s.first; i <= s.last; i++ {
			s.mark(&verdicts[i], i)
		}
	})
}
