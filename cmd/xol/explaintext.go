package main

import (
	"bufio"
	"cmp"
	"fmt"
	"strings"

	"xol/arch"
	"xol/classify"
	"xol/decode"
	"xol/place"
)

const (
	screenWidth  = 100 // sentences are kept within it
	outcomeWidth = 52  // before a rule's id
)

// writeText writes the explanation for people: one screen.
func (e *explanation) writeText(w *bufio.Writer, p palette, context int) {
	t := &table{palette: p}
	e.header(t)
	t.end()
	e.disassembly(t, context)
	width := 0
	for i := range e.answers {
		width = max(width, len(e.answers[i].profile()))
	}
	for i := range e.answers {
		t.end()
		e.paragraph(t, &e.answers[i], width)
	}
	if s, ok := e.answers[0].slot(e.addr); ok {
		writeSlot(t, s)
	}
	if e.region != nil {
		e.region.write(t)
	}
	w.Write(t.buf)
}

// header writes where the address is.
func (e *explanation) header(t *table) {
	const separator = "   "
	a := &e.answers[0]
	f := &a.result.Function
	t.paint(placeName(a.file.name(f), e.addr-f.Addr), bold)
	facts := []string{"", fmt.Sprintf("%#x", e.addr)}
	if now, ok := a.file.addressNow(e.addr); ok && now != e.addr {
		facts = append(facts, fmt.Sprintf("in memory at %#x", now))
	}
	if off := a.file.offset(e.addr); off != nowhere {
		facts = append(facts, fmt.Sprintf("file:%#x", uint64(off)))
	}
	if source := e.source(); source != "" {
		facts = append(facts, source)
	}
	facts = append(facts,
		fmt.Sprintf("%d bytes, %d instructions", f.Size, len(a.result.Insts)),
		strings.Join(append([]string{a.file.kind()}, e.notes(textNotes[:], e.addr, e.addr+1)...), ", "))
	t.paint(strings.Join(facts, separator), plain)
	t.end()
	if a.result.Changed {
		t.paint("the text in memory is not that of the file; what is in memory is judged", yellow)
		t.end()
	}
	if a.file.freedText(f) {
		t.paint("the kernel has freed this text after booting: what stood here is not shown", yellow)
		t.end()
	}
	if m := a.file.Missing; m != 0 {
		t.paint(fmt.Sprintf("not known of this kernel: %v", m), yellow)
		t.end()
	}
	if i := a.file.ifunc(a.result); i != nil {
		for _, line := range wrap(i.String(), screenWidth) {
			t.paint(line, yellow)
			t.end()
		}
	}
	switch {
	case e.inlined:
		for _, line := range wrap(e.inlinedText(), screenWidth) {
			t.paint(line, yellow)
			t.end()
		}
	case len(e.also) > 0:
		t.paint(fmt.Sprintf("%s also means %s; an address says which", e.place, joinAddrs(e.also)), yellow)
		t.end()
	}
}

// inlinedText says that the function asked for is inlined, and where else.
func (e *explanation) inlinedText() string {
	text := e.place + " has no code of its own: it is inlined here"
	if len(e.also) == 0 {
		return text
	}
	var others []string
	for _, addr := range e.also[:min(len(e.also), mostInlined)] {
		others = append(others, e.answers[0].placeOf(addr))
	}
	if n := len(e.also) - len(others); n > 0 {
		others = append(others, fmt.Sprintf("%d more", n))
	}
	return text + ", and at " + strings.Join(others, ", ") + "; each wants a probe of its own"
}

// mostInlined is how many of the other places are named.
const mostInlined = 12

// joinAddrs lists the first few addresses.
func joinAddrs(addrs []uint64) string {
	const most = 4
	var s []string
	for _, addr := range addrs[:min(len(addrs), most)] {
		s = append(s, fmt.Sprintf("%#x", addr))
	}
	if n := len(addrs) - most; n > 0 {
		s = append(s, fmt.Sprintf("%d more", n))
	}
	return strings.Join(s, ", ")
}

