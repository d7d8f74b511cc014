package arm64

import (
	"xol/decode"
	"xol/machine"
)

// scratchBytes bounds what moved code saves below the stack pointer. The
// procedure call standard knows no red zone [AAPCS64, 6.2.2].
const scratchBytes = 16

// StackScratch returns the addresses below the stack pointer sp that moved
// code may overwrite.
func (ISA) StackScratch(sp uint64) (lo, hi uint64) { return sp - scratchBytes, sp }

// Registers returns the register file that user code sees.
func (ISA) Registers() *machine.File { return Registers() }

// UndefinedFlags returns 0: on arm64 every instruction defines the flags that
// it writes.
func (ISA) UndefinedFlags(*decode.Inst) uint64 { return 0 }

// Prepare does nothing: no instruction repeats itself, none traps on an
// operand.
func (ISA) Prepare(*decode.Inst, *machine.File, machine.State) {}

// DeadRegisters returns the general registers that inst neither reads nor
// writes. A far jump needs one.
func (ISA) DeadRegisters(inst *decode.Inst) uint32 {
	const general = 1<<linkRegister - 1
	return general &^ operandsOf(inst)
}

// Reads of system registers: mrs with op0 = 3.
const (
	mrsMask  = 0xfff00000
	mrsValue = 0xd5300000
)

// steadyRegisters are the system registers, as op0 op1 CRn CRm op2 in bits 5-19
// of the instruction, whose values are a program's own.
var steadyRegisters = [...]uint32{
	0x5a10, // NZCV
	0x5a20, // FPCR
	0x5a21, // FPSR
	0x5e82, // TPIDR_EL0
}

// Volatile reports whether the result of inst varies from run to run or from
// CPU to CPU: clocks, random numbers, identification.
func Volatile(inst *decode.Inst) bool {
	word := uint32(inst.Detail)
	if word&mrsMask != mrsValue {
		return false
	}
	register := word >> 5 & 0x7fff
	for _, steady := range steadyRegisters {
		if register == steady {
			return false
		}
	}
	return true
}
