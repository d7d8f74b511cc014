package main

import (
	"bufio"
	"fmt"
	"strconv"

	"xol/analyze"
)

// tableListing prints a table for each file: rows of functions or, with insns,
// of instructions, and the totals after them.
type tableListing struct {
	w       *bufio.Writer
	palette palette
	insns   bool
	files   int // begun
}

// countColumns are the columns of numbers in a row of a function. What is
// probeable is boosted, stepped, emulated or on an ftrace site.
var countColumns = [...]struct {
	name  string
	style style
	count func(*analyze.Summary) int
}{
	{"INSTS", plain, func(s *analyze.Summary) int { return s.Insts }},
	{"PROBEABLE", plain, func(s *analyze.Summary) int { return s.Probeable }},
	{"BOOSTED", plain, func(s *analyze.Summary) int { return s.Boosted }},
	{"STEPPED", plain, func(s *analyze.Summary) int { return s.Slot - s.Boosted }},
	{"EMULATED", plain, func(s *analyze.Summary) int { return s.Emulated }},
	{"FTRACE", plain, func(s *analyze.Summary) int { return s.Ftrace }},
	{"REFUSED", red, func(s *analyze.Summary) int { return s.Refused }},
	{"HAZARDS", yellow, func(s *analyze.Summary) int { return s.Hazards }},
}

// jumpHead is the column of the breakpoints that may become jumps.
const jumpHead = "OPTIMIZABLE"

const (
	nameWidth     = 36
	placeWidth    = 36
	reasonsShown  = 3
	minCountWidth = 6
)

func countWidth(name string) int { return max(len(name), minCountWidth) }

func (l *tableListing) begin(file *analyzedFile) {
	t := &table{palette: l.palette}
	if l.files++; l.files > 1 {
		t.end()
	}
	t.left(0, file.path, bold)
	t.left(0, file.kind()+", profile "+file.Profile.Name(), plain)
	if file.Asked != "" {
		t.end()
		t.left(0, standsIn(file.Profile.Name(), file.Asked), yellow)
	}
	t.end()
	if m := file.Missing; m != 0 {
		t.paint("not known of this kernel: "+m.String(), yellow)
		t.end()
	}
	t.end()
	if l.insns {
		insnHeads(t)
	} else {
		functionHeads(t)
	}
	l.w.Write(t.buf)
}

func (l *tableListing) encode(dst []byte, file *analyzedFile, res *analyze.Result, s *analyze.Summary) []byte {
	t := table{palette: l.palette, buf: dst}
	if !l.insns {
		functionCells(&t, file, res, s)
		return t.buf
	}
	offsets := file.offsets(&res.Function)
	for i := range res.Insts {
		insnCells(&t, file, res, offsets.of(res.Insts[i].Addr), i)
	}
	return t.buf
}

func functionHeads(t *table) {
	t.right(addrWidth, "ADDRESS", bold)
	for i := range countColumns {
		name := countColumns[i].name
		t.right(countWidth(name), name, bold)
	}
	t.right(len(jumpHead), jumpHead, bold)
	t.left(nameWidth, "FUNCTION", bold)
	t.left(0, "TOP REASONS", bold)
	t.end()
}

func functionCells(t *table, file *analyzedFile, res *analyze.Result, s *analyze.Summary) {
	t.addr(res.Function.Addr)
	for i := range countColumns {
		c := &countColumns[i]
		t.num(countWidth(c.name), c.count(s), c.style)
	}
	jumpCount(t, len(jumpHead), s)
	t.left(nameWidth, file.name(&res.Function), plain)
	if res.Err != nil {
		t.left(0, res.Err.Error(), red)
	} else {
		reasonCells(t, s.Reasons)
	}
	ifuncCell(t, file, res)
	t.end()
}

// ifuncCell says of a resolver that it is one.
func ifuncCell(t *table, file *analyzedFile, res *analyze.Result) {
	if i := file.ifunc(res); i != nil {
		t.left(0, i.String(), yellow)
	}
}

// reasonCells adds the most frequent reasons to refuse a probe.
func reasonCells(t *table, reasons []analyze.Reason) {
	for i, reason := range reasons[:min(len(reasons), reasonsShown)] {
		if i > 0 {
			t.buf = append(t.buf, ", "...)
		}
		t.buf = append(t.buf, reason.Rule.ID...)
		t.buf = append(t.buf, ' ')
		t.buf = strconv.AppendInt(t.buf, int64(reason.Count), 10)
	}
}

func insnHeads(t *table) {
	t.right(addrWidth, "ADDRESS", bold)
	t.right(offsetWidth, "OFFSET", bold)
	t.left(placeWidth, "PLACE", bold)
	verdictHeads(t)
	t.left(jumpWidth, "JUMP", bold)
	t.left(textWidth, "TEXT", bold)
	reasonHead(t)
	t.end()
}

