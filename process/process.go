//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"xol/arch"
)

// Process is an address space with its threads. A child that shares the memory of its
// parent, as after vfork, is a Process of its own (Shares).
type Process struct {
	tracer  *Tracer
	pid     int
	threads []*Thread
	space   *space
	memory  *os.File
	child   bool // of ours

	passing   bool     // a child that is not wanted for itself
	held      bool     // until Handler.Forked has returned
	maker     *Process // the one that has made it, where that is traced
	parent    *Process // the one whose memory it shares
	awaitedBy *Thread  // the thread of the parent that waits in vfork
	ended     bool
	replaced  bool // it executes another program, of which the handler does not know yet

	starting bool // up to the end of the start-up of its libraries
	dynamic  uint64
	trap     trapAction
}

// space is what tasks that share their memory have in common.
type space struct {
	members []*Process
	stops   int                  // how often it is stopped
	stopped time.Time            // since when it is
	breaks  map[uint64]*ownBreak // breakpoints of this package
	gate    uint64               // an instruction that calls the system; 0 where none is known
	scratch uint64               // a page of ours; 0 where there is none
}

func (s *space) remove(p *Process) {
	s.members = slices.DeleteFunc(s.members, func(o *Process) bool { return o == p })
}

// tasks returns the threads of all processes that share the space.
func (s *space) tasks() []*Thread {
	if len(s.members) == 1 {
		return s.members[0].threads
	}
	var list []*Thread
	for _, p := range s.members {
		list = append(list, p.threads...)
	}
	return list
}

func (t *Tracer) newProcess(pid int) *Process {
	p := &Process{tracer: t, pid: pid}
	p.space = &space{members: []*Process{p}, breaks: map[uint64]*ownBreak{}}
	t.processes[pid] = p
	return p
}

// PID returns its id.
func (p *Process) PID() int { return p.pid }

// ISA returns the instruction set of its program.
func (p *Process) ISA() arch.ISA { return p.tracer.isa }

// Threads returns its threads, in the order in which they were found.
func (p *Process) Threads() []*Thread { return slices.Clone(p.threads) }

// Tasks returns its threads and those of processes that share its memory.
func (p *Process) Tasks() []*Thread { return slices.Clone(p.space.tasks()) }

// Maker returns the process that has made it; nil where that was not traced then.
func (p *Process) Maker() *Process { return p.maker }

// Shares returns the process whose memory it shares; nil for a process of its own memory.
func (p *Process) Shares() *Process { return p.parent }

func (p *Process) String() string { return "process " + strconv.Itoa(p.pid) }

func (p *Process) fail(err error, detail string) error {
	if p.ended || p.replaced || errors.Is(err, unix.ESRCH) {
		err = ErrGone
	}
	return &Error{PID: p.pid, Err: err, Detail: detail}
}

// Stop stops all threads, and those of processes that share the memory. It may be called
// several times; Resume has to be called as often. Until then no event of theirs is
// handled. Threads that are in the kernel and cannot be interrupted there count as stopped,
// since they execute no instruction before they stop (Thread.Stopped, Latecomer). It returns
// ErrGone of a process that has ended, or executes another program of which the handler has
// not been told.
func (p *Process) Stop() error {
	err := p.stop()
	if err == nil && (p.ended || p.replaced) {
		p.Resume()
		err = p.fail(ErrGone, "")
	}
	return err
}

// stop is Stop, also of a process whose program is another one by now.
func (p *Process) stop() error {
	if p.ended {
		return p.fail(ErrGone, "")
	}
	s := p.space
	if s.stops++; s.stops > 1 {
		return nil
	}
	s.stopped = time.Now()
	err := p.tracer.halt(s, lateAfter)
	if err == nil && !p.ended && !p.replaced {
		err = p.trap.look(p)
	}
	if err != nil {
		p.Resume()
	}
	return err
}

// How long is waited for a thread in the kernel that cannot be interrupted.
const (
	lateAfter   = 20 * time.Millisecond
	detachAfter = time.Second
)

// Resume takes one Stop back. When all are, the threads go on.
func (p *Process) Resume() error {
	s := p.space
	if s.stops == 0 {
		return &Error{PID: p.pid, Err: errors.New("it is not stopped")}
	}
	if s.stops--; s.stops == 0 {
		p.tracer.longest = max(p.tracer.longest, time.Since(s.stopped))
		for _, th := range slices.Clone(s.tasks()) {
			p.tracer.release(th)
		}
	}
	return nil
}

// halt waits until no task of s can execute an instruction, for those that cannot be
// interrupted as long as patience lasts.
func (t *Tracer) halt(s *space, patience time.Duration) error {
	moving := func() (n int) {
		for _, th := range s.tasks() {
			if th.state != running || th.stuck || th.dead {
				continue
			}
			if !th.interrupted {
				th.interrupted = true
				ptrace(unix.PTRACE_INTERRUPT, th.tid, 0, 0)
			}
			n++
		}
		return n
	}
	n := moving()
	if n == 0 {
		t.look(s)
		return nil
	}
	const pause = 2 * time.Millisecond
	begun := time.Now()
	var alarm *time.Timer
	alarm = time.AfterFunc(time.Hour, func() { // not before alarm is set
		t.bell.ring(t.tid)
		alarm.Reset(pause)
	})
	alarm.Reset(pause)
	defer alarm.Stop()
	for n > 0 {
		tid, status, err := t.bell.wait(func() bool { return true })
		switch {
		case err == unix.EINTR || tid == 0 && err == nil:
			for _, th := range s.tasks() {
				th.lookAtState(time.Since(begun) > patience)
			}
		case err != nil:
			return os.NewSyscallError("wait4", err)
		default:
			t.collect(tid, status)
		}
		n = moving()
	}
	t.look(s)
	return nil
}

// look reads what the stops of a space are about before its text is changed.
func (t *Tracer) look(s *space) {
	for _, th := range s.tasks() {
		if th.queued {
			th.prepare()
		}
	}
}

// lookAtState finds out why a thread does not stop. enough says that it has been waited for
// long enough.
func (th *Thread) lookAtState(enough bool) {
	if th.state != running {
		return
	}
	switch state, err := stateOf(th.tid); {
	case err != nil, state == 'Z', state == 'X':
		th.dead = true
	case state == 'D' && enough:
		th.stuck = true
	}
}

// stateOf returns the state of a thread as proc(5) has it.
func stateOf(tid int) (byte, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", tid))
	if err != nil {
		return 0, err
	}
	// The name before it may have any character.
	if i := strings.LastIndex(string(stat), ") "); i >= 0 && i+2 < len(stat) {
		return stat[i+2], nil
	}
	return 0, fmt.Errorf("/proc/%d/stat is not understood", tid)
}

// statusField returns a field of /proc/ID/status.
func statusField(id int, name string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
	if err != nil {
		return "", err
	}
	return fieldOf(string(text), name), nil
}

func fieldOf(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// groupOf returns the process of a thread.
func groupOf(tid int) (int, error) {
	field, err := statusField(tid, "Tgid")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(field)
}
