package amd64

import (
	"xol/decode"
	"xol/machine"
)

// ReturnInst returns the bytes of the instruction that returns from a function.
func (ISA) ReturnInst() []byte { return []byte{0xc3} }

// FixStep repairs what an instruction that was executed under the single-step
// exception did otherwise than without: pushf pushes the trap flag
// [SDM vol. 2, PUSHF; Linux, arch/x86/kernel/kprobes/core.c].
func (ISA) FixStep(inst *decode.Inst, r machine.Registers, m machine.Memory) error {
	if !(opcodeOf{MapOneByte, 0x9c, -1}).matches(DetailOf(inst)) {
		return nil
	}
	var flags [2]byte
	sp := r.Reg(RSP)
	if err := m.Read(flags[:], sp); err != nil {
		return err
	}
	flags[1] &^= FlagTF >> 8
	return m.Write(sp, flags[:])
}

// TrampolinePrefix returns what stands in front of the return instruction that
// functions with return probes return to: it makes room for the address that
// their own return has taken from the stack.
func (ISA) TrampolinePrefix() []byte { return []byte{0x6a, 0x00} }

// TrampolineEntry returns a jump back to the prefix whose distance is an int3.
func (ISA) TrampolineEntry() (code []byte, offset uint64) {
	const jump, int3 = 0xeb, 0xcc
	return []byte{jump, int3}, 0x100 - int3 - 2
}

// OnlyLandingPad reports whether inst does nothing but to be where indirect
// branches may land: endbr64.
func (ISA) OnlyLandingPad(inst *decode.Inst) bool { return inst.Has(decode.LandingPad) }
