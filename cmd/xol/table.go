package main

import (
	"encoding/hex"
	"math/bits"
	"strconv"
)

// table lays out rows cell by cell and appends them to buf. The widths of its
// columns are fixed, so that a row can be printed before the next is known; a
// cell that is too wide pushes the rest of its row to the right.
type table struct {
	palette palette
	buf     []byte
}

const gap = "  " // between columns

const spaces = "                                                                "

// pad appends n spaces.
func (t *table) pad(n int) {
	for n > 0 {
		k := min(n, len(spaces))
		t.buf = append(t.buf, spaces[:k]...)
		n -= k
	}
}

// left adds a cell, aligned to the left.
func (t *table) left(width int, s string, st style) {
	s, wide := printableWidth(s)
	t.styled(s, st)
	t.pad(max(width-wide, 0) + len(gap))
}

// right adds a cell, aligned to the right.
func (t *table) right(width int, s string, st style) {
	s, wide := printableWidth(s)
	t.pad(width - wide)
	t.styled(s, st)
	t.buf = append(t.buf, gap...)
}

// addr adds an address.
func (t *table) addr(v uint64) { t.hex(addrWidth, v) }

// offset adds an offset in a file.
func (t *table) offset(v uint64) {
	if v == nowhere {
		t.right(offsetWidth, "-", dim)
	} else {
		t.hex(offsetWidth, v)
	}
}

// hex adds a hexadecimal number.
func (t *table) hex(width int, v uint64) {
	const digits = "0123456789abcdef"
	n := max(1, (bits.Len64(v)+3)/4)
	t.pad(width - len("0x") - n)
	t.buf = append(t.buf, "0x"...)
	for shift := 4 * (n - 1); shift >= 0; shift -= 4 {
		t.buf = append(t.buf, digits[v>>shift&15])
	}
	t.buf = append(t.buf, gap...)
}

// offsetWidth is the width of an offset in a file of up to 4 GiB.
const offsetWidth = len("0xffffffff")

// addrWidth is the width of the widest address.
const addrWidth = len("0xffffffffffffffff")

// num adds a number that is not negative; 0 is dimmed, so that the others stand out.
func (t *table) num(width, n int, st style) {
	if n == 0 {
		st = dim
	}
	if t.palette || width < shortWidth || n >= tooLong {
		var digits [20]byte
		number := strconv.AppendInt(digits[:0], int64(n), 10)
		t.pad(width - len(number))
		t.start(st)
		t.buf = append(t.buf, number...)
		t.stop(st)
		t.buf = append(t.buf, gap...)
		return
	}
	t.buf = append(t.buf, spaces[:width+len(gap)]...)
	cell := t.buf[len(t.buf)-len(gap)-width:]
	for i, rest := width-1, uint32(n); ; i-- {
		cell[i] = '0' + byte(rest%10)
		if rest /= 10; rest == 0 {
			return
		}
	}
}

// The digits that there is room for in a column of numbers, and the least number that
// has more.
const (
	shortWidth = 6
	tooLong    = 1e6
)

// bytes adds instruction bytes.
func (t *table) bytes(width int, b []byte) {
	start := len(t.buf)
	t.buf = hex.AppendEncode(t.buf, b)
	t.pad(width - (len(t.buf) - start))
	t.buf = append(t.buf, gap...)
}

// paint adds text. What a terminal would not show as it is is escaped.
func (t *table) paint(s string, st style) {
	t.styled(printable(s), st)
}

// styled adds printable text.
func (t *table) styled(s string, st style) {
	if s == "" {
		return
	}
	t.start(st)
	t.buf = append(t.buf, s...)
	t.stop(st)
}

// start and stop enclose what is to have a style.
func (t *table) start(st style) {
	if t.palette {
		t.buf = append(t.buf, st...)
	}
}

func (t *table) stop(st style) {
	if t.palette && st != plain {
		t.buf = append(t.buf, styleEnd...)
	}
}

// end ends the row.
func (t *table) end() {
	n := len(t.buf)
	for n > 0 && t.buf[n-1] == ' ' {
		n--
	}
	t.buf = append(t.buf[:n], '\n')
}
