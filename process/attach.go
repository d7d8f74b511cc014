//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"xol/arch"
)

// Start starts a program, which is held before its first instruction until the tracer runs
// (Handler.Started).
func (t *Tracer) Start(cmd *Command) (*Process, error) {
	if err := t.known(); err != nil {
		return nil, err
	}
	files := cmd.Files
	if files == nil {
		files = []*os.File{os.Stdin, os.Stdout, os.Stderr}
	}
	attr := &syscall.ProcAttr{Dir: cmd.Dir, Env: cmd.Env, Sys: &syscall.SysProcAttr{Ptrace: true}}
	if attr.Env == nil {
		attr.Env = os.Environ()
	}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	pid, err := syscall.ForkExec(cmd.Path, cmd.Args, attr)
	if err != nil {
		if errors.Is(err, unix.ENOEXEC) {
			err = cmp.Or(t.checkFile(cmd.Path), err)
		}
		return nil, &os.PathError{Op: "start", Path: cmd.Path, Err: err}
	}
	if err := seizeChild(pid); err != nil {
		syscall.Kill(pid, syscall.SIGKILL)
		wait(pid, 0)
		return nil, &Error{PID: pid, Err: err, Detail: cmd.Path + " cannot be traced"}
	}
	p := t.newProcess(pid)
	p.child = true
	if err := p.checkProgram(); err != nil {
		syscall.Kill(pid, syscall.SIGKILL)
		wait(pid, 0)
		delete(t.processes, pid)
		return nil, fmt.Errorf("%s: %w", cmd.Path, err)
	}
	th := t.newThread(p, pid)
	th.state, th.status = stopped, unix.WaitStatus(stopStatus|int(unix.SIGTRAP)<<8|unix.PTRACE_EVENT_EXEC<<16)
	p.replaced = true
	t.enqueue(th)
	return p, nil
}

const stopStatus = 0x7f

// seizeChild turns a child that stops for PTRACE_TRACEME after execve into one that is
// traced as by PTRACE_SEIZE, without executing an instruction. Between the two it is
// stopped as by job control; the SIGCONT that ends this is not delivered.
func seizeChild(pid int) error {
	expect := func(wanted func(unix.WaitStatus) bool, request int) error {
		for {
			_, status, err := wait(pid, 0)
			switch {
			case err == unix.EINTR:
			case err != nil:
				return err
			case !status.Stopped():
				return ErrGone
			case wanted(status):
				return nil
			default:
				signal := uintptr(status.StopSignal())
				if int(status)>>16 != 0 {
					signal = 0
				}
				if err := ptrace(request, pid, 0, signal); err != nil {
					return err
				}
			}
		}
	}
	isSignal := func(s syscall.Signal) func(unix.WaitStatus) bool {
		return func(status unix.WaitStatus) bool { return int(status)>>16 == 0 && status.StopSignal() == s }
	}
	if err := expect(isSignal(unix.SIGTRAP), unix.PTRACE_CONT); err != nil {
		return err
	}
	mask, err := getMask(pid)
	if err != nil {
		return err
	}
	if err := setMask(pid, allSignals&^maskOf(unix.SIGCONT)); err != nil {
		return err
	}
	if err := ptrace(unix.PTRACE_DETACH, pid, 0, uintptr(unix.SIGSTOP)); err != nil {
		return err
	}
	if err := seize(pid); err != nil {
		return err
	}
	inGroupStop := func(status unix.WaitStatus) bool {
		return int(status)>>16 == unix.PTRACE_EVENT_STOP && status.StopSignal() == unix.SIGSTOP
	}
	if err := expect(inGroupStop, unix.PTRACE_LISTEN); err != nil {
		return err
	}
	if err := syscall.Kill(pid, unix.SIGCONT); err != nil {
		return err
	}
	if err := ptrace(unix.PTRACE_CONT, pid, 0, 0); err != nil {
		return err
	}
	if err := expect(isSignal(unix.SIGCONT), unix.PTRACE_CONT); err != nil {
		return err
	}
	return setMask(pid, mask)
}

func seize(tid int) error { return ptrace(unix.PTRACE_SEIZE, tid, 0, traceOptions) }

