//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"xol/arch"
	"xol/machine"
)

// Tracer traces processes. All that it does with them is done on one OS thread, since
// ptrace(2) takes requests of that only: in Run, and in functions given to Do. Methods of a
// Tracer, Process or Thread may be called there only, but for Run, Do and Close. What is
// called there must not start other child processes.
type Tracer struct {
	handler Handler
	options Options
	isa     arch.Traceable
	layout  *machine.Traced
	file    *machine.File
	tid     int // of its thread
	bell    bell

	mu       sync.Mutex
	requests []*request
	closed   bool
	running  atomic.Bool
	pending  atomic.Int32  // requests
	work     chan struct{} // there are requests

	// What follows belongs to the tracer's thread.
	processes map[int]*Process
	threads   map[int]*Thread
	strangers map[int]unix.WaitStatus // stopped children whose parents have not told of them
	released  map[int]*Process        // children of our own that are traced no more
	queue     []event
	lastEnded *Process
	longest   time.Duration // of all times between Process.Stop and Resume
}

// request is a function to run on the tracer's thread.
type request struct {
	f    func()
	done chan struct{}
}

// event is a stop of a thread that has not been handled, or the end of a process.
type event struct {
	thread *Thread
	ended  *Process
	orphan *Process // a parent that ended before its child was handled
	child  *Process // that child, where it is known
	status unix.WaitStatus
}

// New returns a Tracer that tells h. It has a thread of its own, until Close.
func New(h Handler, opt Options) *Tracer {
	t := &Tracer{
		handler: h, options: opt, work: make(chan struct{}, 1),
		processes: map[int]*Process{}, threads: map[int]*Thread{}, strangers: map[int]unix.WaitStatus{}, released: map[int]*Process{},
	}
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		t.tid = unix.Gettid()
		close(ready)
		t.main()
	}()
	<-ready
	t.bell.install()
	return t
}

// main carries requests out until the tracer is closed.
func (t *Tracer) main() {
	for range t.work {
		t.serve()
		t.mu.Lock()
		closed := t.closed
		t.mu.Unlock()
		if closed {
			return
		}
	}
}

// serve carries out the requests that there are.
func (t *Tracer) serve() {
	for t.pending.Load() > 0 {
		t.mu.Lock()
		r := t.requests[0]
		t.requests = t.requests[1:]
		t.mu.Unlock()
		t.pending.Add(-1)
		r.f()
		close(r.done)
	}
}

// submit has f run on the tracer's thread.
func (t *Tracer) submit(f func()) (*request, error) {
	r := &request{f, make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	t.requests = append(t.requests, r)
	t.pending.Add(1)
	select {
	case t.work <- struct{}{}:
	default:
	}
	return r, nil
}

// Do has f run on the tracer's thread, between two events, and returns when it has. It may
// be called from any goroutine, and on the tracer's thread, where f runs at once.
func (t *Tracer) Do(f func()) error {
	if unix.Gettid() == t.tid {
		f()
		return nil
	}
	r, err := t.submit(f)
	if err != nil {
		return err
	}
	t.bell.ringUntil(t.tid, r.done)
	return nil
}

// Run handles events until no process is left, and returns nil; until ctx ends, whose error
// it returns; or until a handler returns an error. What is traced then stays so: processes
// whose threads stop wait for the next Run, or for Close. It may be called from any
// goroutine.
func (t *Tracer) Run(ctx context.Context) error {
	if !t.running.CompareAndSwap(false, true) {
		return errors.New("process: the tracer is running already")
	}
	defer t.running.Store(false)
	var err error
	r, submitted := t.submit(func() { err = t.loop(ctx) })
	if submitted != nil {
		return submitted
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		t.bell.ringUntil(t.tid, r.done)
	}
	return err
}

// Close detaches from all processes, which go on, and ends the tracer's thread.
func (t *Tracer) Close() error {
	var err error
	closing := t.Do(func() {
		for _, p := range t.Processes() {
			err = errors.Join(err, p.Detach())
		}
		t.mu.Lock()
		t.closed = true
		t.mu.Unlock()
	})
	if errors.Is(closing, ErrClosed) {
		return nil
	}
	return err
}

// LongestStop returns how long a process was stopped at most, from Process.Stop to Resume.
func (t *Tracer) LongestStop() time.Duration { return t.longest }

// Processes returns the traced processes, in the order of their ids.
func (t *Tracer) Processes() []*Process {
	var list []*Process
	for _, p := range t.processes {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Process) int { return a.pid - b.pid })
	return list
}

func (t *Tracer) loop(ctx context.Context) error {
	for {
		t.serve()
		if err := ctx.Err(); err != nil {
			return err
		}
		e, ok := t.next()
		if ok {
			if err := t.handle(e); err != nil {
				return err
			}
			continue
		}
		if len(t.processes) == 0 && len(t.threads) == 0 {
			return nil
		}
		if err := t.collectAll(func() bool { return t.pending.Load() == 0 && ctx.Err() == nil }); err != nil {
			return err
		}
	}
}

