package ppc64

import (
	"fmt"

	"xol/machine"
)

// Indices of registers in Registers. The general ones have their hardware
// numbers; R0 + 1 is the stack pointer.
const (
	R0    = 0
	PC    = 32
	LR    = 33
	CTR   = 34
	CR    = 35
	XER   = 36
	FPSCR = 37
	TAR   = 38
	VSR0  = 39 // to VSR0 + 63
)

// Bits of control registers that programs set [Power ISA 3.1, Book I, 3.2.2 and
// 4.2.2].
const (
	freeXER   = 0xe00c007f    // SO, OV, CA, OV32, CA32 and the length of strings
	freeFPSCR = 0x7_0000_00fb // both rounding modes, which exceptions are enabled
)

// Registers returns the register file that user code sees. A VSX register is
// two doublewords, the first in lower memory.
func Registers() *machine.File {
	var regs []machine.Register
	for i := range 32 {
		kind := machine.General
		if i == 1 {
			kind = machine.StackPointer
		}
		regs = append(regs, machine.Register{Name: fmt.Sprintf("r%d", i), Kind: kind, Size: 8})
	}
	regs = append(regs,
		machine.Register{Name: "pc", Kind: machine.PC, Size: 8},
		machine.Register{Name: "lr", Size: 8},
		machine.Register{Name: "ctr", Size: 8},
		machine.Register{Name: "cr", Kind: machine.Flags, Size: 8, Free: 0xffffffff},
		machine.Register{Name: "xer", Kind: machine.Control, Size: 8, Free: freeXER},
		machine.Register{Name: "fpscr", Kind: machine.Control, Size: 8, Free: freeFPSCR},
		machine.Register{Name: "tar", Size: 8},
	)
	for i := range 64 {
		regs = append(regs, machine.Register{Name: fmt.Sprintf("vs%d", i), Kind: machine.Vector, Size: 16})
	}
	return machine.NewFile(regs)
}
