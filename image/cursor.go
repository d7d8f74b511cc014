package image

import (
	"bytes"
	"math"
)

// cursor reads numbers one after the other. Once it is bad, because something
// goes beyond the end or cannot be known, all that it reads is 0.
type cursor struct {
	data  []byte
	pos   int
	addr  uint64 // of data[0]
	order byteOrder
	bad   bool
}

// take returns the next n bytes; nil where there are fewer.
func (c *cursor) take(n int) []byte {
	if c.bad || n > len(c.data)-c.pos {
		c.bad = true
		return nil
	}
	c.pos += n
	return c.data[c.pos-n : c.pos]
}

func (c *cursor) skip(n int) { c.take(n) }

func (c *cursor) u8() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.take(2); b != nil {
		return c.order.u16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return c.order.u32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return c.order.u64(b)
	}
	return 0
}

// leb reads a number of 7-bit groups, and returns the bit after the last one.
func (c *cursor) leb() (v uint64, end uint, last byte) {
	for end < 64 {
		last = c.u8()
		v |= uint64(last&0x7f) << end
		end += 7
		if last < 0x80 {
			return v, end, last
		}
	}
	c.bad = true
	return 0, end, 0
}

func (c *cursor) uleb() uint64 {
	v, _, _ := c.leb()
	return v
}

func (c *cursor) sleb() uint64 {
	v, end, last := c.leb()
	if last&0x40 != 0 {
		v |= ^uint64(0) << end
	}
	return v
}

// unitLength reads the length of what follows, and whether it is written in 64
// bits, as offsets are then [DWARF 5, 7.2.2].
func (c *cursor) unitLength() (size uint64, wide bool) {
	size = uint64(c.u32())
	if size == math.MaxUint32 {
		return c.u64(), true
	}
	return size, false
}

// offset reads an offset into another section.
func (c *cursor) offset(wide bool) uint64 {
	if wide {
		return c.u64()
	}
	return uint64(c.u32())
}

// cstring reads a string that ends with a zero.
func (c *cursor) cstring() string {
	n := bytes.IndexByte(c.data[c.pos:], 0)
	if c.bad || n < 0 {
		c.bad = true
		return ""
	}
	return string(c.take(n + 1)[:n])
}
