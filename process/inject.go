//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"xol/machine"
)

// Syscall has the process call the system, and returns the result or a syscall.Errno. One
// of its threads does, where it is stopped; if none is, all are stopped for the time. The
// thread does not notice: its registers, its signals and a system call that has been
// interrupted are as before. The call must not wait, nor make or end threads.
func (p *Process) Syscall(nr uint64, args ...uint64) (uint64, error) {
	if p.ended || p.replaced {
		return 0, p.fail(ErrGone, "")
	}
	th := p.caller()
	if th == nil {
		if err := p.Stop(); err != nil {
			return 0, err
		}
		defer p.Resume()
		if th = p.caller(); th == nil {
			return 0, p.fail(ErrNoThread, "")
		}
	}
	return th.call(nr, args)
}

// caller returns the thread that can call the system most easily; nil where none can.
func (p *Process) caller() *Thread {
	var best *Thread
	for _, th := range p.space.tasks() {
		if th.state != stopped || th.awaits != nil {
			continue
		}
		switch {
		case th.event() == unix.PTRACE_EVENT_STOP && !th.group:
			return th
		case best == nil, th.handling, best.group && !th.handling:
			best = th
		}
	}
	return best
}

// call has a stopped thread call the system.
//
// It is done from a stop where the kernel looks for signals, and ends there, since only on
// the way out of that it looks whether a system call is to be started again. All signals are
// blocked meanwhile. The one whose delivery the thread was stopped at is sent again, and
// its data set, at the end: what has the kernel deliver a signal is such a stop only.
//
// A filter of system calls is suspended: it knows the program's calls, and might end the
// program for this one.
func (th *Thread) call(nr uint64, args []uint64) (result uint64, err error) {
	p := th.process
	gate, err := p.findGate()
	if err != nil {
		return 0, err
	}
	if err := th.suspendFilter(); err != nil {
		return 0, err
	}
	defer th.resumeFilter()
	th.prepare()
	if th.store() != nil || !th.load() {
		return 0, p.fail(ErrGone, "")
	}
	mask, err := getMask(th.tid)
	if err == nil {
		err = setMask(th.tid, allSignals)
	}
	if err != nil {
		return 0, p.fail(err, "its signals cannot be blocked")
	}
	if err := th.settle(); err != nil {
		return 0, err
	}
	if !th.load() {
		return 0, p.fail(ErrGone, "")
	}
	kept := *th
	sequence := th.saveSequence()
	result, callErr := th.perform(gate, nr, args)
	if th.state != stopped {
		return 0, p.fail(ErrGone, "")
	}
	if err := th.comeBack(&kept, mask); err != nil {
		return 0, err
	}
	sequence()
	return result, callErr
}

// saveSequence returns what restores the pointer to the thread's restartable sequence. The
// kernel drops it where it finds the thread elsewhere, and then would not start the sequence
// again.
func (th *Thread) saveSequence() func() {
	p := th.process
	at := criticalSection(th.tid)
	if at == 0 {
		return func() {}
	}
	section, err := p.ReadWord(at)
	if err != nil || section == 0 {
		return func() {}
	}
	return func() { p.WriteWord(at, section) }
}

// settle brings a thread that is stopped elsewhere in the kernel to where it looks for
// signals, all of which are blocked. What the stop was for can be handled as before.
func (th *Thread) settle() error {
	if th.settled || th.inSignal || th.event() == unix.PTRACE_EVENT_STOP {
		return nil
	}
	status := th.status
	ptrace(unix.PTRACE_INTERRUPT, th.tid, 0, 0)
	if err := th.continueTo(0, func() bool { return th.event() == unix.PTRACE_EVENT_STOP }); err != nil {
		return err
	}
	th.status, th.settled = status, true
	return nil
}

// continueTo lets a thread whose signals are blocked go on to a stop. SIGSTOP, which nothing
// blocks, comes again when that is reached.
func (th *Thread) continueTo(data uintptr, there func() bool) error {
	for ; ; data = 0 {
		th.request(unix.PTRACE_CONT, data)
		switch {
		case !th.waitStop():
			return th.process.fail(ErrGone, "")
		case there():
			return nil
		case th.inSignal && th.status.StopSignal() == unix.SIGSTOP:
			defer tgkill(th.process.pid, th.tid, unix.SIGSTOP)
		}
	}
}

