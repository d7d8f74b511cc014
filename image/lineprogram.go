package image

import (
	"bytes"
	"cmp"
	"errors"
	"path"
	"slices"
)

var errBadLines = errors.New("damaged line table")

// lineRow says that the instructions from addr up to the next row's come from
// a line of a file.
type lineRow struct {
	addr uint64
	line uint32
	file uint32 // index into lineRows.files, and flags
}

// Flags in lineRow.file.
const (
	rowStatement = 1 << 31 // a good place to stop at the line
	rowEnd       = 1 << 30 // no line from here on
	rowFile      = rowEnd - 1
)

// lineRows are the rows of one unit.
type lineRows struct {
	rows  []lineRow // by address
	files []string
}

// find returns the row that addr belongs to.
func (t *lineRows) find(addr uint64) (lineRow, bool) {
	i, found := slices.BinarySearchFunc(t.rows, addr, func(r lineRow, addr uint64) int { return cmp.Compare(r.addr, addr) })
	for found && i+1 < len(t.rows) && t.rows[i+1].addr == addr {
		i++ // only the last row of an address has bytes
	}
	if !found {
		i--
	}
	if i < 0 || t.rows[i].file&rowEnd != 0 {
		return lineRow{}, false
	}
	return t.rows[i], true
}

// What a row is worth to one who looks for an address of its line.
const (
	rowStatementCode = iota
	rowOtherCode
	rowEmptyStatement // the line has no code, but would have it here
	rowNothing
	rowGap // no line has code from here on
)

// quality returns what a row is worth.
func (t *lineRows) quality(i int) int {
	r := t.rows[i]
	statement := r.file&rowStatement != 0
	code := i+1 < len(t.rows) && t.rows[i+1].addr > r.addr
	switch {
	case r.file&rowEnd != 0:
		return rowGap
	case code && statement:
		return rowStatementCode
	case code:
		return rowOtherCode
	case statement:
		return rowEmptyStatement
	}
	return rowNothing
}

// Opcodes and codes of line number programs [DWARF 5, 6.2 and 7.22].
const (
	lnsCopy           = 1
	lnsAdvancePC      = 2
	lnsAdvanceLine    = 3
	lnsSetFile        = 4
	lnsNegateStmt     = 6
	lnsConstAddPC     = 8
	lnsFixedAdvancePC = 9

	lneEndSequence = 1
	lneSetAddress  = 2

	lnctPath           = 1
	lnctDirectoryIndex = 2

	formData2    = 0x05
	formData4    = 0x06
	formData8    = 0x07
	formString   = 0x08
	formBlock    = 0x09
	formData1    = 0x0b
	formStrp     = 0x0e
	formUdata    = 0x0f
	formData16   = 0x1e
	formLineStrp = 0x1f
)

// lineFile is an entry of a program's list of files.
type lineFile struct {
	name string
	dir  uint64 // index
}

// lineProgram is a line number program whose header has been read. debug/dwarf
// has a reader, too, but that believes counts, and panics or takes all memory
// where they are wrong.
type lineProgram struct {
	cursor      *cursor // after the header
	wide        bool    // 64-bit DWARF
	version     uint16
	minLength   uint64
	defaultStmt bool
	lineBase    int8
	lineRange   byte
	opcodeBase  byte
	operands    []byte // of each standard opcode, from 1
	compDir     string
	dirs        []string
	files       []lineFile
}

// lineStrings are the sections of strings that a header may refer to.
type lineStrings struct{ str, lineStr []byte }

// newLineProgram reads the header of the program at the start of data.
// compDir is where the compiler ran.
func newLineProgram(data []byte, order byteOrder, compDir string, strs lineStrings) (*lineProgram, error) {
	c := &cursor{data: data, order: order}
	p := &lineProgram{cursor: c, compDir: compDir}
	var size uint64
	size, p.wide = c.unitLength()
	if c.bad || size > uint64(len(data)-c.pos) {
		return nil, errBadLines
	}
	c.data = data[:c.pos+int(size)]
	p.version = c.u16()
	if p.version < 2 || p.version > 5 {
		return nil, errBadLines
	}
	if p.version >= 5 {
		c.skip(2) // sizes of addresses and segments
	}
	headerSize := c.offset(p.wide)
	program := uint64(c.pos) + headerSize
	if c.bad || headerSize > uint64(len(c.data)-c.pos) {
		return nil, errBadLines
	}
	p.readParameters()
	if p.version >= 5 {
		p.readFiles(strs)
	} else {
		p.readOldFiles()
	}
	if c.bad || p.lineRange == 0 {
		return nil, errBadLines
	}
	c.pos = int(program)
	return p, nil
}

