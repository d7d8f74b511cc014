package arm64

import (
	"xol/classify"
	"xol/decode"
)

// uprobeProfile answers as uprobes of one version of Linux do
// [arch/arm64/kernel/probes/uprobes.c]. They judge a word by itself and do not
// look for exclusive sequences around it.
type uprobeProfile struct {
	version classify.Version
	words   wordRules
}

func newUprobeProfile(v classify.Version) *uprobeProfile {
	return &uprobeProfile{v, newWordRules(v)}
}

// Name returns "uprobe-linux-6.12" or that of another version.
func (p *uprobeProfile) Name() string { return classify.ProfileName(classify.Uprobes, p.version) }

// Func judges every instruction of f.
func (p *uprobeProfile) Func(dst []classify.Verdict, f *classify.Func) []classify.Verdict {
	dst, verdicts := classify.Extend(dst, len(f.Insts))
	for i := range f.Insts {
		inst := &f.Insts[i]
		w, ok := kernelWord(inst.Bytes())
		p.judge(&verdicts[i], w, ok, inst)
	}
	markHazards(verdicts, f.Insts)
	return dst
}

// At judges the address addr of f.
func (p *uprobeProfile) At(f *classify.Func, addr uint64) (v classify.Verdict) {
	i, start := decode.Find(f.Insts, addr)
	switch {
	case i < 0:
		return classify.Refuse(&uprobeRules[uprobeOutside])
	case !start:
		from := f.Insts[i].Addr
		return classify.Verdict{Rule: &uprobeRules[uprobeMisaligned], Culprit: from, Instead: from}
	}
	inst := &f.Insts[i]
	w, ok := kernelWord(inst.Bytes())
	p.judge(&v, w, ok, inst)
	if s, ok := sequenceAt(f.Insts, i); ok {
		s.mark(&v, i)
	}
	return v
}

// Lone judges the word that code starts with.
func (p *uprobeProfile) Lone(code []byte, addr uint64) (v classify.Verdict) {
	inst := lone(code, addr)
	w, ok := kernelWord(code)
	p.judge(&v, w, ok, &inst)
	return v
}

// uprobeBreakpoint is the breakpoint of uprobes, brk #5.
const uprobeBreakpoint = insnBRK | 5<<5

// judge fills in v, the zero verdict, for the word w; inst is what truly
// stands there, Invalid where that is no instruction.
func (p *uprobeProfile) judge(v *classify.Verdict, w uint32, whole bool, inst *decode.Inst) {
	switch {
	case inst.Addr&3 != 0:
		v.Rule = &uprobeRules[uprobeMisaligned]
		return
	case !whole:
		v.Rule = &uprobeRules[uprobeOutside]
		return
	case w == uprobeBreakpoint:
		v.Rule = &uprobeRules[uprobeInstalled]
		return
	}
	rule, simulator := p.words.judge(w)
	if rule == rejectedLiteral && uprobeLiterals.Holds(p.version) {
		v.Exec, v.Emulator, v.Hazard = classify.ExecEmulate, literalSimulator(w), &hazards[hazardKernelLoad]
		return
	}
	answer(v, uprobeRules[:], rule, simulator, inst)
}
