package runtime

import (
	"xol/decode"
	"xol/machine"
)

// copyPlace is where a CPU is in code that stands for an instruction of the program.
type copyPlace struct {
	site  *site
	inst  decode.Inst
	start uint64 // of its copy; of the original where it was interpreted
}

// original returns the address in the program that stands for pc when the CPU has an
// event there: that of the instruction, or after it.
func (p *copyPlace) original(pc uint64, kind machine.EventKind) uint64 {
	if pc >= p.start+uint64(p.inst.Len) && (calls(&p.inst) || kind == machine.EventStep) {
		return p.inst.Next()
	}
	return p.inst.Addr
}

// placeOf returns the place of a program counter; ok is false where it is in no copy
// and not among the moved instructions of a detour buffer.
func (r *hits) placeOf(pc uint64) (p copyPlace, ok bool) {
	s := r.slots.owner(pc)
	switch {
	case s == nil:
		return p, false
	case s.step.holds(pc):
		return copyPlace{s, s.inst, s.step.addr}, true
	case s.boosted.holds(pc):
		return copyPlace{s, s.inst, s.boosted.addr}, true
	}
	b := s.jump.at(pc)
	if b == nil || pc < b.moved {
		return p, false
	}
	p = copyPlace{site: s}
	at := s.addr
	for _, step := range b.steps[:len(b.steps)-1] {
		if start := b.moved + uint64(step.moved); pc >= start {
			p.start, at = start, s.addr+uint64(step.original)
		}
	}
	return p, r.isa.Decode(&p.inst, s.original[at-s.addr:], at) == nil
}

// surface has a CPU show an event as it would without probes: at an original
// address, with the registers of the program, and with no jump in the way when the
// CPU goes on there. What is left of its hit waits until it does.
func (r *hits) surface(cpu int, ev machine.Event) (machine.Event, error) {
	regs := r.m.CPU(cpu)
	p, ok := r.placeOf(regs.Reg(r.file.PC))
	if !ok {
		return ev, nil
	}
	return r.surfaceAt(cpu, ev, &p)
}

func (r *hits) surfaceAt(cpu int, ev machine.Event, p *copyPlace) (machine.Event, error) {
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	pc := regs.Reg(r.file.PC)
	at := p.original(pc, ev.Kind)
	switch {
	case at != p.inst.Addr:
		r.isa.FixEvent(&p.inst, regs)
	case pc > p.start:
		r.rewind(cpu, p)
	}
	if ev.Addr = at; ev.Kind == machine.EventBreakpoint {
		ev.Addr = p.inst.Addr
	}
	if ev.Kind == machine.EventRefused {
		ev.Inst = p.inst
	}
	regs.SetReg(r.file.PC, at)
	if s := p.site; p.inst.Addr == s.addr && c.current.status != Reenter {
		after := at != s.addr
		if hit := c.current.site == s && c.current.status == HitSS; !after || hit && s.hasPost() {
			c.waiting = waiting{site: s, after: after, stack: regs.Reg(r.file.SP)}
		}
	}
	if c.current.site == p.site {
		r.leave(cpu)
	}
	return ev, r.uncover(at)
}

// resume goes on with what an event has left of a CPU's hit. The handlers before
// the instruction have run; the instruction is executed without them if the CPU is
// still there. Those after it run when the host, which answers the event, has left
// the CPU there.
func (r *hits) resume(cpu int) error {
	if err := r.takeUp(cpu); err != nil {
		return err
	}
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	outer := r.handling
	r.handling = cpu
	defer func() { r.handling = outer }()
	if err := r.finish(cpu); err != nil {
		return err
	}
	w := c.waiting
	if w.site == nil {
		return nil
	}
	c.waiting = waiting{}
	s, now := w.site, r.present(w.site)
	switch pc := regs.Reg(r.file.PC); {
	case s.state == siteGone || now == nil || !now.state.armed():
	case pc == s.inst.Next() && s.hasPost():
		r.enter(cpu, HitSSDone, s)
		r.runPost(cpu, s)
		r.leave(cpu)
	case pc == s.addr && !w.after && regs.Reg(r.file.SP) == w.stack:
		r.cpus[cpu].current = hit{HitSS, now}
		return r.executeHit(cpu, now, false)
	}
	return r.failed
}

// resumeAll is resume of every CPU.
func (r *hits) resumeAll() error {
	for cpu := range r.cpus {
		if err := r.resume(cpu); err != nil {
			return err
		}
	}
	return nil
}

// finish goes on with what a handler that panicked has left: the instruction of its hit,
// and the exception after it.
func (r *hits) finish(cpu int) error {
	c := &r.cpus[cpu]
	if c.panicked {
		c.panicked = false
		return r.executePresent(cpu, c.current.site, false)
	}
	executes := c.current.status == HitSS || c.current.status == Reenter
	if executes && r.opt.Stepping == StepTrap && !c.stepping && c.current.site.step.holds(r.m.CPU(cpu).Reg(r.file.PC)) {
		c.stepping = true
		return r.m.CPU(cpu).SingleStep(true)
	}
	return nil
}
