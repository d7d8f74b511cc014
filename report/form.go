package report

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"

	"xol/decode"
)

// A form is what is the same in all instructions that differ in numbers only: the
// page stores each once, and of an instruction no more than its form and the numbers.
// A number's place in the bytes is a hole, and so is its place in the text. A form's
// text is made from one instruction's, so that it gives that text exactly.
type form struct {
	raw   [decode.MaxLen + 1]byte // without the bits of holes
	len   uint8
	flow  decode.Flow
	props decode.Props
	base  base
	shift uint8 // of the target's distance
	// holes are the bits of the bytes that hold a number, the lowest first: bit i is
	// raw[i/8]>>(i%8). The first hole is the target's distance where base says so.
	holes [maxHoles]hole
	text  string
}

const maxHoles = 3

// hole is a set of up to 64 bits.
type hole string

// base is what a target's distance is added to.
type base uint8

const (
	baseNone base = iota // there is no target
	baseNext             // the address after the instruction
	baseInst             // its own address
	basePage             // the page of 4 KiB that holds it
	baseZero             // nothing: the target is absolute
)

func (b base) of(inst *decode.Inst) uint64 {
	switch b {
	case baseNext:
		return inst.Next()
	case baseInst:
		return inst.Addr
	case basePage:
		return inst.Addr &^ 0xfff
	}
	return 0
}

// A text shows a hole as holeMark, the format and the hole's number.
const holeMark = '\x01'

// Formats of numbers in texts.
const (
	formatTarget = 't' // the target's address
	formatSigned = 's' // "-0x8"
	format64     = 'q' // in 64 bits without sign
	format32     = 'l'
	format16     = 'w'
	format8      = 'b'
)

// former makes forms of the instructions of one ISA. It is not safe for concurrent
// use.
type former struct {
	isa interface {
		decode.Decoder
		Text(*decode.Inst, decode.SymLookup) string
	}
	text, token []byte
	bits        [64]byte
	holes       map[string]hole
}

// of returns the form of inst and the numbers in its holes; those of the target's
// distance are its bits only.
func (m *former) of(inst *decode.Inst) (f form, numbers [maxHoles]uint64) {
	f = form{raw: inst.Raw, len: inst.Len, flow: inst.Flow, props: inst.Props &^ (decode.HasTarget | decode.External)}
	clear(f.raw[inst.Len:])
	if inst.Has(decode.Invalid) {
		f.text = "(bad)"
		return f, numbers
	}
	n := 0
	if inst.Has(decode.HasTarget) && inst.PCRel.Kind != decode.PCRelNone && m.target(&f, inst) {
		n = 1
	}
	if len(f.holes[0]) == 0 || int(inst.Len) != int(inst.PCRel.Width)/8 {
		fields := &inst.Fields
		n = f.field(n, fields.Imm, fields.ImmLen)
		n = f.field(n, fields.Disp, fields.DispLen)
	}
	for i := range n {
		numbers[i] = f.holes[i].take(&f.raw)
	}
	m.makeText(&f, inst, n, &numbers)
	return f, numbers
}

// field makes hole n of the bytes from at on, unless they are in one already.
func (f *form) field(n int, at, size uint8) int {
	if size == 0 || size > 8 || n == maxHoles || at+size > f.len {
		return n
	}
	for i := range n {
		if first := f.holes[i][0] / 8; first >= at && first < at+size {
			return n
		}
	}
	f.holes[n] = byteHole(at, size)
	return n + 1
}

// allBits are the bits of an instruction in their order.
var allBits = func() hole {
	b := make([]byte, 8*(decode.MaxLen+1))
	for i := range b {
		b[i] = byte(i)
	}
	return hole(b)
}()

func byteHole(at, size uint8) hole { return allBits[8*at : 8*(at+size)] }

// take returns the number in the hole and clears its bits.
func (h hole) take(raw *[decode.MaxLen + 1]byte) (v uint64) {
	for i, b := range []byte(h) {
		v |= uint64(raw[b/8]>>(b%8)&1) << i
		raw[b/8] &^= 1 << (b % 8)
	}
	return v
}

// signed returns v as a number with the sign in its highest bit.
func (h hole) signed(v uint64) int64 {
	unused := 64 - uint(len(h))
	return int64(v<<unused) >> unused
}

// target finds the hole of the target's distance, and reports whether the target can
// be computed from it.
func (m *former) target(f *form, inst *decode.Inst) bool {
	field := inst.PCRel
	if int(field.Width) < int(inst.Len)*8 {
		if field.Width%8 != 0 || field.Width > 64 {
			return false
		}
		f.holes[0] = byteHole(field.Offset, field.Width/8)
	} else if !m.scattered(f, inst) {
		return false
	}
	h := f.holes[0]
	raw := inst.Raw
	distance := uint64(h.signed(h.take(&raw))) << f.shift
	for _, f.base = range []base{baseNext, baseInst, basePage, baseZero} {
		if f.base.of(inst)+distance == inst.Target {
			return true
		}
	}
	f.base, f.shift, f.holes[0] = baseNone, 0, ""
	return false
}

