package arm64

import (
	"encoding/binary"
)

const wordRET = 0xd65f03c0

// ReturnInst returns the bytes of the instruction that returns from a function.
func (ISA) ReturnInst() []byte { return binary.LittleEndian.AppendUint32(nil, wordRET) }

// TrampolinePrefix returns what stands before the return instruction that
// functions with return probes return to: nothing, since the return address is in
// a register.
func (ISA) TrampolinePrefix() []byte { return nil }

// TrampolineEntry returns nothing: the return instruction is one word.
func (ISA) TrampolineEntry() (code []byte, offset uint64) { return nil, 0 }
