package compare

import (
	"cmp"
	"slices"

	"xol/analyze"
	"xol/classify"
)

// Question is what is asked of an instruction or, for Return, of a function.
type Question uint8

// The questions.
const (
	Probe  Question = iota // may it be probed?
	Exec                   // how does it run, where it may be probed?
	Boost                  // does its copy end in a jump back?
	Jump                   // may the breakpoint become a jump?
	Hazard                 // is it executed wrongly when it is probed?
	Return                 // may the function have a return probe?
	Questions
)

var questionNames = [Questions]string{"probe", "exec", "boost", "jump", "hazard", "return"}

// String returns the question in one word.
func (q Question) String() string {
	if q < Questions {
		return questionNames[q]
	}
	return "invalid"
}

// Answer is the answer to a question.
type Answer struct {
	Yes bool
	// ID names the rule that says no, the hazard, or for Exec the way.
	ID string
}

// Change is an answer that is another one in B.
type Change struct {
	Question      Question
	Pair          int // index in Pairs; -1 for Return
	Before, After Answer
}

// Gained reports whether the answer has become yes. To gain a hazard is no good.
func (c *Change) Gained() bool { return !c.Before.Yes && c.After.Yes }

// Lost reports whether the answer has become no.
func (c *Change) Lost() bool { return c.Before.Yes && !c.After.Yes }

func ruleAnswer(r *classify.Rule) Answer {
	if r == nil {
		return Answer{Yes: true}
	}
	return Answer{ID: r.ID}
}

// answers returns the answers on instruction i of r, but for that on returns.
func answers(r *analyze.Result, i int) (all [Questions]Answer) {
	v := &r.Verdicts[i]
	all[Probe] = ruleAnswer(v.Rule)
	all[Jump] = all[Probe]
	if !v.OK() {
		return all
	}
	all[Exec] = Answer{true, v.Exec.String()}
	all[Boost].Yes = v.Boosted && v.Exec == classify.ExecSlot
	if v.Hazard != nil {
		all[Hazard] = Answer{true, v.Hazard.ID}
	}
	all[Jump] = Answer{}
	if len(r.Optimize) > 0 {
		o := &r.Optimize[i]
		all[Jump] = ruleAnswer(o.Rule)
		all[Jump].Yes = o.OK()
	}
	return all
}

// appendChanges appends the changes of pair k of f. Where the answer on the probe
// itself changes, those on how it runs go with it: they are left out but for what is
// gained or lost.
func appendChanges(dst []Change, f *Function, k int) []Change {
	p := &f.Pairs[k]
	before, after := answers(f.A, p.A), answers(f.B, p.B)
	probe := before[Probe] != after[Probe]
	for q := range Return {
		c := Change{q, k, before[q], after[q]}
		switch {
		case c.Before == c.After:
		case probe && q == Exec:
		case probe && q != Probe && c.Before.Yes == c.After.Yes:
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// returnChange compares whether the function may have a return probe.
func returnChange(c *Comparison, f *Function) Change {
	return Change{Return, -1, ruleAnswer(c.a.Return(f.A)), ruleAnswer(c.b.Return(f.B))}
}

// Count counts the changes of the answer to a question.
type Count struct{ Gained, Lost, Other int }

// Any reports whether there are any.
func (n Count) Any() bool { return n != Count{} }

// Shift is how often an answer changed in one way.
type Shift struct {
	Question      Question
	Before, After Answer
	Count         int
}

// Totals count what became of functions. The zero value counts none.
type Totals struct {
	Functions [statuses]int // by Status
	Insts     Insts
	Answers   [Questions]Count
	Shifts    []Shift // see Rank
	shifts    map[Shift]int
}

// Add counts a function.
func (t *Totals) Add(f *Function) {
	t.Functions[f.Status]++
	t.Insts.merge(&f.Insts)
	for i := range f.Changes {
		c := &f.Changes[i]
		t.Answers[c.Question].add(c)
		if t.shifts == nil {
			t.shifts = map[Shift]int{}
		}
		t.shifts[Shift{Question: c.Question, Before: c.Before, After: c.After}]++
	}
}

func (n *Count) add(c *Change) {
	switch {
	case c.Gained():
		n.Gained++
	case c.Lost():
		n.Lost++
	default:
		n.Other++
	}
}

// Merge adds the counts of o.
func (t *Totals) Merge(o *Totals) {
	for s := range o.Functions {
		t.Functions[s] += o.Functions[s]
	}
	t.Insts.merge(&o.Insts)
	for q := range o.Answers {
		t.Answers[q].Gained += o.Answers[q].Gained
		t.Answers[q].Lost += o.Answers[q].Lost
		t.Answers[q].Other += o.Answers[q].Other
	}
	if t.shifts == nil {
		t.shifts = map[Shift]int{}
	}
	for s, n := range o.shifts {
		t.shifts[s] += n
	}
}

// Rank fills in Shifts, by question, the most frequent first.
func (t *Totals) Rank() {
	t.Shifts = t.Shifts[:0]
	for s, n := range t.shifts {
		s.Count = n
		t.Shifts = append(t.Shifts, s)
	}
	slices.SortFunc(t.Shifts, func(a, b Shift) int {
		return cmp.Or(cmp.Compare(a.Question, b.Question), b.Count-a.Count,
			cmp.Compare(a.Before.ID, b.Before.ID), cmp.Compare(a.After.ID, b.After.ID))
	})
}

// SameAnswers reports whether all places of A are in B, with the same answers, and
// no other ones.
func (t *Totals) SameAnswers() bool {
	return t.Answers == [Questions]Count{} && t.Insts.Added == 0 && t.Insts.Removed == 0 &&
		t.Functions[Added] == 0 && t.Functions[Removed] == 0
}

// Same reports whether nothing is otherwise in B, not even where a function stands.
func (t *Totals) Same() bool {
	return t.SameAnswers() && t.Functions[Moved] == 0 && t.Functions[Changed] == 0
}
