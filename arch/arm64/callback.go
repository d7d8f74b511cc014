package arm64

import (
	"encoding/binary"

	"xol/decode"
	"xol/machine"
)

const wordRET = 0xd65f03c0

// ReturnInst returns the bytes of the instruction that returns from a function.
func (ISA) ReturnInst() []byte { return binary.LittleEndian.AppendUint32(nil, wordRET) }

// FixStep repairs what an instruction that was executed under a single-step
// exception did otherwise than without: on arm64 there is nothing.
func (ISA) FixStep(*decode.Inst, machine.Registers, machine.Memory) error { return nil }

// TrampolinePrefix returns what stands in front of the return instruction that
// functions with return probes return to: nothing, since the return address is in
// a register.
func (ISA) TrampolinePrefix() []byte { return nil }

// TrampolineEntry returns nothing: the return instruction is one word.
func (ISA) TrampolineEntry() (code []byte, offset uint64) { return nil, 0 }

// OnlyLandingPad reports whether inst does nothing but to be where indirect
// branches may land: bti. What signs the return address lands as well, but a
// probe that replaces that address has to come before it.
func (ISA) OnlyLandingPad(inst *decode.Inst) bool {
	const (
		wordBTI    = 0xd503241f
		btiTargets = 0xc0
	)
	return OpOf(inst) == OpLandingPad && binary.LittleEndian.Uint32(inst.Raw[:])&^btiTargets == wordBTI
}