// Attach traces a running process, whose threads go on. Where it is a child of this process
// that was started otherwise, and ends while it is traced, nothing but Handler.Exited tells
// how; and nothing may wait for its stops.
func (t *Tracer) Attach(pid int) (*Process, error) {
	if err := t.known(); err != nil {
		return nil, err
	}
	if pid <= 0 {
		return nil, &Error{PID: pid, Err: ErrNoProcess}
	}
	group, err := groupOf(pid)
	switch {
	case err != nil:
		return nil, &Error{PID: pid, Err: ErrNoProcess}
	case group == os.Getpid():
		return nil, &Error{PID: pid, Err: ErrPermission, Detail: "it is the tracer itself"}
	case t.processes[group] != nil:
		return nil, &Error{PID: group, Err: ErrTraced, Detail: "by this tracer"}
	}
	if err := judge(group); err != nil {
		return nil, err
	}
	p := &Process{tracer: t, pid: group}
	if err := p.checkProgram(); err != nil {
		return nil, err
	}
	p = t.newProcess(group)
	if p.child = t.released[group] != nil; p.child {
		delete(t.released, group)
	}
	if err := t.seizeAll(p); err != nil {
		p.Detach()
		return nil, err
	}
	err = p.findLoader()
	if err == nil {
		err = p.trap.look(p)
	}
	if err != nil {
		p.Detach()
		return nil, err
	}
	return p, nil
}

// seizeAll traces all threads. Threads that traced ones make are traced as well, and wait. But
// one that was being made when its maker was seized is not, and comes into sight when that is
// done: for certain when all that are known have stopped.
func (t *Tracer) seizeAll(p *Process) error {
	const most = 1000
	for range most {
		if err := t.seizeListed(p); err != nil {
			return err
		}
		known := len(p.threads)
		if err := p.Stop(); err != nil {
			return err
		}
		err := t.seizeListed(p)
		found := len(p.threads) > known
		if err := errors.Join(err, p.Resume()); err != nil || !found {
			return err
		}
	}
	return &Error{PID: p.pid, Err: errors.New("it makes threads faster than they can be traced")}
}

// seizeListed traces the threads that the system lists. The list ends early where one of them
// does while it is read, so it is believed when it says twice that there are no others.
func (t *Tracer) seizeListed(p *Process) error {
	const most = 1000
	for clean, round := 0, 0; clean < 2 && round < most; clean, round = clean+1, round+1 {
		tids, err := tasksOf(p.pid)
		if err != nil {
			return &Error{PID: p.pid, Err: ErrGone}
		}
		for _, tid := range tids {
			if _, ok := t.strangers[tid]; ok || t.threads[tid] != nil {
				continue
			}
			switch err := seize(tid); {
			case err == nil:
				t.newThread(p, tid)
				clean = -1
			case t.tracedByUs(tid):
				t.newThread(p, tid) // its first stop comes
			case err == unix.ESRCH || ended(tid):
			default:
				return refusal(p.pid, err)
			}
		}
		if count, err := statusField(p.pid, "Threads"); err == nil && count != strconv.Itoa(len(tids)) {
			clean = -1
		}
	}
	if len(p.threads) == 0 {
		return &Error{PID: p.pid, Err: ErrGone}
	}
	return nil
}

func (t *Tracer) tracedByUs(tid int) bool {
	tracer, err := statusField(tid, "TracerPid")
	return err == nil && tracer == strconv.Itoa(t.tid)
}

func ended(tid int) bool {
	state, err := stateOf(tid)
	return err != nil || state == 'Z' || state == 'X'
}

func tasksOf(pid int) ([]int, error) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	var tids []int
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids, err
}

// known finds the ISA of this machine.
func (t *Tracer) known() error {
	if t.isa != nil {
		return nil
	}
	isa, err := arch.ByName(hostISA)
	if err != nil {
		return err
	}
	traceable, err := arch.Tracing(isa)
	if err != nil {
		return err
	}
	t.isa, t.layout, t.file = traceable, traceable.Traced(), traceable.Registers()
	return nil
}

// judge says why a process cannot be traced, as far as can be seen before it is tried.
func judge(pid int) error {
	const kernelThread = 0x200000 // PF_KTHREAD
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return &Error{PID: pid, Err: ErrNoProcess}
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	if fields := strings.Fields(rest); len(fields) > 6 {
		if flags, _ := strconv.ParseUint(fields[6], 10, 64); flags&kernelThread != 0 {
			return &Error{PID: pid, Err: ErrKernelThread, Detail: "xol probes kernels in files only"}
		}
	}
	tids, _ := tasksOf(pid)
	alive := false
	for _, tid := range tids {
		alive = alive || !ended(tid)
	}
	if !alive {
		return &Error{PID: pid, Err: ErrZombie}
	}
	return traced(pid)
}

