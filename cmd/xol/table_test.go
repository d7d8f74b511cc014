package main

import (
	"fmt"
	"testing"
)

func TestNumbersInTables(t *testing.T) {
	for _, n := range []int{0, 7, 10, 99, 12345, 999_999, 1_000_000, 123_456_789_012} {
		for _, width := range []int{0, 1, 5, 6, 11} {
			for _, p := range []palette{false, true} {
				tab := table{palette: p}
				tab.num(width, n, red)
				st := red
				if n == 0 {
					st = dim
				}
				digits := fmt.Sprint(n)
				want := fmt.Sprintf("%*s", max(width-len(digits), 0), "")
				if p {
					want += string(st) + digits + styleEnd + gap
				} else {
					want += digits + gap
				}
				if string(tab.buf) != want {
					t.Errorf("%d in %d columns, colours %v: %q, want %q", n, width, p, tab.buf, want)
				}
			}
		}
	}
}

func TestCellsInTables(t *testing.T) {
	for _, tc := range []struct {
		cell func(t *table)
		want string
	}{
		{func(t *table) { t.left(4, "ab", plain) }, "ab    "},
		{func(t *table) { t.left(4, "abcdef", plain) }, "abcdef  "},
		{func(t *table) { t.left(4, "é", plain) }, "é     "},
		{func(t *table) { t.left(6, "\x1b", plain) }, `\x1b    `},
		{func(t *table) { t.right(4, "ab", plain) }, "  ab  "},
		{func(t *table) { t.right(1, "ab", plain) }, "ab  "},
		{func(t *table) { t.hex(6, 0) }, "   0x0  "},
		{func(t *table) { t.hex(6, 0x10) }, "  0x10  "},
		{func(t *table) { t.hex(4, 0xffffffff81000000) }, "0xffffffff81000000  "},
	} {
		var tab table
		tc.cell(&tab)
		if string(tab.buf) != tc.want {
			t.Errorf("%q, want %q", tab.buf, tc.want)
		}
	}
}
