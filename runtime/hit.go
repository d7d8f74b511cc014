package runtime

import (
	"errors"

	"xol/machine"
	"xol/patch"
)

// Status is what a CPU does with a probe, as the control block of kprobes has
// it.
type Status uint8

const (
	// Idle: no probe is being handled.
	Idle Status = iota
	// HitActive: the handlers in front of the instruction run.
	HitActive
	// HitSS: the instruction is executed out of line.
	HitSS
	// Reenter: an instruction that was hit inside a hit is executed out of
	// line, without handlers.
	Reenter
	// HitSSDone: the handlers behind the instruction run.
	HitSSDone
)

var statusNames = [...]string{"idle", "active", "ss", "reenter", "ssdone"}

// String returns the status in a word.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "invalid"
}

// Way is how the instruction of a hit is executed.
type Way uint8

const (
	WayNone     Way = iota
	WayStep         // in the slot, up to an exception behind it
	WayBoost        // in the slot, which jumps back
	WayEmulate      // interpreted
	WayDetour       // among the moved instructions of a detour buffer
	WayRedirect     // not at all: a handler changed the instruction pointer
)

var wayNames = [...]string{"", "step", "boost", "emulate", "detour", "redirect"}

// String returns the way in a word; empty for none.
func (w Way) String() string {
	if int(w) < len(wayNames) {
		return wayNames[w]
	}
	return "invalid"
}

// Transition is a change of a CPU's state.
type Transition struct {
	CPU    int
	Addr   uint64 // of the probe
	Status Status
	Way    Way  // where the execution of the instruction begins
	Missed bool // the hit was inside another one, and no handler runs
	Jump   bool // the hit came through a jump, not a breakpoint
}

// control is the control block of a CPU.
type control struct {
	task     *task
	activity          // of the task
	switched bool     // the CPU has not run since it was given the task
	running  *probe   // whose handler runs
	rest     []*probe // of the hit, that come after the running one
	asking   bool     // a fault handler runs
	left     []uint64 // program counters of what nested calls have interrupted
	context  Context  // of the handlers that run: there are none inside them
}

// hit is a hit that is being handled.
type hit struct {
	status Status
	site   *site
}

// inFront returns where the registers in front of the instruction of a hit are
// kept, for a copy that changes some before it can fault.
func (c *activity) inFront() *machine.State {
	if c.current.status == Reenter {
		return &c.front[1]
	}
	return &c.front[0]
}

func (r *Runtime) observe(t Transition) {
	if r.opt.Observe != nil {
		r.opt.Observe(t)
	}
}

// enter makes h the hit that the CPU handles.
func (r *Runtime) enter(cpu int, status Status, s *site) {
	r.cpus[cpu].current = hit{status, s}
	r.observe(Transition{CPU: cpu, Addr: s.addr, Status: status})
}

// leave ends the hit that the CPU handles: what was going on before goes on.
func (r *Runtime) leave(cpu int) {
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
func (r *Runtime) breakpoint(cpu int, s *site) error {
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
		r.observe(Transition{CPU: cpu, Addr: s.addr, Status: HitActive, Way: WayRedirect})
		regs.SetReg(r.file.PC, context.Regs.ip)
		r.leave(cpu)
		return nil
	}
	return r.executePresent(cpu, s, false)
}

// context returns what the handlers of a hit are called with. The registers are
// in the CPU where frame is 0.
func (r *Runtime) context(cpu int, frame, ip uint64) *Context {
	c := &r.cpus[cpu].context
	*c = Context{CPU: cpu, r: r, Regs: Regs{r: r, number: cpu, cpu: r.m.CPU(cpu), frame: frame, ip: ip}}
	return c
}

// reenter handles a hit inside a hit: the instruction is executed, and nothing
// else happens.
func (r *Runtime) reenter(cpu int, s *site) error {
	c := &r.cpus[cpu]
	if c.current.status == Reenter {
		r.fail(cpu, &ReenterError{CPU: cpu, Addr: s.addr})
		return r.failed
	}
	r.miss(cpu, s, false)
	return r.executeHit(cpu, s, true)
}

func (r *Runtime) miss(cpu int, s *site, jump bool) {
	r.missProbes(s, s.probes)
	r.observe(Transition{CPU: cpu, Addr: s.addr, Status: r.cpus[cpu].current.status, Missed: true, Jump: jump})
}

// missProbes counts a hit that handlers of a site's probes do not see. A counter
// without handlers has no need to: as a jump, it counts such hits in the guest.
func (r *Runtime) missProbes(s *site, probes []*probe) {
	for _, p := range probes {
		switch {
		case !p.enabled || !p.at(s):
		case p.onlyCounts():
			r.counters.add(r, p)
		default:
			p.missed++
		}
	}
}

