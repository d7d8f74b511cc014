package ppc64

import (
	"xol/decode"
	"xol/machine"
)

const wordBLR = 0x4e800020

// ReturnInst returns the bytes of the instruction that returns from a function.
func (a ISA) ReturnInst() []byte { return a.words(wordBLR) }

func (a ISA) words(words ...uint32) []byte {
	var code []byte
	for _, w := range words {
		code = emitter{littleEndian: a.LittleEndian}.put(code, w)
	}
	return code
}

// FixStep repairs what an instruction that was executed under the single-step
// exception did otherwise than without: on ppc64 there is nothing that programs
// see.
func (ISA) FixStep(*decode.Inst, machine.Registers, machine.Memory) error { return nil }

// TrampolinePrefix returns what stands in front of the return instruction that
// functions with return probes return to: nothing, since the return address is in
// a register.
func (ISA) TrampolinePrefix() []byte { return nil }

// TrampolineEntry returns nothing: the return instruction is one word.
func (ISA) TrampolineEntry() (code []byte, offset uint64) { return nil, 0 }

// OnlyLandingPad reports whether inst does nothing but to be where indirect
// branches may land: there is nothing of the kind.
func (ISA) OnlyLandingPad(*decode.Inst) bool { return false }
