package ppc64

import (
	"xol/classify"
	"xol/decode"
)

// uprobeProfile answers as uprobes of Linux 6.12 do
// [arch/powerpc/kernel/uprobes.c]. They judge a word by itself: whether it is
// an instruction or the suffix of one does not matter.
//
// Load-and-reserve and store-conditional instructions, lq, stq and three
// cache instructions are emulated only where nothing protects the program's
// memory from the kernel. POWER9 and later CPUs do (KUAP), unless the kernel
// was booted with nosmap; so these run in a slot, and the verdict still names
// the emulator, which is tried first.
type uprobeProfile struct{ isa ISA }

// Name returns "uprobe-linux-6.12".
func (uprobeProfile) Name() string { return classify.Uprobe612 }

// Func judges every instruction of f.
func (p uprobeProfile) Func(dst []classify.Verdict, f *classify.Func) []classify.Verdict {
	base := len(dst)
	for i := range f.Insts {
		inst := &f.Insts[i]
		dst = append(dst, p.judge(codeAt(f, inst.Addr), inst.Addr, inst))
	}
	markHazards(dst[base:], f.Insts)
	return dst
}

// At judges the word at addr, be it an instruction or not.
func (p uprobeProfile) At(f *classify.Func, addr uint64) classify.Verdict {
	code := codeAt(f, addr)
	if code == nil {
		return classify.Refuse(&uprobeRules[uprobeOutside])
	}
	i, start := decode.Find(f.Insts, addr)
	if start {
		v := p.judge(code, addr, &f.Insts[i])
		if s, ok := sequenceAt(f.Insts, i); ok {
			s.mark(&v)
		}
		return v
	}
	v := p.judge(code, addr, &decode.Inst{Addr: addr, Props: decode.Invalid})
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
func (p uprobeProfile) Lone(code []byte, addr uint64) classify.Verdict {
	inst := decode.Inst{Addr: addr}
	if p.isa.Decode(&inst, code, addr) != nil {
		inst.Props = decode.Invalid
	}
	v := p.judge(code, addr, &inst)
	loneHazard(&v, &inst)
	return v
}

// judge returns the verdict on the word that code starts with; inst is what it
// truly is, Invalid where it is no instruction.
func (p uprobeProfile) judge(code []byte, addr uint64, inst *decode.Inst) classify.Verdict {
	if addr&3 != 0 {
		return classify.Refuse(&uprobeRules[uprobeMisaligned])
	}
	word, ok := p.isa.kernelWord(code)
	if !ok {
		return classify.Refuse(&uprobeRules[uprobeOutside])
	}
	isa30 := p.isa.CPU == POWER9
	if !isa30 && crossesBoundary(addr, word) {
		return classify.Refuse(&uprobeRules[uprobeBoundary])
	}
	if rule := stepRule(word); rule != steppable {
		return classify.Refuse(&uprobeRules[rule])
	}
	step := mode{user: true, isa30: isa30}.emulate(word)
	v := classify.Verdict{Exec: classify.ExecSlot, Emulator: step.name()}
	if step == emuUnknown || step&guarded != 0 {
		v.Hazard = slotHazard(inst)
	} else {
		v.Exec = classify.ExecEmulate
	}
	return v
}
