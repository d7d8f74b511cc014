package image

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Pointer encodings of .eh_frame [Linux Standard Base Core, 10.5]: a format in
// the low half, and what the number is added to in the high half.
const (
	peAbsolute = 0x00 // 8 bytes, as addresses of the file's class are
	peULEB     = 0x01
	peUdata2   = 0x02
	peUdata4   = 0x03
	peUdata8   = 0x04
	peSLEB     = 0x09
	peSdata2   = 0x0a
	peSdata4   = 0x0b
	peSdata8   = 0x0c
	peFormat   = 0x0f

	peBase    = 0x70
	pePCRel   = 0x10 // to the address of the pointer itself
	peDataRel = 0x30 // to the global offset table
	peFuncRel = 0x40 // to the function
	peAlign   = 0x50 // absolute, at the next multiple of 8

	peIndirect = 0x80 // the number is where the address is
	peOmit     = 0xff
)

// ehFrameFunctions returns the ranges of code that an .eh_frame section, which
// stands at addr, has unwinding rules for, in the section's order. Each is a
// function, or a part of one that the compiler put elsewhere.
//
// Entries that are damaged, or whose pointers need more than the section to be
// known (relative to data, or indirect, which compilers do not use for code),
// are left out. Where the end of an entry cannot be found, it returns a
// *FormatError beside what came before.
func ehFrameFunctions(data []byte, addr uint64, order binary.ByteOrder) ([]extent, error) {
	p := newEHFrame(data, addr, byteOrder(order == binary.ByteOrder(binary.BigEndian)))
	var found []extent
	err := p.each(func(_ int, f frame) { found = append(found, f.code) })
	return found, err
}

// ehFrame is an .eh_frame section that is being read.
type ehFrame struct {
	data  []byte
	addr  uint64
	order byteOrder
	cies  map[int]cie // read so far, by offset
	// damaged is the offset of the first entry that cannot be understood; -1
	// where all can.
	damaged int
}

// cie says how the FDEs of a CIE are written: their encodings of pointers to
// code and to language-specific data, whether these have a length, and what for.
type cie struct {
	code, lsda byte
	sized      bool
	signal     bool // they are of signal trampolines
}

// unknownCIE is one whose FDEs cannot be understood.
var unknownCIE = cie{code: peOmit, lsda: peOmit}

// frame is what an FDE says.
type frame struct {
	code extent
	// lsda is where the pointer to language-specific data stands, in the
	// encoding lsdaEnc; without data where there is none.
	lsda    cursor
	lsdaEnc byte
}

func newEHFrame(data []byte, addr uint64, order byteOrder) *ehFrame {
	return &ehFrame{data: data, addr: addr, order: order, cies: make(map[int]cie), damaged: -1}
}

// each calls f with every FDE that can be understood, and its offset. Where the
// end of an entry cannot be found, it stops with a *FormatError.
func (p *ehFrame) each(f func(pos int, fr frame)) error {
	for pos := 0; pos < len(p.data); {
		body, end, ok := p.entry(pos)
		if !ok {
			return &FormatError{
				What: "entry without an end", Where: fmt.Sprintf(".eh_frame+%#x", pos), Err: ErrTruncated,
			}
		}
		if body < end { // not a terminator
			if fr, ok := p.frame(pos, body, end); ok {
				f(pos, fr)
			}
		}
		pos = end
	}
	return nil
}

// entry returns where the content of the entry at pos starts and ends.
func (p *ehFrame) entry(pos int) (body, end int, ok bool) {
	c := p.cursor(pos, len(p.data))
	size, _ := c.unitLength()
	if c.bad || size > uint64(len(p.data)-c.pos) {
		return 0, 0, false
	}
	return c.pos, c.pos + int(size), true
}

