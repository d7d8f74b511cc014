//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
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
	layouts  map[int]*layout
	switches switches
	passed   passed
	longest  time.Duration // stop of which the front has been told
	lost     error         // of the front, where nothing can return it
}

func newEngine(f front, follow, dry bool) *engine {
	e := &engine{front: f, children: follow, dry: dry, spaces: map[*process.Process]*space{}, layouts: map[int]*layout{}}
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
		e.passed = passed{e.isa.Registers(), map[*process.Thread][]passage{}}
	}
	e.drop(p)
	e.spaces[p] = newSpace()
	return cmp.Or(e.update(p), e.enough(p))
}

// Mapped looks for new libraries.
func (e *engine) Mapped(p *process.Process, _ *process.Thread) error {
	return cmp.Or(e.update(p), e.enough(p))
}

// adopt gives children that a process has made, and that are not handled yet, what it has
// now: what is put into it from now on, they do not get.
func (e *engine) adopt(p *process.Process, s *space) {
	for _, c := range e.tracer.Processes() {
		if c.Maker() == p && e.spaces[c] == nil && c.Shares() == nil {
			e.spaces[c] = s.clone()
			e.spaces[c].uneven = true
		}
	}
}

// Forked gives the child what its parent has, or takes it back in the child.
func (e *engine) Forked(parent, child *process.Process, _ *process.Thread) error {
	s := e.spaces[parent]
	if s == nil {
		return nil
	}
	if child.Shares() != nil {
		s.users++
		e.spaces[child] = s
		return nil
	}
	if e.spaces[child] == nil {
		e.spaces[child] = s.clone()
	}
	if !e.children {
		return e.clean(child)
	}
	return e.even(child, e.spaces[child])
}

// even completes what a child has that was made while text was being changed.
func (e *engine) even(p *process.Process, s *space) error {
	if !s.uneven {
		return nil
	}
	s.uneven = false
	for _, q := range s.placed {
		if err := e.inStops(p, s, func() (bool, error) { return q.advance(p, e.switches, e.isa.Breakpoint(false)) }); err != nil {
			return err
		}
	}
	_, err := e.setIn(p, e.switches)
	return cmp.Or(err, e.update(p))
}

// Exited forgets a process.
func (e *engine) Exited(p *process.Process, status syscall.WaitStatus) {
	e.drop(p)
	e.lost = errors.Join(e.lost, e.front.exited(p.PID(), status))
}

// drop forgets what a process has.
func (e *engine) drop(p *process.Process) {
	s := e.spaces[p]
	if s == nil {
		return
	}
	delete(e.spaces, p)
	if s.users--; s.users > 0 {
		return
	}
	for _, q := range s.placed {
		e.release(q, false)
	}
	s.placed = nil
}

// release tells the front of a placement that no process has any more; unmapped says that
// its text has gone, and not the last process.
func (e *engine) release(q *placed, unmapped bool) {
	if *q.spaces--; *q.spaces == 0 {
		e.lost = errors.Join(e.lost, e.front.gone(&gonePlacement{q.number, unmapped}))
	}
}

// update puts probes into files that a process has mapped newly, and forgets those that
// it has no longer.
func (e *engine) update(p *process.Process) error {
	s := e.spaces[p]
	if s == nil {
		return nil
	}
	return cmp.Or(e.look(p, s), e.raise(p, s))
}

// raise raises semaphores that are not yet, when the data of all files is mapped.
func (e *engine) raise(p *process.Process, s *space) error {
	if p.Starting() {
		return nil
	}
	return e.count(p, s, 1, func(q *placed) bool { return len(q.semaphores) > 0 && !q.raised && q.done > 0 })
}

// lower takes that back.
func (e *engine) lower(p *process.Process, s *space) error {
	return e.count(p, s, ^uint16(0), func(q *placed) bool { return q.raised })
}

// count adds n to the semaphores of some placements.
func (e *engine) count(p *process.Process, s *space, n uint16, of func(*placed) bool) error {
	if !slices.ContainsFunc(s.placed, of) {
		return nil
	}
	return e.inStops(p, s, func() (more bool, err error) {
		for _, q := range s.placed {
			if of(q) {
				err = errors.Join(err, q.raise(p, n))
			}
		}
		return false, err
	})
}

