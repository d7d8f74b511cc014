//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"bytes"
	"errors"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"xol/machine"
)

// signalled handles a signal on its way to a thread.
func (t *Tracer) signalled(th *Thread) error {
	if th.signal.Number == unix.SIGTRAP && th.process.trap.ignored && !th.signal.Fault() {
		// The program ignores it, and the kernel has forgotten.
		return nil
	}
	if th.wouldStartAgain() && th.process.unseen(th.signal.Number) {
		th.startAgain()
		th.again = restartPoint{}
	}
	th.deliver = th.signal.Number
	if err := t.handler.Signal(th, &th.signal); err != nil {
		return err
	}
	if th.signal.Drop {
		th.deliver = 0
	}
	return nil
}

// trapped handles a breakpoint that has been executed.
func (t *Tracer) trapped(th *Thread) error {
	at, lost := th.trapAt, th.lostTrap()
	if th.PC() != at { // the thread has been sent elsewhere meanwhile
		th.suppress()
		return th.process.trap.repair(th, lost)
	}
	own := th.process.space.breaks[at]
	if own != nil {
		th.suppress()
		if err := th.process.trap.repair(th, lost); err != nil {
			return err
		}
		if err := own.hit(th.process, th); err != nil || th.PC() != at {
			return err
		}
		if !t.layout.IsBreakpoint(own.original) {
			return th.stepOver(at, own)
		}
	}
	handled, err := t.handler.Trap(th)
	switch {
	case handled || err == nil && !th.process.traps(at): // or it is there no more: the thread executes what is
		th.suppress()
		return errors.Join(err, th.process.trap.repair(th, lost))
	case err != nil:
		return err
	}
	th.trap = false
	th.SetPC(at + t.layout.Past)
	return t.signalled(th)
}

// traps reports whether the program has an instruction that traps, as the breakpoint at an
// address has.
func (p *Process) traps(at uint64) bool {
	l := p.tracer.layout
	code := make([]byte, len(l.Breakpoint))
	if p.Read(code, at) != nil || l.IsBreakpoint(code) {
		return true
	}
	if l.Alike == nil {
		return false
	}
	code = make([]byte, len(l.Alike))
	return p.Read(code, at+l.Past-uint64(len(code))) == nil && bytes.Equal(code, l.Alike)
}

// suppress decides that the signal of the stop that is handled is not delivered. Where
// another has come meanwhile, that is handled by itself.
func (th *Thread) suppress() {
	if th.queued {
		return
	}
	th.trap, th.inSignal, th.settled, th.deliver = false, false, true, 0
}

// stepOver executes the instruction that a breakpoint of this package hides.
func (th *Thread) stepOver(at uint64, b *ownBreak) error {
	p := th.process
	if err := p.Stop(); err != nil {
		return err
	}
	defer p.Resume()
	if p.space.breaks[at] != b {
		return nil
	}
	if err := p.write(at, b.original); err != nil {
		return err
	}
	err := th.Step()
	if err == ErrInterrupted {
		err = nil // it comes here again
	}
	if p.ended || p.replaced || th.state == gone {
		return nil
	}
	if again := p.write(at, b.instruction); err == nil {
		err = again
	}
	return err
}

// trapAction mends what breakpoints do to how a program handles SIGTRAP. The kernel sends
// it by force: where a thread blocks the signal it is unblocked, and there or where the
// program ignores it, the program's action is forgotten; where one is pending, that is
// delivered in its place [Linux, kernel/signal.c, force_sig_info_to_task]. Nothing tells
// that this has happened, nor what was before.
type trapAction struct {
	caught  bool
	ignored bool
	known   action // what the program does with it, where it is caught
	looked  time.Time
	asked   time.Time
}

// How often is looked what the program does with SIGTRAP, at the most.
const (
	lookEvery = time.Millisecond
	askEvery  = time.Second
)

// faults are blocked together with SIGTRAP, or all of them are not: by programs that block
// everything.
var faults = maskOf(unix.SIGILL, unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE)

// blockedBefore reports whether a thread with a mask had SIGTRAP blocked before that was sent
// by force.
func (th *Thread) blockedBefore(mask signalMask) bool {
	trap := maskOf(unix.SIGTRAP)
	return mask&trap == 0 && (mask&faults == faults || th.maskKnown && th.mask == mask|trap)
}

// lostTrap returns the data of the SIGTRAP that has been delivered in the place of the
// breakpoint's; nil where none has. A step, or a system call that the thread is made to make,
// forgets it.
func (th *Thread) lostTrap() *[infoSize]byte {
	if !th.swallowed {
		return nil
	}
	info := th.signal.Info
	return &info
}

