package runtime

// comeBack has a CPU that was about to execute old text at addr, in what was made of a
// site, execute what the program has there now.
func (r *hits) comeBack(cpu int, s *site, addr uint64) error {
	c := &r.cpus[cpu]
	at := r.originalOf(s, addr)
	if at != s.addr {
		r.m.CPU(cpu).SetReg(r.file.PC, at)
		return nil
	}
	if err := r.stopStepping(cpu); err != nil {
		return err
	}
	if c.current.site != s || !s.step.holds(addr) {
		return r.executePresent(cpu, s, c.current.status != Idle)
	}
	now := r.present(s)
	if now == nil {
		r.m.CPU(cpu).SetReg(r.file.PC, s.addr)
		r.leave(cpu)
		return nil
	}
	c.current.site = now
	return r.executeCopy(cpu, now)
}

// present returns the site that has taken the place of s, or s itself; nil where there
// is none.
func (r *hits) present(s *site) *site {
	if s.state != siteReplaced {
		return s
	}
	if now := r.sites[s.addr]; now != nil && now.origin == s.origin && now.state != siteLost {
		return now
	}
	return nil
}

// executePresent has the instruction at a site executed that is there now: a handler
// may have changed it.
func (r *hits) executePresent(cpu int, s *site, again bool) error {
	now := r.present(s)
	if now == nil {
		r.m.CPU(cpu).SetReg(r.file.PC, s.addr)
		if !again {
			r.leave(cpu)
		}
		return nil
	}
	if !again && r.cpus[cpu].current.site == s {
		r.cpus[cpu].current.site = now
	}
	return r.executeHit(cpu, now, again)
}

// landed has a CPU that has trapped inside a jump go on among the moved instructions.
func (r *hits) landed(cpu int, addr uint64) bool {
	for _, s := range r.covering(addr) {
		b := &s.jump.detour
		if b.size == 0 || !s.state.jumping() || !r.patchedAt(addr) {
			continue
		}
		for _, step := range b.steps[:len(b.steps)-1] {
			if s.addr+uint64(step.original) == addr {
				r.m.CPU(cpu).SetReg(r.file.PC, b.moved+uint64(step.moved))
				return true
			}
		}
	}
	return false
}
