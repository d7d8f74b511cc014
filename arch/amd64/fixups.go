package amd64

import (
	"encoding/binary"

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

// Rebase changes what is pushed as return address, or loaded as rcx after a system call;
// see arch.Prober.
func (a ISA) Rebase(code []byte, from, to uint64) bool {
	low, high := false, false
	for len(code) > 0 {
		rest := code
		inst, ok := a.next(&code)
		if !ok {
			return false
		}
		field := rest[:inst.Len]
		switch d := DetailOf(&inst); {
		case d.Map() != MapOneByte:
		case inst.Len == movabsSize && d.Opcode()&^7 == 0xb8:
			if field = field[2:]; binary.LittleEndian.Uint64(field) == from {
				binary.LittleEndian.PutUint64(field, to)
				low, high = true, true
			}
		case d.Opcode() == 0x68 || d.Opcode() == 0xc7: // push, or a store on the stack
			field = field[inst.Len-4:]
			switch v := binary.LittleEndian.Uint32(field); {
			case !low && v == uint32(from):
				binary.LittleEndian.PutUint32(field, uint32(to))
				low = true
			case low && !high && v == uint32(from>>32):
				binary.LittleEndian.PutUint32(field, uint32(to>>32))
				high = true
			}
		}
	}
	return low && (high || fitsSigned(from) && fitsSigned(to))
}