// repair gives the thread and its process back what a breakpoint has taken, such as a
// SIGTRAP that is lost.
func (a *trapAction) repair(th *Thread, lost *[infoSize]byte) error {
	mask, err := getMask(th.tid)
	if err != nil {
		return nil // it has been killed
	}
	if th.blockedBefore(mask) {
		mask |= maskOf(unix.SIGTRAP)
		th.mask, th.maskKnown = mask, true
		setMask(th.tid, mask)
		if a.caught {
			err = a.restore(th)
		}
		if lost != nil && err == nil {
			err = th.sendAgain(lost)
		}
		return err
	}
	th.mask, th.maskKnown = mask, true
	return a.look(th.process)
}

// look finds out what the program does with SIGTRAP, now and then.
func (a *trapAction) look(p *Process) error {
	now := time.Now()
	if now.Sub(a.looked) < lookEvery {
		return nil
	}
	a.looked = now
	caught, ignored := p.handles(unix.SIGTRAP)
	a.ignored = ignored || a.ignored && !caught
	if caught && (!a.caught || now.Sub(a.asked) > askEvery) {
		a.asked = now
		known, err := p.action(unix.SIGTRAP)
		if err != nil {
			return err
		}
		a.known = known
	}
	a.caught = caught
	return nil
}

// restore sets the action that the program had.
func (a *trapAction) restore(th *Thread) error {
	return th.process.setAction(unix.SIGTRAP, a.known)
}

// sendAgain has the thread send itself the SIGTRAP that was pending when it executed a
// breakpoint: the kernel has delivered that in place of the breakpoint's.
func (th *Thread) sendAgain(info *[infoSize]byte) error {
	p := th.process
	page, err := p.scratchPage()
	if err != nil {
		return err
	}
	if err := p.write(page, info[:]); err != nil {
		return err
	}
	_, err = th.call(unix.SYS_RT_TGSIGQUEUEINFO, []uint64{uint64(p.pid), uint64(th.tid), uint64(unix.SIGTRAP), page})
	return err
}

// leave restores what was put off until the process is traced no more.
func (a *trapAction) leave(p *Process) error {
	if !a.ignored {
		return nil
	}
	if _, ignored := p.handles(unix.SIGTRAP); ignored {
		return nil
	}
	return p.setAction(unix.SIGTRAP, action{handler: ignore})
}

// ignore is SIG_IGN.
const ignore = 1

// handles reports what the process does with a signal.
func (p *Process) handles(s unix.Signal) (caught, ignored bool) {
	set := func(name string) bool {
		field, err := statusField(p.pid, name)
		v, parsed := strconv.ParseUint(field, 16, 64)
		return err == nil && parsed == nil && signalMask(v).has(s)
	}
	return set("SigCgt"), set("SigIgn")
}

// action asks the process what it does with a signal.
func (p *Process) action(s unix.Signal) (a action, err error) {
	page, err := p.scratchPage()
	if err != nil {
		return a, err
	}
	if _, err = p.Syscall(unix.SYS_RT_SIGACTION, uint64(s), 0, page, uint64(unsafe.Sizeof(a.mask))); err != nil {
		return a, p.callError("rt_sigaction", err)
	}
	var raw [unsafe.Sizeof(a)]byte
	err = p.read(raw[:], page)
	return *(*action)(unsafe.Pointer(&raw)), err
}

func (p *Process) setAction(s unix.Signal, a action) error {
	page, err := p.scratchPage()
	if err != nil {
		return err
	}
	raw := *(*[unsafe.Sizeof(a)]byte)(unsafe.Pointer(&a))
	if err := p.write(page, bytes.Clone(raw[:])); err != nil {
		return err
	}
	if _, err := p.Syscall(unix.SYS_RT_SIGACTION, uint64(s), page, 0, uint64(unsafe.Sizeof(a.mask))); err != nil {
		return p.callError("rt_sigaction", err)
	}
	return nil
}

// scratchPage returns a page for arguments of system calls.
func (p *Process) scratchPage() (uint64, error) {
	if at := p.space.scratch; at != 0 {
		return at, nil
	}
	const anonymous = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	at, err := p.mapAt(0, pageSize, machine.PermRead|machine.PermWrite, anonymous)
	if err == nil {
		p.space.scratch = at
	}
	return at, err
}

const pageSize = 4096