// disassembly writes the instructions around the address.
func (e *explanation) disassembly(t *table, context int) {
	file, start := e.answers[0].file, e.answers[0].result.Function.Addr
	insts, asked := e.around(context)
	rows := make([]disassembled, len(insts))
	var width [3]int
	for i := range insts {
		inst := &insts[i]
		rows[i] = disassembled{
			offset: fmt.Sprintf("+0x%x", inst.Addr-start),
			bytes:  fmt.Sprintf("% x", inst.Bytes()),
			text:   file.text(inst),
			notes:  e.instNotes(inst),
		}
		if i == asked {
			rows[i].notes = append([]string{e.marker(inst)}, rows[i].notes...)
		}
		for k, s := range []string{rows[i].offset, rows[i].bytes, rows[i].text} {
			width[k] = max(width[k], len(s))
		}
	}
	for i, row := range rows {
		style := plain
		if i == asked {
			style = bold
		}
		t.left(len(gap), "", plain)
		t.right(width[0], row.offset, dim)
		t.left(width[1], row.bytes, dim)
		t.left(width[2], row.text, style)
		t.left(0, strings.Join(row.notes, "; "), cyan)
		t.end()
	}
}

// disassembled is a line of disassembly.
type disassembled struct {
	offset, bytes, text string
	notes               []string
}

// marker points at the instruction that holds the address.
func (e *explanation) marker(inst *decode.Inst) string {
	if inside := e.addr - inst.Addr; inside > 0 {
		return fmt.Sprintf("◀ asked for, %s into it", plural(int(inside), "byte"))
	}
	return "◀ asked for"
}

// paragraph writes what one profile says. Its name takes width columns.
func (e *explanation) paragraph(t *table, a *answer, width int) {
	v := &a.verdict
	id, st := "", green
	switch {
	case v.Undecided():
		id, st = v.Rule.ID, yellow
	case !v.OK():
		id, st = v.Rule.ID, red
	case a.onBlacklist(e.addr):
		st = yellow
	}
	t.left(width, a.profile(), bold)
	t.left(outcomeWidth, a.outcome(e.addr), st)
	t.left(0, id, dim)
	t.end()
	writeDetails(t, width, a.details(e.addr))
	writeDetails(t, width, a.bootDetails(e.addr))
	if !v.OK() || a.uprobes() {
		return
	}
	id, st = "", green
	if a.jump.Rule != nil {
		id, st = a.jump.Rule.ID, red
	}
	t.left(width, "", plain)
	t.left(outcomeWidth, a.jumpOutcome(), st)
	t.left(0, id, dim)
	t.end()
	writeDetails(t, width, a.jumpDetails(e.addr))
	if a.jump.Depends {
		writeDetails(t, width, []detail{{dependsPhrase(false, true), yellow}})
	}
}

func writeDetails(t *table, width int, details []detail) {
	for _, line := range details {
		for _, part := range wrap(line.text, screenWidth-width-len(gap)) {
			t.left(width, "", plain)
			t.left(0, part, line.style)
			t.end()
		}
	}
}

// jumpOutcome says in one line whether the breakpoint may become a jump.
func (a *answer) jumpOutcome() string {
	switch {
	case !a.hasBreakpoint():
		return "no breakpoint, and so none that becomes a jump"
	case !a.jump.OK():
		return "the breakpoint stays a breakpoint"
	}
	return fmt.Sprintf("the breakpoint may become a jump, over %d bytes", a.jump.Region)
}

// jumpDetails says why not, and what else could be done.
func (a *answer) jumpDetails(addr uint64) []detail {
	v := &a.jump
	if v.Rule == nil {
		return nil
	}
	d := []detail{{jumpReason(a.result, v), plain}}
	if culprit := cmp.Or(v.Culprit, a.verdict.MovedTo); culprit != 0 && culprit != addr && a.hasBreakpoint() {
		d = append(d, detail{"because of " + a.describe(culprit), plain})
	}
	if v.Rule.Remedy != "" {
		d = append(d, detail{"instead: " + v.Rule.Remedy, plain})
	}
	return d
}

