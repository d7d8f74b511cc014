//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Most system calls that a tracer interrupts are started again by the kernel. A few say
// EINTR whenever they are woken [signal(7), the last section]. These are started again here,
// unless a signal that the program handles has woken them as well. Where the result of a
// system call takes the place of its first argument, that cannot be done.

// wouldStartAgain reports whether the thread is in such a system call, which says EINTR.
func (th *Thread) wouldStartAgain() bool {
	l, w := th.layout, &th.words
	return startedAgain != nil && th.load() && w[l.Restart] != l.NoRestart && w[l.Result] == eintr && startedAgain[w[l.Restart]]
}

// startAgain has a system call that says EINTR made again, and notes it.
func (th *Thread) startAgain() {
	if !th.wouldStartAgain() {
		return
	}
	l, w := th.layout, &th.words
	number := w[l.Restart]
	th.again = restartPoint{at: th.PC() - uint64(len(l.Syscall)), number: number}
	th.SetPC(th.again.at)
	w[l.Number], w[l.Restart], th.dirty = number, l.NoRestart, true
}

const eintr = ^uint64(syscall.EINTR) + 1

// restartPoint is where a system call is started again.
type restartPoint struct {
	at     uint64 // 0: none is
	number uint64 // of the call
}

// endAgain has the system call say EINTR after all, where a thread has not come to make it
// again yet: a signal is delivered before.
func (th *Thread) endAgain() {
	l, w := th.layout, &th.words
	a := th.again
	th.again = restartPoint{}
	if a.at == 0 || !th.load() || th.PC() != a.at || w[l.Number] != a.number {
		return
	}
	th.SetPC(a.at + uint64(len(l.Syscall)))
	w[l.Result], w[l.Restart], th.dirty = eintr, a.number, true
}

// unseen reports whether the program does nothing with a signal: without a tracer, the
// kernel would not have woken it.
func (p *Process) unseen(s syscall.Signal) bool {
	caught, ignored := p.handles(s)
	switch s {
	case unix.SIGCHLD, unix.SIGURG, unix.SIGWINCH:
		return !caught
	}
	return ignored
}
