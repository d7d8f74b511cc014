package arm64

import (
	"bytes"
	"testing"
)

// TestAlternative puts code in the place of other code: branches and adrp go
// where they went, branches inside stay [GNU as has assembled both forms].
func TestAlternative(t *testing.T) {
	const from, to = 0x100000, 0x40ff8
	for _, c := range []struct {
		name       string
		code, want []uint32
		size       int
	}{
		{"no instruction", nil, []uint32{nop, nop}, 8},
		{"one that depends on nothing", []uint32{0xd503201f}, []uint32{0xd503201f, nop}, 8},
		{"b to 0x100100", []uint32{0x14000040}, []uint32{0x1402fc42}, 4},
		{"bl to 0x100100, second", []uint32{nop, 0x9400003f}, []uint32{nop, 0x9402fc41}, 8},
		{"b.eq to 0x100080", []uint32{0x54000400}, []uint32{0x545f8440}, 4},
		{"a branch over the next instruction", []uint32{0x14000002, nop, nop}, []uint32{0x14000002, nop, nop}, 12},
		{"adrp of its own page", []uint32{0x90000000}, []uint32{0x90000600}, 4},
	} {
		var code, want []byte
		for _, w := range c.code {
			code = put(code, w)
		}
		for _, w := range c.want {
			want = put(want, w)
		}
		if got := (ISA{}).Alternative(code, from, to, c.size, false); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", c.name, got, want)
		}
	}
}
