package image

import (
	"cmp"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
)

var errNoDWARF = errors.New("the file has no DWARF lines")

// lineTable relates addresses and source lines. It reads of the debugging
// information, which may be larger than all else in a file, only the parts
// that speak of what is asked for, and those once.
type lineTable struct {
	open    func(section string) (*io.SectionReader, error) // without ".debug_"; nil where there is none
	order   byteOrder
	inText  func(addr uint64) bool
	index   func() (*lineIndex, error)
	scanned func() []unitRange // of the units that .debug_aranges lacks
}

// lineIndex is what is known of all units of a file.
type lineIndex struct {
	info, line  *io.SectionReader
	abbrev, str []byte
	lineStr     []byte
	strOffsets  []byte
	addr        []byte
	units       []lineUnit  // by offset
	ranges      []unitRange // of .debug_aranges, by address
}

// lineUnit is a unit of .debug_info: mostly, what one run of a compiler made.
type lineUnit struct {
	off, size int64 // in .debug_info
	indexed   bool  // .debug_aranges has its ranges
	once      sync.Once
	rows      *lineRows // nil where it has no lines
}

// unitRange is a range of addresses that belong to a unit.
type unitRange struct {
	extent
	unit int
	most uint64 // the highest end of this range and all before it
}

// newLineTable returns a table of the lines that sections tell of. Nothing is
// read until it is asked. Lines of code that is not in text are left out.
func newLineTable(open func(section string) (*io.SectionReader, error), order byteOrder, inText func(addr uint64) bool) *lineTable {
	t := &lineTable{open: open, order: order, inText: inText}
	t.index = sync.OnceValues(t.readIndex)
	t.scanned = sync.OnceValue(t.scan)
	return t
}

// line returns where the instruction at addr comes from.
func (t *lineTable) line(addr uint64) (file string, line int, ok bool) {
	ix, err := t.index()
	if err != nil {
		return "", 0, false
	}
	if file, line, ok = t.lineIn(ix, ix.ranges, addr); ok {
		return file, line, ok
	}
	return t.lineIn(ix, t.scanned(), addr)
}

// lineIn asks the units whose ranges hold addr.
func (t *lineTable) lineIn(ix *lineIndex, ranges []unitRange, addr uint64) (file string, line int, ok bool) {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].lo > addr })
	for i--; i >= 0 && ranges[i].most > addr; i-- {
		if ranges[i].hi <= addr {
			continue
		}
		rows := t.rows(ix, &ix.units[ranges[i].unit])
		if rows == nil {
			continue
		}
		if r, ok := rows.find(addr); ok && r.line > 0 && r.line <= math.MaxInt32 {
			return rows.files[r.file&rowFile], int(r.line), true
		}
	}
	return "", 0, false
}

// addrs returns the addresses at which code of a line begins, sorted: where
// compilers say that it is good to stop, else any, else where the line would
// be if it had code. file is a path, or the end of one from a slash on. Where
// there is no such address, the error says why.
func (t *lineTable) addrs(file string, line int) ([]uint64, error) {
	ix, err := t.index()
	if err != nil {
		return nil, err
	}
	q := lineQuery{file: path.Clean(file), line: line, next: math.MaxInt}
	for i := range ix.units {
		t.ask(ix, &ix.units[i], &q)
	}
	for _, found := range q.found {
		if len(found) > 0 {
			slices.Sort(found)
			return slices.Compact(found), nil
		}
	}
	switch {
	case !q.known:
		return nil, fmt.Errorf("no code comes from a file %s", file)
	case q.next < math.MaxInt:
		return nil, fmt.Errorf("no code comes from line %d of %s; the next line that has code is %d", line, file, q.next)
	}
	return nil, fmt.Errorf("no code comes from line %d of %s, nor from those after it", line, file)
}

// lineQuery asks for the addresses of a line.
type lineQuery struct {
	file  string
	line  int
	found [3][]uint64 // by quality
	known bool        // code comes from the file
	next  int         // the first line after the wanted one that has code
}

func (q *lineQuery) matches(name string) bool {
	rest, ok := strings.CutSuffix(name, q.file)
	return ok && (rest == "" || q.file[0] == '/' || rest[len(rest)-1] == '/')
}

// ask puts a question to a unit, whose program runs only if it knows the file.
func (t *lineTable) ask(ix *lineIndex, u *lineUnit, q *lineQuery) {
	p, err := t.program(ix, u)
	if err != nil {
		return
	}
	for i := range p.files {
		if !q.matches(p.path(uint64(i))) {
			continue
		}
		if rows := t.rows(ix, u); rows != nil {
			q.take(rows)
		}
		return
	}
}