// runPre runs the handlers in front of the instruction, in the order of
// registration, until one of them redirects.
func (r *Runtime) runPre(c *Context, s *site) (redirected bool) {
	control := &r.cpus[c.CPU]
	probes := s.probes
	for i, p := range probes {
		if !p.enabled || !p.at(s) || c.inDetour(s) && p.needsBreakpoint() {
			continue
		}
		if p.Counter {
			r.counters.add(r, p)
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

// inDetour reports whether the hit came through a jump. Probes that allow none were
// not there then.
func (c *Context) inDetour(s *site) bool { return c.jumped && !s.entry }

// executeHit has the instruction of a hit executed, as the site is prepared for
// it.
func (r *Runtime) executeHit(cpu int, s *site, again bool) error {
	regs := r.m.CPU(cpu)
	if w, pc := r.wayBack(s); w != WayNone {
		r.observe(Transition{CPU: cpu, Addr: s.addr, Status: r.cpus[cpu].current.status, Way: w})
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
func (r *Runtime) executeCopy(cpu int, s *site) error {
	regs := r.m.CPU(cpu)
	if s.several {
		regs.SaveCore(*r.cpus[cpu].inFront())
	}
	if s.step.size == 0 || r.mustInterpret(s) {
		return r.interpret(cpu, s)
	}
	r.observe(Transition{CPU: cpu, Addr: s.addr, Status: r.cpus[cpu].current.status, Way: WayStep})
	regs.SetReg(r.file.PC, s.step.addr)
	if r.opt.Stepping == StepTrap {
		r.cpus[cpu].stepping = true
		return regs.SingleStep(true)
	}
	return nil
}

// wayBack returns how and where a hit is executed by code that ends in a jump
// back; WayNone where there is none.
func (r *Runtime) wayBack(s *site) (w Way, pc uint64) {
	switch {
	case r.mustInterpret(s):
	case s.jump.hits == patch.HitDetour && s.jump.detour.size != 0:
		return WayDetour, s.jump.detour.moved
	case s.boosting == boostReady && !s.hasPost() && !s.gone:
		return WayBoost, s.boosted.addr
	}
	return WayNone, 0
}

// interpret does what the instruction does.
func (r *Runtime) interpret(cpu int, s *site) error {
	r.observe(Transition{CPU: cpu, Addr: s.addr, Status: r.cpus[cpu].current.status, Way: WayEmulate})
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
func (r *Runtime) mustInterpret(s *site) bool { return r.watches.active > 0 && s.calls }

// complete goes on behind the instruction of a hit: its copy has been executed,
// or it was interpreted.
func (r *Runtime) complete(cpu int) error {
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	s := c.current.site
	if s.step.size != 0 && regs.Reg(r.file.PC) == s.step.stop() {
		regs.SetReg(r.file.PC, s.inst.Next())
	}
	if s.scratch != noScratch {
		regs.SetReg(s.scratch, r.file.Word(*c.inFront(), s.scratch))
	}
	if s.boosting == boostUnknown && len(s.probes) > 0 && !s.gone && !s.closed {
		r.prepareBoost(s)
	}
	if c.current.status == HitSS && s.hasPost() {
		r.enter(cpu, HitSSDone, s)
		r.runPost(cpu, s)
	}
	r.leave(cpu)
	return nil
}

func (r *Runtime) runPost(cpu int, s *site) {
	regs := r.m.CPU(cpu)
	c := Context{CPU: cpu, r: r, Regs: Regs{r: r, number: cpu, cpu: regs, ip: regs.Reg(r.file.PC)}}
	r.runPostHandlers(&c, s)
	if c.Regs.moved {
		regs.SetReg(r.file.PC, c.Regs.ip)
	}
}

func (r *Runtime) runPostHandlers(c *Context, s *site) {
	running := &r.cpus[c.CPU].running
	for _, p := range s.probes {
		if p.enabled && p.PostHandler != nil && p.at(s) {
			c.probe, c.Link, *running = p, p.link, p
			p.PostHandler(c)
			*running = nil
		}
	}
}

// stepped handles the exception behind a single-stepped instruction of a copy.
func (r *Runtime) stepped(cpu int) error {
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

func (r *Runtime) stopStepping(cpu int) error {
	if !r.cpus[cpu].stepping {
		return nil
	}
	r.cpus[cpu].stepping = false
	return r.m.CPU(cpu).SingleStep(false)
}

// jumped handles the call that a detour buffer makes.
func (r *Runtime) jumped(cpu int) error {
	regs := r.m.CPU(cpu)
	s := r.sites[regs.Reg(r.convention.Args[0])]
	frame := regs.Reg(r.convention.Args[1])
	return r.jumpHit(cpu, s, frame)
}

// jumpHit runs the handlers of a hit that came through a jump. The registers are in
// the CPU where frame is 0.
func (r *Runtime) jumpHit(cpu int, s *site, frame uint64) error {
	if s == nil || !s.armed {
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
