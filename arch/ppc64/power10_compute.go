package ppc64

import (
	"math/bits"

	"xol/decode"
	"xol/machine"
)

// computation makes the value of a general register of a bit of CR or of another
// general register.
type computation struct {
	condition func(set uint64) uint64
	value     func(v uint64) uint64
}

// computationOf returns what an instruction without prefix computes; nil for those
// that Power10 does not know.
func computationOf(inst *decode.Inst) *computation {
	const extended = 31
	word := WordOf(inst)
	if inst.Len != wordSize || word>>26 != extended {
		return nil
	}
	for i := range computations {
		if c := &computations[i]; c.opcode == word>>1&1023 {
			return &c.computation
		}
	}
	return nil
}

// computations are the instructions, by their extended opcode.
var computations = [...]struct {
	opcode uint32
	computation
}{
	{384, computation{condition: func(set uint64) uint64 { return set }}},      // setbc
	{416, computation{condition: func(set uint64) uint64 { return 1 - set }}},  // setbcr
	{448, computation{condition: func(set uint64) uint64 { return -set }}},     // setnbc
	{480, computation{condition: func(set uint64) uint64 { return set - 1 }}},  // setnbcr
	{219, computation{value: func(v uint64) uint64 { return reverse(v, 16) }}}, // brh
	{155, computation{value: func(v uint64) uint64 { return reverse(v, 32) }}}, // brw
	{187, computation{value: bits.ReverseBytes64}},                             // brd
}

// reverse reverses the bytes of each element of some bits.
func reverse(v uint64, width int) (r uint64) {
	ones := uint64(1)<<width - 1
	for at := 0; at < 64; at += width {
		r |= bits.ReverseBytes64(v>>at&ones) >> (64 - width) << at
	}
	return r
}

func compute(r machine.Registers, word uint32, c *computation) {
	rt, ra := int(word>>21&31), int(word>>16&31)
	if c.condition != nil { // of the bit that RA names
		r.SetReg(R0+rt, c.condition(r.Reg(CR)>>(31-ra)&1))
		return
	}
	r.SetReg(R0+ra, c.value(r.Reg(R0+rt)))
}
