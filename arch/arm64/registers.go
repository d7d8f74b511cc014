package arm64

import (
	"fmt"

	"xol/machine"
)

// Indices of registers in Registers. The general ones have their hardware
// numbers; X0 + 30 is the link register.
const (
	X0    = 0
	SP    = 31
	PC    = 32
	NZCV  = 33
	FPCR  = 34
	FPSR  = 35
	TPIDR = 36
	V0    = 37 // to V0 + 31
)

// conditionFlags are N, Z, C and V.
const conditionFlags = 0xf << 28

// Registers returns the register file that user code sees.
func Registers() *machine.File {
	var regs []machine.Register
	for i := range 31 {
		regs = append(regs, machine.Register{Name: fmt.Sprintf("x%d", i), Size: 8})
	}
	regs = append(regs,
		machine.Register{Name: "sp", Kind: machine.StackPointer, Size: 8},
		machine.Register{Name: "pc", Kind: machine.PC, Size: 8},
		machine.Register{Name: "nzcv", Kind: machine.Flags, Size: 8, Free: conditionFlags},
		machine.Register{Name: "fpcr", Kind: machine.Control, Size: 8},
		machine.Register{Name: "fpsr", Kind: machine.Control, Size: 8},
		machine.Register{Name: "tpidr_el0", Kind: machine.Control, Size: 8},
	)
	for i := range 32 {
		regs = append(regs, machine.Register{Name: fmt.Sprintf("v%d", i), Kind: machine.Vector, Size: 16})
	}
	return machine.NewFile(regs)
}