// outcome says in one line what becomes of the probe.
func (a *answer) outcome(addr uint64) string {
	v := &a.verdict
	switch {
	case v.Undecided():
		return "cannot be judged"
	case !v.OK() && v.Rule.Errno != 0:
		return fmt.Sprintf("refused: %v (%d)", v.Rule.Errno, int(v.Rule.Errno))
	case !v.OK():
		return probeRefused
	}
	text := "may be probed; "
	if a.onBlacklist(addr) {
		text = "the architecture would allow it; "
	}
	text += execPhrases[v.Exec]
	if v.Emulator != "" {
		text += " (" + v.Emulator + ")"
	}
	if v.Exec == classify.ExecSlot && v.Boosted {
		text += ", boostable"
	}
	return text
}

// onBlacklist reports whether the profile isa speaks of text that the kernel
// itself forbids to probe, which is no matter of instructions.
func (a *answer) onBlacklist(addr uint64) bool {
	return a.profile() == classify.ISA && a.result.Marks.At(addr)&(place.Blacklist|place.EntryText) != 0
}

var execPhrases = [...]string{
	classify.ExecNone:    "",
	classify.ExecSlot:    "the instruction's copy runs in a slot",
	classify.ExecEmulate: "the instruction is emulated",
	classify.ExecFtrace:  "through ftrace, without a breakpoint",
}

// detail is a sentence of an answer.
type detail struct {
	text  string
	style style
}

// details says why, and what else could be done about a probe at addr.
func (a *answer) details(addr uint64) []detail {
	v := &a.verdict
	var d []detail
	add := func(st style, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			d = append(d, detail{text, st})
		}
	}
	if asked := a.file.Asked; asked != "" {
		add(dim, "%s", standsIn(a.profile(), asked))
	}
	switch {
	case v.MovedTo != 0 && v.OK() && v.MovedTo == a.entry:
		add(plain, "%s", a.entrySentence())
	case v.MovedTo != 0 && v.OK():
		add(plain, "the probe is put at %s instead", a.placeOf(v.MovedTo))
	case v.MovedTo != 0:
		add(plain, "the kernel would put it at %s, and refuses it there:", a.describe(v.MovedTo))
	}
	if v.Rule != nil {
		add(plain, "%s", v.Rule.Reason)
	}
	if v.OK() && a.onBlacklist(addr) {
		add(yellow, "the kernel forbids it: this is on its blacklist, or entry code")
	}
	if a.entry == 0 && a.result.MissesCalls(addr) {
		f := &a.result.Function
		add(yellow, "missed by calls from within the %s, which enter at %s; probe that, or name the function without an offset",
			a.file.Image.Kind(), a.placeOf(f.Addr+f.LocalEntry))
	}
	if v.Hazard != nil {
		add(yellow, "hazard: %s (%s)", v.Hazard.Text, v.Hazard.ID)
		add(dim, "%s", a.versions(v.Hazard.Seen, v.Hazard.Span))
	}
	for note := range v.Notes.All() {
		add(plain, "note: %s (%s)", note.Text, note.ID)
		add(dim, "%s", a.versions(note.Seen, note.Span))
	}
	if v.Culprit != 0 && v.Culprit != addr {
		add(plain, "because of %s", a.describe(v.Culprit))
	}
	far := v.Instead != 0 && !a.beside(v, addr)
	if v.Rule != nil && v.Rule.Remedy != "" && !far {
		add(plain, "instead: %s", v.Rule.Remedy)
	}
	switch {
	case far:
		add(plain, "instead: probe %s; what is nearer is refused as well", a.placeOf(v.Instead))
	case v.Instead != 0:
		add(plain, "a place that would do: %s", a.placeOf(v.Instead))
	}
	for _, r := range a.elsewhere {
		add(yellow, "by %s: refused, %v (%d): %s (%s)", joinVias(r.via), r.rule.Errno, int(r.rule.Errno), r.rule.Reason, r.rule.ID)
	}
	if text := a.joins(addr); text != "" {
		add(plain, "%s", text)
	}
	if text := a.returnText(); text != "" {
		add(plain, "%s", text)
	}
	if len(a.assumed) > 0 {
		add(dim, "%s", assumedText(a.assumed))
	}
	if s := a.fixups(v); s != "" {
		add(dim, "%s", s)
	}
	return d
}

