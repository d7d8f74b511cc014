package runtime

import (
	"errors"

	"xol/machine"
	"xol/patch"
)

// hits handles what happens at probes: hits, the instructions that they execute, their
// events and faults.
type hits struct {
	watchpoints
	host     host
	handling int    // the CPU whose event is being handled, or noCPU
	failed   error  // what it cannot recover from: it runs no more
	failing  int    // the CPU that did it: until its call is given up
	starts   uint64 // that there have been
}

// enter makes h the hit that the CPU handles.
func (r *hits) enter(cpu int, status Status, s *site) {
	r.cpus[cpu].current = hit{status, s}
	r.observe(Transition{CPU: cpu, Addr: s.addr, Status: status})
}

// leave ends the hit that the CPU handles: what was going on before goes on.
func (r *hits) leave(cpu int) {
	c := &r.cpus[cpu]
	s := c.current.site
	if c.current.status == Reenter {
		c.current, c.outer = c.outer, hit{}
	} else {
		c.current = hit{}
	}
	if s != nil {
		r.observe(Transition{CPU: cpu, Addr: s.addr, Status: c.current.status})
	}
}

// breakpoint handles the breakpoint of a site.
func (r *hits) breakpoint(cpu int, s *site) error {
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	regs.SetReg(r.file.PC, s.addr)
	if page, denied := r.unfetchable(s); denied {
		return r.fault(cpu, machine.Event{Kind: machine.EventFault, Addr: s.addr, Access: machine.AccessFetch, Page: page})
	}
	if c.current.status != Idle {
		return r.reenter(cpu, s)
	}
	r.enter(cpu, HitActive, s)
	context := r.context(cpu, 0, s.addr)
	redirected := r.runPre(context, s)
	if r.failed != nil {
		c.current = hit{}
		return r.failed
	}
	if redirected {
		r.observe(Transition{CPU: cpu, Addr: s.addr, Status: HitActive, Method: MethodRedirect})
		regs.SetReg(r.file.PC, context.Regs.ip)
		r.leave(cpu)
		return nil
	}
	return r.executePresent(cpu, s, false)
}

// context returns what the handlers of a hit are called with. The registers are
// in the CPU where frame is 0.
func (r *hits) context(cpu int, frame, ip uint64) *Context {
	c := &r.cpus[cpu].context
	*c = Context{CPU: cpu, host: r.host, memory: program{r.m}, Regs: Regs{target: &r.target, returns: &r.tasks, number: cpu, cpu: r.m.CPU(cpu), frame: frame, ip: ip}}
	return c
}

// reenter handles a hit inside a hit: the instruction is executed, and nothing
// else happens.
func (r *hits) reenter(cpu int, s *site) error {
	c := &r.cpus[cpu]
	if c.current.status == Reenter {
		r.fail(cpu, &ReenterError{CPU: cpu, Addr: s.addr})
		return r.failed
	}
	r.miss(cpu, s, false)
	return r.executeHit(cpu, s, true)
}

func (r *hits) miss(cpu int, s *site, jump bool) {
	r.missProbes(s, s.probes)
	r.observe(Transition{CPU: cpu, Addr: s.addr, Status: r.cpus[cpu].current.status, Missed: true, Jump: jump})
}

// missProbes counts a hit that handlers of a site's probes do not see. A counter
// without handlers has no need to: as a jump, it counts such hits in the guest.
func (r *hits) missProbes(s *site, probes []*probe) {
	for _, p := range probes {
		switch {
		case !p.enabled:
		case p.onlyCounts():
			r.counters.add(&r.target, p)
		default:
			p.missed++
		}
	}
}

// runPre runs the handlers before the instruction, in the order of
// registration, until one of them redirects.
func (r *hits) runPre(c *Context, s *site) (redirected bool) {
	control := &r.cpus[c.CPU]
	probes := s.probes
	for i, p := range probes {
		if !p.enabled || c.inDetour(s) && p.needsBreakpoint() {
			continue
		}
		if p.Counter {
			r.counters.add(&r.target, p)
		} else {
			p.hits++
		}
		if p.PreHandler == nil {
			continue
		}
		c.probe, c.Link, control.running, control.rest = p, p.link, p, probes[i+1:]
		redirected = p.PreHandler(c) && !c.inDetour(s)
		control.running, control.rest = nil, nil
		if redirected {
			return true
		}
	}
	return false
}

