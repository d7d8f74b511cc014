//go:build unicorn

package guest

import (
	"fmt"

	"xol/machine"
)

// target is what is true of one ISA only.
type target struct {
	// reset holds values that registers have at the start, besides those that
	// the File says are always set.
	reset map[int]uint64
	// learn finds out, once, where the engine keeps what has no register; nil where
	// that is nothing. It may change memory at testText.
	learn func(c *CPU) error
	// trap makes an event of the engine's number of an exception, and sets the
	// registers to what the architecture gives the handler.
	trap func(c *CPU, number uint32) machine.Event
	// breakpoint is the engine's number of a breakpoint; trapped returns the
	// breakpoint's address, and sets the program counter as trap does.
	breakpoint uint32
	trapped    func(c *CPU) uint64
	// syscall does what an instruction that the engine leaves to its user does to
	// registers; nil where there is none.
	syscall func(c *CPU)
	// step switches the exception after every instruction on or off.
	step func(c *CPU, on bool) error
	// test is code for a start-up test.
	test testCode
}

var targets = map[string]target{
	"amd64":   amd64Target,
	"arm64":   arm64Target,
	"ppc64":   ppc64Target,
	"ppc64le": ppc64Target,
}

// Call has the CPU call f with integer arguments when it runs next; it is then
// Running until the function returns. The function's frame is below the stack
// pointer: a call in the middle of something else disturbs nothing but the
// registers.
func (c *CPU) Call(f machine.Function, args ...uint64) error {
	if err := c.m.usable(); err != nil {
		return err
	}
	k := c.m.convention
	if len(args) > len(k.Args) {
		return fmt.Errorf("guest: %d arguments, want %d at most", len(args), len(k.Args))
	}
	for i, v := range args {
		c.SetReg(k.Args[i], v)
	}
	sp := (c.Reg(c.m.File.SP)-k.RedZone-k.Frame)&^15 - k.Misalignment
	if k.Link >= 0 {
		c.SetReg(k.Link, ExitAddress)
	} else if err := c.m.WriteWord(sp, ExitAddress); err != nil {
		return err
	}
	c.SetReg(c.m.File.SP, sp)
	if k.Entry >= 0 {
		c.SetReg(k.Entry, f.Entry)
	}
	if k.TOC >= 0 && f.TOC != 0 {
		c.SetReg(k.TOC, f.TOC)
		c.SetReg(k.Env, f.Env)
	}
	c.engine.Jumped(ExitAddress)
	c.watch.called = c.watch.left()
	c.SetPC(f.Entry)
	c.running = true
	return nil
}

// GiveUp ends the call that the CPU was called with, wherever it is: the CPU is not
// running, no exception follows its instructions, and no watched access is left to be
// reported. The program counter is where it is when a function has returned; other
// registers are left as they are.
func (c *CPU) GiveUp() error {
	if err := c.m.usable(); err != nil {
		return err
	}
	if c.own.stepping {
		if err := c.SingleStep(false); err != nil {
			return err
		}
	}
	c.watch.also, c.watch.pass, c.watch.called = nil, false, false
	c.SetPC(ExitAddress)
	c.running = false
	return nil
}

// Result returns what a function that has returned returned.
func (c *CPU) Result() uint64 { return c.Reg(c.m.convention.Result) }

// CallAndRun calls f, runs this CPU alone until it returns, and returns the
// result. Any other event, or the end of the budget, is an *UnexpectedError.
// The stack pointer is what it was.
func (c *CPU) CallAndRun(budget int, f machine.Function, args ...uint64) (uint64, error) {
	sp := c.Reg(c.m.File.SP)
	if err := c.Call(f, args...); err != nil {
		return 0, err
	}
	ev, err := c.Run(budget)
	if err != nil {
		return 0, err
	}
	if ev.Kind != machine.EventReturned {
		return 0, c.m.Unexpected(ev)
	}
	c.SetReg(c.m.File.SP, sp)
	return c.Result(), nil
}

// SingleStep has a machine.EventStep follow every instruction, by the exception that
// the ISA has for it, or no longer. It returns ErrNoStep where there is none.
func (c *CPU) SingleStep(on bool) error {
	if err := c.m.usable(); err != nil {
		return err
	}
	if err := c.m.target.step(c, on); err != nil {
		return err
	}
	c.own.stepping = on
	return nil
}
