package runtime

// entered handles the call that the stub makes for a site. Execution goes on
// after the site, unless a handler has it go elsewhere.
func (r *hits) entered(cpu int) error {
	regs := r.m.CPU(cpu)
	frame := regs.Reg(r.convention.Args[1])
	ip := frame + uint64(r.field(r.file.PC).Offset)
	addr, err := r.m.ReadWord(ip)
	if err != nil {
		return err
	}
	next := addr + r.entrySize()
	s := r.sites[addr]
	if err := r.m.WriteWord(ip, next); err != nil || s == nil || !s.entry {
		return err
	}
	if to := r.runEntry(cpu, s, frame, next); to != next {
		return r.m.WriteWord(ip, to)
	}
	return r.failed
}

// runEntry runs the handlers of a site, and returns where execution goes on.
func (r *hits) runEntry(cpu int, s *site, frame, next uint64) uint64 {
	if r.cpus[cpu].current.status != Idle {
		r.miss(cpu, s, true)
		return next
	}
	r.cpus[cpu].current = hit{HitActive, s}
	r.observe(Transition{CPU: cpu, Addr: s.addr, Status: HitActive, Jump: true})
	c := r.context(cpu, frame, s.addr)
	if r.runPre(c, s) {
		r.observe(Transition{CPU: cpu, Addr: s.addr, Status: HitActive, Method: MethodRedirect})
		next = c.Regs.ip
	} else if s.hasPost() {
		c.Regs.ip, c.Regs.moved = next, false
		r.enter(cpu, HitSSDone, s)
		r.runPostHandlers(c, s)
		next = c.Regs.ip
	}
	r.leave(cpu)
	return next
}
