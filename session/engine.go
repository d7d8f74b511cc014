//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"cmp"
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"xol/arch"
	"xol/instrument"
	"xol/machine"
	"xol/process"
)

// engine is the tracer's side of a session: it handles what happens in the processes.
type engine struct {
	front    front
	children bool // are followed
	dry      bool // the program is to be killed when its libraries are there
	tracer   *process.Tracer
	isa      arch.Prober
	spaces   map[*process.Process]*space
	switches switches
	lost     error // of the front, where nothing can return it
}

func newEngine(f front, follow, dry bool) *engine {
	e := &engine{front: f, children: follow, dry: dry, spaces: map[*process.Process]*space{}}
	e.tracer = process.New(e, process.Options{Follow: follow, EachMapping: true})
	return e
}

// start starts a program. It returns the process.
func (e *engine) start(cmd *process.Command) (pid int, err error) {
	return e.do(func() (*process.Process, error) { return e.tracer.Start(cmd) })
}

// attach attaches to a program, and puts probes into it.
func (e *engine) attach(pid int) (int, error) {
	e.dry = false // it is not ours to end
	return e.do(func() (*process.Process, error) {
		p, err := e.tracer.Attach(pid)
		if err != nil {
			return nil, err
		}
		return p, e.Started(p)
	})
}

func (e *engine) do(get func() (*process.Process, error)) (pid int, err error) {
	doErr := e.tracer.Do(func() {
		var p *process.Process
		if p, err = get(); p != nil {
			pid = p.PID()
		}
	})
	return pid, cmp.Or(err, doErr)
}

// close takes everything back, in all processes, and lets them go.
func (e *engine) close() error {
	var err error
	doErr := e.tracer.Do(func() {
		if e.dry {
			e.kill()
		} else {
			err = e.withdraw()
		}
	})
	return errors.Join(err, doErr, e.tracer.Close())
}

// errEnough ends a dry run.
var errEnough = errors.New("session: the libraries are there")

// enough returns errEnough when a program that was only started to see what it maps has
// mapped all.
func (e *engine) enough(p *process.Process) error {
	if !e.dry || p.Starting() {
		return nil
	}
	return errEnough
}

// kill ends all processes.
func (e *engine) kill() {
	for _, p := range e.tracer.Processes() {
		_ = syscall.Kill(p.PID(), syscall.SIGKILL) // it may have ended
	}
}

// Started begins with a program.
func (e *engine) Started(p *process.Process) (err error) {
	if e.isa == nil {
		if e.isa, err = arch.Probing(p.ISA()); err != nil {
			return err
		}
	}
	e.spaces[p] = newSpace()
	return cmp.Or(e.update(p), e.enough(p))
}

// Mapped looks for new libraries.
func (e *engine) Mapped(p *process.Process, _ *process.Thread) error {
	return cmp.Or(e.update(p), e.enough(p))
}

// Forked gives the child what its parent has, or takes it back in the child.
func (e *engine) Forked(parent, child *process.Process, _ *process.Thread) error {
	s := e.spaces[parent]
	if s == nil {
		return nil
	}
	if child.Shares() != nil {
		e.spaces[child] = s
		return nil
	}
	e.spaces[child] = s.clone()
	if e.children {
		return nil
	}
	return e.clean(child)
}

// Exited forgets a process.
func (e *engine) Exited(p *process.Process, status syscall.WaitStatus) {
	delete(e.spaces, p)
	e.lost = errors.Join(e.lost, e.front.exited(p.PID(), status))
}

