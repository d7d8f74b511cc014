package image

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// goFunc is a function that a Go program's own table names. Its range
// includes what pads it up to the next one.
type goFunc struct {
	name   string
	lo, hi uint64
}

// goLayout is where a version of the table keeps what we need. Indices count
// words of 8 bytes after the first 8 bytes of the header.
type goLayout struct {
	magic uint32
	text  int // index of the address that functions count from; 0: from 0
	names int // index of the offset of the names; 0: they count from the header
	funcs int // index of the offset of the functions; 0: they follow the header
	entry int // bytes of an address in the table of functions
}

// goLayouts are the versions, by the release that introduced them [cmd/link,
// internal/ld/pcln.go; runtime/symtab.go].
var goLayouts = [...]goLayout{
	{magic: 0xfffffffb, entry: 8},                              // Go 1.2
	{magic: 0xfffffffa, names: 2, funcs: 6, entry: 8},          // Go 1.16
	{magic: 0xfffffff0, text: 2, names: 3, funcs: 7, entry: 4}, // Go 1.18
	{magic: 0xfffffff1, text: 2, names: 3, funcs: 7, entry: 4}, // Go 1.20
}

// maxGoName bounds the length of a name, in bytes.
const maxGoName = 64 << 10

// goFunctions returns the functions that a Go program's .gopclntab section
// names, by address. text is where its functions are. Since Go 1.26 the table
// no longer says where it counts from: that is the start of text then.
//
// It returns a *FormatError for a table of a version that is not known, and
// for a damaged one.
func goFunctions(data []byte, text extent, order binary.ByteOrder) ([]goFunc, error) {
	t, err := newGoTable(data, byteOrder(order == binary.ByteOrder(binary.BigEndian)))
	if err != nil {
		return nil, err
	}
	t.setBase(text)
	var fns []goFunc
	for i := range t.count {
		f, err := t.function(i)
		if err != nil {
			return nil, err
		}
		if f.lo < text.lo || f.hi > text.hi || f.lo > f.hi {
			return nil, t.damaged("addresses not in text", i)
		}
		if f.lo < f.hi {
			fns = append(fns, f)
		}
	}
	return fns, nil
}

// goTable is a table whose header has been checked.
type goTable struct {
	data   []byte
	order  byteOrder
	layout *goLayout
	count  int    // of functions
	base   uint64 // what narrow entries count from
	names  []byte
	funcs  []byte
}

const goHeaderSize = 8

func newGoTable(data []byte, order byteOrder) (*goTable, error) {
	t := &goTable{data: data, order: order, layout: goLayoutOf(data, order)}
	switch {
	case len(data) < goHeaderSize:
		return nil, truncated(".gopclntab")
	case t.layout == nil:
		return nil, &FormatError{What: fmt.Sprintf("unknown version (begins with % x)", data[:goHeaderSize]), Where: ".gopclntab"}
	}
	l := t.layout
	if len(data) < goHeaderSize+8*(l.funcs+1) {
		return nil, truncated(".gopclntab")
	}
	t.names, t.funcs = data, data[goHeaderSize+8:]
	if l.funcs > 0 {
		names, funcs := t.word(l.names), t.word(l.funcs)
		if names > uint64(len(data)) || funcs > uint64(len(data)) {
			return nil, truncated(".gopclntab")
		}
		t.names, t.funcs = data[names:], data[funcs:]
	}
	count := t.word(0)
	if count > uint64(len(t.funcs))/uint64(2*l.entry) || t.entrySize(count) > uint64(len(t.funcs)) {
		return nil, truncated(fmt.Sprintf(".gopclntab, %d functions", count))
	}
	t.count = int(count)
	return t, nil
}

// setBase finds what narrow entries count from, in a program with that text.
func (t *goTable) setBase(text extent) {
	if t.layout.text > 0 {
		t.base = t.word(t.layout.text)
		if t.base < text.lo || t.base >= text.hi {
			t.base = text.lo
		}
	}
}

// entrySize returns the bytes of a table of count functions, which ends with
// an address.
func (t *goTable) entrySize(count uint64) uint64 { return (2*count + 1) * uint64(t.layout.entry) }

// goLayoutOf returns the version of the table at the start of data, or nil if
// there is none, or one for a CPU of 32 bits.
func goLayoutOf(data []byte, order byteOrder) *goLayout {
	if len(data) < goHeaderSize || data[4] != 0 || data[5] != 0 || data[7] != 8 {
		return nil
	}
	switch data[6] { // smallest instruction
	case 1, 2, 4:
	default:
		return nil
	}
	for i := range goLayouts {
		if goLayouts[i].magic == order.u32(data) {
			return &goLayouts[i]
		}
	}
	return nil
}

func (t *goTable) word(i int) uint64 { return t.order.u64(t.data[goHeaderSize+8*i:]) }

// field returns number i of the table of functions: addresses and offsets in
// turn.
func (t *goTable) field(i int) uint64 {
	if t.layout.entry == 4 {
		return uint64(t.order.u32(t.funcs[4*i:]))
	}
	return t.order.u64(t.funcs[8*i:])
}

