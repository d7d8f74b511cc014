package runtime

import (
	"cmp"
	"context"
	"errors"
	"xol/machine"
)

// Notifier is asked about a breakpoint that is no probe's, with the CPU at it.
// It returns true where it has dealt with it, and set the program counter.
type Notifier func(cpu int, regs machine.CPU, ev machine.Event) (handled bool)

// Notify adds a notifier after those that there are.
func (r *Runtime) Notify(n Notifier) { r.notifiers = append(r.notifiers, n) }

// ErrBudget: the program was still running when its budget was used up.
var ErrBudget = errors.New("runtime: still running")

// Memory returns the machine's memory, whatever the program may do with it.
func (r *Runtime) Memory() machine.Memory { return r.m }

// Run has all started CPUs take turns until they have returned, and the
// optimizer its passes. It returns ErrBudget where budget instructions do not
// suffice, and the error of ctx where that ends, after which it can be called
// again; a *FaultError, *ReenterError or *StopError where a CPU cannot go on, and
// ErrInHandler where a handler calls it. What is not to go on is given up (see GiveUp).
//
// After a *FaultError or *StopError the CPU is as it would be without probes: the
// address and the registers are those of the program. The caller may answer the event,
// by memory, registers or another program counter, and call Run again. A probed
// instruction is then executed, or taken for executed where the program counter is
// after it: PreHandlers have run, once for each executed instruction, and
// PostHandlers run when it has been. If the CPU goes elsewhere, as to the handler of a
// signal, and comes back later, the instruction is hit anew, as in Linux.
func (r *Runtime) Run(ctx context.Context, budget int) error {
	if err := r.mayStart(); err != nil {
		return err
	}
	defer r.under(ctx)()
	if err := r.resumeAll(); err != nil {
		return err
	}
	for r.running() {
		if err := r.mayRun(); err != nil {
			return err
		}
		if budget <= 0 {
			return ErrBudget
		}
		slice := min(budget, r.opt.Pass)
		cpu, ev, err := r.m.Run(slice)
		switch {
		case err != nil:
			return err
		case cpu < 0:
			err = r.spend(&budget, slice)
		default:
			if _, err = r.handle(cpu, ev); err == nil {
				err = r.spend(&budget, eventCost)
			}
		}
		if err != nil {
			return err
		}
	}
	if r.closed {
		return machine.ErrClosed
	}
	return nil
}

// under makes ctx the context of the run that is going on, until what it returns is
// called.
func (r *Runtime) under(ctx context.Context) (restore func()) {
	outer := r.ctx
	r.ctx = ctx
	return func() {
		r.ctx = outer
		r.abandon()
		r.stopped()
	}
}

// mayRun returns why the program does not go on.
func (r *Runtime) mayRun() error { return cmp.Or(r.failed, r.ctx.Err()) }

// eventCost is what an event counts for, in instructions.
const eventCost = 16

// spend takes instructions from a budget, and has the optimizer make a pass when
// it is due.
func (r *Runtime) spend(budget *int, instructions int) error {
	*budget -= instructions
	if r.due -= instructions; r.due > 0 || r.depth > 0 {
		return nil
	}
	r.due = r.opt.Pass
	return r.pass()
}

func (r *Runtime) running() bool {
	for i := range r.cpus {
		if r.m.CPU(i).Running() {
			return true
		}
	}
	return false
}

// runAlone runs one CPU until the function it was called with returns, or until
// it comes to the breakpoint at end, where that is not 0.
func (r *Runtime) runAlone(cpu, budget int, end uint64) error {
	c := r.m.CPU(cpu)
	if err := r.resume(cpu); err != nil {
		return err
	}
	for budget > 0 {
		slice := min(budget, r.opt.Pass)
		if err := r.mayRun(); err != nil {
			return err
		}
		ev, err := c.Run(slice)
		if err != nil {
			return err
		}
		if ev.Kind == machine.EventBudget {
			if err := r.spend(&budget, slice); err != nil {
				return err
			}
			continue
		}
		if end != 0 && ev.Kind == machine.EventBreakpoint && ev.Addr == end {
			return nil
		}
		returned, err := r.handle(cpu, ev)
		if err != nil || returned {
			return err
		}
		if err := r.spend(&budget, eventCost); err != nil {
			return err
		}
	}
	return ErrBudget
}

// nestedBudget is how many instructions a function may take that is called
// inside a hit.
const nestedBudget = 1 << 30

// nest has a CPU do something else, until what it returns is called: then it is
// where it was. What is not done then is given up.
func (r *Runtime) nest(cpu int) (restore func(done bool)) {
	c := r.m.CPU(cpu)
	saved := r.file.NewState()
	c.Save(saved)
	control, wasRunning := &r.cpus[cpu], c.Running()
	current, outer, running, left := control.current, control.outer, control.running, control.waiting
	panicked, started, t := control.panicked, control.started, control.task
	control.waiting, control.panicked = waiting{}, false
	r.starts++
	number := r.starts
	control.started = number
	r.depth++
	control.interrupted = append(control.interrupted, c.Reg(r.file.PC))
	return func(done bool) {
		r.depth--
		if !done {
			t.giveUp(number)
			_ = errors.Join(r.stopStepping(cpu), c.GiveUp())
		}
		control.interrupted = control.interrupted[:len(control.interrupted)-1]
		control.current, control.outer, control.running, control.waiting = current, outer, running, left
		control.panicked, control.started = panicked, started
		c.Restore(saved)
		c.SetRunning(wasRunning)
	}
}

