package ppc64

import (
	"bytes"
	"testing"
)

// TestAlternative puts code in the place of other code, in both byte orders.
func TestAlternative(t *testing.T) {
	const from, to = 0x100000, 0x101000
	for _, c := range []struct {
		name       string
		code, want []uint32
		size       int
	}{
		{"nothing", nil, []uint32{insnNop, insnNop}, 8},
		{"blr", []uint32{0x4e800020}, []uint32{0x4e800020, insnNop}, 8},
		{"b to 0x100100", []uint32{0x48000100}, []uint32{0x4bfff100}, 4},
		{"bl to 0x100100, second", []uint32{insnNop, 0x480000fd}, []uint32{insnNop, 0x4bfff0fd}, 8},
		{"beq to 0x100100", []uint32{0x41820100}, []uint32{0x4182f100}, 4},
		{"a branch over the next instruction", []uint32{0x48000008, insnNop, insnNop}, []uint32{0x48000008, insnNop, insnNop}, 12},
	} {
		for _, isa := range []ISA{{}, {LittleEndian: true}} {
			code, want := isa.words(c.code...), isa.words(c.want...)
			if got := isa.Alternative(code, from, to, c.size, false); !bytes.Equal(got, want) {
				t.Errorf("%s, %s: %x, want %x", isa.Name(), c.name, got, want)
			}
		}
	}
}