// executeHit has the instruction of a hit executed, as the site is prepared for
// it.
func (r *hits) executeHit(cpu int, s *site, again bool) error {
	regs := r.m.CPU(cpu)
	if w, pc := r.wayBack(s); w != MethodNone {
		r.observe(Transition{CPU: cpu, Addr: s.addr, Status: r.cpus[cpu].current.status, Method: w})
		regs.SetReg(r.file.PC, pc)
		if !again {
			r.leave(cpu)
		}
		return nil
	}
	if again {
		c := &r.cpus[cpu]
		c.outer = c.current
		r.enter(cpu, Reenter, s)
	} else {
		r.enter(cpu, HitSS, s)
	}
	return r.executeCopy(cpu, s)
}

// executeCopy has the copy that an exception follows executed.
func (r *hits) executeCopy(cpu int, s *site) error {
	regs := r.m.CPU(cpu)
	if s.expanded {
		regs.SaveCore(*r.cpus[cpu].savedRegisters())
	}
	if s.step.size == 0 || r.mustInterpret(s) {
		return r.interpret(cpu, s)
	}
	r.observe(Transition{CPU: cpu, Addr: s.addr, Status: r.cpus[cpu].current.status, Method: MethodStep})
	regs.SetReg(r.file.PC, s.step.addr)
	if r.opt.Stepping == StepTrap {
		r.cpus[cpu].stepping = true
		return regs.SingleStep(true)
	}
	return nil
}

// wayBack returns how and where a hit is executed by code that ends in a jump
// back; WayNone where there is none.
func (r *hits) wayBack(s *site) (w Method, pc uint64) {
	switch {
	case r.mustInterpret(s):
	case s.jump.hits == patch.HitDetour && s.jump.detour.size != 0:
		return MethodDetour, s.jump.detour.moved
	case s.boosting == boostReady && !s.hasPost() && s.state != siteGone:
		return MethodBoost, s.boosted.addr
	}
	return MethodNone, 0
}

// interpret does what the instruction does.
func (r *hits) interpret(cpu int, s *site) error {
	r.observe(Transition{CPU: cpu, Addr: s.addr, Status: r.cpus[cpu].current.status, Method: MethodEmulate})
	done, err := r.interpretWatched(cpu, &s.inst)
	if err == nil && !done {
		err = errNoExecution
	}
	var access *accessError
	if errors.As(err, &access) {
		ev := machine.Event{Kind: machine.EventFault, Addr: s.addr, Access: access.access, Page: access.page}
		return r.faultAt(cpu, ev, &copyPlace{s, s.inst, s.addr})
	}
	if err != nil {
		return err
	}
	return r.complete(cpu)
}

// mustInterpret reports whether the accesses of a site's copy are not those of its
// instruction, and watched.
func (r *hits) mustInterpret(s *site) bool { return r.watches.active > 0 && s.calls }

// complete goes on after the instruction of a hit: its copy has been executed,
// or it was interpreted.
func (r *hits) complete(cpu int) error {
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	s := c.current.site
	if s.step.size != 0 && regs.Reg(r.file.PC) == s.step.stop() {
		regs.SetReg(r.file.PC, s.inst.Next())
	}
	if s.scratch != noScratch {
		regs.SetReg(s.scratch, r.file.Word(*c.savedRegisters(), s.scratch))
	}
	if s.boosting == boostUnknown && len(s.probes) > 0 && s.state != siteGone && s.state != siteReplaced {
		r.prepareBoost(s)
	}
	if c.current.status == HitSS && s.hasPost() {
		r.enter(cpu, HitSSDone, s)
		r.runPost(cpu, s)
	}
	r.leave(cpu)
	return nil
}

