package runtime

// called handles a call of a probed function: it will return to the trampoline.
func (r *hits) called(p *returnProbe, c *Context) {
	t, sp := r.cpus[c.CPU].task, c.Regs.SP()
	to := c.Regs.returnAddress(sp)
	r.skip(t, sp)
	if to != r.returns.addr {
		r.dropReplaced(t, sp, c.probe)
	} else {
		t.revive(sp)
	}
	in := r.take(t, p, !c.called)
	if in == nil {
		p.missed++
		return
	}
	in.probe, in.to, in.sp, in.skipped, in.first = p, to, sp, false, !c.called
	in.start = r.cpus[c.CPU].started
	if p.EntryHandler != nil && r.skips(c, in, r.realReturn(t, sp, to)) || !in.live() {
		in.recycle()
		return
	}
	c.called = true
	t.insert(in)
	c.Regs.setReturnAddress(sp, r.returns.addr)
}

// skips asks the EntryHandler whether a call is left alone. One that panics has the
// call missed.
func (r *hits) skips(c *Context, in *instance, to uint64) (skip bool) {
	answered, fixed := false, c.Regs.fixed
	c.Regs.fixed = true
	defer func() {
		c.Regs.fixed = fixed
		if !answered {
			in.probe.missed++
			in.recycle()
		}
	}()
	skip = in.probe.EntryHandler(r.returnContext(c, in, to))
	answered = true
	return skip
}

// returnContext returns what a handler is called with.
func (r *hits) returnContext(c *Context, in *instance, to uint64) *ReturnContext {
	rc := &r.returns.contexts[c.CPU]
	*rc = ReturnContext{Context: c, Function: in.probe.function, Data: in.data, To: to}
	return rc
}

// returned handles a return to the trampoline: the handlers of all calls that
// end here run, and the real caller is returned to.
func (r *hits) returned(c *Context) bool {
	r.endCalls(c, c.Regs.SP(), 0)
	return false
}

// returnedFurther handles a return to an address near the trampoline: the function
// has added to its return address.
func (r *hits) returnedFurther(cpu int, addr uint64) error {
	sp := r.m.CPU(cpu).Reg(r.file.SP)
	if r.convention.Link < 0 {
		sp -= wordSize // of the address that is no longer on the stack
	}
	r.enter(cpu, HitActive, r.returns.site)
	c := r.context(cpu, 0, addr)
	r.endCalls(c, sp, addr-r.returns.addr)
	r.m.CPU(cpu).SetReg(r.file.PC, c.Regs.ip)
	r.leave(cpu)
	return r.failed
}

// endCalls has the calls return that were made with a stack pointer, to an address
// further than that they came from.
func (r *hits) endCalls(c *Context, sp, further uint64) {
	t := r.cpus[c.CPU].task
	r.skip(t, sp)
	to, ok := r.callerOf(t, sp)
	if !ok {
		r.failed = &ReturnError{CPU: c.CPU, SP: sp}
		return
	}
	to += further
	c.Regs.setReturnAddress(sp, to)
	c.Regs.ip, c.Regs.fixed = to, true
	r.runReturns(c, t, sp, to)
}

// runReturns ends the calls with a stack pointer that return together, the latest
// first. Where a handler panics, those that it leaves are missed.
func (r *hits) runReturns(c *Context, t *task, sp, to uint64) {
	var in *instance
	defer func() {
		for in != nil {
			chained := in.to == r.returns.addr
			in.recycle()
			if in = nil; chained {
				in = t.pop(sp)
			}
			if in != nil && in.live() {
				in.probe.missed++
			}
		}
	}()
	for chained := true; chained; {
		if in = t.pop(sp); in == nil {
			break // a handler has ended the task
		}
		if in.live() {
			r.runReturn(c, in, to)
		}
		chained = in.to == r.returns.addr
		in.recycle()
		in = nil
	}
}

func (r *hits) runReturn(c *Context, in *instance, to uint64) {
	p := in.probe
	p.hits++
	if p.Handler == nil {
		return
	}
	c.probe, c.Link = in.probe.entry, in.probe.entry.link
	p.Handler(r.returnContext(c, in, to))
}
