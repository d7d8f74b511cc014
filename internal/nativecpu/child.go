//go:build linux && amd64

package nativecpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// child is a process that does nothing of its own: the parent sets its
// registers and lets it run to the next exception. Every call must come from
// the thread that started it.
type child struct {
	pid     int
	proc    *os.Process
	shared  *os.File // the arena, first page the control page
	arena   []byte   // the parent's view of it
	pending int      // system calls in the control page
	// base holds the segments and all else that no State does, and no system
	// call to go on with.
	base unix.PtraceRegs
}

const (
	sharedFD      = 3 // in the child
	watchdogMicro = 50_000
)

// startChild starts a child with an arena of that many pages.
func startChild(pages int) (c *child, err error) {
	runtime.LockOSThread()
	c = new(child)
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.shared, err = memfd("arena", nil); err != nil {
		return c, err
	}
	size := pages * pageSize
	if err = c.shared.Truncate(int64(size)); err != nil {
		return c, err
	}
	if c.arena, err = unix.Mmap(int(c.shared.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return c, err
	}
	if err = c.exec(); err != nil {
		return c, err
	}
	return c, c.mapControl()
}

// exec starts the stub, stopped at its first instruction.
func (c *child) exec() error {
	program, err := memfd("stub", executable())
	if err != nil {
		return err
	}
	defer program.Close()
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), program.Fd())
	c.proc, err = os.StartProcess(path, []string{"xol-stub"}, &os.ProcAttr{
		Env:   []string{},
		Files: []*os.File{nil, nil, nil, c.shared},
		Sys:   &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	c.pid = c.proc.Pid
	if _, err := c.wait(); err != nil {
		return err
	}
	if err := unix.PtraceGetRegs(c.pid, &c.base); err != nil {
		return err
	}
	c.base.Orig_rax, c.base.Eflags = ^uint64(0), 0x202
	return unix.PtraceSetOptions(c.pid, unix.PTRACE_O_EXITKILL)
}

func memfd(name string, contents []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("xol-"+name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(contents); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (c *child) close() error {
	var errs []error
	if c.proc != nil {
		errs = append(errs, c.proc.Kill())
		_, err := c.proc.Wait()
		errs = append(errs, err)
	}
	if c.arena != nil {
		errs = append(errs, unix.Munmap(c.arena))
	}
	if c.shared != nil {
		errs = append(errs, c.shared.Close())
	}
	runtime.UnlockOSThread()
	return errors.Join(errs...)
}

// errGone: the child ended.
var errGone = errors.New("the process that runs the code ended")

// wait waits for the child to stop and returns the signal.
func (c *child) wait() (unix.Signal, error) {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(c.pid, &status, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, os.NewSyscallError("wait4", err)
		case !status.Stopped():
			return 0, errGone
		}
		return status.StopSignal(), nil
	}
}

// A request that package unix does not name.
const ptraceSysemu = 31 // go on to the next system call, and do not make it

func ptrace(request, pid int, addr, data uintptr) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), addr, data, 0, 0); errno != 0 {
		return os.NewSyscallError("ptrace", errno)
	}
	return nil
}

// resume lets the child run until it stops: at an exception or, where system
// calls are not to be made, before one.
func (c *child) resume(request int) (unix.Signal, error) {
	if err := ptrace(request, c.pid, 0, 0); err != nil {
		return 0, err
	}
	return c.wait()
}

// mapControl maps the control page, and sets a watchdog that stops code that
// runs for ever.
func (c *child) mapControl() error {
	const syscallInStub = callsEntry + 0x21
	regs := c.base
	regs.Rip, regs.Rax = syscallInStub, unix.SYS_MMAP
	regs.Rdi, regs.Rsi, regs.Rdx = controlAddr, pageSize, unix.PROT_READ|unix.PROT_WRITE
	regs.R10, regs.R8, regs.R9 = unix.MAP_SHARED|unix.MAP_FIXED, sharedFD, 0
	if err := unix.PtraceSetRegs(c.pid, &regs); err != nil {
		return err
	}
	if _, err := c.resume(unix.PTRACE_SINGLESTEP); err != nil {
		return err
	}
	if err := unix.PtraceGetRegs(c.pid, &regs); err != nil {
		return err
	}
	if regs.Rax != controlAddr {
		return fmt.Errorf("mapping the control page: %w", unix.Errno(-int64(regs.Rax)))
	}
	const itimerVirtual = 1
	timer := controlAddr + pageSize - callSize // after the list
	for i := range 2 {                         // interval and value
		binary.LittleEndian.PutUint64(c.arena[pageSize-callSize+i*16:], 0)
		binary.LittleEndian.PutUint64(c.arena[pageSize-callSize+i*16+8:], watchdogMicro)
	}
	c.call(unix.SYS_SETITIMER, itimerVirtual, uint64(timer))
	return c.flush()
}

