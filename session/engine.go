//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"xol/arch"
	"xol/instrument"
	"xol/machine"
	"xol/process"
)

// engine is the tracer's side of a session: it handles what happens in the processes.
type engine struct {
	session *Session
	tracer  *process.Tracer
	isa     arch.Prober
	spaces  map[*process.Process]*space
}

func newEngine(s *Session) *engine {
	e := &engine{session: s, spaces: map[*process.Process]*space{}}
	e.tracer = process.New(e, process.Options{Follow: s.opt.Follow, EachMapping: true})
	return e
}

// use learns the instruction set from the first process.
func (e *engine) use(p *process.Process) (err error) {
	if e.isa == nil {
		e.isa, err = arch.Probing(p.ISA())
	}
	return err
}

// attached puts probes into a process that runs.
func (e *engine) attached(p *process.Process) error {
	if err := e.use(p); err != nil {
		return err
	}
	e.spaces[p] = newSpace()
	return e.update(p)
}

// Started begins with a program that has just been executed.
func (e *engine) Started(p *process.Process) error {
	if err := e.use(p); err != nil {
		return err
	}
	e.spaces[p] = newSpace()
	return e.update(p)
}

// Mapped looks for new libraries.
func (e *engine) Mapped(p *process.Process, _ *process.Thread) error { return e.update(p) }

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
	if e.session.opt.Follow {
		return nil
	}
	return e.clean(child)
}

// Exited forgets a process.
func (e *engine) Exited(p *process.Process, status syscall.WaitStatus) {
	delete(e.spaces, p)
	if p.PID() == e.session.pid {
		e.session.status = &status
	}
}

// Trap handles a breakpoint: that of a gate, or of text that has moved.
func (e *engine) Trap(th *process.Thread) (handled bool, err error) {
	s := e.spaces[th.Process()]
	if s == nil {
		return false, nil
	}
	pc := th.PC()
	if c := s.copyAt(pc); c != nil {
		return e.gate(s, th, c, pc), nil
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
func (e *engine) gate(s *space, th *process.Thread, c *instrument.Copy, pc uint64) bool {
	w, ok := c.Locate(pc)
	if !ok || w.Item < 0 || c.Items[w.Item].Kind != instrument.Gate || w.Start != uint32(pc-c.Addr) {
		return false
	}
	p := e.session.at(int(c.Items[w.Item].Number))
	if p == nil || e.session.opt.Hit == nil {
		return false
	}
	orig := c.Orig + uint64(c.Points[w.Step].Orig)
	e.session.opt.Hit(&Hit{
		Placed: p, Registers: original{th, e.tracerPC(), orig}, Memory: programMemory{th.Process(), s}, Time: time.Now(),
		PID: th.Process().PID(), TID: th.TID(),
	})
	th.SetPC(pc + uint64(len(e.isa.Breakpoint(false))))
	return true
}

func (e *engine) tracerPC() int { return e.isa.Registers().PC }

// original shows registers with the original program counter.
type original struct {
	*process.Thread
	pc   int
	addr uint64
}

func (o original) Reg(i int) uint64 {
	if i == o.pc {
		return o.addr
	}
	return o.Thread.Reg(i)
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
	if s == nil {
		return nil
	}
	pc := th.PC()
	if os.Getenv("DBG") != "" && sig.Fault() {
		var b [16]byte
		th.Process().Read(b[:], pc)
		fmt.Fprintf(os.Stderr, "DBG %v sig %v pc %#x % x patched %v own %v\n", th, sig.Number, pc, b, s.patchedAt(pc), s.own(pc))
	}
	if sig.Fault() && sig.Number == syscall.SIGILL && s.patchedAt(pc) && e.enter(s, th, pc) {
		sig.Drop = true // a byte of a jump
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

// clean takes everything back in a process, whose threads are stopped.
func (e *engine) clean(p *process.Process) error {
	s := e.spaces[p]
	if s == nil {
		return nil
	}
	delete(e.spaces, p)
	var errs []error
	stuck := false
	for _, th := range p.Tasks() {
		switch {
		case !th.Stopped():
			stuck = true
		case s.own(th.PC()):
			errs = append(errs, e.leave(s, th, false))
		}
	}
	errs = append(errs, s.restore(p))
	if !stuck {
		for _, r := range s.mapped {
			errs = append(errs, p.Unmap(r.Lo, r.Hi-r.Lo))
		}
		for _, c := range s.counts {
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
