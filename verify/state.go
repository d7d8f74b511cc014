package verify

import (
	"encoding/binary"

	"xol/machine"
)

// RandomState fills s with values that depend only on seed and make sense
// as operands: pointers, small numbers, edges of types.
func RandomState(f *machine.File, s machine.State, seed uint64) {
	r := seed
	next := func() uint64 {
		r += 0x9e3779b97f4a7c15
		return machine.Mix(r)
	}
	clear(s)
	for i := range f.Registers {
		reg := &f.Registers[i]
		switch reg.Kind {
		case machine.General:
			f.SetWord(s, i, machine.Interesting(next()))
		case machine.StackPointer:
			f.SetWord(s, i, stackPointer(next()))
		case machine.Flags, machine.Control:
			f.SetWord(s, i, next()&reg.Free|reg.Set)
		case machine.Vector:
			value := f.Bytes(s, i)
			for j := 0; j < len(value); j += 8 {
				binary.LittleEndian.PutUint64(value[j:], vectorWord(next(), next()))
			}
		case machine.Float:
			binary.LittleEndian.PutUint64(f.Bytes(s, i), next()|1<<63)
			binary.LittleEndian.PutUint16(f.Bytes(s, i)[8:], floatExponent(next()))
		case machine.Mask:
			f.SetWord(s, i, next())
		}
	}
}

// stackPointer returns an address of a stack: aligned as calls leave it, or
// off by 8.
func stackPointer(r uint64) uint64 {
	return r&(1<<machine.PointerBits-1)&^15 | 1<<(machine.PointerBits+1) | r>>60&1<<3
}

// vectorWord returns a value that also makes sense as floating-point numbers.
func vectorWord(r, bits uint64) uint64 {
	switch r & 7 {
	case 0:
		return machine.Interesting(bits)
	case 1, 2: // a double of moderate size
		return bits&0x800fffffffffffff | (0x3e0+bits>>56&0x3f)<<52
	case 3, 4: // two floats of moderate size
		return bits&0x807fffff807fffff | 0x3f000000_3e800000
	}
	return bits
}

// floatExponent returns sign and exponent of an x87 number of moderate size.
func floatExponent(r uint64) uint16 { return 0x3ff0 + uint16(r&31) | uint16(r>>5&1)<<15 }
