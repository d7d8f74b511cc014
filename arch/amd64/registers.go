package amd64

import (
	"fmt"

	"xol/machine"
)

// Indices of registers in Registers. The general ones have their hardware
// numbers.
const (
	RAX = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
	RIP
	RFLAGS
	FSBase
	GSBase
	MXCSR
	FCW
	FSW
	FTW
	ST0            // to ST0 + 7
	ZMM0 = ST0 + 8 // to ZMM0 + 31; the low bytes are ymm and xmm
	K0   = ZMM0 + 32
)

// Bits of RFLAGS.
const (
	FlagCF = 1 << 0
	FlagPF = 1 << 2
	FlagAF = 1 << 4
	FlagZF = 1 << 6
	FlagSF = 1 << 7
	FlagTF = 1 << 8
	FlagIF = 1 << 9
	FlagDF = 1 << 10
	FlagOF = 1 << 11

	statusFlags = FlagCF | FlagPF | FlagAF | FlagZF | FlagSF | FlagOF
)

// Registers returns the register file that user code sees.
func Registers() *machine.File {
	regs := []machine.Register{}
	for _, name := range []string{"rax", "rcx", "rdx", "rbx"} {
		regs = append(regs, machine.Register{Name: name, Size: 8})
	}
	regs = append(regs, machine.Register{Name: "rsp", Kind: machine.StackPointer, Size: 8})
	for _, name := range []string{"rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"} {
		regs = append(regs, machine.Register{Name: name, Size: 8})
	}
	regs = append(regs,
		machine.Register{Name: "rip", Kind: machine.PC, Size: 8},
		machine.Register{Name: "rflags", Kind: machine.Flags, Size: 8, Free: statusFlags | FlagDF, Set: FlagIF | 2},
		machine.Register{Name: "fs_base", Kind: machine.Control, Size: 8},
		machine.Register{Name: "gs_base", Kind: machine.Control, Size: 8},
		machine.Register{Name: "mxcsr", Kind: machine.Control, Size: 4, Set: 0x1f80},
		machine.Register{Name: "fcw", Kind: machine.Control, Size: 2, Set: 0x37f},
		machine.Register{Name: "fsw", Kind: machine.Control, Size: 2},
		machine.Register{Name: "ftw", Kind: machine.Control, Size: 2},
	)
	numbered := func(prefix string, n int, kind machine.Kind, size int) {
		for i := range n {
			regs = append(regs, machine.Register{Name: fmt.Sprintf("%s%d", prefix, i), Kind: kind, Size: size})
		}
	}
	numbered("st", 8, machine.Float, 10)
	numbered("zmm", 32, machine.Vector, 64)
	numbered("k", 8, machine.Mask, 8)
	return machine.NewFile(regs)
}