// call notes a system call for flush.
func (c *child) call(number uint64, args ...uint64) {
	at := c.arena[c.pending*callSize:]
	binary.LittleEndian.PutUint64(at, number)
	for i := range 6 {
		arg := uint64(0)
		if i < len(args) {
			arg = args[i]
		}
		binary.LittleEndian.PutUint64(at[8+8*i:], arg)
	}
	c.pending++
}

// full reports whether flush has to come before the next call.
func (c *child) full() bool { return c.pending == maxCalls-1 }

// flush makes the noted system calls and returns the first one's error.
func (c *child) flush() error {
	if c.pending == 0 {
		return nil
	}
	n := c.pending
	c.pending = 0
	binary.LittleEndian.PutUint64(c.arena[n*callSize:], endOfCalls)
	regs := c.base
	regs.Rip, regs.Rbx = callsEntry, controlAddr
	if err := unix.PtraceSetRegs(c.pid, &regs); err != nil {
		return err
	}
	for {
		switch sig, err := c.resume(unix.PTRACE_CONT); {
		case err != nil:
			return err
		case sig == unix.SIGVTALRM:
			continue
		case sig != unix.SIGTRAP:
			return fmt.Errorf("system calls stopped by %v", sig)
		}
		break
	}
	for i := range n {
		result := int64(binary.LittleEndian.Uint64(c.arena[i*callSize+7*8:]))
		if result < 0 && result > -4096 {
			return os.NewSyscallError(fmt.Sprintf("system call %d", binary.LittleEndian.Uint64(c.arena[i*callSize:])), unix.Errno(-result))
		}
	}
	return nil
}

// cpuid executes cpuid in the child.
func (c *child) cpuid(leaf, sub uint32) (a, b, cx, d uint32, err error) {
	regs := c.base
	regs.Rip, regs.Rax, regs.Rcx = cpuidEntry, uint64(leaf), uint64(sub)
	if err = unix.PtraceSetRegs(c.pid, &regs); err != nil {
		return
	}
	if _, err = c.resume(unix.PTRACE_CONT); err != nil {
		return
	}
	err = unix.PtraceGetRegs(c.pid, &regs)
	return uint32(regs.Rax), uint32(regs.Rbx), uint32(regs.Rcx), uint32(regs.Rdx), err
}

// regs reads the general registers. Where a far transfer has left 64-bit mode,
// it goes back there first: the kernel shows the registers of the other mode.
func (c *child) regs(regs *unix.PtraceRegs) error {
	if err := unix.PtraceGetRegs(c.pid, regs); err != nil || regs.Cs == c.base.Cs {
		return err
	}
	cs := binary.LittleEndian.AppendUint64(nil, c.base.Cs)
	if _, err := unix.PtracePokeUser(c.pid, unsafe.Offsetof(regs.Cs), cs); err != nil {
		return err
	}
	return unix.PtraceGetRegs(c.pid, regs)
}

// siginfo is the start of siginfo_t of a memory fault.
type siginfo struct {
	signo, errno, code, _ int32
	addr                  uint64
	_                     [104]byte
}

func (c *child) siginfo() (info siginfo, err error) {
	err = ptrace(unix.PTRACE_GETSIGINFO, c.pid, 0, uintptr(unsafe.Pointer(&info)))
	return info, err
}

// regset reads or writes the extended state.
func (c *child) regset(request int, area []byte) (int, error) {
	const ntX86XState = 0x202
	iov := unix.Iovec{Base: &area[0]}
	iov.SetLen(len(area))
	err := ptrace(request, c.pid, ntX86XState, uintptr(unsafe.Pointer(&iov)))
	return int(iov.Len), err
}