// next takes an event that can be handled: those of a stopped process wait.
func (t *Tracer) next() (event, bool) {
	for i := 0; i < len(t.queue); i++ {
		e := t.queue[i]
		if th := e.thread; th != nil && th.state != gone {
			if th.process.space.stops > 0 || th.process.held {
				continue
			}
			th.queued = false
		}
		t.queue = slices.Delete(t.queue, i, i+1)
		if e.thread != nil && e.thread.state == gone {
			i--
			continue
		}
		return e, true
	}
	return event{}, false
}

// collectAll waits for events and notes them; where there are several threads, all that
// have happened, so that a thread that stops often does not keep the others waiting. It
// does not begin to wait unless idle holds.
func (t *Tracer) collectAll(idle func() bool) error {
	tid, status, err := t.bell.wait(idle)
	for {
		switch {
		case err == unix.EINTR || tid == 0 && err == nil:
			return nil
		case err == unix.ECHILD && len(t.threads) == 0:
			return nil
		case err != nil:
			return os.NewSyscallError("wait4", err)
		}
		t.collect(tid, status)
		if len(t.threads) < 2 {
			return nil
		}
		if tid, status, err = wait(-1, unix.WNOHANG); err == unix.ECHILD {
			return nil
		}
	}
}

// bell wakes the tracer's thread where it waits for events. Nothing but an event or a
// signal ends wait4(2), and the handlers of Go have the kernel start it again
// (SA_RESTART). So one signal that Go does nothing with has a handler that does not.
type bell struct {
	waiting atomic.Bool
	polling atomic.Bool // there is no such signal
}

const bellSignal = 62

// restart is SA_RESTART.
const restart = 0x10000000

// action is struct sigaction as the kernel has it.
type action struct {
	handler  uint64
	flags    uint64
	restorer uint64
	mask     signalMask
}

func (b *bell) install() { b.polling.Store(!interrupts(bellSignal)) }

func (b *bell) ring(tid int) {
	if b.waiting.Load() {
		tgkill(os.Getpid(), tid, bellSignal)
	}
}

// ringUntil rings until done is closed: a signal that comes before the thread waits is lost.
func (b *bell) ringUntil(tid int, done <-chan struct{}) {
	const first, last = 100 * time.Microsecond, 10 * time.Millisecond
	for pause := first; ; pause = min(2*pause, last) {
		b.ring(tid)
		timer := time.NewTimer(pause)
		select {
		case <-done:
			timer.Stop()
			return
		case <-timer.C:
			if pause == last { // the host may have set its handlers anew
				b.install()
			}
		}
	}
}

// wait waits for an event of any thread; EINTR where the bell rang, or where idle does not
// hold.
func (b *bell) wait(idle func() bool) (tid int, status unix.WaitStatus, err error) {
	b.waiting.Store(true)
	defer b.waiting.Store(false)
	for b.polling.Load() {
		if tid, status, err = wait(-1, unix.WNOHANG); tid != 0 || err != nil || !idle() {
			return tid, status, err
		}
		time.Sleep(100 * time.Microsecond)
	}
	if !idle() {
		return 0, 0, unix.EINTR
	}
	return wait(-1, 0)
}

// collect notes a stop or an end, and handles what needs no handler.
func (t *Tracer) collect(tid int, status unix.WaitStatus) {
	th := t.threads[tid]
	switch {
	case th == nil && !status.Stopped():
		t.endedStranger(tid, status)
	case th == nil:
		t.stranger(tid, status)
	case !status.Stopped():
		t.ended(th, status)
	default:
		t.stopped(th, status)
	}
}

// stopped notes a stop.
func (t *Tracer) stopped(th *Thread, status unix.WaitStatus) {
	late := th.stuck
	th.state, th.status = stopped, status
	th.forget()
	th.interrupted, th.stuck, th.group = false, false, false
	th.inSignal = th.event() == 0 && status.StopSignal() != syscallStop
	if th.leaving {
		th.detach()
		return
	}
	if th.driven {
		th.group = th.event() == unix.PTRACE_EVENT_STOP && isStopSignal(status.StopSignal())
		return
	}
	t.sort(th, late)
}

// sort has the stop of a thread handled, now or later.
func (t *Tracer) sort(th *Thread, late bool) {
	switch th.event() {
	case unix.PTRACE_EVENT_STOP:
		th.group = isStopSignal(th.status.StopSignal())
		if th.process.space.stops > 0 && raised(th.tid) {
			// The stop came between a breakpoint, or a fault, and its signal.
			th.regroup = th.group
			th.request(unix.PTRACE_CONT, 0)
			th.interrupted = true
			return
		}
		if !th.group {
			th.startAgain()
		}
		if !late {
			t.release(th)
			return
		}
		th.late = true
	case unix.PTRACE_EVENT_CLONE, unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK:
		t.born(th)
	case unix.PTRACE_EVENT_EXEC:
		t.replaced(th)
	case 0:
		th.late = late
	}
	t.enqueue(th)
}

