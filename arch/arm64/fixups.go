package arm64

import (
	"xol/decode"
	"xol/machine"
)

// FixStep repairs what an instruction that was executed under a single-step
// exception did otherwise than without: on arm64 there is nothing.
func (ISA) FixStep(*decode.Inst, machine.Registers, machine.Memory) error { return nil }

// FixEvent repairs what an instruction that has raised an event after itself put
// into registers of its own address: on arm64 there is nothing.
func (ISA) FixEvent(*decode.Inst, machine.Registers) {}

// AfterSyscall does nothing: system calls leave no address.
func (ISA) AfterSyscall(machine.Registers, uint64) {}

// Rebase returns false: moved forms have the address in the fields of several
// instructions.
func (ISA) Rebase([]byte, uint64, uint64) bool { return false }
