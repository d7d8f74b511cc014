package runtime

import (
	"errors"
	"slices"

	"xol/decode"
	"xol/machine"
)

// fault handles a fault of the program. One of a probed instruction is first
// shown to the probes' fault handlers, then one in a function that a handler calls
// to that of the handler's probe. Then it continues where the exception table says,
// then ends the run: with the registers as they were before the
// instruction.
func (r *hits) fault(cpu int, ev machine.Event) error {
	if err := r.stopStepping(cpu); err != nil {
		return err
	}
	if done, err := r.stubFault(cpu); done || err != nil {
		return err
	}
	if done, err := r.entryFault(cpu, ev); done || err != nil {
		return err
	}
	pc := r.m.CPU(cpu).Reg(r.file.PC)
	if s := r.slots.owner(pc); s != nil {
		if b := s.jump.at(pc); b != nil && pc < b.moved {
			return r.ownFault(cpu, s, b, ev)
		}
	}
	p, copied := r.placeOf(pc)
	if !copied {
		return r.faultAt(cpu, ev, nil)
	}
	r.rewind(cpu, &p)
	if done, err := r.again(cpu, &p, &ev); done || err != nil {
		return err
	}
	return r.faultAt(cpu, ev, &p)
}

// ownFault handles a fault of what a detour buffer does around the handlers: there is
// no stack for it. The program does not need one there, so that it must not know. The
// handlers run with the registers in the CPU, unless they have, and the moved
// instructions are next.
func (r *hits) ownFault(cpu int, s *site, b *buffer, ev machine.Event) error {
	regs := r.m.CPU(cpu)
	if err := r.unwind(cpu, b.entry, regs.Reg(r.file.PC)); err != nil {
		f := Fault{Addr: s.addr, Page: ev.Page, Access: ev.Access}
		return &FaultError{CPU: cpu, Fault: f} // what was saved is not there any more
	}
	regs.SetReg(r.file.PC, b.moved)
	if ev.Access == machine.AccessRead {
		return nil // it was about to restore registers
	}
	return r.jumpHit(cpu, r.sites[s.addr], 0)
}

// stubFault does what a gate, or the start of the trampoline, was about to do with the
// stack: the program has no part in it, and the memory may be there though the program
// must not use it. done is false where the CPU has still a fault: as before, or at the
// return from the gate.
func (r *hits) stubFault(cpu int) (done bool, err error) {
	pc := r.m.CPU(cpu).Reg(r.file.PC)
	if r.stubs.page != 0 && pc-r.stubs.page < 2*gates*gateRoom {
		r.returnOwn(cpu)
		return false, nil
	}
	start := r.stubs.page + trampolineOffset
	if s := r.returns.site; s == nil || pc != start || pc == s.addr || !r.pushOwn(cpu) {
		return false, nil
	}
	if err := r.jumpHit(cpu, r.returns.site, 0); err != nil {
		return false, err
	}
	return r.returnOwn(cpu), nil
}

// entryFault handles a fault of the call that stands in the place of a patchable
// entry, and of what its stub saves: there is no stack, which the entry does not need.
// The handlers run with the registers in the CPU.
func (r *hits) entryFault(cpu int, ev machine.Event) (done bool, err error) {
	regs := r.m.CPU(cpu)
	pc := regs.Reg(r.file.PC)
	if ev.Access != machine.AccessWrite {
		return false, nil
	}
	next := pc + r.entrySize()
	if s := r.sites[pc]; s == nil || !s.entry || !s.state.armed() {
		if next, err = r.leaveEntry(cpu, pc); err != nil || next == 0 {
			return false, err
		}
	}
	if s := r.sites[next-r.entrySize()]; s != nil && s.entry {
		next = r.runEntry(cpu, s, 0, next)
	}
	regs.SetReg(r.file.PC, next)
	return true, r.failed
}

// leaveEntry has a CPU that is in what the stub of patchable entries saves be where it
// was called, and returns the address after that; 0 where it is in no stub, or has got
// further.
func (r *hits) leaveEntry(cpu int, pc uint64) (next uint64, err error) {
	i := slices.IndexFunc(r.images, func(im *Module) bool { return im.entries.stub.holds(pc) })
	if i < 0 {
		return 0, nil
	}
	stub := r.images[i].entries.stub.addr
	code := make([]byte, pc-stub)
	if err := r.m.Read(code, stub); err != nil {
		return 0, err
	}
	called := func(inst decode.Inst) bool { return inst.IsCall() }
	if slices.ContainsFunc(decode.Sweep(r.isa, nil, code, stub), called) {
		return 0, nil
	}
	if err := r.isa.Unwind(code, r.m.CPU(cpu), r.m); err != nil {
		return 0, err
	}
	return r.isa.LeaveEntry(r.m.CPU(cpu), r.m)
}

// pushOwn makes the room on the stack that the start of the trampoline makes. It
// reports whether there is memory.
func (r *hits) pushOwn(cpu int) bool {
	regs := r.m.CPU(cpu)
	sp := regs.Reg(r.file.SP)
	if r.isa.Unwind(r.isa.TrampolinePrefix(), regs, r.m) != nil {
		return false
	}
	room := regs.Reg(r.file.SP) - sp
	regs.SetReg(r.file.SP, sp)
	if _, err := r.m.ReadWord(sp - room); err != nil {
		return false
	}
	regs.SetReg(r.file.SP, sp-room)
	regs.SetReg(r.file.PC, r.returns.site.addr)
	return true
}

