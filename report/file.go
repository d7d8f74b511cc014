package report

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/registration"
)

// file is a file on its way into the page.
type file struct {
	File
	number int
	first  int // index of the profile whose functions the page shows
	flow   int // and of the one that is asked where control goes
	out    *sink
	origin uint64 // addresses are stored as distances from it
	book   *rulebook
	forms  formTable
	names  map[uint64]string // of addresses outside of functions, by the symbol's own
	seen   map[uint64]bool   // such addresses

	sections, sources table
	whats             table
	targets, data     addressTable
	table             columns // a row for each function
	previous          uint64  // address
	blocks            []int   // functions in each block
	block             columns // that is being filled
	blockFunctions    int
	blockText         uint64
	expected          []expectation // by profile
	totals            []analyze.Summary
	functions         int
	unread            int // functions whose text could not be read
}

func (f *file) base() *analyze.Analysis { return f.Analyses[f.first] }

// blockText is how much text a block of functions takes in: so that a function is
// shown at once, and the same numbers come again in a block.
const blockText = 768 << 10

// table gives numbers to texts in the order in which they are first used.
type table struct {
	numbers map[string]int
	list    []string
}

func (t *table) number(s string) int {
	n, ok := t.numbers[s]
	if !ok {
		if t.numbers == nil {
			t.numbers = map[string]int{}
		}
		n = len(t.list)
		t.numbers[s] = n
		t.list = append(t.list, s)
	}
	return n
}

// addressTable gives numbers to addresses in the order in which they are first used.
type addressTable struct {
	numbers map[uint64]int
	list    []byte
	last    uint64
}

func (t *addressTable) number(addr uint64) int {
	n, ok := t.numbers[addr]
	if !ok {
		if t.numbers == nil {
			t.numbers = map[uint64]int{}
		}
		n = len(t.numbers)
		t.numbers[addr] = n
		t.list = binary.AppendVarint(t.list, int64(addr-t.last))
		t.last = addr
	}
	return n
}

func newFile(given File, number int, out *sink) *file {
	f := &file{File: given, number: number, out: out, book: newRulebook(), names: map[uint64]string{}, seen: map[uint64]bool{}}
	for p, an := range f.Analyses {
		if an.Extent == image.ExtentNext && f.base().Extent != image.ExtentNext {
			f.first = p // its functions are the longer ones
		}
		if an.Profile.Name() == classify.ISA {
			f.flow = p
		}
	}
	f.block = newColumns(blockColumns + profileColumns*len(f.Analyses))
	f.table = newColumns(tableColumns + profileTableColumns*len(f.Analyses))
	f.totals = make([]analyze.Summary, len(f.Analyses))
	for range f.Analyses {
		f.expected = append(f.expected, expectation{byForm: map[uint32]int{}})
	}
	if all := f.base().Functions(); len(all) > 0 {
		f.origin = all[0].Addr
		f.previous, f.targets.last, f.data.last = f.origin, f.origin, f.origin
	}
	return f
}

// write writes the blocks of the file, then its tables.
func (f *file) write(ctx context.Context, progress func(int64)) error {
	an := f.base()
	err := analyze.Gather(ctx, an, an.Functions(), func(b *batch, r *analyze.Result) { b.add(ctx, f, r) }, func(b *batch) error {
		if b.err != nil {
			return b.err
		}
		numbers := make([]uint32, len(b.forms))
		for i := range b.forms {
			numbers[i] = f.forms.number(&b.forms[i])
		}
		for i := range b.functions {
			if err := f.add(b, &b.functions[i], numbers); err != nil {
				return err
			}
		}
		progress(int64(b.size))
		b.reset()
		return nil
	})
	if err == nil {
		err = f.endBlock()
	}
	if err == nil {
		err = f.writeTables()
	}
	return err
}

// Columns of a block, before those of its profiles.
const (
	colForms = iota
	colNumbers1
	colNumbers2
	colNumbers4
	colNumbers8
	colBranches
	colData
	colBasicBlocks
	colMarks
	colLandings
	colJumps
	colBoot
	blockColumns
)

// Columns of each profile in a block.
const (
	colVerdicts = iota
	colAddresses
	colJumpCodes
	colJumpAddresses
	profileColumns
)

// add adds a function to the block and the table.
func (f *file) add(b *batch, fn *function, numbers []uint32) error {
	f.addInstructions(b, fn, numbers)
	f.addFlow(fn)
	for p := range fn.by {
		f.addVerdicts(p, fn, numbers)
	}
	f.addRow(fn)
	f.blockFunctions++
	f.blockText += fn.Size
	if f.blockText >= blockText {
		return f.endBlock()
	}
	return nil
}

