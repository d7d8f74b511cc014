package arm64

import (
	"xol/classify"
	"xol/decode"
)

// uprobeJudge answers as uprobes of one version of Linux do
// [arch/arm64/kernel/probes/uprobes.c]. They judge a word by itself and do not
// look for exclusive sequences around it.
type uprobeJudge struct {
	ISA
	classify.Boundaries
	version classify.Version
	words   wordRules
}

func newUprobeJudge(v classify.Version) *uprobeJudge {
	return &uprobeJudge{
		Boundaries: classify.Boundaries{Outside: &uprobeRules[uprobeOutside], Inside: &uprobeRules[uprobeMisaligned]},
		version:    v,
		words:      newWordRules(v),
	}
}

// Insts judges instructions of f; see classify.Judge.
func (p *uprobeJudge) Insts(verdicts []classify.Verdict, f *classify.Func, first int) {
	insts := f.Insts[first:][:len(verdicts)]
	for i := range insts {
		inst := &insts[i]
		w, ok := kernelWord(inst.Bytes())
		p.judge(&verdicts[i], w, ok, inst)
	}
	markHazards(verdicts, f.Insts, first)
}

// uprobeBreakpoint is the breakpoint of uprobes, brk #5.
const uprobeBreakpoint = insnBRK | 5<<5

// judge fills in v, the zero verdict, for the word w; inst is what truly
// stands there, Invalid where that is no instruction.
func (p *uprobeJudge) judge(v *classify.Verdict, w uint32, whole bool, inst *decode.Inst) {
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