// scattered finds the bits of an instruction word that hold the target's distance,
// by how the target changes with each of them.
func (m *former) scattered(f *form, inst *decode.Inst) bool {
	const none = 0xff
	var weight [64]uint8 // of each power of 2, the bit
	for i := range weight {
		weight[i] = none
	}
	var other decode.Inst
	for b := range inst.Len * 8 {
		raw := inst.Raw
		raw[b/8] ^= 1 << (b % 8)
		if m.isa.Decode(&other, raw[:inst.Len], inst.Addr) != nil || other.PCRel != inst.PCRel ||
			other.Flow != inst.Flow || other.Op != inst.Op || !other.Has(decode.HasTarget) {
			continue
		}
		change := int64(other.Target - inst.Target)
		if change < 0 {
			change = -change
		}
		if change != 0 && change&(change-1) == 0 {
			weight[bits.TrailingZeros64(uint64(change))] = b
		}
	}
	found := m.bits[:0]
	for k, b := range weight {
		switch {
		case b == none:
			continue
		case len(found) == 0:
			f.shift = uint8(k)
		case k != int(f.shift)+len(found): // the bits have to be those of one number
			return false
		}
		found = append(found, b)
	}
	if len(found) == 0 {
		return false
	}
	h, ok := m.holes[string(found)]
	if !ok {
		h = hole(found)
		if m.holes == nil {
			m.holes = map[string]hole{}
		}
		m.holes[string(found)] = h
	}
	f.holes[0] = h
	return true
}

// makeText puts holes into the text of inst where it shows their numbers.
func (m *former) makeText(f *form, inst *decode.Inst, n int, numbers *[maxHoles]uint64) {
	m.text = append(m.text[:0], m.isa.Text(inst, nil)...)
	for i := range n {
		h := f.holes[i]
		v := h.signed(numbers[i])
		if i == 0 && f.base != baseNone {
			for m.replace(formatTarget, i, inst.Target, "") {
			}
			v <<= f.shift
		}
		m.number(i, v, len(h))
	}
	f.text = string(m.text)
}

// number puts hole i, whose number is v, into the text.
func (m *former) number(i int, v int64, width int) {
	if v >= 0 {
		_ = m.replace(formatSigned, i, uint64(v), "$") || m.replace(formatSigned, i, uint64(v), "")
		return
	}
	if m.replace(formatSigned, i, uint64(-v), "$-") || m.replace(formatSigned, i, uint64(-v), "-") {
		return
	}
	for _, c := range []struct {
		format byte
		value  uint64
	}{{format64, uint64(v)}, {format32, uint64(uint32(v))}, {format16, uint64(uint16(v))}, {format8, uint64(uint8(v))}} {
		if c.format == format8 && width > 8 {
			break
		}
		if m.replace(c.format, i, c.value, "$") || m.replace(c.format, i, c.value, "") {
			return
		}
	}
}

// replace puts a hole where the text first shows a number in hexadecimal after what
// before says, and reports whether it does.
func (m *former) replace(format byte, i int, value uint64, before string) bool {
	m.token = append(append(m.token[:0], before...), "0x"...)
	m.token = strconv.AppendUint(m.token, value, 16)
	for from := 0; ; {
		k := bytes.Index(m.text[from:], m.token)
		if k < 0 {
			return false
		}
		at := from + k
		end := at + len(m.token)
		from = at + 1
		if end < len(m.text) && isDigit(m.text[end]) {
			continue
		}
		if at > 0 && before == "" && (m.text[at-1] == '-' || isDigit(m.text[at-1]) || m.text[at-1] == '$') {
			continue
		}
		if format == formatSigned && len(before) > 0 && before[len(before)-1] == '-' {
			before = before[:len(before)-1] // the sign is the number's
		}
		start := at + len(before)
		rest := append([]byte{holeMark, format, byte('0' + i)}, m.text[end:]...)
		m.text = append(m.text[:start], rest...)
		return true
	}
}

func isDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// formTable gives forms numbers in the order in which they are first used.
type formTable struct {
	numbers map[form]uint32
	holes   map[hole]uint32
	list    columns
	kinds   columns
}

func (t *formTable) number(f *form) uint32 {
	if n, ok := t.numbers[*f]; ok {
		return n
	}
	if t.numbers == nil {
		t.numbers, t.holes = map[form]uint32{}, map[hole]uint32{}
		t.list, t.kinds = newColumns(formColumns), newColumns(1)
	}
	n := uint32(len(t.numbers))
	t.numbers[*f] = n
	var text []byte
	for i := range f.holes {
		h := f.holes[i]
		if h == "" {
			break
		}
		text = append(text, byte(t.hole(h)+1))
	}
	l := t.list
	l.bytes(formRaw, f.raw[:f.len])
	l.byte(formLen, f.len)
	l.byte(formFlow, byte(f.flow))
	l.uint(formProps, uint64(f.props))
	l.byte(formBase, byte(f.base)|f.shift<<3)
	l.bytes(formHoles, append(text, 0))
	l.bytes(formText, append([]byte(f.text), 0))
	return n
}

// hole returns the number of a hole among those that there are, which are few.
func (t *formTable) hole(h hole) uint32 {
	n, ok := t.holes[h]
	if !ok {
		n = uint32(len(t.holes))
		t.holes[h] = n
		t.kinds.byte(0, byte(len(h)))
		t.kinds.bytes(0, []byte(h))
	}
	return n
}

// Columns of the table of forms.
const (
	formRaw = iota
	formLen
	formFlow
	formProps
	formBase
	formHoles
	formText
	formColumns
)

// columns are lists of numbers and texts, each of its own kind, that are compressed
// together.
type columns [][]byte

func newColumns(n int) columns { return make(columns, n) }

func (c columns) byte(i int, b byte)    { c[i] = append(c[i], b) }
func (c columns) bytes(i int, b []byte) { c[i] = append(c[i], b...) }
func (c columns) uint(i int, v uint64)  { c[i] = binary.AppendUvarint(c[i], v) }
func (c columns) int(i int, v int64)    { c[i] = binary.AppendVarint(c[i], v) }
func (c columns) text(i int, s string)  { c[i] = append(append(c[i], s...), 0) }