// take adds what a unit knows: of each run of rows of the line, the first.
func (q *lineQuery) take(t *lineRows) {
	wanted := make([]bool, len(t.files))
	for i, name := range t.files {
		wanted[i] = q.matches(name)
		q.known = q.known || wanted[i]
	}
	var inside [len(q.found)]bool // a run that has a row of that quality
	for i, r := range t.rows {
		quality := t.quality(i)
		switch {
		case quality == rowNothing:
		case quality == rowGap:
			clear(inside[:])
		case !wanted[r.file&rowFile] || int(r.line) != q.line:
			if quality == rowEmptyStatement {
				continue
			}
			clear(inside[:])
			if wanted[r.file&rowFile] && int(r.line) > q.line {
				q.next = min(q.next, int(r.line))
			}
		case !inside[quality]:
			inside[quality] = true
			q.found[quality] = append(q.found[quality], r.addr)
		}
	}
}

// readIndex finds the units, and reads what all of them share.
func (t *lineTable) readIndex() (*lineIndex, error) {
	ix := new(lineIndex)
	var err error
	for name, r := range map[string]**io.SectionReader{"info": &ix.info, "line": &ix.line} {
		if *r, err = t.open(name); err != nil {
			return nil, err
		}
		if *r == nil {
			return nil, errNoDWARF
		}
	}
	for name, b := range map[string]*[]byte{
		"abbrev": &ix.abbrev, "str": &ix.str, "line_str": &ix.lineStr, "str_offsets": &ix.strOffsets, "addr": &ix.addr,
	} {
		if *b, err = t.readAll(name); err != nil {
			return nil, err
		}
	}
	ix.units = t.findUnits(ix.info)
	ranges, err := t.readAll("aranges")
	if err != nil {
		return nil, err
	}
	ix.ranges = t.readRanges(ix, ranges)
	return ix, nil
}

// readAll returns the whole of a section; nil where there is none.
func (t *lineTable) readAll(name string) ([]byte, error) {
	r, err := t.open(name)
	if r == nil || err != nil {
		return nil, err
	}
	b := make([]byte, r.Size())
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return nil, readError(err, "section .debug_"+name)
	}
	return b, nil
}

// minUnit is the length of the shortest unit: its header, and an entry.
const minUnit = 8

// findUnits goes from header to header of .debug_info, as far as they lead.
func (t *lineTable) findUnits(info *io.SectionReader) []lineUnit {
	var units []lineUnit
	header := make([]byte, 12)
	for off := int64(0); off < info.Size(); {
		n, _ := info.ReadAt(header, off)
		c := &cursor{data: header[:n], order: t.order}
		size, _ := c.unitLength()
		if c.bad || size > uint64(info.Size()-off-int64(c.pos)) {
			break
		}
		end := off + int64(c.pos) + int64(size)
		if size >= minUnit {
			units = append(units, lineUnit{off: off, size: end - off})
		}
		off = end
	}
	return units
}

// readRanges reads .debug_aranges [DWARF 5, 6.1.2], as far as it makes sense.
func (t *lineTable) readRanges(ix *lineIndex, data []byte) []unitRange {
	const pointer = 8
	var list []unitRange
	c := &cursor{data: data, order: t.order}
	for c.pos < len(data) {
		start := c.pos
		size, wide := c.unitLength()
		if c.bad || size > uint64(len(data)-c.pos) {
			break
		}
		end := c.pos + int(size)
		set := &cursor{data: data[:end], pos: c.pos, order: t.order}
		c.pos = end
		set.skip(2) // version
		off := set.offset(wide)
		addrSize, segmentSize := set.u8(), set.u8()
		unit := sort.Search(len(ix.units), func(i int) bool { return uint64(ix.units[i].off) >= off })
		if unit == len(ix.units) || uint64(ix.units[unit].off) != off || addrSize != pointer || segmentSize != 0 {
			continue
		}
		set.skip(-(set.pos - start) & (2*pointer - 1))
		for {
			lo, n := set.u64(), set.u64()
			if set.bad || lo == 0 && n == 0 {
				break
			}
			list = append(list, unitRange{extent: extent{lo, lo + n}, unit: unit})
			ix.units[unit].indexed = true
		}
	}
	return sortRanges(list)
}

func sortRanges(list []unitRange) []unitRange {
	list = slices.DeleteFunc(list, func(r unitRange) bool { return r.lo >= r.hi })
	slices.SortFunc(list, func(a, b unitRange) int {
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.unit, b.unit))
	})
	most := uint64(0)
	for i := range list {
		most = max(most, list[i].hi)
		list[i].most = most
	}
	return list
}