func (f *file) addInstructions(b *batch, fn *function, numbers []uint32) {
	c := f.block
	for i := range fn.insts {
		inst := &fn.insts[i]
		form := &b.forms[inst.form]
		c.uint(colForms, uint64(numbers[inst.form]))
		for k := range form.holes {
			switch n := len(form.holes[k]); {
			case n == 0:
			case k == 0 && inst.hasTarget:
				f.addTarget(fn, form, inst)
			case n <= 8:
				c.byte(colNumbers1, byte(inst.numbers[k]))
			case n <= 16:
				c[colNumbers2] = binary.LittleEndian.AppendUint16(c[colNumbers2], uint16(inst.numbers[k]))
			case n <= 32:
				c[colNumbers4] = binary.LittleEndian.AppendUint32(c[colNumbers4], uint32(inst.numbers[k]))
			default:
				c[colNumbers8] = binary.LittleEndian.AppendUint64(c[colNumbers8], inst.numbers[k])
			}
		}
	}
}

// addTarget adds where an instruction leads or refers to. Inside of the function that
// is a distance, else the number of an address.
func (f *file) addTarget(fn *function, form *form, inst *instruction) {
	switch {
	case inst.target >= fn.Addr && inst.target < fn.End():
		f.block.int(colBranches, int64(inst.target-fn.Addr)<<1)
	case form.flow != decode.FlowNone:
		f.block.int(colBranches, int64(f.targets.number(inst.target))<<1|1)
	default:
		f.block.int(colBranches, -1)
		f.block.uint(colData, uint64(f.data.number(inst.target)))
	}
	f.name(inst.target)
}

// name remembers what an address outside of all functions is called.
func (f *file) name(addr uint64) {
	if f.seen[addr] {
		return
	}
	f.seen[addr] = true
	if _, ok := f.base().FunctionAt(addr); ok {
		return
	}
	if name, base := f.base().Image.Symbolize(addr); name != "" {
		f.names[base] = name
	}
}

func (f *file) addFlow(fn *function) {
	c := f.block
	if guessed := fn.guessBlocks(); slices.Equal(guessed, fn.blocks) {
		c.uint(colBasicBlocks, 0)
	} else {
		c.uint(colBasicBlocks, uint64(len(fn.blocks)))
		for _, n := range fn.blocks {
			c.uint(colBasicBlocks, uint64(n))
		}
	}
	c.uint(colMarks, uint64(len(fn.marks)))
	for _, m := range fn.marks {
		c.int(colMarks, int64(m.Addr-fn.Addr))
		c.uint(colMarks, m.Len)
		c.uint(colMarks, uint64(m.Kind))
	}
	c.uint(colLandings, uint64(len(fn.lands)))
	last := fn.Addr
	for _, l := range fn.lands {
		c.uint(colLandings, l.Addr-last)
		last = l.Addr
		c.byte(colLandings, byte(l.Kind))
		from := l.From
		if from == 0 {
			from = l.Addr
		}
		c.int(colLandings, int64(from-l.Addr))
	}
	c.uint(colJumps, uint64(len(fn.jumps)))
	for i := range fn.jumps {
		f.addJump(fn, &fn.jumps[i])
	}
	c.uint(colBoot, uint64(len(fn.boot)))
	at := 0
	for _, b := range fn.boot {
		c.uint(colBoot, uint64(b.inst-at)<<1|uint64(b.boot-1))
		at = b.inst
	}
}

func (f *file) addJump(fn *function, j *indirect) {
	c := f.block
	c.uint(colJumps, uint64(j.inst))
	c.byte(colJumps, byte(j.kind))
	c.uint(colJumps, uint64(f.whats.number(j.what)))
	t := &j.table
	c.int(colJumps, int64(t.Addr-f.origin))
	c.uint(colJumps, uint64(t.Count))
	c.byte(colJumps, t.Width)
	c.byte(colJumps, byte(t.Bound))
	c.uint(colJumps, uint64(len(j.targets)))
	last := fn.Addr
	for _, to := range j.targets {
		c.uint(colJumps, to-last)
		last = to
	}
}

// addVerdicts adds what profile p says. Where all of a function has one verdict, that
// is all. Else most verdicts are what is expected, and what is stored are the numbers
// of instructions for which that is so, and the other verdicts between them.
func (f *file) addVerdicts(p int, fn *function, numbers []uint32) {
	j := &fn.by[p]
	c, at := f.block, blockColumns+profileColumns*p
	if n := len(j.codes); n > 0 {
		first := f.book.verdict(&j.codes[0])
		if !slices.ContainsFunc(j.codes[1:], func(k verdictKey) bool { return k != j.codes[0] }) {
			c.uint(at+colVerdicts, uint64(first)<<1|1)
		} else {
			f.addRuns(p, fn, numbers)
		}
	}
	for _, to := range j.addresses {
		c.int(at+colAddresses, to)
	}
	for i := range j.jumps {
		if j.codes[i].rule != nil || j.codes[i] == notCounted {
			continue
		}
		c.uint(at+colJumpCodes, uint64(f.book.jump(&j.jumps[i])))
	}
	for _, to := range j.jumpAddresses {
		c.int(at+colJumpAddresses, to)
	}
}

