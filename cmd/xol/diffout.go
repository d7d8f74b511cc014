package main

import (
	"bufio"
	"strconv"
	"strings"

	"xol/analyze"
	"xol/compare"
)

// diffListing prints what diff finds: begin comes first, then the rows, then end.
type diffListing interface {
	begin()
	// encode appends the rows of one function. It may be called concurrently.
	encode(dst []byte, f *compare.Function) []byte
	write(rows []byte) error
	end()
}

func newDiffListing(w *bufio.Writer, d *comparison, p palette) diffListing {
	switch {
	case d.opt.format.value == formatTable:
		return &diffTable{w: w, d: d, palette: p}
	case d.opt.insns:
		return newDiffPlaces(w, d)
	default:
		return &diffRecords{w: w, d: d, format: d.opt.format.value}
	}
}

// place is a row of diff --insns: an answer on an instruction, or the instruction
// itself, that is in one file only or another one there.
type diffPlace struct {
	a, b          uint64 // addresses
	inA, inB      bool
	offA, offB    uint64 // in the function
	change        string // what became of the instruction
	text          string
	question      string
	before, after string
}

const (
	placeQuestion = "place"
	placeThere    = "there"
	placeGone     = "absent"
)

// places calls yield with each row of f.
func (d *comparison) places(f *compare.Function, yield func(*diffPlace)) {
	next := 0 // of Changes
	for ; next < len(f.Changes) && f.Changes[next].Pair < 0; next++ {
		c := &f.Changes[next]
		p := diffPlace{change: f.Status.String(), inA: true, inB: true, a: f.A.Function.Addr, b: f.B.Function.Addr}
		p.answer(c)
		yield(&p)
	}
	for k := range f.Pairs {
		pair := &f.Pairs[k]
		one := pair.A < 0 || pair.B < 0
		if (!one || d.opt.answers) && (next == len(f.Changes) || f.Changes[next].Pair != k) {
			continue
		}
		p := d.placeOf(f, pair)
		if one {
			p.question, p.before, p.after = placeQuestion, placeGone, placeThere
			if p.inA {
				p.before, p.after = p.after, p.before
			}
			yield(&p)
		}
		for ; next < len(f.Changes) && f.Changes[next].Pair == k; next++ {
			p.answer(&f.Changes[next])
			yield(&p)
		}
	}
}

func (p *diffPlace) answer(c *compare.Change) {
	p.question, p.before, p.after = c.Question.String(), answerName(c.Question, c.Before), answerName(c.Question, c.After)
}

func (d *comparison) placeOf(f *compare.Function, pair *compare.Pair) diffPlace {
	p := diffPlace{change: "altered"}
	if pair.Same {
		p.change = "same"
	}
	if pair.B >= 0 {
		inst := &f.B.Insts[pair.B]
		p.inB, p.b, p.offB, p.text = true, inst.Addr, inst.Addr-f.B.Function.Addr, d.b.text(inst)
	} else {
		p.change = "removed"
	}
	if pair.A >= 0 {
		inst := &f.A.Insts[pair.A]
		p.inA, p.a, p.offA, p.text = true, inst.Addr, inst.Addr-f.A.Function.Addr, d.a.text(inst)
	} else {
		p.change = "added"
	}
	return p
}

// addrIn writes an address that is there.
func addrIn(r *records, name string, there bool, addr uint64) {
	if there {
		r.addr(name, addr)
	} else {
		r.str(name, "")
	}
}

// diffPlaces prints a record for each row of diff --insns.
type diffPlaces struct {
	*stream
	d *comparison
}

func newDiffPlaces(w *bufio.Writer, d *comparison) *diffPlaces {
	l := &diffPlaces{d: d}
	l.stream = newStream(w, d.opt.format.value, "[", "\n]\n", func(r *records) { l.fields(r, "", new(diffPlace)) })
	return l
}

func (l *diffPlaces) begin() {}
func (l *diffPlaces) end()   { l.close() }

func (l *diffPlaces) encode(dst []byte, f *compare.Function) []byte {
	r := records{format: l.format, buf: dst}
	l.d.places(f, func(p *diffPlace) { l.fields(&r, f.Name(), p) })
	return r.buf
}

func (l *diffPlaces) fields(r *records, name string, p *diffPlace) {
	r.begin()
	r.str("sym", name)
	r.str("change", p.change)
	addrIn(r, "a", p.inA, p.a)
	r.only(p.inA)
	r.num("a_off", int(p.offA))
	r.only(true)
	addrIn(r, "b", p.inB, p.b)
	r.only(p.inB)
	r.num("b_off", int(p.offB))
	r.only(true)
	r.str("text", p.text)
	r.str("question", p.question)
	r.str("before", p.before)
	r.str("after", p.after)
	r.end()
}

