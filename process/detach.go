//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Detach lets the process go on by itself. What this package has put there is taken back;
// what the caller has changed is for the caller to take back first, with the process
// stopped. Events that have not been handled are as they would have been without a tracer:
// signals are delivered, and who has executed a breakpoint that is there no more executes
// what is. Children that share the memory are detached from as well.
func (p *Process) Detach() error {
	if p.ended || p.tracer.processes[p.pid] != p {
		return nil
	}
	if err := p.stop(); err != nil {
		return err
	}
	t := p.tracer
	for _, th := range p.space.tasks() {
		th.stuck = false
	}
	if err := t.halt(p.space, detachAfter); err != nil || p.ended {
		return err
	}
	var errs []error
	if !p.replaced {
		errs = append(errs, p.takeBack())
	}
	for _, q := range append([]*Process{p}, p.sharers()...) {
		for _, th := range q.Threads() {
			errs = append(errs, th.announceChild())
		}
		for _, th := range q.Threads() {
			th.detach()
		}
		t.leave(q)
		if q.child {
			t.released[q.pid] = q
		}
	}
	return errors.Join(errs...)
}

// sharers returns the other processes that share the memory and came from p.
func (p *Process) sharers() (list []*Process) {
	if p.parent != nil {
		return nil
	}
	for _, q := range p.space.members {
		if q != p {
			list = append(list, q)
		}
	}
	return list
}

// takeBack removes what this package has put into the process.
func (p *Process) takeBack() error {
	if len(p.space.members) > 1 && p.parent != nil {
		return nil // its parent goes on with that
	}
	errs := []error{p.trap.leave(p)}
	for at := range p.space.breaks {
		errs = append(errs, p.removeBreak(at))
	}
	if at := p.space.scratch; at != 0 {
		errs = append(errs, p.Unmap(at, pageSize))
		p.space.scratch = 0
	}
	return errors.Join(errs...)
}

// announceChild tells of a child whose making has not been handled.
func (th *Thread) announceChild() error {
	c := th.child
	if c == nil {
		return nil
	}
	th.child = nil
	if c.parent != nil {
		c.held = false
		return nil
	}
	return th.tracer.announce(th.process, c, th)
}

// detach lets a thread go. One that cannot be stopped now is let go when it stops.
func (th *Thread) detach() {
	if th.state == running {
		th.leaving = true
		return
	}
	if th.queued || th.deliver != 0 {
		th.settleSignal()
	}
	th.store()
	deliver := th.deliver
	if deliver != 0 && th.signal.Info != th.info {
		setInfo(th.tid, &th.signal.Info)
	}
	ptrace(unix.PTRACE_DETACH, th.tid, 0, uintptr(deliver))
	th.queued = false
	th.tracer.drop(th)
}

// settleSignal decides about a signal of which the handler has not been told.
func (th *Thread) settleSignal() {
	th.prepare()
	if !th.inSignal || th.deliver != 0 {
		return
	}
	if !th.trap {
		if !th.signal.Drop {
			th.deliver = th.signal.Number
		}
		return
	}
	if th.PC() != th.trapAt || !th.process.traps(th.trapAt) {
		return
	}
	th.SetPC(th.trapAt + th.layout.Past)
	th.deliver = th.signal.Number
}
