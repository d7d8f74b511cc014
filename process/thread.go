//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"xol/machine"
)

// Thread is a thread of a Process. Its registers can be read and set while it is stopped;
// otherwise they are 0. They are written when it goes on.
type Thread struct {
	process *Process
	tracer  *Tracer
	tid     int
	state   threadState
	status  unix.WaitStatus // of the stop

	queued      bool // its stop waits to be handled
	handling    bool // its stop is being handled
	interrupted bool // it has been asked to stop
	stuck       bool // it is in the kernel and cannot be stopped there
	dead        bool // it has ended, and the kernel has not told of it yet
	late        bool // it was stuck when its process was stopped
	group       bool // the stop is one of job control
	regroup     bool // it was in such a stop before
	calls       bool // stops at system calls are wanted

	driven bool // it is made to do something of ours

	leaving bool      // it is let go as soon as it stops
	child   *Process  // that it has made, of which the handler has not been told
	inCall  [7]uint64 // number and arguments of the system call that it is in
	awaits  *Process  // the child of vfork that it waits for

	settled   bool           // the stop is where the kernel looks for signals, whatever it was for
	inSignal  bool           // the stop is before the delivery of a signal
	prepared  bool           // signal has been read
	trap      bool           // a breakpoint has been executed, and has not been handled
	trapAt    uint64         // its address
	swallowed bool           // in its place, a signal has been delivered that was blocked
	signal    Signal         // the one of the stop
	info      [infoSize]byte // its data as the kernel has it
	deliver   syscall.Signal // what is delivered when the thread goes on

	again restartPoint // where a system call is made again

	mask      signalMask // the blocked signals, as they were known last
	maskKnown bool

	words  [maxWords]uint64
	have   bool // words are those of the thread
	dirty  bool // words have been changed
	layout *machine.Traced
}

// maxWords is how many words the register set of an ISA has at most.
const maxWords = 48

type threadState uint8

const (
	running threadState = iota
	stopped
	gone
)

func (t *Tracer) newThread(p *Process, tid int) *Thread {
	th := &Thread{process: p, tracer: t, tid: tid, layout: t.layout}
	t.threads[tid] = th
	p.threads = append(p.threads, th)
	return th
}

// TID returns its id.
func (th *Thread) TID() int { return th.tid }

// Process returns the process that it is of.
func (th *Thread) Process() *Process { return th.process }

// Stopped reports whether the thread is stopped, so that it has registers.
func (th *Thread) Stopped() bool { return th.state == stopped }

func (th *Thread) String() string { return fmt.Sprintf("thread %d of %v", th.tid, th.process) }

// event returns what PTRACE_EVENT the stop is; 0 for none.
func (th *Thread) event() int { return int(th.status>>16) & 0xff }

// forget drops what was known of the last stop.
func (th *Thread) forget() {
	th.have, th.dirty = false, false
	th.settled, th.inSignal, th.prepared, th.trap = false, false, false, false
	th.swallowed, th.deliver = false, 0
}

func (th *Thread) load() bool {
	if th.have {
		return true
	}
	if th.state != stopped {
		return false
	}
	if _, err := getRegs(th.tid, th.words[:th.layout.Words]); err != nil {
		return false
	}
	th.have = true
	return true
}

// store writes registers that have been changed.
func (th *Thread) store() error {
	if !th.dirty {
		return nil
	}
	th.dirty = false
	return setRegs(th.tid, th.words[:th.layout.Words])
}

// Reg returns register i of the ISA's File; 0 where the kernel does not show it among the
// general registers.
func (th *Thread) Reg(i int) uint64 {
	if i >= len(th.layout.Word) || !th.load() {
		return 0
	}
	w := th.layout.Word[i]
	return th.words[w.Word] & w.Mask
}

// SetReg sets a register. Where Restarts holds, a program counter that is set has to be
// after an instruction that calls the system as well: the kernel goes back to that.
func (th *Thread) SetReg(i int, v uint64) {
	if i >= len(th.layout.Word) || !th.load() {
		return
	}
	w := th.layout.Word[i]
	th.words[w.Word] = th.words[w.Word]&^w.Mask | v&w.Mask
	th.dirty = true
}

// PC returns the program counter.
func (th *Thread) PC() uint64 { return th.Reg(th.tracer.file.PC) }

