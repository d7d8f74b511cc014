package ppc64

import (
	"xol/decode"
	"xol/machine"
)

// FixStep repairs what an instruction that was executed under the single-step
// exception did otherwise than without: on ppc64 there is nothing that programs
// see.
func (ISA) FixStep(*decode.Inst, machine.Registers, machine.Memory) error { return nil }

// FixEvent repairs what an instruction that has raised an event after itself put
// into registers of its own address: scv, of whose copy LR tells.
func (ISA) FixEvent(inst *decode.Inst, r machine.Registers) {
	if OpOf(inst) == OpSyscall && isSCV(inst) {
		r.SetReg(LR, inst.Next())
	}
}

// AfterSyscall does nothing: system calls leave no address.
func (ISA) AfterSyscall(machine.Registers, uint64) {}

// Rebase returns false: moved forms have the address in the fields of several
// instructions.
func (ISA) Rebase([]byte, uint64, uint64) bool { return false }