// perform makes the call: the thread is stopped at its end then.
func (th *Thread) perform(gate, nr uint64, args []uint64) (uint64, error) {
	l := th.layout
	w := &th.words
	if l.Restart >= 0 {
		w[l.Restart] = l.NoRestart
	}
	w[l.Number] = nr
	for i, v := range args {
		w[l.Args[i]] = v
	}
	w[l.Word[th.tracer.file.PC].Word] = gate
	th.dirty = true
	stops := 0
	for stops < 2 {
		th.request(unix.PTRACE_SYSCALL, 0)
		if !th.waitStop() {
			return 0, th.process.fail(ErrGone, "")
		}
		switch {
		case th.event() == 0 && th.status.StopSignal() == syscallStop:
			stops++
		case th.inSignal && th.status.StopSignal() == unix.SIGSTOP:
			// Nothing blocks it. It comes again when the call has been made.
			defer tgkill(th.process.pid, th.tid, unix.SIGSTOP)
		case th.inSignal:
			// Raised by the call itself, where a filter does not allow it.
			return 0, syscall.EPERM
		}
	}
	if !th.load() {
		return 0, th.process.fail(ErrGone, "")
	}
	v := w[l.Result]
	switch {
	case l.Failed >= 0 && w[l.Failed]&l.FailedBit != 0:
		return 0, syscall.Errno(v)
	case l.Failed < 0 && v > ^uint64(4095):
		return 0, syscall.Errno(-v)
	}
	return v, nil
}

// comeBack brings a thread from a stop at a system call to a stop such as kept has.
func (th *Thread) comeBack(kept *Thread, mask signalMask) error {
	var again syscall.Signal
	if kept.inSignal && (kept.queued || kept.handling || kept.deliver != 0) {
		again = kept.signal.Number
		setMask(th.tid, allSignals&^maskOf(again))
	} else {
		ptrace(unix.PTRACE_INTERRUPT, th.tid, 0, 0)
	}
	err := th.continueTo(uintptr(again), func() bool {
		if again != 0 {
			return th.inSignal && th.status.StopSignal() == again
		}
		return th.event() == unix.PTRACE_EVENT_STOP
	})
	if err != nil {
		return err
	}
	if err := setMask(th.tid, mask); err != nil {
		return th.process.fail(err, "")
	}
	th.words, th.have, th.dirty = kept.words, true, true
	if kept.settled {
		th.status, th.settled = kept.status, true
	}
	if again != 0 {
		th.status, th.inSignal, th.prepared = kept.status, true, true
		th.signal, th.deliver = kept.signal, kept.deliver
		th.trap, th.trapAt = kept.trap, kept.trapAt
		th.info = [infoSize]byte{} // what the kernel has now is another
	}
	return nil
}

// findGate returns the address of an instruction that calls the system.
func (p *Process) findGate() (uint64, error) {
	instruction := p.tracer.layout.Syscall
	is := make([]byte, len(instruction))
	if s := p.space; s.gate != 0 && p.read(is, s.gate) == nil && bytes.Equal(is, instruction) {
		return s.gate, nil
	}
	maps, err := p.Maps()
	if err != nil {
		return 0, err
	}
	for _, wanted := range []string{"[vdso]", ""} {
		for _, m := range maps {
			if m.Perm&machine.PermExec == 0 || m.Path == "[vsyscall]" || wanted != "" && m.Path != wanted {
				continue
			}
			if at, ok := p.search(m, instruction); ok {
				p.space.gate = at
				return at, nil
			}
		}
	}
	return 0, p.fail(ErrNoThread, "no instruction that calls the system has been found")
}

// search finds an aligned instruction in a mapping.
func (p *Process) search(m Mapping, instruction []byte) (uint64, bool) {
	const most = 1 << 20
	step := p.tracer.isa.Align()
	text := make([]byte, min(m.Hi-m.Lo, most))
	for lo := m.Lo; lo < m.Hi; lo += uint64(len(text)) {
		text = text[:min(uint64(len(text)), m.Hi-lo)]
		if p.Read(text, lo) != nil {
			return 0, false
		}
		for i := 0; i+len(instruction) <= len(text); i += step {
			if bytes.Equal(text[i:i+len(instruction)], instruction) {
				return lo + uint64(i), true
			}
		}
	}
	return 0, false
}

// Map gives the program zeroed memory at [addr, addr+size), in whole pages. The error is
// ErrTaken where there is any already.
func (p *Process) Map(addr, size uint64, perm machine.Perm) error {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
	_, err := p.mapAt(addr, size, perm, flags)
	return err
}

// mapAt calls mmap for an address. Kernels that do not know MAP_FIXED_NOREPLACE may map
// elsewhere.
func (p *Process) mapAt(addr, size uint64, perm machine.Perm, flags uint64) (uint64, error) {
	const noFile = ^uint64(0)
	at, err := p.Syscall(unix.SYS_MMAP, addr, size, uint64(perm), flags, noFile, 0)
	switch {
	case err == syscall.EEXIST:
		return 0, p.fail(ErrTaken, fmt.Sprintf("%#x", addr))
	case err != nil:
		return 0, p.callError("mmap", err)
	case addr != 0 && at != addr:
		return 0, errors.Join(p.fail(ErrTaken, fmt.Sprintf("%#x", addr)), p.Unmap(at, size))
	}
	return at, nil
}