func (t *Tracer) enqueue(th *Thread) {
	if !th.queued {
		th.queued = true
		t.queue = append(t.queue, event{thread: th})
	}
}

func isStopSignal(s syscall.Signal) bool {
	return s == unix.SIGSTOP || s == unix.SIGTSTP || s == unix.SIGTTIN || s == unix.SIGTTOU
}

// release lets a thread go on unless there is a reason not to.
func (t *Tracer) release(th *Thread) {
	if th.state != stopped || th.queued || th.handling || th.awaits != nil || th.process.held || th.process.space.stops > 0 {
		return
	}
	th.resume()
}

// stranger notes the first stop of a thread that is not known yet.
func (t *Tracer) stranger(tid int, status unix.WaitStatus) {
	if pid, err := groupOf(tid); err == nil && t.processes[pid] != nil {
		th := t.newThread(t.processes[pid], tid)
		t.stopped(th, status)
		return
	}
	t.strangers[tid] = status
	if t.lastEnded != nil {
		t.queue = append(t.queue, event{orphan: t.lastEnded})
	}
}

func (t *Tracer) endedStranger(tid int, status unix.WaitStatus) {
	delete(t.strangers, tid)
	if p := t.released[tid]; p != nil {
		delete(t.released, tid)
		t.queue = append(t.queue, event{ended: p, status: status})
	}
}

// ended notes the end of a thread, and of its process where it is the leader: the kernel
// tells of that last.
func (t *Tracer) ended(th *Thread, status unix.WaitStatus) {
	p := th.process
	t.drop(th)
	if th.tid != p.pid || th.leaving && !p.child {
		return
	}
	for _, other := range p.Threads() {
		t.drop(other)
	}
	t.leave(p)
	p.ended = true
	t.queue = append(t.queue, event{ended: p, status: status})
}

// drop forgets a thread.
func (t *Tracer) drop(th *Thread) {
	th.state = gone
	delete(t.threads, th.tid)
	if c := th.child; c != nil {
		th.child = nil
		t.queue = append(t.queue, event{orphan: th.process, child: c})
	}
	th.process.threads = slices.DeleteFunc(th.process.threads, func(o *Thread) bool { return o == th })
}

// leave forgets a process.
func (t *Tracer) leave(p *Process) {
	delete(t.processes, p.pid)
	p.space.remove(p)
	p.closeMemory()
	t.letParentGo(p)
}

// letParentGo lets the thread go on that waits for p in vfork.
func (t *Tracer) letParentGo(p *Process) {
	if th := p.awaitedBy; th != nil {
		p.awaitedBy, th.awaits = nil, nil
		t.release(th)
	}
}

// handle handles an event. That a process was killed meanwhile, so that what was wanted of it
// has failed, is no error: its end is told of next.
func (t *Tracer) handle(e event) error {
	err := t.tell(e)
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// tell tells the handler of an event.
func (t *Tracer) tell(e event) error {
	if e.child != nil {
		return t.announce(e.orphan, e.child, nil)
	}
	if e.orphan != nil {
		return t.orphans(e.orphan)
	}
	if e.ended != nil {
		t.handler.Exited(e.ended, syscall.WaitStatus(e.status))
		return t.orphans(e.ended)
	}
	th := e.thread
	th.handling = true
	err := t.dispatch(th)
	th.handling = false
	if err != nil && th.state == gone {
		err = nil
	}
	t.release(th)
	return err
}

// Latecomer is a Handler that is told of threads for which Process.Stop could not wait,
// since they were in the kernel and not to be interrupted: their registers were unknown then.
type Latecomer interface {
	// Late: the thread has come out of the kernel, and has not executed an instruction
	// since.
	Late(th *Thread) error
}

func (t *Tracer) dispatch(th *Thread) error {
	if th.late {
		th.late = false
		if l, ok := t.handler.(Latecomer); ok {
			if err := l.Late(th); err != nil {
				return err
			}
		}
	}
	switch th.event() {
	case unix.PTRACE_EVENT_STOP:
		return nil
	case unix.PTRACE_EVENT_CLONE, unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK:
		return t.forked(th)
	case unix.PTRACE_EVENT_EXEC:
		return t.executed(th)
	}
	if th.status.StopSignal() == syscallStop {
		return t.called(th)
	}
	if th.inSignal {
		th.prepare()
		if th.trap {
			return t.trapped(th)
		}
		return t.signalled(th)
	}
	return nil
}
