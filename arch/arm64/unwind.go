package arm64

import (
	"encoding/binary"

	"xol/detour"
	"xol/machine"
)

// Unwind finds the registers that code began with; see detour.Unwinder.
func (ISA) Unwind(code []byte, r machine.Registers, m machine.Memory) error {
	s := detour.NewStack(SP)
	for ; len(code) >= wordSize; code = code[wordSize:] {
		followStack(s, binary.LittleEndian.Uint32(code))
	}
	return s.Restore(SP, r, m)
}

// Instructions with the stack pointer as base, besides those that emit.go names: what
// has to be left out of a word to recognise one.
const (
	insnSTPPre  = 0xa9800000
	insnLDPPost = 0xa8c00000

	fieldOf7  = 0x7f << 15
	fieldOf9  = 0x1ff << 12
	fieldOf12 = 0xfff << 10
	pairData  = 0x1f<<10 | 0x1f
	onStack   = zeroOrSP << 5
)

// followStack has s follow one instruction of what templates and moved forms are
// made of.
func followStack(s *detour.Stack, w uint32) {
	first, second := int(w&31), int(w>>10&31)
	by7 := int64(int32(w<<10)>>25) * slotSize
	by9 := int64(int32(w<<11) >> 23)
	by12 := int64(w >> 10 & 0xfff)
	switch {
	case w&^uint32(fieldOf12) == insnSUB|onStack|zeroOrSP:
		s.Move(-by12)
	case w&^uint32(fieldOf12) == insnADD|onStack|zeroOrSP:
		s.Move(by12)
	case w&^uint32(fieldOf7|pairData) == insnSTP|onStack:
		s.Save(first, by7)
		s.Save(second, by7+slotSize)
	case w&^uint32(fieldOf7|pairData) == insnSTPPre|onStack:
		s.Move(by7)
		s.Save(first, 0)
		s.Save(second, slotSize)
	case w&^uint32(fieldOf7|pairData) == insnLDPPost|onStack:
		s.Move(by7)
	case w&^uint32(fieldOf12|31) == insnSTR|onStack:
		s.Save(first, by12*slotSize)
	case w&^uint32(fieldOf9|31) == insnPush&^uint32(fieldOf9):
		s.Move(by9)
		s.Save(first, 0)
	case w&^uint32(fieldOf9|31) == insnPop&^uint32(fieldOf9):
		s.Move(by9)
	case w&^31 == insnMRS|sysNZCV:
		s.Hold(first, NZCV, conditionFlags)
	}
}
