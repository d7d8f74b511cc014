//go:build unicorn

package guest

import (
	"xol/internal/unicorn"
	"xol/machine"
)

// OnBreakpoint has f called for every breakpoint, before it becomes an event
// (see machine.Machine).
func (m *Machine) OnBreakpoint(f func(cpu int, addr uint64) (handled bool, err error)) {
	m.onBreakpoint = f
}

// OnCall has f called for every call of an address in gates (see machine.Machine).
func (m *Machine) OnCall(gates machine.Range, f func(cpu int, addr uint64) error) error {
	if err := m.usable(); err != nil {
		return err
	}
	m.gates, m.onCall = gates, f
	for _, c := range m.CPUs {
		c.engine.HandleCalls(gates.Lo, gates.Hi, c.atCall)
	}
	return m.forget(gates.Lo, gates.Hi-gates.Lo)
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

// showEarly makes the registers that the engine shows those of the CPU. The others
// are read where they are asked for.
func (c *CPU) showEarly(early *[unicorn.Early]uint64) {
	c.core.loaded, c.core.changed, c.wide.loaded, c.wide.changed = false, false, false, false
	for i, r := range c.early {
		c.m.File.SetWord(c.state, r, early[i])
	}
}

// atBreakpoint lets the machine's user deal with a breakpoint while the engine
// is inside a run.
func (c *CPU) atBreakpoint(early *[unicorn.Early]uint64) bool {
	if c.m.onBreakpoint == nil {
		return false
	}
	c.showEarly(early)
	handled, err := c.m.onBreakpoint(c.Index, c.m.target.trapped(c))
	if err == nil {
		err = c.m.usable()
	}
	if !handled && err == nil {
		return false
	}
	if writeErr := c.writeBack(); err == nil {
		err = writeErr
	}
	early[0], c.failed = c.PC(), err
	return err == nil
}

// atCall lets the machine's user deal with a call. Where the engine was given
// registers it goes on after the gates, lest the call be made again.
func (c *CPU) atCall(early *[unicorn.Early]uint64) bool {
	gate := early[0]
	c.showEarly(early)
	c.passGate()
	err := c.m.onCall(c.Index, gate)
	if err == nil {
		err = c.m.usable()
	}
	wrote := c.core.changed || c.wide.changed
	if writeErr := c.writeBack(); err == nil {
		err = writeErr
	}
	if c.failed = err; wrote {
		early[0] = c.PC()
	}
	return err == nil
}

// passGate has a CPU at a gate execute the instruction after the gates instead, so
// that the call is not made again.
func (c *CPU) passGate() {
	if pc := c.PC(); c.m.gates.Holds(pc) {
		c.SetPC(pc + c.m.gates.Hi - c.m.gates.Lo)
	}
}

// writeBack gives the engine the registers that have been changed, but for the
// program counter where it is the only one.
func (c *CPU) writeBack() error {
	if err := c.m.usable(); err != nil {
		return err
	}
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
	if c.core.loaded || c.err != nil || c.m.closed {
		return
	}
	c.core.loaded = true
	pc := c.PC()
	if c.err = c.engine.Read(c.core.regs); c.err == nil {
		c.get(&c.core)
		c.SetPC(pc)
	}
}