// look puts what is wanted into files that are mapped newly.
func (e *engine) look(p *process.Process, s *space) error {
	maps, err := p.Maps()
	if err != nil {
		return err
	}
	if gone := s.forget(maps); len(gone) > 0 {
		if err := e.unload(p, s, gone); err != nil {
			return err
		}
		if maps, err = p.Maps(); err != nil {
			return err
		}
	}
	m := mapped{PID: p.PID(), First: len(s.loaded) == 0, All: maps}
	for i := range maps {
		if l := &maps[i]; l.Perm&machine.PermExec != 0 && l.Inode != 0 && !s.knows(l) {
			m.New = append(m.New, *l)
		}
	}
	if len(m.New) == 0 {
		return nil
	}
	list, err := e.front.plan(&m)
	if err != nil {
		return err
	}
	for i := range list {
		w := &list[i]
		if w.New != nil {
			e.layouts[w.Layout] = newLayout(w.Layout, w.New)
		}
		spaces := 1
		q := &placed{layout: e.layouts[w.Layout], delta: w.Delta, number: w.Number, spaces: &spaces, semaphores: w.Semaphores}
		q.patches = q.Patches
		if err := e.put(p, s, q, &m.New[w.File]); err != nil {
			return err
		}
	}
	for i := range m.New {
		if !s.knows(&m.New[i]) {
			s.loaded = append(s.loaded, m.New[i])
		}
	}
	return nil
}

// tellStops tells the front if a process was stopped for longer than any before.
func (e *engine) tellStops() {
	if longest := e.tracer.LongestStop(); longest > e.longest {
		e.longest = longest
		e.lost = errors.Join(e.lost, e.front.stopped(longest))
	}
}

// unload removes what has been put into a process for text that is not mapped any more,
// unless a thread is there.
func (e *engine) unload(p *process.Process, s *space, gone []*placed) error {
	if err := p.Stop(); err != nil {
		return err
	}
	var unused []*placed
	for _, q := range gone {
		e.release(q, true)
		if !slices.ContainsFunc(p.Tasks(), func(th *process.Thread) bool { return !th.Stopped() || q.owns(th.PC()) }) {
			unused = append(unused, q)
		}
	}
	return errors.Join(p.Resume(), e.remove(p, s, unused))
}

// put puts a placement into a process, for a file that it has mapped, and tells the front.
func (e *engine) put(p *process.Process, s *space, q *placed, of *process.Mapping) error {
	var c *os.File
	other, err := q.compare(p)
	if err == nil {
		c, err = e.install(p, s, q, of)
	}
	done := installed{Number: q.number, Err: sent(err), Other: other, Counters: -1}
	if c != nil {
		done.Counters = int(c.Fd())
		defer c.Close()
	}
	err = e.front.installed(&done)
	if !slices.Contains(s.placed, q) {
		e.release(q, false)
	}
	return err
}

func (e *engine) install(p *process.Process, s *space, q *placed, of *process.Mapping) (c *os.File, err error) {
	if err := q.rebase(e.isa); err != nil {
		return nil, err
	}
	begun := false
	err = e.inStops(p, s, func() (more bool, err error) {
		if begun {
			return q.advance(p, e.switches, e.isa.Breakpoint(false))
		}
		begun = true
		s.placed, s.loaded = append(s.placed, q), append(s.loaded, *of)
		c, err = q.mapData(p)
		return err == nil, err
	})
	if err != nil {
		err = errors.Join(err, e.giveUp(p, s, q))
	}
	return c, err
}

// giveUp takes back what has been put into a process. Its code stays, if text has led
// there.
func (e *engine) giveUp(p *process.Process, s *space, q *placed) error {
	if q.done > 0 {
		err := e.inStops(p, s, set(p, []*placed{q}, switches{Disarmed: true}, nil))
		q.done = 0
		return err
	}
	s.placed = slices.DeleteFunc(s.placed, func(other *placed) bool { return other == q })
	return e.remove(p, s, []*placed{q})
}

// remove takes the memory of layouts away, to which nothing leads.
func (e *engine) remove(p *process.Process, s *space, list []*placed) error {
	var errs []error
	for _, q := range list {
		errs = append(errs, e.inStops(p, s, func() (bool, error) {
			maps, err := p.Maps() // the program may have mapped more, as it ran meanwhile
			if err != nil {
				return false, err
			}
			return q.remove(p, maps)
		}))
	}
	return errors.Join(errs...)
}