// scan asks the units that .debug_aranges lacks for their ranges: compilers
// other than GCC do not write it.
func (t *lineTable) scan() []unitRange {
	ix, err := t.index()
	if err != nil {
		return nil
	}
	ranges, err := t.readAll("ranges")
	if err != nil {
		return nil
	}
	rnglists, err := t.readAll("rnglists")
	if err != nil {
		return nil
	}
	var list []unitRange
	for i := range ix.units {
		u := &ix.units[i]
		if u.indexed {
			continue
		}
		d, e, err := t.entry(ix, u, ranges, rnglists)
		if err != nil {
			continue
		}
		found, err := unitRanges(d, e)
		if err != nil {
			continue
		}
		for _, r := range found {
			list = append(list, unitRange{extent: extent{r[0], r[1]}, unit: i})
		}
	}
	return sortRanges(list)
}

// rows returns the rows of a unit; nil where it has none.
func (t *lineTable) rows(ix *lineIndex, u *lineUnit) *lineRows {
	u.once.Do(func() {
		p, err := t.program(ix, u)
		if err != nil {
			return
		}
		if rows, err := p.run(t.inText); err == nil {
			u.rows = rows
		}
	})
	return u.rows
}

// program reads the header of a unit's line number program.
func (t *lineTable) program(ix *lineIndex, u *lineUnit) (*lineProgram, error) {
	_, e, err := t.entry(ix, u, nil, nil)
	if err != nil {
		return nil, err
	}
	off, ok := e.Val(dwarf.AttrStmtList).(int64)
	if !ok || off < 0 || off >= ix.line.Size() {
		return nil, errNoDWARF
	}
	header := make([]byte, min(12, ix.line.Size()-off))
	if _, err := ix.line.ReadAt(header, off); err != nil {
		return nil, err
	}
	c := &cursor{data: header, order: t.order}
	size, _ := c.unitLength()
	if c.bad || size > uint64(ix.line.Size()-off-int64(c.pos)) {
		return nil, errBadLines
	}
	data := make([]byte, c.pos+int(size))
	if _, err := ix.line.ReadAt(data, off); err != nil {
		return nil, err
	}
	dir, _ := e.Val(dwarf.AttrCompDir).(string)
	return newLineProgram(data, t.order, dir, lineStrings{str: ix.str, lineStr: ix.lineStr})
}

// entry returns a unit's first entry, which describes the unit itself, and
// what is needed to ask for its ranges. It reads no more of the unit than that
// takes.
func (t *lineTable) entry(ix *lineIndex, u *lineUnit, ranges, rnglists []byte) (*dwarf.Data, *dwarf.Entry, error) {
	const usual, most = 4 << 10, 1 << 20
	for size := min(u.size, usual); ; size = min(u.size, most) {
		b := make([]byte, size)
		if n, err := ix.info.ReadAt(b, u.off); n < len(b) {
			return nil, nil, err
		}
		t.setUnitLength(b)
		d, e, err := firstEntry(b, ix, ranges, rnglists)
		if err == nil || size == min(u.size, most) {
			return d, e, err
		}
	}
}

func (t *lineTable) byteOrder() binary.ByteOrder {
	if t.order == bigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// setUnitLength makes a unit of which only the start is there whole.
func (t *lineTable) setUnitLength(b []byte) {
	order := t.byteOrder()
	if len(b) >= 12 && order.Uint32(b) == math.MaxUint32 {
		order.PutUint64(b[4:], uint64(len(b)-12))
	} else if len(b) >= 4 {
		order.PutUint32(b, uint32(len(b)-4))
	}
}

// unitData makes what debug/dwarf reads of one unit.
func unitData(unit []byte, ix *lineIndex, ranges, rnglists []byte) (*dwarf.Data, error) {
	d, err := dwarf.New(ix.abbrev, nil, nil, unit, nil, nil, ranges, ix.str)
	if err != nil {
		return nil, err
	}
	for name, b := range map[string][]byte{
		".debug_line_str": ix.lineStr, ".debug_str_offsets": ix.strOffsets, ".debug_addr": ix.addr, ".debug_rnglists": rnglists,
	} {
		if err := d.AddSection(name, b); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// firstEntry reads the first entry of a unit.
func firstEntry(unit []byte, ix *lineIndex, ranges, rnglists []byte) (d *dwarf.Data, e *dwarf.Entry, err error) {
	defer recoverDWARF(&err)
	if d, err = unitData(unit, ix, ranges, rnglists); err != nil {
		return nil, nil, err
	}
	e, err = d.Reader().Next()
	switch {
	case err != nil:
		return nil, nil, err
	case e == nil || e.Tag != dwarf.TagCompileUnit && e.Tag != dwarf.TagSkeletonUnit:
		return nil, nil, errNoDWARF
	}
	return d, e, nil
}

// unitRanges returns the ranges of addresses that a unit's entry tells.
func unitRanges(d *dwarf.Data, e *dwarf.Entry) (ranges [][2]uint64, err error) {
	defer recoverDWARF(&err)
	return d.Ranges(e)
}

// recoverDWARF makes an error of a panic: debug/dwarf is not meant for files
// that want to do harm.
func recoverDWARF(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("damaged DWARF: %v", p)
	}
}