// traced returns an error where a process is traced by another.
func traced(pid int) error {
	tracer, err := statusField(pid, "TracerPid")
	if err != nil || tracer == "0" || tracer == "" {
		return nil
	}
	if tid, err := strconv.Atoi(tracer); err == nil { // it is the thread that traces
		if group, err := groupOf(tid); err == nil {
			tracer = strconv.Itoa(group)
		}
	}
	name, _ := os.ReadFile("/proc/" + tracer + "/comm")
	return &Error{PID: pid, Err: ErrTraced, Detail: fmt.Sprintf("by process %s (%s)", tracer, strings.TrimSpace(string(name)))}
}

// refusal says why the kernel does not let a process be traced.
func refusal(pid int, err error) error {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) {
			return &Error{PID: pid, Err: ErrNoProcess}
		}
		return &Error{PID: pid, Err: err, Detail: "it cannot be traced"}
	}
	if err := traced(pid); err != nil {
		return err
	}
	return &Error{PID: pid, Err: ErrPermission, Detail: whyNot(pid)}
}

// whyNot finds what most likely forbids to trace a process.
func whyNot(pid int) string {
	const sysPtrace = 19 // CAP_SYS_PTRACE
	mine, _ := os.ReadFile("/proc/thread-self/status")
	its, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	capable := func(status []byte) bool {
		set, err := strconv.ParseUint(fieldOf(string(status), "CapEff"), 16, 64)
		return err == nil && set>>sysPtrace&1 != 0
	}
	user := func(status []byte) string {
		ids := strings.Fields(fieldOf(string(status), "Uid"))
		if len(ids) == 0 {
			return ""
		}
		return ids[0]
	}
	scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	switch yama := strings.TrimSpace(string(scope)); {
	case capable(mine) && yama == "3":
		return "kernel.yama.ptrace_scope is 3, which forbids it to everyone until the machine boots anew"
	case capable(mine):
		return "a container or a security module forbids it, though this process has CAP_SYS_PTRACE"
	case user(mine) != user(its):
		return fmt.Sprintf("it is of user %s; be that user, or root", user(its))
	case yama != "" && yama != "0":
		return fmt.Sprintf("kernel.yama.ptrace_scope is %s: only children may be traced; start the program, be root, or set it to 0", yama)
	}
	return "it has changed its user or capabilities, or a container or a security module forbids it; be root, with CAP_SYS_PTRACE"
}

// checkProgram says whether the process executes a program for this machine.
func (p *Process) checkProgram() error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/exe", p.pid))
	if err != nil {
		for _, path := range p.procPaths("exe")[1:] {
			if f, err = os.Open(path); err == nil {
				break
			}
		}
	}
	if err != nil {
		if leaderEnded(p.pid) {
			return nil // as its threads are traced, that is seen
		}
		return refusal(p.pid, errors.Unwrap(err))
	}
	defer f.Close()
	if detail, err := p.tracer.checkHeader(f); err != nil {
		return p.fail(err, detail)
	}
	return nil
}

// checkFile says why a file is not a program for this machine; nil where it may be one.
func (t *Tracer) checkFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // what has failed tells more
	}
	defer f.Close()
	if detail, err := t.checkHeader(f); err != nil && detail != unread {
		return fmt.Errorf("%w: %s", err, detail)
	}
	return nil
}

const unread = "its program cannot be read"

// checkHeader looks at the header of a program.
func (t *Tracer) checkHeader(f io.ReaderAt) (detail string, err error) {
	var ident [20]byte
	if _, err := f.ReadAt(ident[:], 0); err != nil {
		return unread, err
	}
	switch {
	case string(ident[:4]) != elf.ELFMAG:
		return "", nil
	case ident[elf.EI_CLASS] != byte(elf.ELFCLASS64):
		return "only those of 64 bits can be traced", ErrWidth
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if ident[elf.EI_DATA] == byte(elf.ELFDATA2MSB) {
		order = binary.BigEndian
	}
	if machineOf := elf.Machine(order.Uint16(ident[18:])); machineOf != t.isa.Machine() || order != t.isa.ByteOrder() {
		return fmt.Sprintf("%v, this machine is %s", machineOf, t.isa.Name()), ErrISA
	}
	return "", nil
}

func leaderEnded(pid int) bool {
	state, err := stateOf(pid)
	return err == nil && (state == 'Z' || state == 'X')
}