// addRuns adds verdicts that are not all the same. Expected is the verdict that the
// last instruction of the same form had in the block, else the first one in the file.
func (f *file) addRuns(p int, fn *function, numbers []uint32) {
	c, e := blockColumns+profileColumns*p+colVerdicts, &f.expected[p]
	run := 0
	for i, key := range fn.by[p].codes {
		n := f.book.verdict(&key)
		form := numbers[fn.insts[i].form]
		for len(e.first) <= int(form) {
			e.first = append(e.first, 0)
		}
		if e.first[form] == 0 {
			e.first[form] = uint32(n) + 1
		}
		expected, ok := e.byForm[form]
		if !ok {
			expected = int(e.first[form]) - 1
		}
		e.byForm[form] = n
		if n == expected {
			run++
			continue
		}
		f.block.uint(c, uint64(run)<<1)
		f.block.uint(c, uint64(n))
		run = 0
	}
	f.block.uint(c, uint64(run)<<1)
}

// expectation is what verdicts are expected in a block.
type expectation struct {
	first  []uint32       // by form: 1 + the first verdict in the file, 0 where there is none
	byForm map[uint32]int // the last one in the block
}

// Columns of the table of functions, before those of the profiles.
const (
	rowGap = iota
	rowSize
	rowInsts
	rowName
	rowSymbol
	rowSection
	rowSource
	rowFlags
	tableColumns
)

// Columns of each profile in the table: counts, then reasons.
const (
	rowCounts = iota
	rowReasons
	profileTableColumns = 16
)

// counts are the numbers of a summary that the page shows, in the order of its
// columns.
func counts(s *analyze.Summary) [11]int {
	return [...]int{s.Insts, s.Probeable, s.Boosted, s.Slot - s.Boosted, s.Emulated, s.Ftrace, s.Refused, s.Hazards, s.Noted, s.Depends, s.Optimizable}
}

func (f *file) addRow(fn *function) {
	t := f.table
	f.functions++
	t.uint(rowGap, fn.Addr-f.previous)
	f.previous = fn.Addr
	t.uint(rowSize, fn.Size)
	t.uint(rowInsts, uint64(len(fn.insts)))
	t.text(rowName, shown(fn.name))
	if fn.Name != fn.name {
		t.text(rowSymbol, shown(fn.Name))
	} else {
		t.text(rowSymbol, "")
	}
	t.uint(rowSection, uint64(f.sections.number(fn.Section)))
	t.uint(rowSource, uint64(f.sources.number(fn.source)))
	if fn.source != "" {
		t.uint(rowSource, uint64(fn.line))
	}
	flags := byte(0)
	if fn.err {
		flags |= 1
		f.unread++
	}
	if fn.Resolver {
		flags |= 2
	}
	t.byte(rowFlags, flags)
	for p := range fn.by {
		f.addCounts(p, &fn.by[p])
	}
}

func (f *file) addCounts(p int, j *judged) {
	s := &j.summary
	f.totals[p].Merge(s)
	at := tableColumns + profileTableColumns*p
	for i, n := range counts(s) {
		f.table.uint(at+i, uint64(n))
	}
	f.table.uint(at+11, uint64(f.book.rule(j.returns)+1))
	for k, reasons := range [][]analyze.Reason{s.Reasons, s.JumpReasons} {
		f.table.uint(at+12+k, uint64(len(reasons)))
		for _, r := range reasons {
			f.table.uint(at+12+k, uint64(f.book.rule(r.Rule)))
			f.table.uint(at+12+k, uint64(r.Count))
		}
	}
	hazards := map[int]int{}
	for i := range j.codes {
		if h := j.codes[i].hazard; h != nil {
			hazards[f.book.hazard(h)]++
		}
	}
	f.table.uint(at+14, uint64(len(hazards)))
	for h := range f.book.Hazards {
		if n := hazards[h]; n > 0 {
			f.table.uint(at+14, uint64(h))
			f.table.uint(at+14, uint64(n))
		}
	}
}

// shown returns a name as text that is safe to store: zero bytes end names.
func shown(name string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(name, "\ufffd"), "\x00", "\ufffd")
}

func (f *file) startBlock() {
	f.blockFunctions, f.blockText = 0, 0
	f.block = newColumns(len(f.block)) // the last one is being compressed
	for p := range f.expected {
		clear(f.expected[p].byForm)
	}
}

