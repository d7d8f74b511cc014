//go:build unicorn

package guest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"xol/arch/amd64"
	"xol/machine"
)

// Exceptions of amd64 [SDM vol. 3, 6.3.1].
const (
	amd64Debug       = 1
	amd64Breakpoint  = 3
	amd64DivideError = 0
	amd64DoubleFault = 8
)

var amd64Target = target{
	reset: map[int]uint64{amd64.FTW: 0xffff}, // no x87 register in use
	learn: amd64Learn,
	trap:  amd64Trap,

	breakpoint: amd64Breakpoint,
	trapped:    amd64Trapped,

	syscall: amd64Syscall,
	step:    amd64Step,
	test: testCode{
		code:       "48894608" + "ff5610" + "cc" + "488b07" + "c3", // mov [rsi+8],rax; call [rsi+16]; int3; mov rax,[rdi]; ret
		called:     "48ffc0" + "c3",                                // inc rax; ret
		patched:    "48ffc8" + "c3",                                // dec rax; ret
		breakpoint: 7,
		fault:      8,
		pc:         1, // int3 is after itself when it traps
		value:      amd64.RAX,
		data:       amd64.RSI,
		nowhere:    amd64.RDI,
	},
}

func amd64Trap(c *CPU, number uint32) machine.Event {
	pc := c.PC()
	switch number {
	case amd64Debug:
		return machine.Event{Kind: machine.EventStep, Addr: pc}
	case amd64Breakpoint:
		return machine.Event{Kind: machine.EventBreakpoint, Addr: amd64Trapped(c)}
	}
	c.forgetException()
	return machine.Event{Kind: machine.EventException, Addr: pc, Number: uint64(number)}
}

// noException stands for no pending exception in the engine.
const noException = 1<<32 - 1

// amd64Learn finds where the engine keeps the pending exception. It never sees a
// handler return, so that it would take another exception for a double fault,
// and stop at a third. Two divisions by zero show the place.
func amd64Learn(c *CPU) error {
	if err := c.m.Write(testText, []byte{0x48, 0xf7, 0xf7}); err != nil { // div rdi
		return err
	}
	var contexts [3][]byte
	for i := range contexts {
		context, err := c.engine.Context()
		if err != nil {
			return err
		}
		contexts[i] = slices.Clone(context)
		if i == len(contexts)-1 {
			break
		}
		if err := c.Call(machine.Function{Entry: testText}, 0); err != nil {
			return err
		}
		if err := c.testRun(machine.EventException, testText); err != nil {
			return err
		}
	}
	return c.findPending(contexts)
}

// findPending finds the word that was noException, then the number of a division
// by zero, then that of a double fault.
func (c *CPU) findPending(contexts [3][]byte) error {
	found := 0
	for at := 0; at+4 <= len(contexts[0]); at++ {
		if binary.LittleEndian.Uint32(contexts[0][at:]) == noException &&
			binary.LittleEndian.Uint32(contexts[1][at:]) == amd64DivideError &&
			binary.LittleEndian.Uint32(contexts[2][at:]) == amd64DoubleFault {
			c.pending = at
			found++
		}
	}
	if found != 1 {
		return fmt.Errorf("%d places may hold the engine's pending exception", found)
	}
	c.forgetException()
	return nil
}

// forgetException has the engine take the last exception for handled.
func (c *CPU) forgetException() {
	if c.pending == 0 {
		return
	}
	context, err := c.engine.Context()
	if err != nil {
		c.err = err
		return
	}
	binary.LittleEndian.PutUint32(context[c.pending:], noException)
	c.err = c.engine.SetContext()
}

// amd64Trapped tells int3, which is one byte, from int 3, which is two.
func amd64Trapped(c *CPU) uint64 {
	pc := c.PC()
	var b [2]byte
	if c.m.ReadText(b[:], pc-2) == nil && b == [2]byte{0xcd, amd64Breakpoint} {
		return pc - 2
	}
	return pc - 1
}

// amd64Syscall keeps the address after syscall, and the flags [SDM vol. 2, SYSCALL].
func amd64Syscall(c *CPU) {
	c.SetReg(amd64.RCX, c.PC())
	c.SetReg(amd64.R11, c.Reg(amd64.RFLAGS))
}

func amd64Step(c *CPU, on bool) error {
	flags := c.Reg(amd64.RFLAGS) &^ amd64.FlagTF
	if on {
		flags |= amd64.FlagTF
	}
	c.SetReg(amd64.RFLAGS, flags)
	return nil
}