// returnOwn does a return instruction of the runtime's own, and reports whether it
// could.
func (r *hits) returnOwn(cpu int) bool {
	var inst decode.Inst
	regs := r.m.CPU(cpu)
	if r.isa.Decode(&inst, r.isa.ReturnInst(), regs.Reg(r.file.PC)) != nil {
		return false
	}
	done, err := r.isa.Interpret(&inst, regs, r.m)
	return done && err == nil
}

// unwind has a CPU that has executed code of the runtime's own, up to an address, have
// the registers that it began with.
func (r *hits) unwind(cpu int, start, end uint64) error {
	code := r.buffer(int(end - start))
	if err := r.m.Read(code, start); err != nil {
		return err
	}
	return r.isa.Unwind(code, r.m.CPU(cpu), r.m)
}

// rewind brings a CPU that is in the middle of the copy of an instruction back to its start, with
// the registers that it had there: those that are left, where the stack on which the
// copy has saved others has gone.
func (r *hits) rewind(cpu int, p *copyPlace) {
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	s, pc := p.site, regs.Reg(r.file.PC)
	if s.expanded && c.current.site == s && s.step.holds(pc) {
		regs.RestoreCore(*c.savedRegisters())
	} else if pc > p.start {
		_ = r.unwind(cpu, p.start, pc)
	}
	regs.SetReg(r.file.PC, p.start)
}

// again does an instruction whose copy has faulted once more by interpreting it, where
// it transfers control: its copy may have others, which make other accesses, in
// another order. ev becomes the fault that the instruction itself has; done says that
// it has none.
func (r *hits) again(cpu int, p *copyPlace, ev *machine.Event) (done bool, err error) {
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	if !p.inst.IsBranch() {
		return false, nil
	}
	regs.SetReg(r.file.PC, p.inst.Addr)
	if p.site.internal {
		done, err = r.isa.Interpret(&p.inst, regs, r.m)
	} else {
		done, err = r.interpretWatched(cpu, &p.inst)
	}
	var access *accessError
	if errors.As(err, &access) {
		ev.Access, ev.Page = access.access, access.page
		done, err = false, nil
	}
	switch {
	case err != nil:
		return false, err
	case !done:
		regs.SetReg(r.file.PC, p.start)
	case c.current.site == p.site && p.start == p.site.step.addr:
		return true, r.complete(cpu)
	}
	return done, nil
}

// faultAt handles the fault of an instruction whose copy the CPU is at the start of,
// or which was interpreted; of the original where p is nil.
func (r *hits) faultAt(cpu int, ev machine.Event, p *copyPlace) error {
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	f := Fault{Addr: regs.Reg(r.file.PC), Page: ev.Page, Access: ev.Access, InHandler: c.running != nil}
	var s *site
	if p != nil {
		s, f.Addr = p.site, p.inst.Addr
	}
	if s != nil && f.Addr == s.addr && r.handleFault(cpu, s, &f) || c.running != nil && r.ask(cpu, c.running, &f) {
		return r.retry(cpu, s)
	}
	if r.failed != nil {
		return r.failed
	}
	if fixup, ok := r.fixup(f.Addr); ok {
		if s != nil && c.current.site == s {
			r.leave(cpu)
		}
		regs.SetReg(r.file.PC, fixup)
		return nil
	}
	if p != nil {
		if _, err := r.surfaceAt(cpu, ev, p); err != nil {
			return err
		}
	}
	return &FaultError{CPU: cpu, Fault: f}
}

// handleFault asks the fault handlers of a site.
func (r *hits) handleFault(cpu int, s *site, f *Fault) bool {
	return slices.ContainsFunc(s.probes, func(p *probe) bool { return p.enabled && r.ask(cpu, p, f) })
}

// ask calls the fault handler of a probe, where it has one.
func (r *hits) ask(cpu int, p *probe, f *Fault) bool {
	c := Context{Link: p.link, probe: p, CPU: cpu, host: r.host, memory: program{r.m}, Regs: Regs{target: &r.target, returns: &r.tasks, number: cpu, cpu: r.m.CPU(cpu), ip: f.Addr, fixed: true}}
	return c.handle(f)
}

// retry executes the instruction of a fault that has been handled once more.
func (r *hits) retry(cpu int, s *site) error {
	if s == nil {
		return nil
	}
	c, regs := &r.cpus[cpu], r.m.CPU(cpu)
	if regs.Reg(r.file.PC) == s.addr {
		return r.interpret(cpu, s)
	}
	if r.opt.Stepping == StepTrap && c.current.site == s {
		c.stepping = true
		return regs.SingleStep(true)
	}
	return nil
}

// askHandler calls the fault handler of a context's probe: what it causes itself is no
// handler's fault.
func (r *hits) askHandler(c *Context, f *Fault) bool {
	control := &r.cpus[c.CPU]
	running, asking := control.running, control.asking
	control.running, control.asking = nil, true
	handled := c.probe.FaultHandler(c, f)
	control.running, control.asking = running, asking
	return handled
}