// frame reads the entry at pos, if it is an FDE.
func (p *ehFrame) frame(pos, body, end int) (fr frame, ok bool) {
	c := p.cursor(body, end)
	back := int(c.u32())
	if !c.bad && back == 0 { // a CIE
		p.cies[pos] = p.readCIE(c)
		return frame{}, false
	}
	from, known := p.cies[body-back] // which always is before its FDEs
	lo := c.pointer(from.code)
	size := c.pointer(from.code & peFormat)
	if c.bad || !known || lo+size < lo {
		if p.damaged < 0 {
			p.damaged = pos
		}
		return frame{}, false
	}
	if from.signal && (lo+1)%4 == 0 && size > 1 {
		// glibc has the entry start a byte before the trampoline, for unwinders that
		// look before the return address.
		lo, size = lo+1, size-1
	}
	fr = frame{code: extent{lo, lo + size}, lsdaEnc: from.lsda}
	if from.sized && from.lsda != peOmit && c.uleb() > 0 {
		fr.lsda = *c
	}
	return fr, size > 0
}

// readCIE reads the CIE whose version c is at.
func (p *ehFrame) readCIE(c *cursor) cie {
	version := c.u8()
	augmentation := c.augmentation()
	if version == 4 {
		c.skip(2) // sizes of addresses and segments
	}
	c.uleb() // code alignment
	c.uleb() // data alignment
	if version == 1 {
		c.u8() // return address register
	} else {
		c.uleb()
	}
	letters, sized := strings.CutPrefix(augmentation, "z")
	if sized {
		c.uleb() // length of what follows
	}
	if c.bad || !sized && letters != "" {
		return unknownCIE
	}
	read := cie{code: peAbsolute, lsda: peOmit, sized: sized}
	for _, letter := range letters {
		switch letter {
		case 'R':
			read.code = c.u8()
		case 'P': // personality routine
			c.skipPointer(c.u8())
		case 'L': // language-specific data
			read.lsda = c.u8()
		case 'S':
			read.signal = true
		case 'B', 'G': // return address signed with key B, tagged stack
		default:
			return unknownCIE
		}
	}
	if c.bad {
		return unknownCIE
	}
	return read
}

func (p *ehFrame) cursor(pos, end int) *cursor {
	return &cursor{data: p.data[:end], pos: pos, addr: p.addr, order: p.order}
}

// augmentation reads a CIE's augmentation string.
func (c *cursor) augmentation() string {
	const most = 16 // letters; all that are defined are 7
	start := c.pos
	for c.u8() != 0 {
		if c.pos-start > most {
			c.bad = true
		}
	}
	if c.bad {
		return ""
	}
	return string(c.data[start : c.pos-1])
}

// pointer reads an encoded pointer.
func (c *cursor) pointer(enc byte) uint64 {
	place := c.addr + uint64(c.pos)
	switch {
	case enc == peAlign:
		c.skipPadding()
		return c.u64()
	case enc&^peFormat == pePCRel:
		return place + c.number(enc)
	case enc&^peFormat == peAbsolute:
		return c.number(enc)
	}
	c.bad = true // relative to what we do not know, indirect, or omitted
	return 0
}

// skipPointer passes over an encoded pointer, which may be of any kind.
func (c *cursor) skipPointer(enc byte) {
	switch enc {
	case peOmit:
	case peAlign:
		c.skipPadding()
		c.u64()
	default:
		c.number(enc)
	}
}

func (c *cursor) skipPadding() { c.skip(int(-(c.addr + uint64(c.pos)) & 7)) }

// number reads a number in the format that is the low half of enc.
func (c *cursor) number(enc byte) uint64 {
	switch enc & peFormat {
	case peAbsolute, peUdata8, peSdata8:
		return c.u64()
	case peULEB:
		return c.uleb()
	case peUdata2:
		return uint64(c.u16())
	case peUdata4:
		return uint64(c.u32())
	case peSLEB:
		return c.sleb()
	case peSdata2:
		return uint64(int64(int16(c.u16())))
	case peSdata4:
		return uint64(int64(int32(c.u32())))
	}
	c.bad = true
	return 0
}
