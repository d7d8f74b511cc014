package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"xol/session"
)

// summarize writes what there was in all: to a file as JSON, else to standard error.
func (r *probingRun) summarize(code int) error {
	s := r.session.Summary()
	if r.opt.summary == "" {
		if !r.opt.dryRun { // which lists them
			r.tellRefused()
		}
		for _, line := range r.summaryLines(&s) {
			fmt.Fprintf(r.err, "xol: %s\n", line)
		}
		return nil
	}
	if err := os.WriteFile(r.opt.summary, summaryJSON(&s, code), 0o666); err != nil {
		return fileError(r.opt.summary, err)
	}
	return nil
}

func summaryJSON(s *session.Summary, code int) []byte {
	r := records{format: formatJSONL}
	r.begin()
	r.num("probes", s.Probes)
	r.num("jumps", s.Jumps)
	r.num("breakpoints", s.Breakpoints)
	r.open("refused")
	for _, id := range mostFirst(s.Refused) {
		r.num(id, s.Refused[id])
	}
	r.close()
	r.unsigned("hits", s.Hits)
	r.unsigned("missed", s.Missed)
	r.unsigned("lost", s.Lost)
	r.num("exit", code)
	r.end()
	return r.buf
}

// summaryLines says the same in words.
func (r *probingRun) summaryLines(s *session.Summary) []string {
	ways := fmt.Sprintf("%s: %s, %s", count(uint64(s.Probes), "probe"), count(uint64(s.Jumps), "jump"), count(uint64(s.Breakpoints), "breakpoint"))
	if !r.opt.dryRun {
		ways += "; " + count(s.Hits, "hit")
	}
	lines := []string{ways}
	refused, reasons := 0, []string{}
	for _, id := range mostFirst(s.Refused) {
		refused += s.Refused[id]
		reasons = append(reasons, fmt.Sprintf("%s %d", id, s.Refused[id]))
	}
	if refused > 0 {
		lines = append(lines, fmt.Sprintf("%d refused: %s", refused, strings.Join(reasons, ", ")))
	}
	if s.Missed > 0 {
		lines = append(lines, count(s.Missed, "return")+" not measured, as the start of the call was not seen")
	}
	if s.Lost > 0 {
		lines = append(lines, count(s.Lost, "probe")+" lost: the text has been unmapped")
	}
	return lines
}

// mostFirst returns the reasons, the most frequent first.
func mostFirst(refused map[string]int) []string {
	ids := make([]string, 0, len(refused))
	for id := range refused {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(refused[b], refused[a]), strings.Compare(a, b)) })
	return ids
}

// count writes a number of things.
func count(n uint64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// mostTold is how many refused probes are told one by one.
const mostTold = 3

// tellRefused says why probes are not there: of the first that were asked for one by one,
// and of each error of the system that kept others away.
func (r *probingRun) tellRefused() {
	told, errs := 0, map[string]bool{}
	for _, p := range r.session.Placed() {
		at, why := spotOf(p), whyNot(p)
		switch {
		case why == "":
		case at.Probe >= 0 && !r.wishes[at.Probe].Glob:
			if told++; told <= mostTold {
				r.report(fmt.Errorf("%s in %s is refused: %s", describe(at), shortFile(p.Module.Path), why))
			}
		case p.Refused == nil && !errs[why]:
			errs[why] = true
			r.report(fmt.Errorf("probes in %s are refused: %s", shortFile(p.Module.Path), why))
		}
	}
}

// whyNot says why a probe is not there; empty where it is.
func whyNot(p *session.Placed) string {
	switch {
	case p.Refused != nil:
		return fmt.Sprintf("%s (%s)", p.Refused.Reason, p.Refused.ID)
	case p.Err != nil:
		return p.Err.Error()
	}
	return ""
}

// describe names a place as tables have it.
func describe(at *spot) string {
	name := placeName(at.Symbol, at.Offset)
	if at.Marker != nil {
		name = at.Marker.Provider + ":" + at.Marker.Name + " at " + name
	}
	if at.Through != "" {
		name += " (" + at.Through + ")"
	}
	if at.Return {
		name += " return"
	}
	return name
}

func shortFile(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// plan prints what would be done at each place.
func (r *probingRun) plan(w *bufio.Writer) error {
	placed := r.session.Placed()
	if r.opt.format.value != formatTable {
		s := newStream(w, r.opt.format.value, "[", "\n]\n", func(rec *records) {
			planFields(rec, &session.Placed{Module: new(session.Module), Probe: session.Probe{Data: new(spot)}})
		})
		for _, p := range placed {
			rec := records{format: s.format}
			planFields(&rec, p)
			if err := s.write(rec.buf); err != nil {
				return err
			}
		}
		s.close()
		return w.Flush()
	}
	t := &table{palette: r.resultPalette(r.opt.out)}
	t.left(probeWidth, "PROBE", bold)
	t.left(wayWidth, "WAY", bold)
	t.left(fileWidth, "FILE", bold)
	t.left(placeWidth, "PLACE", bold)
	t.left(0, "REASON", bold)
	t.end()
	for _, p := range placed {
		if reason := whyNot(p); reason == "" {
			t.left(probeWidth, probeOK, green)
			t.left(wayWidth, p.Way.String(), plain)
			t.left(fileWidth, shortFile(p.Module.Path), plain)
			t.left(0, describe(spotOf(p)), plain)
		} else {
			t.left(probeWidth, probeRefused, red)
			t.left(wayWidth, "-", dim)
			t.left(fileWidth, shortFile(p.Module.Path), plain)
			t.left(placeWidth, describe(spotOf(p)), plain)
			t.left(0, reason, plain)
		}
		t.end()
	}
	if _, err := w.Write(t.buf); err != nil {
		return err
	}
	return w.Flush() // before what is said of it
}

const (
	wayWidth  = len("breakpoint")
	fileWidth = len("libstdc++.so.6.0.30")
)

func planFields(r *records, p *session.Placed) {
	r.begin()
	placeFields(r, p)
	name, id, reason := probeOK, "", ""
	switch {
	case p.Refused != nil:
		name, id, reason = probeRefused, p.Refused.ID, p.Refused.Reason
	case p.Err != nil:
		name, reason = probeRefused, p.Err.Error()
	}
	r.str("probe", name)
	r.str("way", p.Way.String())
	r.str("rule", id)
	r.str("reason", reason)
	r.end()
}

// placeFields encodes where a probe is.
func placeFields(r *records, p *session.Placed) {
	at := spotOf(p)
	r.str("file", p.Module.Path)
	r.str("sym", at.Symbol)
	r.num("off", int(at.Offset))
	r.addr("addr", at.Addr)
	r.only(at.Return)
	r.flag("return", at.Return)
	r.only(at.Through != "")
	r.str("through", at.Through)
	r.only(at.Marker != nil)
	marker := ""
	if at.Marker != nil {
		marker = at.Marker.Provider + ":" + at.Marker.Name
	}
	r.str("marker", marker)
	r.only(true)
}