func (f *file) endBlock() error {
	if f.blockFunctions == 0 {
		return nil
	}
	err := f.out.data(fmt.Sprintf("f%db%d", f.number, len(f.blocks)), f.block)
	f.blocks = append(f.blocks, f.blockFunctions)
	f.startBlock()
	return err
}

func (f *file) writeTables() error {
	f.table.bytes(rowSource, nil)
	err := f.out.data(fmt.Sprintf("f%dt", f.number), f.table)
	if err != nil {
		return err
	}
	symbols := newColumns(2)
	var bases []uint64
	for addr := range f.names {
		bases = append(bases, addr)
	}
	slices.SortFunc(bases, func(a, b uint64) int {
		return int(min(max(int64(a-f.origin)/2-int64(b-f.origin)/2, -1), 1))
	})
	last := f.origin
	for _, addr := range bases {
		symbols.int(0, int64(addr-last))
		last = addr
		symbols.text(1, shown(f.names[addr]))
	}
	dict := newColumns(0)
	if f.forms.list == nil {
		f.forms.number(&form{}) // of an empty file
	}
	dict = append(dict, f.forms.list...)
	dict = append(dict, f.forms.kinds...)
	dict = append(dict, f.targets.list, f.data.list)
	dict = append(dict, symbols...)
	for p := range f.expected {
		first := newColumns(1)
		for _, n := range f.expected[p].first {
			first.uint(0, uint64(n))
		}
		dict = append(dict, first...)
	}
	return f.out.data(fmt.Sprintf("f%dd", f.number), dict)
}

// pack compresses columns: their number and sizes, then their content.
func pack(c columns, w *flate.Writer) []byte {
	var out bytes.Buffer // to which writing does not fail
	w.Reset(&out)
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(c)))
	for _, col := range c {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(col)))
	}
	w.Write(head)
	for _, col := range c {
		w.Write(col)
	}
	w.Close()
	return out.Bytes()
}

// fileJSON describes a file in the page.
type fileJSON struct {
	Name      string        `json:"name"`
	Arch      string        `json:"arch"`
	Kind      string        `json:"kind"`
	Kernel    string        `json:"kernel,omitempty"`
	Missing   string        `json:"missing,omitempty"`
	Origin    string        `json:"origin"`
	JumpLen   int           `json:"jumpLen"`
	Functions int           `json:"functions"`
	Unread    int           `json:"unread,omitempty"`
	Blocks    []int         `json:"blocks"`
	Sections  []string      `json:"sections"`
	Sources   []string      `json:"sources"`
	Whats     []string      `json:"whats"`
	Profiles  []profileJSON `json:"profiles"`
	Book      *rulebook     `json:"book"`
}

// profileJSON is the summary of a file by one profile.
type profileJSON struct {
	Name        string   `json:"name"`
	Asked       string   `json:"asked,omitempty"`
	Assumed     []string `json:"assumed,omitempty"`
	Optimized   bool     `json:"optimized"`
	Counts      []int    `json:"counts"`
	Undecided   int      `json:"undecided,omitempty"`
	Gaps        int      `json:"gaps,omitempty"`
	Reasons     [][2]int `json:"reasons"`
	JumpReasons [][2]int `json:"jumpReasons"`
}

func (f *file) describe() fileJSON {
	an := f.base()
	j := fileJSON{
		Name: f.Name, Arch: an.ISA.Name(), Kind: an.Image.Kind().String(), Missing: an.Missing.String(),
		Origin: fmt.Sprintf("%#x", f.origin), JumpLen: an.ISA.JumpLen(), Functions: f.functions, Unread: f.unread,
		Blocks: f.blocks, Sections: f.sections.list, Sources: f.sources.list, Whats: f.whats.list, Book: f.book,
	}
	if an.Kernel.Release != "" {
		j.Kernel = an.Kernel.Version.String()
	}
	for p, an := range f.Analyses {
		s := &f.totals[p]
		s.Rank()
		c := counts(s)
		pj := profileJSON{Name: an.Profile.Name(), Asked: an.Asked, Optimized: s.Optimized, Counts: c[:], Undecided: s.Undecided, Gaps: s.Invalid,
			Reasons: f.ranked(s.Reasons), JumpReasons: f.ranked(s.JumpReasons)}
		for _, setting := range an.Assumed(registration.Register) {
			pj.Assumed = append(pj.Assumed, setting.String())
		}
		j.Profiles = append(j.Profiles, pj)
	}
	return j
}

func (f *file) ranked(reasons []analyze.Reason) [][2]int {
	list := make([][2]int, 0, len(reasons))
	for _, r := range reasons {
		list = append(list, [2]int{f.book.rule(r.Rule), r.Count})
	}
	return list
}

func errnoText(e classify.Errno) string {
	if e == 0 {
		return ""
	}
	return fmt.Sprintf("%v (%d)", e, int(e))
}