// extent returns the range of function i.
func (t *goTable) extent(i int) extent {
	return extent{t.base + t.field(2*i), t.base + t.field(2*i+2)}
}

// The words that describe a function, after its address.
const (
	goNameWord        = iota
	goArgsWord        // bytes of arguments
	goDeferReturnWord // since Go 1.12 [cmd/link, internal/ld/pcln.go]
)

// described returns a word that describes function i.
func (t *goTable) described(i, word int) (uint32, bool) {
	at := t.field(2*i + 1)
	in := t.funcs
	if t.layout.funcs == 0 {
		in = t.data
	}
	end := at + uint64(t.layout.entry) + 4*uint64(word+1)
	if end < at || end > uint64(len(in)) {
		return 0, false
	}
	return t.order.u32(in[end-4:]), true
}

func (t *goTable) function(i int) (goFunc, error) {
	e := t.extent(i)
	f := goFunc{lo: e.lo, hi: e.hi}
	name, ok := t.described(i, goNameWord)
	if !ok {
		return f, t.damaged("description outside the table", i)
	}
	if uint64(name) > uint64(len(t.names)) {
		return f, t.damaged("name outside the table", i)
	}
	rest := t.names[name:]
	n := bytes.IndexByte(rest[:min(len(rest), maxGoName)], 0)
	if n < 0 {
		return f, t.damaged("name without an end", i)
	}
	f.name = string(rest[:n])
	return f, nil
}

func (t *goTable) damaged(what string, i int) error {
	return &FormatError{What: what, Where: fmt.Sprintf(".gopclntab, function %d", i)}
}

// findGoTable returns the offset of the first table in data, or -1. It serves
// where a file has no section headers to say where its table is.
func findGoTable(data []byte, order byteOrder) int {
	const align = 8
	for off := 0; off+goHeaderSize <= len(data); off += align {
		// The last byte is rare, the first ones are not.
		if data[off+7] == 8 && goLayoutOf(data[off:], order) != nil {
			if _, err := newGoTable(data[off:], order); err == nil {
				return off
			}
		}
	}
	return -1
}

// findGoText looks in data for the record of a Go module whose table stands at
// table, and returns the address that the table counts from [runtime/symtab.go,
// moduledata].
func findGoText(data []byte, table uint64, text extent, order byteOrder) (uint64, bool) {
	const minPC, start = 20 * 8, 22 * 8
	for ; len(data) >= start+8; data = data[8:] {
		if order.u64(data) != table {
			continue
		}
		lo := order.u64(data[start:])
		if first := order.u64(data[minPC:]); lo <= first && text.lo <= lo && first < text.hi {
			return lo, true
		}
	}
	return 0, false
}

// Where a linker puts the table of functions, and the module's record.
var (
	goTableSections  = []string{".gopclntab", ".data.rel.ro.gopclntab"}
	goModuleSections = []string{".go.module", ".noptrdata", ".data", ".data.rel.ro"}
)

// readGoFunctions returns the functions that the file names as a Go program;
// none where it is not one.
func (im *file) readGoFunctions() ([]goFunc, error) {
	table, text, err := im.goProgram()
	if table == nil || err != nil {
		return nil, err
	}
	return goFunctions(table, text, im.ByteOrder())
}

// goProgram returns the table of functions of a Go program, and where they are;
// no table where the file is no Go program.
func (im *file) goProgram() (table []byte, text extent, err error) {
	table, at, err := im.goTable()
	if table == nil || err != nil {
		return nil, text, err
	}
	text = im.goText()
	for i := range im.sections {
		s := &im.sections[i]
		if !im.mayHold(s, goModuleSections) {
			continue
		}
		data, err := im.contents(s)
		if err != nil {
			return nil, text, err
		}
		if lo, ok := findGoText(data, at, text, im.order); ok {
			text.lo = lo
			break
		}
	}
	return table, text, nil
}

// goTable returns the table of functions, and its address.
func (im *file) goTable() ([]byte, uint64, error) {
	for i := range im.sections {
		s := &im.sections[i]
		if !im.mayHold(s, goTableSections) {
			continue
		}
		data, err := im.contents(s)
		if err != nil {
			return nil, 0, err
		}
		if im.hasSections() {
			return data, s.addr, nil
		}
		if off := findGoTable(data, im.order); off >= 0 {
			return data[off:], s.addr + uint64(off), nil
		}
	}
	return nil, 0, nil
}

// goText returns the range of the program's text.
func (im *file) goText() extent {
	if s := im.sectionNamed(".text"); s != nil {
		return extent{s.addr, s.end()}
	}
	if len(im.text) == 0 {
		return extent{}
	}
	return extent{im.text[0].Addr, im.text[len(im.text)-1].End()}
}

// mayHold reports whether a section is one of those named. Of a file without
// section headers it may be any that is no text.
func (im *file) mayHold(s *section, names []string) bool {
	if !s.inMemory() || !s.inFile() {
		return false
	}
	return slices.Contains(names, s.name) || !im.hasSections() && !s.exec()
}

// hasSections reports whether the file says what its sections are.
func (im *file) hasSections() bool { return im.headers != nil && len(im.headers.Sections) > 1 }
