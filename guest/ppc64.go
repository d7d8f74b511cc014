//go:build unicorn

package guest

import (
	"xol/arch/ppc64"
	"xol/internal/unicorn"
	"xol/machine"
)

// The engine's numbers of exceptions on ppc64.
const (
	ppc64Trap        = 6
	ppc64SystemCall  = 8
	ppc64Trace       = 68
	ppc64Unavailable = 95
	ppc64Illegal     = 96
)

// msrSE has a trace exception follow every instruction.
const msrSE = 1 << 10

var ppc64Target = target{
	learn: func(c *CPU) error { return c.learnReservation("7c6018a8" + "4e800020") }, // ldarx r3,0,r3; blr
	trap:  ppc64TrapEvent,

	breakpoint: ppc64Trap,
	trapped:    ppc64Trapped,

	step: ppc64Step,
	test: testCode{
		// std r5,8(r4); ld r6,16(r4); mflr r7; mtctr r6; bctrl; trap; ld r5,0(r3); mtlr r7; blr
		code: "f8a40008" + "e8c40010" + "7ce802a6" + "7cc903a6" + "4e800421" + "7fe00008" +
			"e8a30000" + "7ce803a6" + "4e800020",
		called:     "38a50001" + "4e800020", // addi r5,r5,1; blr
		patched:    "38a5ffff" + "4e800020", // addi r5,r5,-1; blr
		breakpoint: 20,
		fault:      24,
		words:      true,
		value:      ppc64.R0 + 5,
		data:       ppc64.R0 + 4,
		nowhere:    ppc64.R0 + 3,
	},
}

// ppc64Trapped takes back the 4 that the engine adds.
func ppc64Trapped(c *CPU) uint64 {
	c.SetPC(c.PC() - 4)
	return c.PC()
}

// ppc64TrapEvent takes back the 4 that the engine adds to the address of what
// caused the exception.
func ppc64TrapEvent(c *CPU, number uint32) machine.Event {
	switch number {
	case ppc64Trap, ppc64Unavailable, ppc64Illegal, ppc64Trace:
		c.SetPC(c.PC() - 4)
	}
	pc := c.PC()
	switch number {
	case ppc64Trap:
		return machine.Event{Kind: machine.EventBreakpoint, Addr: pc}
	case ppc64Unavailable, ppc64Illegal:
		return machine.Event{Kind: machine.EventUndefined, Addr: pc}
	case ppc64Trace:
		return machine.Event{Kind: machine.EventStep, Addr: pc}
	case ppc64SystemCall:
		return machine.Event{Kind: machine.EventSyscall, Addr: pc}
	}
	return machine.Event{Kind: machine.EventException, Addr: pc, Number: uint64(number)}
}

func ppc64Step(c *CPU, on bool) error {
	regs := unicorn.NewRegisters([]int32{unicorn.PPCMSR})
	defer regs.Free()
	*regs.Word(0) = c.m.model.Constants[0].Value
	if on {
		*regs.Word(0) |= msrSE
	}
	return c.engine.Write(regs)
}
