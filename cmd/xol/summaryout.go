package main

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

// print writes the rows and, but for CSV, the totals.
func (s *summary) print(w *bufio.Writer, p palette) {
	if s.opt.format.value == formatTable {
		s.printTable(w, p)
		return
	}
	s.printRecords(w, s.opt.format.value)
}

func (s *summary) printTable(w *bufio.Writer, p palette) {
	t := &table{palette: p}
	t.right(countWidth("HAZARDS"), "HAZARDS", bold)
	for _, head := range []string{"REFUSED", "PROBEABLE", "INSTS"} {
		t.right(len("9999999999"), head, bold)
	}
	t.left(0, "FILE", bold)
	t.end()
	for i := range s.rows {
		row := &s.rows[i]
		t.num(countWidth("HAZARDS"), row.totals.Hazards, yellow)
		t.num(len("9999999999"), row.totals.Refused, red)
		t.num(len("9999999999"), row.totals.Probeable, plain)
		t.num(len("9999999999"), row.totals.Insts, plain)
		t.left(0, row.path, bold)
		t.left(0, row.kind+", "+row.profile, dim)
		t.end()
		for j := range row.hazards {
			h := &row.hazards[j]
			t.right(countWidth("HAZARDS"), "", plain)
			t.left(0, hazardWhere(h), yellow)
			t.end()
		}
		w.Write(t.buf)
		t.buf = t.buf[:0]
	}
	s.printTotals(w, t)
}

// hazardWhere says where in a file a hazard is.
func hazardWhere(h *hazardCount) string {
	where := strings.Join(h.places, ", ")
	if h.functions > len(h.places) {
		where += ", …"
	}
	return fmt.Sprintf("%s %d in %s: %s", h.hazard.ID, h.count, plural(h.functions, "function"), where)
}

func (s *summary) printTotals(w *bufio.Writer, t *table) {
	const nameWidth, countWidth = 36, 10
	sum, hazardous := s.total()
	line := func(l totalLine) {
		t.left(nameWidth, l.name, plain)
		t.num(countWidth, l.count, l.style)
		t.left(0, l.note, plain)
		t.end()
	}
	t.end()
	line(totalLine{"files", len(s.rows), plain, ""})
	line(totalLine{"  with hazards", hazardous, yellow, "a probe would have them execute something wrongly"})
	for i := range sum.hazards {
		h := &sum.hazards[i]
		line(totalLine{"    " + h.hazard.ID, h.count, plain, "in " + plural(h.files, "file") + ": " + h.hazard.Text})
	}
	for _, l := range totalLines(&sum.totals) {
		line(l)
	}
	for reason, n := range s.skipped {
		if n > 0 {
			line(totalLine{"left out", n, plain, skipped[reason].text})
		}
	}
	w.Write(t.buf)
}

func (s *summary) printRecords(w *bufio.Writer, format string) {
	list := newStream(w, format, "{\"files\":[", "\n]", func(r *records) { rowFields(r, new(fileRow)) })
	for i := range s.rows {
		r := records{format: format}
		rowFields(&r, &s.rows[i])
		list.write(r.buf)
	}
	list.close()
	sum, hazardous := s.total()
	r := records{format: formatJSONL}
	switch format {
	case formatJSON:
		r.open("totals")
		s.totalFields(&r, &sum, hazardous)
		r.close()
		r.buf = append(r.buf, "}\n"...)
	case formatJSONL:
		r.begin()
		r.str("kind", "totals")
		s.totalFields(&r, &sum, hazardous)
		r.end()
	}
	w.Write(r.buf)
}

func rowFields(r *records, row *fileRow) {
	r.begin()
	r.str("kind", "file")
	r.str("file", row.path)
	r.str("arch", row.arch)
	r.str("profile", row.profile)
	totalsFields(r, &row.totals)
	hazardFields(r, row.hazards)
	r.end()
}

func (s *summary) totalFields(r *records, sum *fileRow, hazardous int) {
	r.num("files", len(s.rows))
	r.num("hazardous", hazardous)
	totalsFields(r, &sum.totals)
	hazardFields(r, sum.hazards)
	r.open("skipped")
	for reason, n := range s.skipped {
		r.num(skipped[reason].name, n)
	}
	r.close()
}

// hazardFields encodes where the hazards are: in JSON {"rule":{…},…}, in CSV
// "rule:count …".
func hazardFields(r *records, hazards []hazardCount) {
	if r.format == formatCSV {
		words := make([]string, len(hazards))
		for i := range hazards {
			words[i] = hazards[i].hazard.ID + ":" + strconv.Itoa(hazards[i].count)
		}
		r.str("hazard_rules", strings.Join(words, " "))
		return
	}
	r.open("hazard_rules")
	for i := range hazards {
		h := &hazards[i]
		r.key(h.hazard.ID)
		r.first = true
		r.buf = append(r.buf, '{')
		r.num("count", h.count)
		r.num("functions", h.functions)
		r.only(h.files > 0)
		r.num("files", h.files)
		r.only(len(h.places) > 0)
		r.strs("places", h.places)
		r.only(true)
		r.buf = append(r.buf, '}')
		r.first = false
	}
	r.close()
}
