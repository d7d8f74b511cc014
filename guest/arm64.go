//go:build unicorn

package guest

import (
	"encoding/binary"
	"errors"

	"xol/arch/arm64"
	"xol/machine"
)

// ErrNoStep: the engine has no single-step exception on the ISA.
var ErrNoStep = errors.New("guest: no single-step exception")

// The engine's numbers of exceptions on arm64.
const (
	arm64Undefined  = 1
	arm64SVC        = 2
	arm64Breakpoint = 7
	arm64SMC        = 13
)

var arm64Target = target{
	learn: func(c *CPU) error { return c.learnReservation("007c5fc8" + "c0035fd6") }, // ldxr x0,[x0]; ret
	trap:  arm64Trap,

	breakpoint: arm64Breakpoint,
	trapped:    (*CPU).PC,

	step: func(*CPU, bool) error { return ErrNoStep },
	test: testCode{
		// str x2,[x1,#8]; ldr x3,[x1,#16]; mov x4,x30; blr x3; brk #0; ldr x2,[x0]; ret x4
		code:       "220400f9" + "230840f9" + "e4031eaa" + "60003fd6" + "000020d4" + "020040f9" + "80005fd6",
		called:     "42040091" + "c0035fd6", // add x2,x2,#1; ret
		patched:    "420400d1" + "c0035fd6", // sub x2,x2,#1; ret
		breakpoint: 16,
		fault:      20,
		value:      arm64.X0 + 2,
		data:       arm64.X0 + 1,
		nowhere:    arm64.X0,
	},
}

func arm64Trap(c *CPU, number uint32) machine.Event {
	pc := c.PC()
	switch number {
	case arm64Breakpoint:
		return machine.Event{Kind: machine.EventBreakpoint, Addr: pc, Number: arm64Immediate(c, pc)}
	case arm64Undefined:
		return machine.Event{Kind: machine.EventUndefined, Addr: pc}
	case arm64SVC, arm64SMC:
		return machine.Event{Kind: machine.EventSyscall, Addr: pc}
	}
	return machine.Event{Kind: machine.EventException, Addr: pc, Number: uint64(number)}
}

// arm64Immediate returns the immediate operand of the brk at pc, which the
// engine does not tell.
func arm64Immediate(c *CPU, pc uint64) uint64 {
	var b [4]byte
	if c.m.ReadText(b[:], pc) != nil {
		return 0
	}
	return uint64(binary.LittleEndian.Uint32(b[:]) >> 5 & 0xffff)
}
