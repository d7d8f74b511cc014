package analyze

import (
	"slices"
	"strings"

	"xol/classify"
	"xol/decode"
)

// Summary counts the verdicts on a function or on many.
type Summary struct {
	Insts     int // instructions
	Invalid   int // gaps: bytes that are no instruction; not among Insts
	Probeable int
	Slot      int // probeable, run in a slot
	Emulated  int // probeable, emulated
	Ftrace    int // probeable, through ftrace
	Boosted   int // in a slot, and the copy may end in a jump back
	Refused   int
	Hazards   int // probeable, but then executed wrongly
	Reasons   []Reason
}

// Reason counts the instructions that a rule refuses.
type Reason struct {
	Rule  *classify.Rule
	Count int
}

// Summarize counts the verdicts of r.
func Summarize(r *Result) Summary {
	var s Summary
	for i := range r.Verdicts {
		s.add(&r.Insts[i], &r.Verdicts[i])
	}
	s.Rank()
	return s
}

func (s *Summary) add(inst *decode.Inst, v *classify.Verdict) {
	if inst.Has(decode.Invalid) {
		s.Invalid++
		return
	}
	s.Insts++
	if !v.OK() {
		s.Refused++
		s.reason(v.Rule, 1)
		return
	}
	s.Probeable++
	switch v.Exec {
	case classify.ExecSlot:
		s.Slot++
		if v.Boost {
			s.Boosted++
		}
	case classify.ExecEmulate:
		s.Emulated++
	case classify.ExecFtrace:
		s.Ftrace++
	}
	if v.Hazard != nil {
		s.Hazards++
	}
}

func (s *Summary) reason(rule *classify.Rule, n int) {
	for i := range s.Reasons {
		if s.Reasons[i].Rule == rule {
			s.Reasons[i].Count += n
			return
		}
	}
	s.Reasons = append(s.Reasons, Reason{rule, n})
}

// Merge adds the counts of o to s. Rank has to follow the last one.
func (s *Summary) Merge(o *Summary) {
	s.Insts += o.Insts
	s.Invalid += o.Invalid
	s.Probeable += o.Probeable
	s.Slot += o.Slot
	s.Emulated += o.Emulated
	s.Ftrace += o.Ftrace
	s.Boosted += o.Boosted
	s.Refused += o.Refused
	s.Hazards += o.Hazards
	for _, r := range o.Reasons {
		s.reason(r.Rule, r.Count)
	}
}

// Rank puts the most frequent reason first, equally frequent ones by rule id.
func (s *Summary) Rank() {
	slices.SortFunc(s.Reasons, func(a, b Reason) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Rule.ID, b.Rule.ID)
	})
}
