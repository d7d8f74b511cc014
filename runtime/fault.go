package runtime

import "slices"

// fault handles a fault of the program. One of a probed instruction is first
// shown to the probes' fault handlers, then one in a function that a handler calls
// to that of the handler's probe. Then it continues where the exception table says,
// then ends the run: with the registers as they were in front of the
// instruction.
func (r *Runtime) fault(cpu int, ev Event) error {
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	if err := r.stopStepping(cpu); err != nil {
		return err
	}
	pc := regs.Reg(r.file.PC)
	s := r.slots.owner(pc)
	if s == nil && c.current.site != nil && pc == c.current.site.addr {
		s = c.current.site // it was interpreted
	}
	if s != nil && s.several && c.current.site == s && s.step.holds(pc) {
		regs.RestoreCore(*c.inFront())
		pc = s.step.addr
		regs.SetReg(r.file.PC, pc)
	}
	addr := pc
	if s != nil {
		addr = r.originalOf(s, pc)
	}
	f := Fault{Addr: addr, Page: ev.Page, Access: ev.Access, InHandler: c.running != nil}
	if s != nil && addr == s.addr && r.handleFault(cpu, s, &f) || c.running != nil && r.ask(cpu, c.running, &f) {
		return r.retry(cpu, s, pc)
	}
	if r.failed != nil {
		return r.failed
	}
	if s != nil && c.current.site == s {
		r.leave(cpu)
	}
	regs.SetReg(r.file.PC, addr)
	if fixup, ok := r.fixup(addr); ok {
		regs.SetReg(r.file.PC, fixup)
		return nil
	}
	return &FaultError{CPU: cpu, Fault: f}
}

// handleFault asks the fault handlers of a site.
func (r *Runtime) handleFault(cpu int, s *site, f *Fault) bool {
	return slices.ContainsFunc(s.probes, func(p *Probe) bool { return p.enabled && r.ask(cpu, p, f) })
}

// ask calls the fault handler of a probe, where it has one.
func (r *Runtime) ask(cpu int, p *Probe, f *Fault) bool {
	c := Context{Probe: p, CPU: cpu, r: r, Regs: Regs{r: r, number: cpu, cpu: r.m.CPU(cpu), ip: f.Addr}}
	return c.handle(f)
}

// handle calls the probe's fault handler, where it has one. Faults that it causes
// itself are no handler's.
func (c *Context) handle(f *Fault) bool {
	if c.Probe.FaultHandler == nil {
		return false
	}
	running := &c.r.cpus[c.CPU].running
	was := *running
	*running = nil
	handled := c.Probe.FaultHandler(c, f)
	*running = was
	return handled
}

// retry executes the instruction of a fault that has been handled once more.
func (r *Runtime) retry(cpu int, s *site, pc uint64) error {
	if s == nil {
		return nil
	}
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	if pc == s.addr {
		return r.interpret(cpu, s)
	}
	if r.opt.Stepping == StepTrap && c.current.site == s {
		c.stepping = true
		return regs.SingleStep(true)
	}
	return nil
}

// fixup returns where a fault of the instruction at addr continues.
func (r *Runtime) fixup(addr uint64) (uint64, bool) {
	if im := r.imageAt(addr); im != nil {
		to, ok := im.fixups[addr]
		return to, ok
	}
	return 0, false
}

// originalOf returns the address of the instruction that the code at pc, in a
// copy or detour buffer of s, stands for.
func (r *Runtime) originalOf(s *site, pc uint64) uint64 {
	b := s.jump.at(pc)
	if b == nil || pc < b.moved {
		return s.addr
	}
	addr := s.addr
	for _, step := range b.steps {
		if pc >= b.moved+uint64(step.moved) {
			addr = s.addr + uint64(step.original)
		}
	}
	return addr
}