// diffRecords prints a record for each function and, but for CSV, the totals.
type diffRecords struct {
	w      *bufio.Writer
	d      *comparison
	format string
	stream *stream
}

func (l *diffRecords) begin() {
	head := ""
	if l.format == formatJSON {
		r := records{format: formatJSONL}
		r.begin()
		l.files(&r)
		r.key("functions")
		head = string(r.buf) + "["
	}
	l.stream = newStream(l.w, l.format, head, "\n]", func(r *records) { l.fields(r, new(compare.Function), "") })
}

// files encodes what is compared, and how.
func (l *diffRecords) files(r *records) {
	for _, side := range []struct {
		name string
		file *analyzedFile
	}{{"a", l.d.a}, {"b", l.d.b}} {
		r.open(side.name)
		side.file.fields(r)
		r.close()
	}
}

func (l *diffRecords) encode(dst []byte, f *compare.Function) []byte {
	r := records{format: l.format, buf: dst}
	l.fields(&r, f, f.Name())
	return r.buf
}

func (l *diffRecords) fields(r *records, f *compare.Function, name string) {
	r.begin()
	r.str("kind", "function")
	r.str("change", f.Status.String())
	r.str("name", name)
	for _, side := range []struct {
		name string
		res  *analyze.Result
	}{{"a", f.A}, {"b", f.B}} {
		if side.res == nil {
			r.str(side.name, "")
		} else {
			r.addr(side.name, side.res.Function.Addr)
		}
	}
	r.only(f.B != nil)
	other := ""
	if f.B != nil && f.A != nil && f.B.Function.Name != name {
		other = f.B.Function.Name
	}
	r.only(other != "")
	r.str("name_b", other)
	r.only(true)
	var t compare.Totals
	t.Add(f)
	diffCounts(r, &t)
	r.end()
}

func diffCounts(r *records, t *compare.Totals) {
	r.open("insts")
	r.num("same", t.Insts.Same)
	r.num("altered", t.Insts.Altered)
	r.num("added", t.Insts.Added)
	r.num("removed", t.Insts.Removed)
	r.close()
	for q := range compare.Questions {
		n := t.Answers[q]
		r.open(q.String())
		r.num("gained", n.Gained)
		r.num("lost", n.Lost)
		r.num("other", n.Other)
		r.close()
	}
}

func (l *diffRecords) write(rows []byte) error { return l.stream.write(rows) }

func (l *diffRecords) end() {
	r := records{format: formatJSONL}
	switch l.format {
	case formatJSON:
		l.stream.close()
		r.key("totals")
		r.first = true
		r.buf = append(r.buf, '{')
		l.totals(&r)
		r.buf = append(r.buf, "}}\n"...)
	case formatJSONL:
		r.begin()
		r.str("kind", "totals")
		l.files(&r)
		l.totals(&r)
		r.end()
	}
	l.w.Write(r.buf)
}

func (l *diffRecords) totals(r *records) {
	t := &l.d.totals
	r.open("functions")
	for s, n := range t.Functions {
		r.num(compare.Status(s).String(), n)
	}
	r.close()
	diffCounts(r, t)
	r.key("shifts")
	r.buf = append(r.buf, '[')
	for i := range t.Shifts {
		s := &t.Shifts[i]
		if i > 0 {
			r.buf = append(r.buf, ',')
		}
		r.buf = append(r.buf, '{')
		r.first = true
		r.str("question", s.Question.String())
		r.str("before", answerName(s.Question, s.Before))
		r.str("after", answerName(s.Question, s.After))
		r.num("count", s.Count)
		r.buf = append(r.buf, '}')
	}
	r.buf = append(r.buf, ']')
	r.first = false
}

// diffTable prints a table of functions or, with insns, of places, and the totals
// after it.
type diffTable struct {
	w       *bufio.Writer
	d       *comparison
	palette palette
}

const (
	changeWidth = len("removed")
	answerWidth = len("+9999 -9999 ~99")
)

func (l *diffTable) begin() {
	t := &table{palette: l.palette}
	for _, f := range []*analyzedFile{l.d.a, l.d.b} {
		t.left(0, f.path, bold)
		t.left(0, f.kind()+", profile "+f.Profile.Name(), plain)
		t.end()
		if f.Asked != "" {
			t.left(0, standsIn(f.Profile.Name(), f.Asked), yellow)
			t.end()
		}
	}
	t.end()
	if l.d.opt.insns {
		for _, head := range []string{"A", "B"} {
			t.right(addrWidth, head, bold)
		}
		t.left(changeWidth, "CHANGE", bold)
		t.left(placeWidth, "PLACE", bold)
		t.left(len("QUESTION"), "QUESTION", bold)
		t.left(0, "BEFORE → AFTER", bold)
		t.end()
	} else {
		t.left(changeWidth, "CHANGE", bold)
		for _, head := range []string{"SAME", "ALTERED", "ADDED", "REMOVED"} {
			t.right(countWidth(head), head, bold)
		}
		for q := range compare.Questions {
			t.left(answerWidth, strings.ToUpper(q.String()), bold)
		}
		t.left(0, "FUNCTION", bold)
		t.end()
	}
	l.w.Write(t.buf)
}