func (r *hits) runPost(cpu int, s *site) {
	regs := r.m.CPU(cpu)
	c := Context{CPU: cpu, host: r.host, memory: program{r.m}, Regs: Regs{target: &r.target, returns: &r.tasks, number: cpu, cpu: regs, ip: regs.Reg(r.file.PC)}}
	r.runPostHandlers(&c, s)
	if c.Regs.moved {
		regs.SetReg(r.file.PC, c.Regs.ip)
	}
}

func (r *hits) runPostHandlers(c *Context, s *site) {
	running := &r.cpus[c.CPU].running
	for _, p := range s.probes {
		if p.enabled && p.PostHandler != nil {
			c.probe, c.Link, *running = p, p.link, p
			p.PostHandler(c)
			*running = nil
		}
	}
}

// stepped handles the exception after a single-stepped instruction of a copy.
func (r *hits) stepped(cpu int) error {
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	s := c.current.site
	if pc := regs.Reg(r.file.PC); s.step.holds(pc) && pc != s.step.stop() {
		return nil // the copy has several instructions
	}
	if err := r.stopStepping(cpu); err != nil {
		return err
	}
	if err := r.isa.FixStep(&s.inst, regs, r.m); err != nil {
		return err
	}
	return r.complete(cpu)
}

// jumped handles the call that a detour buffer makes.
func (r *hits) jumped(cpu int) error {
	regs := r.m.CPU(cpu)
	s := r.sites[regs.Reg(r.convention.Args[0])]
	frame := regs.Reg(r.convention.Args[1])
	return r.jumpHit(cpu, s, frame)
}

// jumpHit runs the handlers of a hit that came through a jump. The registers are in
// the CPU where frame is 0.
func (r *hits) jumpHit(cpu int, s *site, frame uint64) error {
	if s == nil || !s.state.armed() {
		return nil // closed or disarmed while this CPU was in the buffer
	}
	if r.cpus[cpu].current.status != Idle {
		r.miss(cpu, s, true)
		return nil
	}
	r.cpus[cpu].current = hit{HitActive, s}
	r.observe(Transition{CPU: cpu, Addr: s.addr, Status: HitActive, Jump: true})
	c := r.context(cpu, frame, s.addr)
	c.jumped, c.Regs.fixed = true, true
	r.runPre(c, s)
	r.leave(cpu)
	return r.failed
}

// unfetchable returns the page of the end of a site's instruction where the program
// may not execute that, so that the instruction faults instead of being hit.
func (r *hits) unfetchable(s *site) (page uint64, denied bool) {
	if !s.crosses(int(s.inst.Len)) {
		return 0, false
	}
	page = (s.inst.Next() - 1) &^ (pageSize - 1)
	return page, r.m.Perm(page)&machine.PermExec == 0
}

// fail has nothing run any more because of what a CPU does, until that is given up.
func (r *hits) fail(cpu int, err error) { r.failed, r.failing = err, cpu }

// hostCalled handles the calls that detour buffers and the stubs of patchable
// entries make.
func (r *hits) hostCalled(cpu int, addr uint64) (err error) {
	outer := r.handling
	r.handling = cpu
	if addr == r.stubs.entryCall() {
		err = r.entered(cpu)
	} else {
		err = r.jumped(cpu)
	}
	r.handling = outer
	return err
}

// quick handles breakpoints that no other event follows: those of sites whose copy
// leads back by itself.
func (r *hits) quick(cpu int, addr uint64) (handled bool, err error) {
	s := r.sites[addr]
	if s == nil || !s.state.armed() {
		return false, nil
	}
	if w, _ := r.wayBack(s); w == MethodNone {
		return false, nil
	}
	if _, denied := r.unfetchable(s); denied {
		return false, nil
	}
	outer := r.handling
	r.handling = cpu
	err = r.breakpoint(cpu, s)
	r.handling = outer
	return true, err
}

// usable returns machine.ErrClosed where the machine has been closed.
func (r *hits) usable() error {
	if r.closed {
		return machine.ErrClosed
	}
	return nil
}

func (r *hits) taskOf(cpu int) uint64 { return r.cpus[cpu].task.number }
