package ppc64

import (
	"encoding/binary"

	"xol/decode"
	"xol/machine"
)

// permute is an instruction that moves bits among VSX registers. The word has the
// prefix in its upper half.
type permute func(r machine.WideRegisters, word uint64)

// permuteOf returns the permute that inst is, whose prefix is of that type; nil
// for what is none.
func permuteOf(inst *decode.Inst) permute {
	suffix := WordOf(inst)
	switch suffix >> 26 {
	case 32:
		return splats[suffix>>17&7]
	case 33:
		return blend
	case 34:
		return permutes[suffix>>4&1]
	}
	return nil
}

// splats are indexed by bits 12 to 14 of the suffix; the first instruction has a
// bit of its operand there.
var splats = [8]permute{xxsplti32dx, xxsplti32dx, xxspltidp, xxspltiw}

// permutes are indexed by bit 27 of the suffix.
var permutes = [2]permute{xxpermx, xxeval}

// immediate32 returns the operand that is in both words.
func immediate32(word uint64) uint64 { return word>>16&0xffff_0000 | word&0xffff }

// splatTarget returns the register that a splat writes.
func splatTarget(word uint64) int { return VSR0 + int(word>>16&1<<5|word>>21&31) }

// xxsplti32dx sets the high or the low words of both doublewords.
func xxsplti32dx(r machine.WideRegisters, word uint64) {
	low, high := r.Wide(splatTarget(word))
	shift := 32 * (1 - word>>17&1)
	keep, set := uint64(0xffff_ffff)<<(32-shift), immediate32(word)<<shift
	r.SetWide(splatTarget(word), low&keep|set, high&keep|set)
}

func xxspltidp(r machine.WideRegisters, word uint64) {
	v := toDouble(uint32(immediate32(word)))
	r.SetWide(splatTarget(word), v, v)
}

func xxspltiw(r machine.WideRegisters, word uint64) {
	v := immediate32(word)
	v |= v << 32
	r.SetWide(splatTarget(word), v, v)
}

// vectors are the operands of an instruction with three, and its target.
type vectors struct {
	target  int
	a, b, c [2]uint64 // doublewords
}

func readVectors(r machine.WideRegisters, word uint64) (v vectors) {
	read := func(high, low uint) (d [2]uint64) {
		d[0], d[1] = r.Wide(VSR0 + int(word>>high&1<<5|word>>low&31))
		return d
	}
	return vectors{VSR0 + int(word&1<<5|word>>21&31), read(2, 16), read(1, 11), read(3, 6)}
}

// blend takes the elements of b where the first bit of c's is set, those of a
// elsewhere: bytes, halfwords, words or doublewords.
func blend(r machine.WideRegisters, word uint64) {
	v := readVectors(r, word)
	width := uint(8) << (word >> 4 & 3)
	ones := ^uint64(0) >> (64 - width)
	var out [2]uint64
	for i := range out {
		mask := uint64(0)
		for at := uint(0); at < 64; at += width {
			mask |= -(v.c[i] >> (at + width - 1) & 1) & ones << at
		}
		out[i] = v.a[i]&^mask | v.b[i]&mask
	}
	r.SetWide(v.target, out[0], out[1])
}

// xxeval looks every three bits up in a truth table.
func xxeval(r machine.WideRegisters, word uint64) {
	v := readVectors(r, word)
	table := word >> 32 & 0xff
	var out [2]uint64
	for row := range uint64(8) {
		if table>>(7-row)&1 == 0 {
			continue
		}
		for i := range out {
			out[i] |= matching(v.a[i], row>>2) & matching(v.b[i], row>>1) & matching(v.c[i], row)
		}
	}
	r.SetWide(v.target, out[0], out[1])
}

// matching returns which bits are what the last one of want is.
func matching(bits, want uint64) uint64 { return ^(bits ^ -(want & 1)) }

// xxpermx picks bytes of a and b by the last five bits of c's bytes, where the
// first three are those of the instruction; the others become 0.
func xxpermx(r machine.WideRegisters, word uint64) {
	v := readVectors(r, word)
	var source [32]byte
	var selector, out [16]byte
	for i := range 2 {
		binary.BigEndian.PutUint64(source[8*i:], v.a[i])
		binary.BigEndian.PutUint64(source[16+8*i:], v.b[i])
		binary.BigEndian.PutUint64(selector[8*i:], v.c[i])
	}
	for i, s := range selector {
		if uint64(s>>5) == word>>32&7 {
			out[i] = source[s&31]
		}
	}
	r.SetWide(v.target, binary.BigEndian.Uint64(out[:]), binary.BigEndian.Uint64(out[8:]))
}
