package ppc64

import (
	"xol/detour"
	"xol/machine"
)

// Unwind finds the registers that code began with; see detour.Unwinder.
func (a ISA) Unwind(code []byte, r machine.Registers, m machine.Memory) error {
	s := detour.NewStack(stackPointer)
	for ; len(code) >= wordSize; code = code[wordSize:] {
		followStack(s, a.word(code))
	}
	return s.Restore(stackPointer, r, m)
}

// specialRegisters are those that reach memory by way of a general one.
var specialRegisters = map[uint32]int{sprCTR: CTR, sprLR: LR, sprXER: XER}

// followStack has s follow one instruction of what templates and moved forms are
// made of.
func followStack(s *detour.Stack, word uint32) {
	const (
		displacement = 0xffff
		data         = 31 << 21
		base         = stackPointer << 16
		oneField     = 1 << 20
		fieldMask    = 0xff << 12
	)
	r, disp := int(word>>21&31), int64(int16(word))
	switch rest := word &^ uint32(data); {
	case word&^uint32(displacement) == insnADDI|stackPointer<<21|base:
		s.Move(disp)
	case word&^uint32(displacement&^3) == insnSTDU|stackPointer<<21|base:
		s.Move(disp &^ 3)
	case rest&^uint32(displacement&^3) == insnSTD|base:
		s.Save(r, disp)
	case rest == insnMFCR:
		s.Hold(r, CR, 1<<32-1)
	case rest&^uint32(fieldMask) == insnMFCR|oneField:
		s.Hold(r, CR, uint64(fieldBits(word>>12&0xff)))
	case rest&^uint32(sprField(1<<10-1)) == insnMFSPR:
		if special, ok := specialRegisters[sprOf(word)]; ok {
			s.Hold(r, special, 1<<64-1)
		}
	}
}

// fieldBits returns the bits of CR that a mask of fields names.
func fieldBits(mask uint32) (bits uint32) {
	for i := range 8 {
		if mask>>i&1 != 0 {
			bits |= 0xf << (4 * i)
		}
	}
	return bits
}
