//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// born notes the child or thread that th has made, from the moment when th is stopped for
// that: it is stopped before its first instruction, sooner or later.
func (t *Tracer) born(th *Thread) {
	message, err := eventMessage(th.tid)
	if err != nil {
		return
	}
	tid := int(message)
	if t.threads[tid] != nil {
		return // a thread, which has stopped first
	}
	p := th.process
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", p.pid, tid)); err == nil {
		t.newThread(p, tid)
	} else {
		vfork := th.event() == unix.PTRACE_EVENT_VFORK
		c := t.newChild(p, tid, vfork)
		th.child = c
		if vfork && (c.parent != nil || t.options.Follow) {
			// The kernel would have it wait where it cannot be stopped. So it waits
			// here, as long.
			th.awaits, c.awaitedBy = c, th
		}
	}
	t.meet(tid)
}

// meet handles a stop that came before it was known of whom.
func (t *Tracer) meet(tid int) {
	if status, ok := t.strangers[tid]; ok {
		delete(t.strangers, tid)
		t.stopped(t.threads[tid], status)
	}
}

// newChild notes a child of p. It is held until the handler has been told.
func (t *Tracer) newChild(p *Process, pid int, vfork bool) *Process {
	c := t.newProcess(pid)
	c.held, c.passing, c.maker = true, !t.options.Follow, p
	c.dynamic, c.starting, c.trap = p.dynamic, p.starting, p.trap
	t.newThread(c, pid)
	if shareMemory(p.pid, pid, vfork) {
		c.parent, c.space = p, p.space
		p.space.members = append(p.space.members, c)
		return c
	}
	c.space.gate, c.space.scratch = p.space.gate, p.space.scratch
	for at, b := range p.space.breaks {
		c.space.breaks[at] = &ownBreak{original: bytes.Clone(b.original), instruction: b.instruction, hit: b.hit}
	}
	return c
}

// shareMemory asks the kernel whether two processes share their memory. Where it does not
// tell, vfork does, as the C library has it.
func shareMemory(a, b int, vfork bool) bool {
	const kcmpVM = 1
	r, _, errno := unix.RawSyscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	if errno != 0 {
		return vfork
	}
	return r == 0
}

// forked tells the handler of a child.
func (t *Tracer) forked(th *Thread) error {
	c := th.child
	if c == nil {
		return nil
	}
	th.child = nil
	return t.announce(th.process, c, th)
}

func (t *Tracer) announce(p, c *Process, th *Thread) error {
	if c.ended || len(c.threads) == 0 || !c.threads[0].waitStop() {
		return nil
	}
	err := t.handler.Forked(p, c, th)
	c.held = false
	if c.ended {
		return err
	}
	if c.passing && c.parent == nil {
		if detach := c.Detach(); err == nil {
			err = detach
		}
		return err
	}
	for _, th := range c.Threads() {
		t.release(th)
	}
	return err
}

// orphans tells of children whose parent has ended before it could.
func (t *Tracer) orphans(p *Process) error {
	t.lastEnded = p
	for tid := range t.strangers {
		if parent, err := statusField(tid, "PPid"); err == nil {
			if pid, err := strconv.Atoi(parent); err == nil && t.processes[pid] != nil {
				continue
			}
		}
		c := t.newChild(p, tid, false)
		t.meet(tid)
		if err := t.announce(p, c, nil); err != nil {
			return err
		}
	}
	return nil
}

// replaced notes that the process of th executes another program: its other threads are
// gone, and th is its leader.
func (t *Tracer) replaced(th *Thread) {
	p := th.process
	for _, other := range p.Threads() {
		if other != th {
			t.drop(other)
		}
	}
	p.replaced = true
	th.dead, th.calls = false, false
	if len(p.space.members) > 1 {
		p.space.remove(p)
		p.space = &space{members: []*Process{p}}
		p.parent = nil
	}
	*p.space = space{members: p.space.members, stops: p.space.stops, breaks: map[uint64]*ownBreak{}}
	t.letParentGo(p)
}

// executed handles the first stop of a new program.
func (t *Tracer) executed(th *Thread) error {
	p := th.process
	p.closeMemory()
	p.replaced = false
	p.trap = trapAction{}
	if p.passing {
		return p.Detach()
	}
	if err := p.checkProgram(); err != nil {
		return p.Detach() // it goes on by itself
	}
	if err := p.watchStart(th); err != nil {
		return err
	}
	if err := p.trap.look(p); err != nil {
		return err
	}
	return t.handler.Started(p)
}