// callNested calls f on a CPU that is handling a hit, or is interrupted, and
// restores the registers.
func (r *Runtime) callNested(cpu int, f machine.Function, args []uint64) (uint64, error) {
	restore, done := r.nest(cpu), false
	defer func() { restore(done) }()
	c := r.m.CPU(cpu)
	// Calls that are going on are told apart by their stack pointers.
	c.SetReg(r.file.SP, c.Reg(r.file.SP)-uint64(r.isa.PtRegs().Size))
	if err := c.Call(f, args...); err != nil {
		return 0, err
	}
	if err := r.runAlone(cpu, nestedBudget, 0); err != nil {
		return 0, err
	}
	done = true
	return c.Result(), nil
}

// Interrupt has a CPU call f between two instructions, wherever it is, as an
// interrupt does. Its registers are kept.
func (r *Runtime) Interrupt(cpu int, f machine.Function, args ...uint64) error {
	if err := r.mayUse(cpu); err != nil {
		return err
	}
	c := &r.cpus[cpu]
	stepping := c.stepping
	if err := r.stopStepping(cpu); err != nil {
		return err
	}
	defer r.abandon()
	_, err := r.callNested(cpu, f, args)
	if stepping {
		c.stepping = true
		err = errors.Join(err, r.m.CPU(cpu).SingleStep(true))
	}
	return err
}

// Step runs one CPU for some instructions, and handles what happens.
func (r *Runtime) Step(cpu int, instructions int) error {
	if err := cmp.Or(r.mayUse(cpu), r.failed); err != nil {
		return err
	}
	defer func() {
		r.abandon()
		r.placed(cpu, r.m.CPU(cpu).Reg(r.file.PC))
	}()
	if err := r.resume(cpu); err != nil {
		return err
	}
	ev, err := r.m.CPU(cpu).Run(instructions)
	if err != nil || ev.Kind == machine.EventBudget {
		return err
	}
	_, err = r.handle(cpu, ev)
	return err
}

// handle deals with an event of a CPU, which can go on then. It reports whether
// the function that the CPU was called with has returned.
func (r *Runtime) handle(cpu int, ev machine.Event) (returned bool, err error) {
	c, outer := &r.cpus[cpu], r.handling
	r.handling = cpu
	defer func() { r.handling = outer }()
	switch ev.Kind {
	case machine.EventReturned:
		if len(c.interrupted) == 0 && c.stack != 0 {
			r.m.CPU(cpu).SetReg(r.file.SP, c.stack)
			c.started = 0
		}
		return true, nil
	case machine.EventBudget:
		return false, nil
	case machine.EventBreakpoint:
		return false, cmp.Or(r.trapped(cpu, ev), r.failed)
	case machine.EventStep:
		if c.stepping {
			return false, r.stepped(cpu)
		}
	case machine.EventUndefined:
		if r.landed(cpu, ev.Addr) {
			return false, nil
		}
	case machine.EventFault:
		return false, r.fault(cpu, ev)
	case machine.EventWatch:
		return false, r.accessed(cpu, ev)
	}
	return false, r.stop(cpu, ev)
}

// trapped finds out whose breakpoint it is.
func (r *Runtime) trapped(cpu int, ev machine.Event) error {
	c := &r.cpus[cpu]
	if s := c.current.site; s != nil && s.step.size != 0 && ev.Addr == s.step.stop() &&
		(c.current.status == HitSS || c.current.status == Reenter) {
		r.m.CPU(cpu).SetReg(r.file.PC, ev.Addr)
		if err := r.stopStepping(cpu); err != nil {
			return err
		}
		return r.complete(cpu)
	}
	if s := r.sites[ev.Addr]; s != nil && s.state.armed() {
		return r.breakpoint(cpu, s)
	}
	if s := r.slots.owner(ev.Addr); s != nil && s.state == siteReplaced {
		return r.comeBack(cpu, s, ev.Addr)
	}
	if r.landed(cpu, ev.Addr) {
		return nil
	}
	return r.foreign(cpu, ev)
}

// foreign handles a breakpoint that is no probe's: one that was removed while
// the CPU was on its way to it, or one of somebody else.
func (r *Runtime) foreign(cpu int, ev machine.Event) error {
	regs := r.m.CPU(cpu)
	if r.nearTrampoline(ev.Addr) {
		return r.returnedFurther(cpu, ev.Addr)
	}
	if !r.trapsAt(ev.Addr) {
		regs.SetReg(r.file.PC, ev.Addr)
		return nil
	}
	if err := r.stopStepping(cpu); err != nil {
		return err
	}
	ev, err := r.surface(cpu, ev)
	if err != nil {
		return err
	}
	for _, n := range r.notifiers {
		r.placed(cpu, ev.Addr)
		if n(cpu, regs, ev) {
			return r.resume(cpu)
		}
	}
	return &StopError{CPU: cpu, Event: ev}
}

// stop ends the run for what the runtime has no answer to, as it would be without
// probes.
func (r *Runtime) stop(cpu int, ev machine.Event) error {
	if err := r.stopStepping(cpu); err != nil {
		return err
	}
	ev, err := r.surface(cpu, ev)
	return cmp.Or(err, error(&StopError{CPU: cpu, Event: ev}))
}
