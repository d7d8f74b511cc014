package main

import (
	"encoding/hex"
	"unicode/utf8"
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
	s = printable(s)
	t.styled(s, st)
	t.pad(width - utf8.RuneCountInString(s))
	t.buf = append(t.buf, gap...)
}

// right adds a cell, aligned to the right.
func (t *table) right(width int, s string, st style) {
	s = printable(s)
	t.pad(width - utf8.RuneCountInString(s))
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
	var digits [addrWidth]byte
	s := appendAddr(digits[:0], v)
	t.pad(width - len(s))
	t.buf = append(t.buf, s...)
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
	var digits [20]byte
	i := len(digits)
	for rest := uint(n); ; rest /= 10 {
		i--
		digits[i] = '0' + byte(rest%10)
		if rest < 10 {
			break
		}
	}
	t.pad(width - (len(digits) - i))
	t.start(st)
	t.buf = append(t.buf, digits[i:]...)
	t.stop(st)
	t.buf = append(t.buf, gap...)
}

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
