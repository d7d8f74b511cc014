package verify_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"xol/arch/arm64"
	"xol/arch/ppc64"
)

// pattern is the words with the given bits under a mask.
type pattern struct{ mask, value uint32 }

// draw returns a random one.
func (p pattern) draw(r *rand.Rand) uint32 { return r.Uint32()&^p.mask | p.value }

// wordsOf draws the bytes of random instructions.
func wordsOf(order binary.ByteOrder, patterns []pattern) func(*rand.Rand) []byte {
	return func(r *rand.Rand) []byte {
		b := make([]byte, 4)
		order.PutUint32(b, patterns[r.IntN(len(patterns))].draw(r))
		return b
	}
}

// Branches and PC-relative instructions of arm64 [Arm ARM, C4.1].
var arm64Branches = []pattern{
	{0x7c000000, 0x14000000}, // b, bl
	{0xff000010, 0x54000000}, // b.cond
	{0x7e000000, 0x34000000}, // cbz, cbnz
	{0x7e000000, 0x36000000}, // tbz, tbnz
	{0xfffffc1f, 0xd61f0000}, // br
	{0xfffffc1f, 0xd63f0000}, // blr
	{0xfffffc1f, 0xd65f0000}, // ret
	{0x1f000000, 0x10000000}, // adr, adrp
	{0x3f000000, 0x18000000}, // ldr and its kin
}

// Branches of ppc64, and addpcis [Power ISA 3.1, Book I, 2.4 and 3.3.9].
var ppc64Branches = []pattern{
	{63 << 26, 18 << 26},                        // b
	{63 << 26, 16 << 26},                        // bc
	{63<<26 | 7<<13 | 1023<<1, 19<<26 | 16<<1},  // bclr
	{63<<26 | 7<<13 | 1023<<1, 19<<26 | 528<<1}, // bcctr
	{63<<26 | 7<<13 | 1023<<1, 19<<26 | 560<<1}, // bctar
	{63<<26 | 31<<1, 19<<26 | 2<<1},             // addpcis
}

func TestInterpretARM64(t *testing.T) {
	p := &interpretation{isa: arm64.ISA{}, open: openEmulator, states: 10}
	p.compareLists(t, 1, "arm64-real.tsv.gz", sampleOf("arm64", "arm64-real.tsv.gz"))
	t.Run("random", func(t *testing.T) { p.compareRandom(t, 4000, wordsOf(binary.LittleEndian, arm64Branches)) })
}

func TestInterpretPPC64(t *testing.T) {
	for _, c := range []struct {
		isa   ppc64.ISA
		order binary.ByteOrder
	}{{ppc64.ISA{}, binary.BigEndian}, {ppc64.ISA{LittleEndian: true}, binary.LittleEndian}} {
		t.Run(c.isa.Name(), func(t *testing.T) {
			p := &interpretation{isa: c.isa, open: openEmulator, states: 10}
			list := c.isa.Name() + "-real.tsv.gz"
			p.compareLists(t, 1, list, sampleOf("ppc64", list))
			t.Run("random", func(t *testing.T) { p.compareRandom(t, 4000, wordsOf(c.order, ppc64Branches)) })
		})
	}
}
