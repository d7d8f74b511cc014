//go:build unicorn

package guest

import (
	"xol/internal/unicorn"
)

// OnBreakpoint has f called for every breakpoint, before it becomes an event
// (see runtime.Trapper).
func (m *Machine) OnBreakpoint(f func(cpu int, addr uint64) (handled bool, err error)) {
	m.onBreakpoint = f
}

// handleBreakpoints has the engine show breakpoints while it runs, with the
// program counter and the first arguments of a function.
func (c *CPU) handleBreakpoints() {
	args := c.m.convention.Args
	c.early = [...]int{c.m.File.PC, args[0], args[1]}
	var ids [unicorn.Early]int32
	for _, l := range c.m.model.Links {
		for i, r := range c.early {
			if l.Index == r {
				ids[i] = l.ID
			}
		}
	}
	c.engine.HandleBreakpoints(c.m.target.breakpoint, ids, c.atBreakpoint)
}

func (c *CPU) isEarly(i int) bool {
	for _, r := range c.early {
		if r == i {
			return true
		}
	}
	return false
}

// atBreakpoint lets the machine's user deal with a breakpoint while the engine
// is inside a run. Registers are read where they are asked for.
func (c *CPU) atBreakpoint(early *[unicorn.Early]uint64) bool {
	if c.m.onBreakpoint == nil {
		return false
	}
	c.core.loaded, c.core.changed, c.wide.loaded, c.wide.changed = false, false, false, false
	for i, r := range c.early {
		c.m.File.SetWord(c.state, r, early[i])
	}
	handled, err := c.m.onBreakpoint(c.Index, c.m.target.trapped(c))
	if !handled && err == nil {
		return false
	}
	if writeErr := c.writeBack(); err == nil {
		err = writeErr
	}
	early[0], c.failed = c.PC(), err
	return err == nil
}

// writeBack gives the engine the registers that have been changed, but for the
// program counter where it is the only one.
func (c *CPU) writeBack() error {
	if c.wide.changed {
		if err := c.store(); err != nil {
			return err
		}
	}
	if !c.core.changed {
		return nil
	}
	c.put(&c.core)
	c.core.changed = false
	return c.engine.Write(c.core.regs)
}

// loadCore reads the general registers, where that has not been done since the
// breakpoint.
func (c *CPU) loadCore() {
	if c.core.loaded || c.err != nil {
		return
	}
	c.core.loaded = true
	pc := c.PC()
	if c.err = c.engine.Read(c.core.regs); c.err == nil {
		c.get(&c.core)
		c.SetPC(pc)
	}
}