// SetPC sets it.
func (th *Thread) SetPC(addr uint64) { th.SetReg(th.tracer.file.PC, addr) }

// Restarts reports whether the thread is stopped in a system call that the kernel may start
// again when it goes on.
func (th *Thread) Restarts() bool {
	at := th.layout.Restart
	return at >= 0 && th.load() && th.words[at] != th.layout.NoRestart
}

// NoRestart has the kernel not do so: the thread goes on at its program counter.
func (th *Thread) NoRestart() {
	if th.Restarts() {
		th.words[th.layout.Restart], th.dirty = th.layout.NoRestart, true
	}
}

// SaveCore copies the general registers, stack pointer, program counter and flags to a
// state of the ISA's File.
func (th *Thread) SaveCore(dst machine.State) {
	for i := range th.layout.Word {
		if th.layout.Word[i].Mask != 0 {
			th.tracer.file.SetWord(dst, i, th.Reg(i))
		}
	}
}

// RestoreCore sets them from a state.
func (th *Thread) RestoreCore(src machine.State) {
	for i := range th.layout.Word {
		if th.layout.Word[i].Mask != 0 {
			th.SetReg(i, th.tracer.file.Word(src, i))
		}
	}
}

// request makes a request of ptrace that lets the thread go on.
func (th *Thread) request(request int, data uintptr) error {
	err := th.store()
	if err == nil {
		err = ptrace(request, th.tid, 0, data)
	}
	th.forget()
	th.state = running
	return err
}

// resume lets the thread go on. That it has been killed meanwhile is no error: the kernel
// will tell.
func (th *Thread) resume() {
	deliver := th.deliver
	switch {
	case th.group:
		th.request(unix.PTRACE_LISTEN, 0)
		return
	case deliver != 0 && th.signal.Info != th.info:
		setInfo(th.tid, &th.signal.Info)
	}
	if th.regroup {
		th.regroup = false
		ptrace(unix.PTRACE_INTERRUPT, th.tid, 0, 0)
	}
	request := unix.PTRACE_CONT
	if th.calls {
		request = unix.PTRACE_SYSCALL
	}
	th.request(request, uintptr(deliver))
}

// prepare reads what a signal stop is about. Where a breakpoint has been executed, it sets
// the program counter to its address.
func (th *Thread) prepare() {
	if th.prepared || !th.inSignal {
		return
	}
	th.prepared = true
	th.signal = Signal{Number: th.status.StopSignal()}
	if getInfo(th.tid, &th.signal.Info) != nil {
		th.inSignal = false
		return
	}
	th.info = th.signal.Info
	th.endAgain()
	if th.signal.Number != unix.SIGTRAP || !th.load() {
		return
	}
	at := th.PC() - th.layout.Past
	if th.signal.Code() != th.layout.Code {
		mask, err := getMask(th.tid)
		code := make([]byte, len(th.layout.Breakpoint))
		if err != nil || !th.blockedBefore(mask) || th.process.read(code, at) != nil || !th.layout.IsBreakpoint(code) {
			return
		}
		th.swallowed = true
	}
	th.trap, th.trapAt = true, at
	th.SetPC(at)
}

// waitStop waits until this thread stops, of which nothing is handled. It returns false
// where it has ended.
func (th *Thread) waitStop() bool {
	th.driven = true
	defer func() { th.driven = false }()
	for th.state == running {
		tid, status, err := wait(th.tid, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return false
		}
		th.tracer.collect(tid, status)
	}
	return th.state == stopped
}

// Waiting returns the signal that the thread has stopped for before its delivery, and of
// which the handler has not been told; nil where there is none. It may be changed as there,
// and is dropped so by Detach too.
func (th *Thread) Waiting() *Signal {
	if th.state != stopped || !th.queued || !th.inSignal {
		return nil
	}
	th.prepare()
	if !th.inSignal || th.trap {
		return nil
	}
	return &th.signal
}

// MovePC sets the program counter to where the same point of the program stands as well:
// a system call that has been interrupted there is started again as if it had not moved.
func (th *Thread) MovePC(addr uint64) {
	i := th.tracer.file.PC
	if i >= len(th.layout.Word) || !th.load() {
		return
	}
	w := th.layout.Word[i]
	th.words[w.Word] = th.words[w.Word]&^w.Mask | addr&w.Mask
	th.dirty = true
}