func insnCells(t *table, file *analyzedFile, res *analyze.Result, offset uint64, i int) {
	inst, v := &res.Insts[i], &res.Verdicts[i]
	t.addr(inst.Addr)
	t.offset(offset)
	t.left(placeWidth, placeName(file.name(&res.Function), inst.Addr-res.Function.Addr), plain)
	verdictCells(t, v)
	jump := jumpAnswerAt(res, i)
	jump.cell(t)
	t.left(textWidth, file.text(inst), plain)
	if v.Rule == nil && v.Hazard == nil && v.Notes == 0 && jump.rule != nil {
		t.left(0, jump.rule.ID+": "+jump.reason, dim)
	} else {
		reasonCell(t, v)
	}
	if phrase := dependsPhrase(v.Depends, jump.depends); phrase != "" {
		t.left(0, phrase, yellow)
	} else if res.Boot(i) == analyze.BootPatched {
		t.left(0, "as the kernel writes it at boot", dim)
	}
	if i == 0 {
		ifuncCell(t, file, res)
	}
	t.end()
}

// placeName writes a place as people do: symbol+0x1c.
func placeName(symbol string, offset uint64) string {
	if offset == 0 {
		return symbol
	}
	return symbol + "+0x" + strconv.FormatUint(offset, 16)
}

func (l *tableListing) write(rows []byte) error {
	_, err := l.w.Write(rows)
	return err
}

// totalLine is a line of the totals. What is indented is part of what stands
// above it.
type totalLine struct {
	name  string
	count int
	style style
	note  string
}

func totalLines(sum *totals) []totalLine {
	s := &sum.Summary
	lines := []totalLine{
		{"functions", sum.functions, plain, ""},
		{"instructions", s.Insts, plain, ""},
		{"  probeable", s.Probeable, green, percent(s.Probeable, s.Insts)},
		{"    boosted", s.Boosted, plain, "the copy ends in a jump back"},
		{"    stepped", s.Slot - s.Boosted, plain, "the copy is single-stepped, or ends in a breakpoint"},
		{"    emulated", s.Emulated, plain, ""},
		{"    ftrace", s.Ftrace, plain, "no breakpoint"},
		{"    hazards", s.Hazards, yellow, "of the probeable: accepted, and then executed wrongly"},
	}
	if s.Noted > 0 {
		lines = append(lines, totalLine{"    noted", s.Noted, plain, "of the probeable: executed rightly, but with something to know"})
	}
	lines = append(lines, totalLine{"  refused", s.Refused, red, percent(s.Refused, s.Insts)})
	if s.Undecided > 0 {
		lines = append(lines, totalLine{"  unknown", s.Undecided, yellow, percent(s.Undecided, s.Insts) + "  the file tells too little"})
	}
	lines = appendReasons(lines, s.Reasons)
	if s.Depends > 0 {
		lines = append(lines, totalLine{"depend on the CPU", s.Depends, yellow, "the kernel decides at boot what stands there: for another CPU the answer is another"})
	}
	lines = append(lines, totalLine{"gaps", s.Invalid, plain, "where bytes are no instruction"})
	if !s.Optimized {
		return lines
	}
	lines = append(lines,
		totalLine{"optimizable", s.Optimizable, green, percent(s.Optimizable, s.Probeable) + " of the probeable: the breakpoint may become a jump"},
		totalLine{"not optimizable", s.Probeable - s.Optimizable, red, percent(s.Probeable-s.Optimizable, s.Probeable)})
	return appendReasons(lines, s.JumpReasons)
}

func appendReasons(lines []totalLine, reasons []analyze.Reason) []totalLine {
	for _, r := range reasons {
		lines = append(lines, totalLine{"    " + r.Rule.ID, r.Count, plain, r.Rule.Reason})
	}
	return lines
}

// jumpCount adds the number of breakpoints that may become jumps.
func jumpCount(t *table, width int, s *analyze.Summary) {
	if s.Optimized {
		t.num(width, s.Optimizable, plain)
	} else {
		t.right(width, "-", dim)
	}
}

func (l *tableListing) end(_ *analyzedFile, sum *totals) {
	const nameWidth, countWidth = 36, 10
	t := &table{palette: l.palette}
	t.end()
	for _, line := range totalLines(sum) {
		t.left(nameWidth, line.name, plain)
		t.num(countWidth, line.count, line.style)
		t.left(0, line.note, plain)
		t.end()
	}
	l.w.Write(t.buf)
}

func (l *tableListing) close() {}

// percent says what part of all n is.
func percent(n, all int) string {
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("%5.1f %%", 100*float64(n)/float64(all))
}