func (p *Process) callError(name string, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return p.fail(os.NewSyscallError(name, errno), "")
	}
	return err
}

// Unmap takes memory away.
func (p *Process) Unmap(addr, size uint64) error {
	if _, err := p.Syscall(unix.SYS_MUNMAP, addr, size); err != nil {
		return p.callError("munmap", err)
	}
	return nil
}

// Protect changes what the program may do with memory.
func (p *Process) Protect(addr, size uint64, perm machine.Perm) error {
	if _, err := p.Syscall(unix.SYS_MPROTECT, addr, size, uint64(perm)); err != nil {
		return p.callError("mprotect", err)
	}
	return nil
}

// MapShared gives the program zeroed memory that it may read and write, and that can be
// mapped from the returned file as well. Children that the process makes share it.
func (p *Process) MapShared(addr, size uint64) (file *os.File, err error) {
	if err := p.Stop(); err != nil { // the file must not be seen, nor inherited
		return nil, err
	}
	defer p.Resume()
	if err := p.Map(addr, size, machine.PermRead|machine.PermWrite); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Unmap(addr, size)
		}
	}()
	if err := p.Write(addr, []byte("xol\x00")); err != nil {
		return nil, err
	}
	th := p.caller() // one for all, since others may have files of their own
	if th == nil {
		return nil, p.fail(ErrNoThread, "")
	}
	fd, err := th.call(unix.SYS_MEMFD_CREATE, []uint64{addr, unix.MFD_CLOEXEC})
	if err != nil {
		return nil, p.callError("memfd_create", err)
	}
	defer th.call(unix.SYS_CLOSE, []uint64{fd})
	if file, err = os.OpenFile(fmt.Sprintf("/proc/%d/task/%d/fd/%d", th.process.pid, th.tid, fd), os.O_RDWR, 0); err != nil {
		return nil, p.fail(err, "")
	}
	if err = file.Truncate(int64(size)); err == nil {
		const perm = unix.PROT_READ | unix.PROT_WRITE
		_, err = th.call(unix.SYS_MMAP, []uint64{addr, size, perm, unix.MAP_SHARED | unix.MAP_FIXED, fd, 0})
	}
	if err != nil {
		file.Close()
		return nil, p.callError("mmap", err)
	}
	return file, nil
}

// SyncCore has all threads of the process see text that has been changed before they execute
// it. It is needed only where they run meanwhile; the kernel does it for those that are
// stopped.
func (p *Process) SyncCore() error {
	const (
		syncCore = 1 << 5 // MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE
		register = 1 << 6
	)
	_, err := p.Syscall(unix.SYS_MEMBARRIER, syncCore, 0)
	if err == syscall.EPERM { // not registered yet
		if _, err = p.Syscall(unix.SYS_MEMBARRIER, register, 0); err == nil {
			_, err = p.Syscall(unix.SYS_MEMBARRIER, syncCore, 0)
		}
	}
	if err != nil {
		return p.callError("membarrier", err)
	}
	return nil
}

// Step executes one instruction by the CPU's facility. Where another event comes first, it
// is left to be handled, and the error is ErrInterrupted.
func (th *Thread) Step() error {
	p := th.process
	if th.state != stopped {
		return p.fail(ErrNoThread, "the thread is not stopped")
	}
	if th.queued {
		return ErrInterrupted
	}
	// What the CPU raises after the instruction is sent by force: where it were blocked,
	// the program would lose its handler.
	mask, err := getMask(th.tid)
	if err != nil {
		return p.fail(err, "")
	}
	if mask.has(unix.SIGTRAP) {
		if err := setMask(th.tid, mask&^maskOf(unix.SIGTRAP)); err != nil {
			return p.fail(err, "")
		}
	}
	deliver := uintptr(0)
	for {
		th.request(unix.PTRACE_SINGLESTEP, deliver)
		if !th.waitStop() {
			return p.fail(ErrGone, "")
		}
		if th.event() != unix.PTRACE_EVENT_STOP {
			break
		}
	}
	if mask.has(unix.SIGTRAP) {
		if now, err := getMask(th.tid); err == nil {
			setMask(th.tid, now|maskOf(unix.SIGTRAP))
		}
	}
	if !th.inSignal {
		th.tracer.sort(th, false)
		return ErrInterrupted
	}
	th.prepare()
	if th.signal.Number == unix.SIGTRAP && th.signal.Code() > 0 && !th.trap {
		return nil
	}
	th.tracer.enqueue(th)
	return ErrInterrupted
}
