package amd64

import (
	"xol/decode"
	"xol/machine"
)

// FixStep repairs what an instruction that was executed under the single-step
// exception did otherwise than without: pushf pushes the trap flag
// [SDM vol. 2, PUSHF; Linux, arch/x86/kernel/kprobes/core.c].
func (ISA) FixStep(inst *decode.Inst, r machine.Registers, m machine.Memory) error {
	if OpOf(inst) != OpPushFlags {
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

// FixEvent repairs what an instruction that has raised an event after itself put
// into registers that tell of its copy: syscall's rcx, and r11 where it was
// single-stepped [SDM vol. 2, SYSCALL].
func (ISA) FixEvent(inst *decode.Inst, r machine.Registers) {
	if OpOf(inst) == OpSyscall {
		r.SetReg(RCX, inst.Next())
		r.SetReg(R11, r.Reg(RFLAGS))
	}
}

// AfterSyscall has rcx hold the address of the next instruction, as syscall leaves it.
func (ISA) AfterSyscall(r machine.Registers, next uint64) { r.SetReg(RCX, next) }
