package arm64

import (
	"encoding/binary"

	"xol/decode"
	"xol/machine"
)

const wordRET = 0xd65f03c0

// ReturnInst returns the bytes of the instruction that returns from a function.
func (ISA) ReturnInst() []byte { return binary.LittleEndian.AppendUint32(nil, wordRET) }

// CountCallback returns code that a detour buffer may call: it adds 1 to the
// 8-byte word that its first argument points to, atomically, and returns.
func (ISA) CountCallback() []byte {
	var code []byte
	for _, word := range [...]uint32{
		0xc85f7c02, // ldxr x2, [x0]
		0x91000442, // add x2, x2, #1
		0xc8037c02, // stxr w3, x2, [x0]
		0x35ffffa3, // cbnz w3, .-12
		wordRET,
	} {
		code = binary.LittleEndian.AppendUint32(code, word)
	}
	return code
}

// FixStep repairs what an instruction that was executed under a single-step
// exception did otherwise than without: on arm64 there is nothing.
func (ISA) FixStep(*decode.Inst, machine.Registers, machine.Memory) error { return nil }

// TrampolinePrefix returns what stands in front of the return instruction that
// functions with return probes return to: nothing, since the return address is in
// a register.
func (ISA) TrampolinePrefix() []byte { return nil }
