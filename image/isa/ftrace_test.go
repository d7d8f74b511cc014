package isa

import (
	"strings"
	"testing"
)

// TestFtraceSites finds the site in the text of files and of running kernels.
func TestFtraceSites(t *testing.T) {
	const (
		nop, bti, mov, bl = 0xd503201f, 0xd503245f, 0xaa1e03e9, 0x97ffff00
		low, high         = 0x81a05f00, 0xffff8000 // an address
		stp               = 0xa9bf7bfd
	)
	for _, c := range []struct {
		name  string
		words [5]uint32
		want  uint64
	}{
		{"two NOPs", [5]uint32{nop, nop, stp}, 4},
		{"two NOPs, running", [5]uint32{mov, nop, stp}, 4},
		{"two NOPs, traced", [5]uint32{mov, bl, stp}, 4},
		{"NOPs before the function", [5]uint32{nop, nop, nop, nop, stp}, 12},
		{"NOPs before the function and bti", [5]uint32{nop, nop, bti, nop, nop}, 16},
		{"a literal", [5]uint32{low, high, mov, nop, stp}, 12},
		{"a literal and bti", [5]uint32{low, high, bti, mov, nop}, 16},
		{"a literal and bti, traced", [5]uint32{low, high, bti, mov, bl}, 16},
		{"a literal and a site that is not ready", [5]uint32{low, high, nop, nop, stp}, 12},
		{"four NOPs at the entry", [5]uint32{nop, nop, nop, nop, stp}, 4},
		{"-pg", [5]uint32{bl, stp, stp, stp, stp}, 0},
		{"running, and then NOPs", [5]uint32{mov, nop, nop, nop, stp}, 4},
	} {
		if got := arm64FtraceOffset(&c.words, strings.Contains(c.name, "at the entry")); got != c.want {
			t.Errorf("arm64, %s: %d, want %d", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name           string
		words          [5]uint32
		adjust         uint64
		keeps, address bool
	}{
		{"two NOPs", [5]uint32{nop, nop, stp}, 4, true, false},
		{"two NOPs, running", [5]uint32{mov, nop, stp}, 4, false, false},
		{"NOPs before the function", [5]uint32{nop, nop, nop, nop, stp}, 12, true, true},
		{"NOPs before the function and bti", [5]uint32{nop, nop, bti, nop, nop}, 16, true, true},
		{"a literal", [5]uint32{low, high, mov, nop, stp}, 12, false, false},
		{"-pg", [5]uint32{bl, nop, nop, nop, nop}, 0, false, false},
	} {
		var keeps, address bool
		arm64FtraceWrites(wordsAt{0x1000, c.words[:]}, 0x1000, c.adjust, func(w Written) {
			switch {
			case w.Addr == 0x1000 && w.Size == 8 && w.Code == nil:
				address = true
			case w.Addr == 0x1000+c.adjust-4 && w.Size == 4 && string(w.Code) == "\xe9\x03\x1e\xaa":
				keeps = true
			default:
				t.Errorf("arm64, %s: writes %+v", c.name, w)
			}
		})
		if keeps != c.keeps || address != c.address {
			t.Errorf("arm64, %s: keeps the return address %v, has an address %v", c.name, keeps, address)
		}
	}
	const pnop, mflr, pbl, std, addi = 0x60000000, 0x7c0802a6, 0x4bff1235, 0xf8010010, 0x3842f000
	for _, c := range []struct {
		name   string
		before uint32
		words  [5]uint32
		want   uint64
	}{
		{"two NOPs", addi, [5]uint32{pnop, pnop, std}, 4},
		{"two NOPs, running", addi, [5]uint32{mflr, pnop, std}, 4},
		{"two NOPs, traced", addi, [5]uint32{mflr, pbl, std}, 4},
		{"a call", mflr, [5]uint32{pbl, std, std}, 0},
		{"a call that has become a NOP", mflr, [5]uint32{pnop, std, std}, 0},
		{"and a NOP after it", mflr, [5]uint32{pnop, pnop, std}, 0},
		{"and one after a store", std, [5]uint32{pnop, pnop, pnop}, 0},
	} {
		if got := ppc64FtraceOffset(c.before, &c.words); got != c.want {
			t.Errorf("ppc64, %s: %d, want %d", c.name, got, c.want)
		}
	}
}

// wordsAt is text of a few words without symbols.
type wordsAt struct {
	addr  uint64
	words []uint32
}

func (t wordsAt) Words(dst []uint32, addr uint64) int {
	if addr < t.addr || addr-t.addr > wordSize*uint64(len(t.words)) {
		return 0
	}
	return copy(dst, t.words[(addr-t.addr)/wordSize:])
}
func (wordsAt) StartsSymbol(uint64) bool { return false }
func (wordsAt) HasSymbol(string) bool    { return false }
