package analyze

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

// The counts are those that a plain loop over the verdicts makes.
func TestSummaryCountsEveryVerdict(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rules := make([]classify.Rule, 6)
	for i := range rules {
		rules[i].ID = fmt.Sprint("rule", i)
	}
	hazard := new(classify.Hazard)
	var s Summary
	for range 500 {
		r, want, most := randomResult(random, rules, hazard), map[string]int{}, random.IntN(2)
		if most == 0 {
			r.Optimize = nil
		}
		for i := range r.Verdicts {
			v := &r.Verdicts[i]
			depends := v.Depends
			switch {
			case r.Insts[i].Has(decode.Invalid):
				want["invalid"]++
			case !v.OK():
				want[v.Rule.ID]++
			default:
				want["probeable"]++
				want[v.Exec.String()]++
				switch {
				case v.Hazard != nil:
					want["hazard"]++
				case v.Notes != 0:
					want["noted"]++
				}
				if v.Boosted && v.Exec == classify.ExecSlot {
					want["boosted"]++
				}
			}
			if len(r.Optimize) > 0 {
				o := &r.Optimize[i]
				depends = depends || o.Depends
				switch {
				case o.OK():
					want["optimizable"]++
				case o.Rule != nil:
					want["jump "+o.Rule.ID]++
				}
			}
			if depends {
				want["depends"]++
			}
		}
		s.Set(r)
		got := map[string]int{
			"invalid": s.Invalid, "probeable": s.Probeable, "slot": s.Slot, "emulate": s.Emulated, "ftrace": s.Ftrace,
			"hazard": s.Hazards, "noted": s.Noted, "boosted": s.Boosted, "optimizable": s.Optimizable, "depends": s.Depends,
		}
		for _, reason := range s.Reasons {
			got[reason.Rule.ID] += reason.Count
		}
		for _, reason := range s.JumpReasons {
			got["jump "+reason.Rule.ID] += reason.Count
		}
		for _, counts := range []map[string]int{got, want} {
			for what := range counts {
				if got[what] != want[what] {
					t.Fatalf("%s: %d, want %d", what, got[what], want[what])
				}
			}
		}
		for _, list := range [][]Reason{s.Reasons, s.JumpReasons} {
			for i := 1; i < len(list); i++ {
				if list[i-1].Count < list[i].Count {
					t.Fatalf("%v comes before %v", list[i-1], list[i])
				}
			}
		}
	}
}

// randomResult returns verdicts of all kinds, by the first few rules.
func randomResult(random *rand.Rand, rules []classify.Rule, hazard *classify.Hazard) *Result {
	n, few := random.IntN(40), 1+random.IntN(len(rules))
	rule := func() *classify.Rule { return &rules[random.IntN(few)] }
	maybe := func() bool { return random.IntN(4) == 0 }
	r := new(Result)
	for range n {
		var inst decode.Inst
		if maybe() {
			inst.Props = decode.Invalid
		}
		v := classify.Verdict{Depends: maybe()}
		if maybe() {
			v.Rule = rule()
		} else {
			v.Exec, v.Boosted, v.Notes = classify.ExecSlot+classify.Exec(random.IntN(3)), maybe(), classify.Notes(random.IntN(2))
			if maybe() {
				v.Hazard = hazard
			}
		}
		o := optcheck.Verdict{Depends: maybe()}
		switch random.IntN(3) {
		case 0:
			o.Region = 5
		case 1:
			o.Rule = rule()
		}
		r.Insts, r.Verdicts, r.Optimize = append(r.Insts, inst), append(r.Verdicts, v), append(r.Optimize, o)
	}
	return r
}
