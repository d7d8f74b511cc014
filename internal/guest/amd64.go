//go:build unicorn

package guest

import (
	"xol/arch/amd64"
)

// Exceptions of amd64 [SDM vol. 3, 6.3.1].
const (
	amd64Debug      = 1
	amd64Breakpoint = 3
)

var amd64Target = target{
	args:    []int{amd64.RDI, amd64.RSI, amd64.RDX, amd64.RCX, amd64.R8, amd64.R9},
	result:  amd64.RAX,
	entry:   -1,
	link:    -1,
	redZone: 128,
	skew:    8,                                 // the return address
	reset:   map[int]uint64{amd64.FTW: 0xffff}, // no x87 register in use
	trap:    amd64Trap,
	step:    amd64Step,
	test: testCode{
		code:       "48894608" + "ff5610" + "cc" + "488b07" + "c3", // mov [rsi+8],rax; call [rsi+16]; int3; mov rax,[rdi]; ret
		called:     "48ffc0" + "c3",                                // inc rax; ret
		patched:    "48ffc8" + "c3",                                // dec rax; ret
		breakpoint: 7,
		fault:      8,
		pc:         1, // int3 is behind itself when it traps
		value:      amd64.RAX,
		data:       amd64.RSI,
		nowhere:    amd64.RDI,
	},
}

func amd64Trap(c *CPU, number uint32) Event {
	pc := c.PC()
	switch number {
	case amd64Debug:
		return Event{Kind: EventStep, Addr: pc}
	case amd64Breakpoint:
		return Event{Kind: EventBreakpoint, Addr: pc - amd64BreakpointLen(c, pc)}
	}
	return Event{Kind: EventException, Addr: pc, Number: uint64(number)}
}

// amd64BreakpointLen tells int3, which is one byte, from int 3, which is two.
func amd64BreakpointLen(c *CPU, pc uint64) uint64 {
	var b [2]byte
	if c.m.Read(b[:], pc-2) == nil && b == [2]byte{0xcd, amd64Breakpoint} {
		return 2
	}
	return 1
}

func amd64Step(c *CPU, on bool) error {
	flags := c.Reg(amd64.RFLAGS) &^ amd64.FlagTF
	if on {
		flags |= amd64.FlagTF
	}
	c.SetReg(amd64.RFLAGS, flags)
	return nil
}