// beside reports whether the place to be probed instead of addr is the one that
// a remedy means: the culprit, or the instruction that follows.
func (a *answer) beside(v *classify.Verdict, addr uint64) bool {
	i, _ := decode.Find(a.result.Insts, addr)
	return v.Instead == v.Culprit || i >= 0 && v.Instead == a.result.Insts[i].Next()
}

// versions says on which versions something was seen to happen, and for which it
// is expected; empty in a profile that is no version's.
func (a *answer) versions(seen []classify.Version, expected classify.Span) string {
	if mechanismOf(a.profile()) == classify.Architecture {
		return ""
	}
	text := "expected on " + expected.String()
	if len(seen) > 0 {
		text = "seen on " + listVersions(seen) + "; " + text
	}
	return text
}

// listVersions names ascending versions: the first and the last of many.
func listVersions(versions []classify.Version) string {
	const most = 3
	if n := len(versions); n > most {
		return fmt.Sprintf("%v … %v (%d versions)", versions[0], versions[n-1], n)
	}
	var names []string
	for _, v := range versions {
		names = append(names, v.String())
	}
	return strings.Join(names, ", ")
}

// entrySentence says where a probe is put that is asked for by the function's
// name, and why.
func (a *answer) entrySentence() string {
	f, at := &a.result.Function, a.placeOf(a.entry)
	switch {
	case a.entry != f.Addr+f.LocalEntry:
		return "by the name, the kernel puts the probe at " + at + ", the site of ftrace at the function's entry"
	case a.uprobes():
		if off, ok := a.file.Image.OffsetOf(a.entry); ok {
			at += fmt.Sprintf(" (file:%#x)", off)
		}
		return "judged at " + at + ", the local entry, where perf puts a probe by the name; one at +0x0 is missed by calls from within the " +
			a.file.Image.Kind().String()
	case mechanismOf(a.profile()) == classify.Kprobes:
		return "by the name, the kernel puts the probe at " + at + ", the local entry, which all calls come by"
	}
	return "judged at " + at + ", the local entry, which all calls come by"
}

// describe names an address, with the instruction that stands there.
func (a *answer) describe(addr uint64) string {
	where := a.placeOf(addr)
	i, start := decode.Find(a.result.Insts, addr)
	if !start {
		return where
	}
	return where + ": " + a.file.text(&a.result.Insts[i])
}

// fixupPhrases say what a Linux uprobe does around an instruction that runs
// out of line.
var fixupPhrases = [...]struct {
	fixup classify.Fixups
	text  string
}{
	{classify.FixPC, "moves the instruction pointer back"},
	{classify.FixReturn, "corrects the pushed return address"},
	{classify.FixFlags, "restores the trap flag"},
}

func (a *answer) fixups(v *classify.Verdict) string {
	var parts []string
	if isa, err := arch.Relocation(a.file.ISA); err == nil && v.Scratch != 0 {
		parts = append(parts, "addresses its operand through "+isa.Registers().Registers[v.Scratch].Name)
	}
	for _, p := range fixupPhrases {
		if v.Fixups&p.fixup != 0 {
			parts = append(parts, p.text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "around the copy the kernel " + strings.Join(parts, ", ")
}

// wrap breaks text at spaces into lines of at most width columns, but for
// longer words.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
