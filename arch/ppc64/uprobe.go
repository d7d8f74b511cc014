package ppc64

import (
	"xol/classify"
	"xol/decode"
)

// uprobeProfile answers as uprobes of Linux do
// [arch/powerpc/kernel/uprobes.c]. They judge a word by itself: whether it is
// an instruction or the suffix of one does not matter.
//
// Load-and-reserve and store-conditional instructions, lq, stq and three
// cache instructions are emulated only where nothing protects the program's
// memory from the kernel. POWER9 and later CPUs do (KUAP), unless the kernel
// was booted with nosmap; so these run in a slot, and the verdict still names
// the emulator, which is tried first.
type uprobeProfile struct {
	isa     ISA
	version classify.Version
}

// Name returns "uprobe-linux-6.12" or that of another version.
func (p uprobeProfile) Name() string { return classify.ProfileName(classify.Uprobes, p.version) }

// Func judges every instruction of f.
func (p uprobeProfile) Func(dst []classify.Verdict, f *classify.Func) []classify.Verdict {
	dst, verdicts := classify.Extend(dst, len(f.Insts))
	for i := range f.Insts {
		inst := &f.Insts[i]
		p.judge(&verdicts[i], p.isa.kernelWord(codeAt(f, inst.Addr), inst), inst)
	}
	markHazards(verdicts, f.Insts)
	return dst
}

// At judges the word at addr, be it an instruction or not.
func (p uprobeProfile) At(f *classify.Func, addr uint64) (v classify.Verdict) {
	code := codeAt(f, addr)
	if code == nil {
		return classify.Refuse(&uprobeRules[uprobeOutside])
	}
	i, start := decode.Find(f.Insts, addr)
	if start {
		inst := &f.Insts[i]
		p.judge(&v, p.isa.kernelWord(code, inst), inst)
		if s, ok := sequenceAt(f.Insts, i); ok {
			s.mark(&v)
		}
		return v
	}
	inst := decode.Inst{Addr: addr, Props: decode.Invalid}
	p.judge(&v, p.isa.kernelWord(code, &inst), &inst)
	if i >= 0 {
		v.Culprit = f.Insts[i].Addr
		v.Instead = v.Culprit
		if v.OK() {
			v.Hazard = &hazards[hazardSuffix]
		}
	}
	return v
}

// Lone judges the word that code starts with.
func (p uprobeProfile) Lone(code []byte, addr uint64) (v classify.Verdict) {
	inst := decode.Inst{Addr: addr}
	if p.isa.Decode(&inst, code, addr) != nil {
		inst.Props = decode.Invalid
	}
	p.judge(&v, p.isa.kernelWord(code, &inst), &inst)
	loneHazard(&v, &inst)
	return v
}

// judge fills in v, the zero verdict, for word; inst is what truly stands
// there, Invalid where that is no instruction.
func (p uprobeProfile) judge(v *classify.Verdict, word uint64, inst *decode.Inst) {
	isa30 := p.isa.CPU == POWER9
	if rule := uprobeRule(word, inst.Addr, isa30); rule != steppable {
		v.Rule = &uprobeRules[rule]
		return
	}
	step := mode{user: true, isa30: isa30}.emulate(word)
	v.Emulator = step.name()
	if step == emuUnknown || step&guarded != 0 {
		v.Exec, v.Hazard = classify.ExecSlot, slotHazard(inst)
	} else {
		v.Exec = classify.ExecEmulate
	}
}

// uprobeRule returns the rule by which a probe at addr is refused, or
// steppable.
func uprobeRule(word, addr uint64, isa30 bool) uint8 {
	switch {
	case addr&3 != 0:
		return uprobeMisaligned
	case word == noWord:
		return uprobeOutside
	case !isa30 && crossesBoundary(addr, word):
		return uprobeBoundary
	}
	return stepRule(word)
}