func (p *lineProgram) readParameters() {
	c := p.cursor
	p.minLength = uint64(c.u8())
	if p.version >= 4 {
		c.u8() // operations per instruction: 1 on all CPUs that we know
	}
	p.defaultStmt = c.u8() != 0
	p.lineBase = int8(c.u8())
	p.lineRange = c.u8()
	p.opcodeBase = c.u8()
	p.operands = c.take(int(max(p.opcodeBase, 1)) - 1)
}

// readOldFiles reads the directories and files of versions 2 to 4, in which
// both count from 1.
func (p *lineProgram) readOldFiles() {
	c := p.cursor
	p.dirs = []string{p.compDir}
	for dir := c.cstring(); dir != ""; dir = c.cstring() {
		p.dirs = append(p.dirs, dir)
	}
	p.files = []lineFile{{}}
	for name := c.cstring(); name != ""; name = c.cstring() {
		p.files = append(p.files, lineFile{name, c.uleb()})
		c.uleb() // time
		c.uleb() // size
	}
}

// readFiles reads those of version 5.
func (p *lineProgram) readFiles(strs lineStrings) {
	p.readEntries(strs, func(f lineFile) { p.dirs = append(p.dirs, f.name) })
	if len(p.dirs) > 0 && path.IsAbs(p.dirs[0]) {
		p.compDir = p.dirs[0]
	}
	p.readEntries(strs, func(f lineFile) { p.files = append(p.files, f) })
}

// readEntries reads a list whose format stands before it.
func (p *lineProgram) readEntries(strs lineStrings, add func(lineFile)) {
	c := p.cursor
	type field struct{ content, form uint64 }
	format := make([]field, c.u8())
	for i := range format {
		format[i] = field{c.uleb(), c.uleb()}
	}
	count := c.uleb()
	if count > uint64(len(c.data)-c.pos) || count > 0 && len(format) == 0 {
		c.bad = true
	}
	for ; count > 0 && !c.bad; count-- {
		var f lineFile
		for _, part := range format {
			s, v := p.readForm(part.form, strs)
			switch part.content {
			case lnctPath:
				f.name = s
			case lnctDirectoryIndex:
				f.dir = v
			}
		}
		add(f)
	}
}

// readForm reads a string or a number.
func (p *lineProgram) readForm(form uint64, strs lineStrings) (string, uint64) {
	c := p.cursor
	switch form {
	case formString:
		return c.cstring(), 0
	case formLineStrp:
		return stringAt(strs.lineStr, c.offset(p.wide)), 0
	case formStrp:
		return stringAt(strs.str, c.offset(p.wide)), 0
	case formUdata:
		return "", c.uleb()
	case formData1:
		return "", uint64(c.u8())
	case formData2:
		return "", uint64(c.u16())
	case formData4:
		return "", uint64(c.u32())
	case formData8:
		return "", c.u64()
	case formData16:
		c.skip(16)
	case formBlock:
		c.skip(int(min(c.uleb(), uint64(len(c.data)))))
	default:
		c.bad = true
	}
	return "", 0
}

// stringAt returns the string at an offset; an empty one where there is none.
func stringAt(data []byte, off uint64) string {
	if off >= uint64(len(data)) {
		return ""
	}
	s, _, _ := bytes.Cut(data[off:], []byte{0})
	return string(s)
}

// path returns where a file of the list is.
func (p *lineProgram) path(i uint64) string {
	if i >= uint64(len(p.files)) {
		return ""
	}
	f := p.files[i]
	if f.name == "" {
		return ""
	}
	dir := p.compDir
	if f.dir < uint64(len(p.dirs)) {
		dir = p.dirs[f.dir]
	}
	switch {
	case path.IsAbs(f.name):
		return path.Clean(f.name)
	case path.IsAbs(dir):
		return path.Join(dir, f.name)
	}
	if f.dir == 0 { // that is where the compiler ran
		dir = ""
	}
	return path.Join(p.compDir, dir, f.name)
}

// lineState are the registers of the machine that runs a program.
type lineState struct {
	addr uint64
	file uint64
	line uint32
	stmt bool
}

