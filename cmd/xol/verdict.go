package main

import (
	"xol/analyze"
	"xol/classify"
	"xol/decode"
)

const (
	probeOK      = "ok"
	probeRefused = "refused"
	probeUnknown = "unknown" // too little is known to judge
)

// probeName returns the value of the field probe.
func probeName(v *classify.Verdict) string {
	switch {
	case v.OK():
		return probeOK
	case v.Undecided():
		return probeUnknown
	}
	return probeRefused
}

// verdictFields encodes what every verdict carries but the hazard, whose place
// differs between the commands.
func verdictFields(r *records, v *classify.Verdict) {
	var rule classify.Rule
	if v.Rule != nil {
		rule = *v.Rule
	}
	r.str("probe", probeName(v))
	r.num("errno", int(rule.Errno))
	r.str("rule", rule.ID)
	r.str("reason", rule.Reason)
	r.str("exec", v.Exec.String())
	r.flag("boost", v.Boost)
	r.flag("boosted", v.Boosted)
}

func hazardField(r *records, v *classify.Verdict) {
	text := ""
	if v.Hazard != nil {
		text = v.Hazard.Text
	}
	r.str("hazard", text)
	r.str("note", noteText(v))
}

// noteText returns what the notes of v say, empty where there are none.
func noteText(v *classify.Verdict) (text string) {
	for note := range v.Notes.All() {
		if text != "" {
			text += "; "
		}
		text += note.Text
	}
	return text
}

// pcrelFields encodes the operand that depends on the instruction's address.
func pcrelFields(r *records, inst *decode.Inst) {
	r.open("pcrel")
	r.str("kind", inst.PCRel.Kind.String())
	r.addr("target", inst.Target)
	r.num("offset", int(inst.PCRel.Offset))
	r.num("width", int(inst.PCRel.Width))
	r.close()
}

// Widths of the columns of a verdict.
const (
	probeWidth = len("EOPNOTSUPP")
	runsWidth  = len("emulate")
)

func verdictHeads(t *table) {
	t.left(probeWidth, "PROBE", bold)
	t.left(runsWidth, "RUNS", bold)
}

// verdictCells adds the answer and how the instruction would run.
func verdictCells(t *table, v *classify.Verdict) {
	if !v.OK() {
		t.left(probeWidth, refusalName(v), refusalStyle(v))
		t.left(runsWidth, "-", dim)
		return
	}
	t.left(probeWidth, probeOK, green)
	runs := v.Exec.String()
	if v.Exec == classify.ExecSlot && v.Boosted {
		runs = "boosted"
	}
	t.left(runsWidth, runs, plain)
}

// refusalName returns the name of the rule's error number, or that the probe
// is refused where no kernel is asked.
func refusalName(v *classify.Verdict) string {
	if v.Rule.Errno == 0 {
		return probeName(v)
	}
	return v.Rule.Errno.String()
}

func refusalStyle(v *classify.Verdict) style {
	if v.Undecided() {
		return yellow
	}
	return red
}

func reasonHead(t *table) { t.left(0, "REASON OR HAZARD", bold) }

// reasonCell adds why the probe is refused, or what goes wrong if it is not.
func reasonCell(t *table, v *classify.Verdict) {
	switch {
	case v.Rule != nil:
		t.left(0, v.Rule.ID+": "+v.Rule.Reason, plain)
	case v.Hazard != nil:
		t.left(0, "hazard: "+v.Hazard.Text, yellow)
	case v.Notes != 0:
		t.left(0, "note: "+noteText(v), plain)
	}
}

// bootFields encodes what becomes of the instruction while the kernel boots, and
// which answers are others on another CPU.
func bootFields(r *records, boot analyze.Boot, probe, jump bool) {
	r.only(boot != analyze.BootKept)
	r.str("boot", boot.String())
	r.only(probe || jump)
	r.str("depends", dependsName(probe, jump))
	r.only(true)
}

// dependsName returns the value of the field depends.
func dependsName(probe, jump bool) string {
	switch {
	case probe && jump:
		return "probe optimize"
	case probe:
		return "probe"
	case jump:
		return "optimize"
	}
	return ""
}

// dependsPhrase says of a row that an answer is another one elsewhere; empty
// where none is.
func dependsPhrase(probe, jump bool) string {
	switch {
	case probe:
		return "for another CPU the kernel writes another instruction, with another answer"
	case jump:
		return "for another CPU, or with other jump labels, the answer on the jump is another"
	}
	return ""
}
