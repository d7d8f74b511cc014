//go:build linux

package verify_test

import (
	"math/rand/v2"
	"testing"

	"xol/arch/amd64"
	"xol/machine"
)

// interpretAMD64 are the comparisons with the engines of amd64.
var interpretAMD64 = map[string]*interpretation{
	"unicorn": {isa: amd64.ISA{}, open: openEmulator, prepare: segmentBases, states: 20},
	"cpu": {
		isa: amd64.ISA{}, limit: machine.Range{Lo: 0x31000, Hi: 1<<47 - 4096}, fill: []byte{0xcc},
		open:    func(string, *machine.File) (machine.Engine, error) { return openCPU() },
		prepare: segmentBases, states: 2,
	},
}

// segmentBases gives FS and GS bases.
func segmentBases(f *machine.File, s machine.State, seed uint64) {
	f.SetWord(s, amd64.FSBase, machine.Mix(seed)&(1<<machine.PointerBits-1)|1<<32)
	f.SetWord(s, amd64.GSBase, machine.Mix(seed+1)&(1<<machine.PointerBits-1)|1<<32)
}

func TestInterpretAMD64(t *testing.T) {
	for name, p := range interpretAMD64 {
		t.Run(name, func(t *testing.T) {
			p.compareLists(t, 0, "amd64-real.tsv.gz",
				sampleOf("amd64", "text-legacy.tsv.gz"), sampleOf("amd64", "relocate-operands.tsv.gz"))
			t.Run("random", func(t *testing.T) { p.compareRandom(t, 4000, randomBranch) })
		})
	}
}

// randomBranch draws the bytes of a near branch, with any prefixes and operands.
func randomBranch(r *rand.Rand) []byte {
	b := func(n int) byte { return byte(r.IntN(n)) }
	prefixes := []byte{0x66, 0x67, 0x67, 0xf2, 0xf3, 0x2e, 0x3e, 0x36, 0x26, 0x64, 0x65}
	var code []byte
	for r.IntN(2) == 0 {
		code = append(code, prefixes[r.IntN(len(prefixes))])
	}
	if r.IntN(2) == 0 {
		code = append(code, 0x40|b(16))
	}
	switch r.IntN(6) {
	case 0:
		code = append(code, 0x70|b(16))
	case 1:
		code = append(code, 0x0f, 0x80|b(16))
	case 2:
		code = append(code, []byte{0xe8, 0xe9, 0xeb, 0xc2, 0xc3}[b(5)])
	case 3:
		code = append(code, 0xe0|b(4))
	default:
		code = append(code, 0xff, b(4)<<6|(2+2*b(2))<<3|b(8))
	}
	for range 8 {
		code = append(code, b(256))
	}
	return code
}
