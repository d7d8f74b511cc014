package main

import (
	"bufio"
	"path/filepath"
	"strconv"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"xol/classify"
)

// checkListing prints the probes of a script.
type checkListing interface {
	add(*checked)
	close() error
}

func (a *app) newCheckListing(w *bufio.Writer, opt *checkOptions, script string) checkListing {
	switch opt.format.value {
	case formatTable:
		return &checkTable{w: w, opt: opt, palette: a.palette()}
	case formatSARIF:
		return newSARIF(w, opt, script)
	}
	l := &checkRecords{}
	l.stream = newStream(w, opt.format.value, "[", "\n]\n", func(r *records) { l.fields(r, new(checked)) })
	return l
}

// checkTable prints a row for each probe, and below it what is wrong.
type checkTable struct {
	w       *bufio.Writer
	opt     *checkOptions
	palette palette
	any     bool
}

func (l *checkTable) add(c *checked) {
	const lineWidth, verdictWidth = 5, len("EADDRNOTAVAIL")
	t := &table{palette: l.palette}
	if !l.any {
		t.right(lineWidth, "LINE", bold)
		t.left(verdictWidth, "PROBE", bold)
		t.left(len("OPTIMIZE"), "OPTIMIZE", bold)
		t.left(placeWidth, "PLACE", bold)
		t.left(0, "RULE", bold)
		t.end()
		l.any = true
	}
	verdict, st := probeOK, green
	switch {
	case !c.verdict.OK() && c.verdict.Rule.Errno != 0:
		verdict, st = c.verdict.Rule.Errno.String(), red
	case !c.verdict.OK():
		verdict, st = probeRefused, red
	case c.verdict.Hazard != nil:
		verdict, st = "hazard", yellow
	}
	t.right(lineWidth, strconv.Itoa(c.line), dim)
	t.left(verdictWidth, verdict, st)
	t.left(len("OPTIMIZE"), c.optimize(), plain)
	t.left(placeWidth, c.place, plain)
	t.left(0, c.rule(l.opt), dim)
	t.end()
	message := c.message(l.opt)
	for _, line := range wrap(message, screenWidth-lineWidth-len(gap)) {
		if message == "" {
			break
		}
		t.left(lineWidth, "", plain)
		t.left(0, line, plain)
		t.end()
	}
	l.w.Write(t.buf)
}

func (l *checkTable) close() error { return nil }

// checkRecords prints a record for each probe.
type checkRecords struct{ *stream }

func (l *checkRecords) add(c *checked) {
	r := records{format: l.format}
	l.fields(&r, c)
	l.write(r.buf)
}

func (l *checkRecords) fields(r *records, c *checked) {
	var rule classify.Rule
	if c.verdict.Rule != nil {
		rule = *c.verdict.Rule
	}
	r.begin()
	r.num("line", c.line)
	r.str("place", c.place)
	r.addrOrEmpty("addr", c.addr)
	r.str("probe", probeName(&c.verdict))
	r.num("errno", int(rule.Errno))
	r.str("rule", rule.ID)
	r.str("reason", c.reason)
	r.str("remedy", c.remedy)
	r.str("exec", c.verdict.Exec.String())
	r.str("hazard", c.hazard())
	r.str("optimize", c.optimize())
	r.num("region", int(c.jump.Region))
	r.str("depends", dependsName(c.verdict.Depends, c.jump.Depends))
	r.end()
}

func (l *checkRecords) close() error {
	l.stream.close()
	return nil
}

// sarifListing collects what is wrong in the format of services that check code.
type sarifListing struct {
	w      *bufio.Writer
	opt    *checkOptions
	script string
	run    *sarif.Run
}

func newSARIF(w *bufio.Writer, opt *checkOptions, script string) *sarifListing {
	return &sarifListing{w, opt, filepath.ToSlash(script), newRun()}
}

// add adds a result for a probe that something is wrong with: an error where it is
// refused, a warning where it is hazardous or stays a breakpoint.
func (l *sarifListing) add(c *checked) {
	if !c.bad(l.opt) {
		return
	}
	level := "error"
	if c.verdict.OK() {
		level = "warning"
	}
	id := c.rule(l.opt)
	rule := l.run.AddRule(id)
	if c.verdict.Rule != nil && c.verdict.Rule.Reason != "" {
		rule.WithDescription(c.verdict.Rule.Reason)
	}
	where := sarif.NewPhysicalLocation().
		WithArtifactLocation(sarif.NewSimpleArtifactLocation(l.script)).
		WithRegion(sarif.NewSimpleRegion(c.line, c.line))
	l.run.AddDistinctArtifact(l.script)
	l.run.CreateResultForRule(id).
		WithLevel(level).
		WithMessage(sarif.NewTextMessage(c.place + ": " + c.message(l.opt))).
		AddLocation(sarif.NewLocationWithPhysicalLocation(where))
}

func (l *sarifListing) close() error {
	report := sarif.NewReport()
	report.AddRun(l.run)
	return report.PrettyWrite(l.w)
}

func newRun() *sarif.Run {
	run := sarif.NewRun()
	run.Tool = sarif.NewTool().WithDriver(sarif.NewToolComponent().WithName("xol"))
	return run
}
