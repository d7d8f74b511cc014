package runtime

import (
	"context"
	"errors"

	"xol/machine"
)

// mayStart returns why the machine cannot be run now.
func (r *Runtime) mayStart() error {
	switch {
	case r.closed:
		return machine.ErrClosed
	case r.handling != noCPU:
		return ErrInHandler
	}
	return nil
}

// mayUse returns why a CPU cannot be run now.
func (r *Runtime) mayUse(cpu int) error {
	if cpu < 0 || cpu >= len(r.cpus) {
		return ErrNoCPU
	}
	return r.mayStart()
}

// mayChange returns why a CPU cannot be made to do something else now: it runs the
// handler that asks for it.
func (r *Runtime) mayChange(cpu int) error {
	if err := r.mayUse(cpu); err != ErrInHandler || r.handling == cpu {
		return err
	}
	return nil
}

// Start has a CPU call f; Run carries it out. The stack pointer is what it was
// when f has returned. What the CPU was started with before, and has not returned,
// is given up. A handler may start another CPU than its own.
func (r *Runtime) Start(cpu int, f machine.Function, args ...uint64) error {
	if err := r.mayChange(cpu); err != nil {
		return err
	}
	if err := r.giveUp(cpu); err != nil {
		return err
	}
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	if c.before == nil {
		c.before = r.file.NewState()
	}
	regs.Save(c.before)
	r.placed(cpu, f.Entry)
	if err := regs.Call(f, args...); err != nil {
		return err
	}
	r.starts++
	c.started, c.stack = r.starts, r.file.Word(c.before, r.file.SP)
	return nil
}

// GiveUp ends the call that a CPU was started with, wherever it is: in the program, in
// a copy of an instruction, or in a detour buffer. No hit and no call of a function
// with a return probe stays open. The registers, the program counter excepted, are
// those that the CPU was started with; the memory stays as it is: a lock that the call
// has taken remains taken. Where nothing runs any more because of the call (see
// ReenterError), all runs again. A CPU that no call is going on on is left alone.
//
// A handler may give up what other CPUs do. On its own CPU that is ErrInHandler: it
// ends the context of the run instead.
func (r *Runtime) GiveUp(cpu int) error {
	if err := r.mayChange(cpu); err != nil {
		return err
	}
	if r.failing == cpu {
		r.failed, r.failing = nil, noCPU
	}
	return r.giveUp(cpu)
}

func (r *Runtime) giveUp(cpu int) error {
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	c.waiting = waiting{}
	if c.started == 0 && c.current.status == Idle {
		return nil
	}
	if err := errors.Join(r.stopStepping(cpu), regs.GiveUp()); err != nil {
		return err
	}
	for c.current.status != Idle {
		r.leave(cpu)
	}
	c.running, c.rest, c.panicked = nil, nil, false
	pc := regs.Reg(r.file.PC)
	if c.started != 0 {
		c.task.giveUp(c.started)
		c.started = 0
		regs.Restore(c.before)
		regs.SetReg(r.file.PC, pc)
	}
	r.placed(cpu, pc)
	return nil
}

// Result returns what the function that a CPU was started with returned.
func (r *Runtime) Result(cpu int) uint64 {
	if cpu < 0 || cpu >= len(r.cpus) {
		return 0
	}
	return r.m.CPU(cpu).Result()
}

// Call calls f on a CPU, with all that happens to it, while the others wait,
// and returns the result. Its errors are those of Run. Where its context ends, the
// call is given up; after an event that Call has no answer to, Run goes on with it.
func (r *Runtime) Call(ctx context.Context, cpu int, f machine.Function, args ...uint64) (uint64, error) {
	const budget = 1 << 40
	if err := r.mayUse(cpu); err != nil {
		return 0, err
	}
	defer r.under(ctx)()
	if err := r.Start(cpu, f, args...); err != nil {
		return 0, err
	}
	err := r.runAlone(cpu, budget, 0)
	switch {
	case err == nil:
		return r.Result(cpu), nil
	case ctx.Err() != nil || errors.Is(err, ErrBudget):
		err = errors.Join(err, r.giveUp(cpu))
	}
	return 0, err
}

// abandon deals with hits that CPUs handle though no handler runs any more: one has
// panicked. The probes whose handlers did not come to run are missed. A hit before
// the instruction stays, for the instruction to be executed, unless a detour
// buffer does that.
func (r *Runtime) abandon() {
	if _, program := r.failed.(*ReturnError); program {
		r.failed = nil
	}
	r.handling = noCPU
	for i := range r.cpus {
		c := &r.cpus[i]
		c.running, c.asking = nil, false
		if s := c.current.status; s != HitActive && s != HitSSDone || c.panicked {
			continue
		}
		s := c.current.site
		r.missProbes(s, c.rest)
		c.rest = nil
		if c.current.status == HitActive && !c.context.jumped && !s.entry {
			c.panicked = true
		} else {
			r.leave(i)
		}
	}
}

// closing takes note that the machine is about to be closed: its probes are gone,
// and what has been counted in its memory is kept.
func (r *Runtime) closing() {
	for _, p := range r.probes() {
		p.hits, p.counter = r.counters.of(&r.target, p), 0
		p.gone, p.enabled = true, false
	}
	for _, s := range r.byAddress() {
		_ = s.on(siteUnload)
		r.gone = append(r.gone, s)
		delete(r.sites, s.addr)
	}
	for _, p := range r.watches.probes {
		p.enabled, p.active = false, false
	}
	r.closed, r.failed, r.failing = true, machine.ErrClosed, noCPU
}
