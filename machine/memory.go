package machine

import "encoding/binary"

// Fill sets page, which stands at addr, to contents that depend only on addr
// and seed. Words vary between pointers, small numbers and any bits, so that
// loaded values make good operands. addr and the length are multiples of 8.
func Fill(page []byte, addr, seed uint64) {
	for i := 0; i+8 <= len(page); i += 8 {
		binary.LittleEndian.PutUint64(page[i:], Word(addr+uint64(i), seed))
	}
}

// Word returns the contents of the aligned word at addr.
func Word(addr, seed uint64) uint64 {
	return Interesting(Mix(addr*0x9e3779b97f4a7c15 + seed))
}

// Mix spreads the bits of x over all of the result.
func Mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// PointerBits is the size of the addresses among the values of Interesting:
// small enough that eight times one, added to another, is an address that a
// user program may have on every ISA.
const PointerBits = 43

// Interesting turns random bits into a value: often a pointer, at times a small
// number of either sign, an edge of a type's range or any bits at all. Three
// pointers of four are aligned to 64 bytes.
func Interesting(r uint64) uint64 {
	switch v := r >> 4; r & 15 {
	case 0, 1:
		return v & 0xff
	case 2:
		return -(v & 0xff)
	case 3:
		return edges[v%uint64(len(edges))]
	case 4:
		return Mix(r)
	default:
		p := v&(1<<PointerBits-1) | 1<<30
		if r>>60&3 != 0 {
			p &^= 63
		}
		return p
	}
}

var edges = [...]uint64{
	0, 1, 1<<64 - 1, 1 << 63, 1<<63 - 1, 1 << 31, 1<<31 - 1, 1<<32 - 1, 1 << 32,
	1<<64 - 1<<31, 0x7f, 0x80, 0x7fff, 0x8000, 0x3ff0000000000000, 0x7ff8000000000000,
}
