package ppc64

import (
	"slices"

	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

// Optimizer returns the rules for turning breakpoints into jumps under one of
// the names of package classify.
func (a ISA) Optimizer(profile string, opt classify.KernelOptions) (optcheck.Optimizer, bool) {
	mechanism, _, ok := known.Find(profile)
	if !ok {
		return nil, false
	}
	switch {
	case mechanism == classify.Architecture:
		return optcheck.New(a), true
	case mechanism == classify.Uprobes:
		return optcheck.LinuxUprobes(), true
	case opt.Module:
		return optcheck.RefuseAll(&optimizeRules[optimizeModule]), true
	}
	return kprobeOptimizer{isa: a, slots: opt.SymbolAddress("optinsn_slot")}, true
}

// kprobeOptimizer answers as kprobes of Linux 6.12 do
// [arch/powerpc/kernel/optprobes.c]. The jump replaces one word. The
// instruction, which the detour buffer does not hold, is emulated; so nothing
// can land inside, and every instruction is judged by itself.
type kprobeOptimizer struct {
	isa   ISA
	slots uint64 // address of the detour buffers; 0: taken to lie beside every probe
}

func (kprobeOptimizer) WholeProgram() bool { return false }

// Func judges every instruction of f; see optcheck.Optimizer.
func (o kprobeOptimizer) Func(dst []optcheck.Verdict, f *optcheck.Function, _ *optcheck.Scratch) []optcheck.Verdict {
	dst = slices.Grow(dst, len(f.Insts))
	for i := range f.Insts {
		inst := &f.Insts[i]
		rule, decided := optcheck.LinuxKprobe(&f.Verdicts[i])
		v := optcheck.Verdict{Rule: rule}
		if !decided {
			v = o.judge(o.isa.kernelWord(codeAt(f.Func, inst.Addr), inst), inst)
		}
		dst = append(dst, v)
	}
	return dst
}

// judge judges word, which is what the kernel takes for inst [can_optimize,
// arch_prepare_optimized_kprobe].
func (o kprobeOptimizer) judge(word uint64, inst *decode.Inst) optcheck.Verdict {
	if isConditionalForm(word) {
		return optcheck.Refuse(&optimizeRules[optimizeConditional], 0)
	}
	step := mode{isa30: o.isa.CPU == POWER9}.emulate(word)
	if rule := emulatedRules[step&operations]; rule != optimizeAllowed {
		return optcheck.Refuse(&optimizeRules[rule], 0)
	}
	next := inst.Next()
	if target, ok := inst.BranchTarget(); ok {
		next = target // the buffer ends in a jump to the target
	}
	slots := o.slots
	if slots == 0 {
		slots = inst.Addr
	}
	switch {
	case !slotsReach(slots, inst.Addr):
		return optcheck.Refuse(&optimizeRules[optimizeReach], slots)
	case !slotsReach(slots, next):
		return optcheck.Refuse(&optimizeRules[optimizeReturnReach], next)
	}
	return optcheck.Verdict{Region: inst.Len, Moved: inst.Len}
}

// isConditionalForm reports whether word is of a form that has a condition,
// whether it uses it or not [is_conditional_branch].
func isConditionalForm(word uint64) bool {
	switch word >> 26 {
	case 16: // bc
		return true
	case 19:
		switch word >> 1 & 1023 {
		case 16, 528, 560: // bclr bcctr bctar
			return true
		}
	}
	return false
}

// slotsReach reports whether branches reach from all of the detour buffers to
// addr and back. They share 64 KiB of text, optinsn_slot.
func slotsReach(slots, addr uint64) bool {
	const branchBits = 26
	first := int64(addr - slots)
	last := first - (1<<16 - wordSize)
	return reaches(first, branchBits) && reaches(-first, branchBits) &&
		reaches(last, branchBits) && reaches(-last, branchBits)
}