// Text is changed a part at a time, each with all threads stopped for no longer than
// this, and then running for a while.
const (
	stopTime = 10 * time.Millisecond
	runTime  = 2 * time.Millisecond
)

// inStops calls step with the process stopped, again and again until there is no more.
func (e *engine) inStops(p *process.Process, s *space, step func() (more bool, err error)) error {
	defer e.tellStops()
	for {
		more, err := e.inStop(p, s, step)
		if !more {
			return err
		}
		time.Sleep(runTime)
	}
}

func (e *engine) inStop(p *process.Process, s *space, step func() (bool, error)) (more bool, err error) {
	if err := p.Stop(); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, p.Resume()) }()
	e.adopt(p, s)
	for begun := time.Now(); ; {
		if more, err = step(); !more || time.Since(begun) > stopTime {
			return more, err
		}
	}
}

// Trap handles a breakpoint: that of a gate, or of text that has moved.
func (e *engine) Trap(th *process.Thread) (handled bool, err error) {
	s := e.spaces[th.Process()]
	if s == nil {
		return false, e.lost
	}
	handled, err = e.trapped(s, th)
	return handled, errors.Join(err, e.lost)
}

func (e *engine) trapped(s *space, th *process.Thread) (handled bool, err error) {
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
func (e *engine) gate(s *space, th *process.Thread, c *copied, pc uint64) (handled bool, err error) {
	w, ok := c.Locate(pc)
	if !ok || w.Item < 0 || c.Items[w.Item].Kind != instrument.Gate || w.Start != uint32(pc-c.Addr) {
		return false, nil
	}
	th.SetPC(pc + uint64(len(e.isa.Breakpoint(false))))
	addr := c.Orig + uint64(c.Points[w.Step].Orig)
	if e.passed.again(th, addr, w.Item) {
		return true, nil
	}
	hit := gateHit{
		PID: th.Process().PID(), TID: th.TID(), Number: int(c.Items[w.Item].Number), Time: time.Now(),
		Addr: addr, Registers: e.isa.Registers().NewState(),
	}
	th.SaveCore(hit.Registers)
	e.isa.Registers().SetWord(hit.Registers, e.isa.Registers().PC, hit.Addr)
	return true, e.front.hit(&hit, programMemory{th.Process(), s})
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
		return e.lost
	}
	return errors.Join(e.receive(s, th, sig), e.lost)
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
				_, setErr := e.setIn(p, to)
				err = errors.Join(err, goneIsFine(setErr))
			}
		}
	})
	return errors.Join(err, doErr)
}

// setIn has the text of a process be as switches say. Where it is disarmed, all threads
// are at original addresses then, unless one is stuck in the kernel.
func (e *engine) setIn(p *process.Process, to switches) (stuck bool, err error) {
	s := e.spaces[p]
	next := set(p, s.placed, to, e.isa.Breakpoint(false))
	err = e.inStops(p, s, func() (more bool, err error) {
		if more, err = next(); more || !to.Disarmed {
			return more, err
		}
		var left error
		stuck, left = e.leaveAll(p, s)
		return false, errors.Join(err, left)
	})
	return stuck, err
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

// clean takes everything back in a process.
func (e *engine) clean(p *process.Process) error {
	s := e.spaces[p]
	if s == nil {
		return nil
	}
	defer e.drop(p)
	if len(s.placed) == 0 {
		return nil
	}
	lowered := e.lower(p, s)
	stuck, err := e.setIn(p, switches{Disarmed: true})
	err = errors.Join(lowered, err)
	if !stuck && err == nil { // else a thread may still be there
		err = e.remove(p, s, s.placed)
	}
	for _, q := range s.placed {
		e.release(q, false)
	}
	s.placed = nil
	return goneIsFine(err)
}

// goneIsFine drops the error that a process has ended: there is nothing to do then.
func goneIsFine(err error) error {
	if errors.Is(err, process.ErrGone) {
		return nil
	}
	return err
}

// withdraw takes everything back in all processes.
func (e *engine) withdraw() error {
	var errs []error
	for _, p := range e.tracer.Processes() {
		errs = append(errs, e.clean(p))
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
