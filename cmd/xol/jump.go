package main

import (
	"strconv"

	"xol/analyze"
	"xol/classify"
	"xol/optcheck"
)

// The values of the field optimize.
const (
	jumpOK      = "ok"
	jumpRefused = "refused"
	jumpNone    = "-"
	jumpUnknown = "unknown"
)

// jumpAnswer is the verdict on jump optimization of one instruction, in words.
type jumpAnswer struct {
	answer  string
	region  int
	rule    *classify.Rule // nil where there is none
	reason  string
	culprit uint64
	depends bool // on the CPU, or on a jump label
}

// jumpAnswerAt returns the answer for instruction i.
func jumpAnswerAt(res *analyze.Result, i int) jumpAnswer {
	probe := &res.Verdicts[i]
	if probe.OK() && len(res.Optimize) == 0 {
		return jumpAnswer{answer: jumpUnknown}
	}
	if !probe.OK() {
		return jumpAnswer{answer: jumpNone}
	}
	v := &res.Optimize[i]
	j := jumpAnswer{answer: jumpName(probe, v), region: int(v.Region), rule: v.Rule, culprit: v.Culprit, depends: v.Depends}
	if v.Rule != nil {
		j.reason = jumpReason(res, v)
	}
	return j
}

// jumpName returns the value of the field optimize.
func jumpName(probe *classify.Verdict, v *optcheck.Verdict) string {
	switch {
	case !probe.OK():
		return jumpNone
	case v.OK():
		return jumpOK
	}
	return jumpRefused
}

// jumpReason returns why a breakpoint cannot become a jump: of an indirect jump
// that is not understood, also how it finds its target.
func jumpReason(res *analyze.Result, v *optcheck.Verdict) string {
	for i := range res.Unresolved {
		if u := &res.Unresolved[i]; u.Addr == v.Culprit && u.What != "" {
			return v.Rule.Reason + ": " + u.What
		}
	}
	return v.Rule.Reason
}

func (j *jumpAnswer) fields(r *records) {
	id := ""
	if j.rule != nil {
		id = j.rule.ID
	}
	r.str("optimize", j.answer)
	r.num("region", j.region)
	r.str("opt_rule", id)
	r.str("opt_reason", j.reason)
}

// jumpWidth is the width of the column of answers in a table.
const jumpWidth = len("15 bytes")

func (j *jumpAnswer) cell(t *table) {
	switch j.answer {
	case jumpOK:
		t.left(jumpWidth, strconv.Itoa(j.region)+" bytes", green)
	case jumpRefused:
		t.left(jumpWidth, "no", red)
	default:
		t.left(jumpWidth, jumpNone, dim)
	}
}
