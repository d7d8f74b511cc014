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
	reasons := counter{list: s.Reasons[:0]}
	*s = Summary{Optimized: len(r.Optimize) > 0, JumpReasons: s.JumpReasons[:0]}
	const boosted = 4
	var ways [8]int // probeable instructions by Exec, boosted ones apart
	depends := 0
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		depends += one(v.Depends)
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
		ways[int(v.Exec)&3+boosted*one(v.Boosted)]++
	}
	of := func(e classify.Exec) int { return ways[e] + ways[boosted+e] }
	s.Slot, s.Emulated, s.Ftrace = of(classify.ExecSlot), of(classify.ExecEmulate), of(classify.ExecFtrace)
	s.Boosted = ways[boosted+classify.ExecSlot]
	s.Depends = depends
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
	s.countJumps(r)
	s.Rank()
}

// countJumps counts the verdicts on jumps, and why they may not be. Which one comes next
// is hard to guess, also for a CPU: the two rules that are met first are counted without
// branches. They are most often all that there are.
func (s *Summary) countJumps(r *Result) {
	var optimizable, depends, first, second int
	a, b := &none, &none
	for i := range r.Optimize {
		v := &r.Optimize[i]
		optimizable += one(v.OK())
		isA, isB := one(v.Rule == a), one(v.Rule == b)
		first += isA
		second += isB
		if v.Depends {
			depends += one(!r.Verdicts[i].Depends)
		}
		if isA|isB|one(v.Rule == nil) != 0 {
			continue
		}
		switch {
		case a == &none:
			a, first = v.Rule, 1
		case b == &none:
			b, second = v.Rule, 1
		default:
			s.JumpReasons = count(s.JumpReasons, v.Rule, 1)
		}
	}
	s.Optimizable = optimizable
	s.Depends += depends
	for _, r := range []Reason{{a, first}, {b, second}} {
		if r.Count > 0 {
			s.JumpReasons = append(s.JumpReasons, r)
		}
	}
}

// none stands for a rule that has not been met.
var none classify.Rule

// one returns 1 for true, without a branch.
func one(b bool) int {
	if b {
		return 1
	}
	return 0
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
