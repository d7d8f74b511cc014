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
	Boosted   int // in a slot, and the copy ends in a jump back
	Refused   int
	Undecided int // neither probeable nor refused: too little is known of the file
	Hazards   int // probeable, but then executed wrongly
	Noted     int // probeable and executed rightly, but with something to know
	Depends   int // with an answer, on the probe or on the jump, that is another on another CPU
	Reasons   []Reason

	Optimized   bool // whether jump optimization was judged
	Optimizable int  // probeable, and the breakpoint may become a jump
	JumpReasons []Reason
}

// Reason counts the instructions that a rule refuses, or leaves undecided.
type Reason struct {
	Rule  *classify.Rule
	Count int
}

// Summarize counts the verdicts of r.
func Summarize(r *Result) (s Summary) {
	s.Set(r)
	return s
}

// Set makes s the summary of r, in the memory that the reasons of s have.
func (s *Summary) Set(r *Result) {
	reasons, jumpReasons := counter{list: s.Reasons[:0]}, counter{list: s.JumpReasons[:0]}
	*s = Summary{Optimized: len(r.Optimize) > 0}
	var ways [4]int // probeable instructions by Exec
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Depends {
			s.Depends++
		}
		switch {
		case r.Insts[i].Has(decode.Invalid):
			s.Invalid++
			continue
		case !v.OK():
			reasons.add(v.Rule)
			continue
		case v.Hazard != nil:
			s.Hazards++
		case v.Notes != 0:
			s.Noted++
		}
		ways[v.Exec&3]++
		if v.Boosted && v.Exec == classify.ExecSlot {
			s.Boosted++
		}
	}
	s.Slot, s.Emulated, s.Ftrace = ways[classify.ExecSlot], ways[classify.ExecEmulate], ways[classify.ExecFtrace]
	s.Reasons = reasons.list
	for i := range s.Reasons {
		if n := s.Reasons[i].Count; s.Reasons[i].undecided() {
			s.Undecided += n
		} else {
			s.Refused += n
		}
	}
	s.Insts = len(r.Verdicts) - s.Invalid
	s.Probeable = s.Insts - s.Refused - s.Undecided
	for i := range r.Optimize {
		v := &r.Optimize[i]
		switch {
		case v.OK():
			s.Optimizable++
		case v.Rule != nil:
			jumpReasons.add(v.Rule)
		}
		if v.Depends && !r.Verdicts[i].Depends {
			s.Depends++
		}
	}
	s.JumpReasons = jumpReasons.list
	s.Rank()
}

// undecided reports whether the rule says that too little is known.
func (r *Reason) undecided() bool { return (&classify.Verdict{Rule: r.Rule}).Undecided() }

// counter counts rules. The one that was counted last is likely to come next.
type counter struct {
	list []Reason
	last int
}

func (c *counter) add(rule *classify.Rule) {
	if c.last < len(c.list) && c.list[c.last].Rule == rule {
		c.list[c.last].Count++
		return
	}
	for c.last = range c.list {
		if c.list[c.last].Rule == rule {
			c.list[c.last].Count++
			return
		}
	}
	c.last = len(c.list)
	c.list = append(c.list, Reason{rule, 1})
}

// count adds n to the count of a rule.
func count(reasons []Reason, rule *classify.Rule, n int) []Reason {
	for i := range reasons {
		if reasons[i].Rule == rule {
			reasons[i].Count += n
			return reasons
		}
	}
	return append(reasons, Reason{rule, n})
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
	s.Undecided += o.Undecided
	s.Hazards += o.Hazards
	s.Noted += o.Noted
	s.Depends += o.Depends
	for _, r := range o.Reasons {
		s.Reasons = count(s.Reasons, r.Rule, r.Count)
	}
	s.Optimized = s.Optimized || o.Optimized
	s.Optimizable += o.Optimizable
	for _, r := range o.JumpReasons {
		s.JumpReasons = count(s.JumpReasons, r.Rule, r.Count)
	}
}

// Rank puts the most frequent reason first, equally frequent ones by rule id.
func (s *Summary) Rank() {
	rank(s.Reasons)
	rank(s.JumpReasons)
}

func rank(reasons []Reason) {
	slices.SortFunc(reasons, func(a, b Reason) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Rule.ID, b.Rule.ID)
	})
}
