package ppc64

import (
	"xol/classify"
	"xol/decode"
)

// uprobeJudge answers as uprobes of Linux do
// [arch/powerpc/kernel/uprobes.c]. They judge a word by itself: whether it is
// an instruction or the suffix of one does not matter.
//
// Load-and-reserve and store-conditional instructions, lq, stq and three
// cache instructions are emulated only where nothing protects the program's
// memory from the kernel. POWER9 and later CPUs do (KUAP), unless the kernel
// was booted with nosmap; so these run in a slot, and the verdict still names
// the emulator, which is tried first.
type uprobeJudge struct{ ISA }

// Insts judges instructions of f; see classify.Judge.
func (p *uprobeJudge) Insts(verdicts []classify.Verdict, f *classify.Func, first int) {
	insts := f.Insts[first:][:len(verdicts)]
	for i := range insts {
		inst := &insts[i]
		p.judge(&verdicts[i], p.kernelWord(codeAt(f, inst.Addr), inst), inst)
	}
	markHazards(verdicts, f.Insts, first)
}

// Elsewhere judges the word at an address where no instruction starts; see
// classify.Judge.
func (p *uprobeJudge) Elsewhere(f *classify.Func, addr uint64, holder int) (v classify.Verdict) {
	code := codeAt(f, addr)
	if code == nil {
		return classify.Refuse(&uprobeRules[uprobeOutside])
	}
	inst := decode.Inst{Addr: addr, Props: decode.Invalid}
	p.judge(&v, p.kernelWord(code, &inst), &inst)
	if holder >= 0 {
		v.Culprit = f.Insts[holder].Addr
		v.Instead = v.Culprit
		if v.OK() {
			v.Hazard = &hazards[hazardSuffix]
		}
	}
	return v
}

// Lone marks what must be part of a sequence; see classify.Judge.
func (*uprobeJudge) Lone(v *classify.Verdict, inst *decode.Inst, _ error) { loneHazard(v, inst) }

// judge fills in v, the zero verdict, for word; inst is what truly stands
// there, Invalid where that is no instruction.
func (p *uprobeJudge) judge(v *classify.Verdict, word uint64, inst *decode.Inst) {
	isa30 := p.CPU == POWER9
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