func (l *diffTable) encode(dst []byte, f *compare.Function) []byte {
	t := table{palette: l.palette, buf: dst}
	if l.d.opt.insns {
		l.d.places(f, func(p *diffPlace) { l.place(&t, f, p) })
		return t.buf
	}
	t.left(changeWidth, f.Status.String(), statusStyle(f.Status))
	t.num(countWidth("SAME"), f.Insts.Same, plain)
	t.num(countWidth("ALTERED"), f.Insts.Altered, plain)
	t.num(countWidth("ADDED"), f.Insts.Added, plain)
	t.num(countWidth("REMOVED"), f.Insts.Removed, plain)
	var totals compare.Totals
	totals.Add(f)
	for q := range compare.Questions {
		text, st := countText(q, totals.Answers[q])
		t.left(answerWidth, text, st)
	}
	t.left(0, l.name(f), plain)
	t.end()
	return t.buf
}

// name returns the function's name, and the one it has in B where that is another.
func (l *diffTable) name(f *compare.Function) string {
	if f.A == nil {
		return l.d.b.name(&f.B.Function)
	}
	name := l.d.a.name(&f.A.Function)
	if f.B != nil {
		if other := l.d.b.name(&f.B.Function); other != name {
			name += " → " + other
		}
	}
	return name
}

func statusStyle(s compare.Status) style {
	switch s {
	case compare.Added:
		return green
	case compare.Removed:
		return red
	case compare.Changed:
		return yellow
	}
	return plain
}

// countText writes what changed of the answers to a question: +gained -lost ~other.
func countText(q compare.Question, n compare.Count) (string, style) {
	var parts []string
	for _, part := range []struct {
		sign  string
		count int
	}{{"+", n.Gained}, {"-", n.Lost}, {"~", n.Other}} {
		if part.count > 0 {
			parts = append(parts, part.sign+strconv.Itoa(part.count))
		}
	}
	switch worse := n.Lost; {
	case len(parts) == 0:
		return ".", dim
	case q == compare.Hazard && n.Gained > 0, q != compare.Hazard && worse > 0:
		return strings.Join(parts, " "), red
	}
	return strings.Join(parts, " "), plain
}

func (l *diffTable) place(t *table, f *compare.Function, p *diffPlace) {
	for _, side := range []struct {
		there bool
		addr  uint64
	}{{p.inA, p.a}, {p.inB, p.b}} {
		if side.there {
			t.addr(side.addr)
		} else {
			t.right(addrWidth, "-", dim)
		}
	}
	t.left(changeWidth, p.change, plain)
	off := p.offA
	if !p.inA {
		off = p.offB
	}
	t.left(placeWidth, placeName(f.Name(), off), plain)
	t.left(len("QUESTION"), p.question, plain)
	t.left(0, p.before+" → "+p.after, plain)
	t.left(0, p.text, dim)
	t.end()
}

func (l *diffTable) write(rows []byte) error {
	_, err := l.w.Write(rows)
	return err
}

func (l *diffTable) end() {
	const nameWidth, countWidth = 36, 10
	totals := &l.d.totals
	t := &table{palette: l.palette}
	line := func(name string, n int, st style, note string) {
		t.left(nameWidth, name, plain)
		t.num(countWidth, n, st)
		t.left(0, note, plain)
		t.end()
	}
	t.end()
	all := 0
	for _, n := range totals.Functions {
		all += n
	}
	line("functions", all, plain, "")
	for s, n := range totals.Functions {
		line("  "+compare.Status(s).String(), n, statusStyle(compare.Status(s)), "")
	}
	n := &totals.Insts
	line("instructions", n.Same+n.Altered+n.Added+n.Removed, plain, "")
	line("  same", n.Same, plain, "")
	line("  altered", n.Altered, yellow, "another operand")
	line("  added", n.Added, green, "")
	line("  removed", n.Removed, red, "")
	for q := range compare.Questions {
		c := totals.Answers[q]
		line("answers to "+q.String(), c.Gained+c.Lost+c.Other, plain, countNote(q, c))
		for i := range totals.Shifts {
			if s := &totals.Shifts[i]; s.Question == q {
				line("", s.Count, plain, answerName(q, s.Before)+" → "+answerName(q, s.After))
			}
		}
	}
	l.w.Write(t.buf)
}

func countNote(q compare.Question, n compare.Count) string {
	if !n.Any() {
		return ""
	}
	text, _ := countText(q, n)
	return text
}