// update puts probes into files that a process has mapped newly, and forgets those that
// it has no longer.
func (e *engine) update(p *process.Process) error {
	s := e.spaces[p]
	if s == nil {
		return nil
	}
	maps, err := p.Maps()
	if err != nil {
		return err
	}
	s.forget(maps)
	m := mapped{PID: p.PID(), First: len(s.loaded) == 0, All: maps}
	for i := range maps {
		if l := &maps[i]; l.Perm&machine.PermExec != 0 && l.Inode != 0 && !s.knows(l) {
			m.New = append(m.New, *l)
			s.loaded = append(s.loaded, *l)
		}
	}
	if len(m.New) == 0 {
		return nil
	}
	layouts, err := e.front.plan(&m)
	if err != nil {
		return err
	}
	for i, l := range layouts {
		c, err := s.install(p, l)
		if err == nil && e.switches != (switches{}) {
			err = e.setIn(p, e.switches)
		}
		done := installed{Index: i, Err: sent(err), Counters: -1}
		if c != nil {
			done.Counters = int(c.Fd())
		}
		err = e.front.installed(&done)
		if c != nil {
			c.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Trap handles a breakpoint: that of a gate, or of text that has moved.
func (e *engine) Trap(th *process.Thread) (handled bool, err error) {
	s := e.spaces[th.Process()]
	if s == nil || e.lost != nil {
		return false, e.lost
	}
	pc := th.PC()
	if c := s.copyAt(pc); c != nil {
		return e.gate(s, th, c, pc)
	}
	if s.patchedAt(pc) {
		return e.enter(s, th, pc), nil
	}
	return e.removed(th, pc), nil
}

// removed reports whether a breakpoint that was executed is no longer there.
func (e *engine) removed(th *process.Thread, pc uint64) bool {
	trap := e.isa.Breakpoint(false)
	now := make([]byte, len(trap))
	return th.Process().Read(now, pc) == nil && string(now) != string(trap)
}

// gate tells of a hit.
func (e *engine) gate(s *space, th *process.Thread, c *instrument.Copy, pc uint64) (handled bool, err error) {
	w, ok := c.Locate(pc)
	if !ok || w.Item < 0 || c.Items[w.Item].Kind != instrument.Gate || w.Start != uint32(pc-c.Addr) {
		return false, nil
	}
	hit := gateHit{
		PID: th.Process().PID(), TID: th.TID(), Number: int(c.Items[w.Item].Number), Time: time.Now(),
		Addr: c.Orig + uint64(c.Points[w.Step].Orig), Registers: e.isa.Registers().NewState(),
	}
	th.SaveCore(hit.Registers)
	e.isa.Registers().SetWord(hit.Registers, e.isa.Registers().PC, hit.Addr)
	if err := e.front.hit(&hit, programMemory{th.Process(), s}); err != nil {
		return false, err
	}
	th.SetPC(pc + uint64(len(e.isa.Breakpoint(false))))
	return true, nil
}

// programMemory is memory as the program has it without probes.
type programMemory struct {
	*process.Process
	space *space
}

func (m programMemory) Read(dst []byte, addr uint64) error {
	if err := m.Process.Read(dst, addr); err != nil {
		return err
	}
	m.space.hide(dst, addr)
	return nil
}

// Signal has a signal delivered at an original address.
func (e *engine) Signal(th *process.Thread, sig *process.Signal) error {
	s := e.spaces[th.Process()]
	if s == nil || e.lost != nil {
		return e.lost
	}
	return e.receive(s, th, sig)
}

// receive deals with a signal that a thread is about to get.
func (e *engine) receive(s *space, th *process.Thread, sig *process.Signal) error {
	pc := th.PC()
	if sig.Fault() && sig.Number == syscall.SIGILL && s.patchedAt(pc) && e.enter(s, th, pc) {
		sig.Drop = true // a byte of a jump, perhaps of one that is there no more
		return nil
	}
	if !s.own(pc) {
		return nil
	}
	if err := e.leave(s, th, sig.Fault()); err != nil {
		return err
	}
	if sig.Fault() && sig.Addr() == pc {
		sig.SetAddr(th.PC())
	}
	return nil
}

// switches are the global ones; the zero value has probes hit, by jumps where there is room.
type switches struct{ Disarmed, NoJumps bool }

// set throws the switches, in all processes.
func (e *engine) set(to switches) error {
	var err error
	doErr := e.tracer.Do(func() {
		e.switches = to
		for _, p := range e.tracer.Processes() {
			if e.spaces[p] != nil && p.Shares() == nil {
				err = errors.Join(err, e.setIn(p, to))
			}
		}
	})
	return errors.Join(err, doErr)
}

func (e *engine) setIn(p *process.Process, to switches) (err error) {
	if err := p.Stop(); err != nil {
		if errors.Is(err, process.ErrGone) {
			return nil
		}
		return err
	}
	defer func() { err = errors.Join(err, p.Resume()) }()
	s := e.spaces[p]
	if to.Disarmed {
		if _, err := e.leaveAll(p, s); err != nil {
			return err
		}
	}
	return s.set(p, to, e.isa.Breakpoint(false))
}

// leaveAll has all threads of a stopped process be at original addresses. It reports
// whether one is in the kernel, so that it is not known where.
func (e *engine) leaveAll(p *process.Process, s *space) (stuck bool, err error) {
	for _, th := range p.Tasks() {
		if !th.Stopped() {
			stuck = true
			continue
		}
		if sig := th.Waiting(); sig != nil {
			err = errors.Join(err, e.receive(s, th, sig))
		}
		if s.own(th.PC()) {
			err = errors.Join(err, e.leave(s, th, false))
		}
	}
	return stuck, err
}

// clean takes everything back in a process, whose threads are stopped.
func (e *engine) clean(p *process.Process) error {
	s := e.spaces[p]
	if s == nil {
		return nil
	}
	delete(e.spaces, p)
	stuck, err := e.leaveAll(p, s)
	errs := []error{err, s.restore(p)}
	if !stuck && err == nil { // else a thread may still be there
		for _, r := range s.mapped {
			errs = append(errs, p.Unmap(r.Lo, r.Hi-r.Lo))
		}
		for _, c := range s.data {
			errs = append(errs, p.Unmap(c.Lo, c.Hi-c.Lo))
		}
	}
	return errors.Join(errs...)
}

// withdraw takes everything back in all processes.
func (e *engine) withdraw() error {
	var errs []error
	for _, p := range e.tracer.Processes() {
		if e.spaces[p] == nil {
			continue
		}
		if err := p.Stop(); err != nil {
			if !errors.Is(err, process.ErrGone) {
				errs = append(errs, err)
			}
			continue
		}
		errs = append(errs, e.clean(p), p.Resume())
	}
	return errors.Join(errs...)
}

var _ machine.Memory = programMemory{}

func (e *engine) run(ctx context.Context) error { return e.tracer.Run(ctx) }

func (e *engine) file(fd int) (*os.File, error) {
	own, err := unix.Dup(fd)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return os.NewFile(uintptr(own), "counters"), nil
}
