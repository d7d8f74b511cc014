package toy

import (
	"xol/classify"
	"xol/decode"
)

// Profile returns the ISA's rules under one of the names of package classify.
func (ISA) Profile(name string, opt classify.KernelOptions) (classify.Profile, bool) {
	return known.Profile(name, opt, classify.Judges{ISA: func() classify.Judge {
		return &judge{Boundaries: classify.Boundaries{
			Outside: &ruleOutside, Inside: &ruleInside, Truncated: &ruleTruncated, Invalid: &ruleInvalid,
		}}
	}})
}

// judge has everything run in a slot but calls, which would save the slot's
// address.
type judge struct {
	ISA
	classify.Boundaries
}

// Insts judges instructions of f; see classify.Judge.
func (*judge) Insts(verdicts []classify.Verdict, f *classify.Func, first int) {
	for i := range verdicts {
		inst, v := &f.Insts[first+i], &verdicts[i]
		switch {
		case inst.Has(decode.Invalid):
			v.Rule = &ruleInvalid
		case inst.Op == opCall:
			v.Exec, v.Emulator = classify.ExecEmulate, "call"
		default:
			v.Exec, v.Boost, v.Boosted = classify.ExecSlot, true, true
		}
	}
}