// lineRun is a program that is being run.
type lineRun struct {
	*lineProgram
	lineState
	out   lineRows
	ids   []uint32 // index into out.files of each file, + 1
	start int      // of the current sequence in out.rows
	keep  func(addr uint64) bool
}

// run returns the rows of all sequences that start where keep says. The
// others are of code that the linker has left out.
func (p *lineProgram) run(keep func(addr uint64) bool) (*lineRows, error) {
	r := &lineRun{lineProgram: p, ids: make([]uint32, len(p.files)), keep: keep}
	r.reset()
	sorted := true
	for c := p.cursor; c.pos < len(c.data); {
		start := r.start
		r.step(c.u8())
		if c.bad {
			return nil, errBadLines
		}
		if r.start > start && start > 0 && r.out.rows[start].addr < r.out.rows[start-1].addr {
			sorted = false
		}
	}
	r.out.rows = r.out.rows[:r.start] // the last sequence may lack its end
	if !sorted {
		sortSequences(r.out.rows)
	}
	return &r.out, nil
}

func (r *lineRun) reset() { r.lineState = lineState{file: 1, line: 1, stmt: r.defaultStmt} }

// step executes an opcode.
func (r *lineRun) step(op byte) {
	c := r.cursor
	if op >= r.opcodeBase {
		r.special(op)
		return
	}
	switch op {
	case 0:
		r.extended()
	case lnsCopy:
		r.emit(0)
	case lnsAdvancePC:
		r.addr += c.uleb() * r.minLength
	case lnsAdvanceLine:
		r.line += uint32(c.sleb())
	case lnsSetFile:
		r.file = c.uleb()
	case lnsNegateStmt:
		r.stmt = !r.stmt
	case lnsConstAddPC:
		r.addr += uint64((255-r.opcodeBase)/r.lineRange) * r.minLength
	case lnsFixedAdvancePC:
		r.addr += uint64(c.u16())
	default: // tells nothing of interest, or is new
		for range r.operands[op-1] {
			c.uleb()
		}
	}
}

// special executes an opcode that stands for an advance of both the address
// and the line.
func (r *lineRun) special(op byte) {
	op -= r.opcodeBase
	r.addr += uint64(op/r.lineRange) * r.minLength
	r.line += uint32(int32(r.lineBase) + int32(op%r.lineRange))
	r.emit(0)
}

func (r *lineRun) extended() {
	c := r.cursor
	size := c.uleb()
	if size == 0 || size > uint64(len(c.data)-c.pos) {
		c.bad = true
		return
	}
	end := c.pos + int(size)
	switch c.u8() {
	case lneEndSequence:
		r.emit(rowEnd)
		r.endSequence()
	case lneSetAddress:
		switch size - 1 {
		case 8:
			r.addr = c.u64()
		case 4:
			r.addr = uint64(c.u32())
		}
	}
	c.pos = end
}

// emit adds a row.
func (r *lineRun) emit(flags uint32) {
	if r.stmt {
		flags |= rowStatement
	}
	r.out.rows = append(r.out.rows, lineRow{addr: r.addr, line: r.line, file: r.fileID() | flags})
}

// fileID returns the index of the current file in out.files. Only files that
// are used get there: a program's list has every header.
func (r *lineRun) fileID() uint32 {
	file := r.file
	if file >= uint64(len(r.ids)) {
		file = 0 // which has no name before version 5
	}
	if len(r.ids) == 0 {
		r.ids = []uint32{0}
	}
	if r.ids[file] == 0 {
		r.out.files = append(r.out.files, r.path(file))
		r.ids[file] = uint32(len(r.out.files))
	}
	return r.ids[file] - 1
}

func (r *lineRun) endSequence() {
	if r.keep(r.out.rows[r.start].addr) {
		r.start = len(r.out.rows)
	} else {
		r.out.rows = r.out.rows[:r.start]
	}
	r.reset()
}

// sortSequences puts the sequences of rows in the order of their addresses.
func sortSequences(rows []lineRow) {
	var seqs [][]lineRow
	for rest := rows; len(rest) > 0; {
		n := 1 + slices.IndexFunc(rest, func(r lineRow) bool { return r.file&rowEnd != 0 })
		seqs = append(seqs, rest[:n])
		rest = rest[n:]
	}
	slices.SortStableFunc(seqs, func(a, b []lineRow) int { return cmp.Compare(a[0].addr, b[0].addr) })
	copy(rows, slices.Concat(seqs...))
}
