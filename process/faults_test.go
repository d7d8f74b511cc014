//go:build linux && amd64

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"xol/internal/skip"
	"xol/machine"
)

// deny has the kernel refuse a system call of the tracer's thread from now on, where the
// first argument is the one given: by a filter, as containers have them.
func deny(t *testing.T, tr *Tracer, nr, first uint32, errno syscall.Errno) {
	t.Helper()
	const number, argument = 0, 16 // in struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: nr},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: argument},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: first},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	var err error
	tr.Do(func() {
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err == nil {
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
		}
	})
	if err != nil {
		skip.Missing(t, "filters of system calls", err)
	}
}

// A program that cannot be traced as it is started leaves no process.
func TestStartThatFails(t *testing.T) {
	for name, request := range map[string]uint32{
		"PTRACE_GETSIGMASK": unix.PTRACE_GETSIGMASK, "PTRACE_SETSIGMASK": unix.PTRACE_SETSIGMASK, "PTRACE_DETACH": unix.PTRACE_DETACH,
		"PTRACE_SEIZE": unix.PTRACE_SEIZE, "PTRACE_CONT": unix.PTRACE_CONT,
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracer(t, &recorder{}, Options{})
			deny(t, tr, unix.SYS_PTRACE, request, unix.EIO)
			var err error
			tr.Do(func() { _, err = tr.Start(&Command{Path: "/bin/true", Args: []string{"true"}}) })
			oneLine(t, err, unix.EIO, "/bin/true cannot be traced")
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T", err)
			}
			if left := syscall.Kill(e.PID, 0); left != syscall.ESRCH {
				t.Errorf("process %d is left: %v", e.PID, left)
			}
			if n := len(tr.Processes()); n != 0 {
				t.Errorf("%d processes", n)
			}
		})
	}
}

// A process that the kernel does not let be traced goes on as before, and why is said.
func TestAttachThatFails(t *testing.T) {
	for _, c := range []struct {
		name        string
		nr, request uint32
		errno       syscall.Errno
		want        error
		says        string
	}{
		{"no right", unix.SYS_PTRACE, unix.PTRACE_SEIZE, unix.EPERM, ErrPermission, ""},
		{"another reason", unix.SYS_PTRACE, unix.PTRACE_SEIZE, unix.EIO, unix.EIO, "it cannot be traced"},
		{"it ends meanwhile", unix.SYS_PTRACE, unix.PTRACE_SEIZE, unix.ESRCH, ErrGone, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTracer(t, &recorder{}, Options{})
			target, err := waiting(t, "/bin/sleep", "100")
			if err != nil {
				t.Fatal(err)
			}
			deny(t, tr, c.nr, c.request, c.errno)
			tr.Do(func() {
				_, err := tr.Attach(target.Process.Pid)
				oneLine(t, err, c.want, c.says)
			})
			if n := len(tr.Processes()); n != 0 {
				t.Errorf("%d processes", n)
			}
			untouched(t, target)
		})
	}
}

// capabilities sets those that the tracer's thread makes use of.
func capabilities(t *testing.T, tr *Tracer, change func(effective uint64) uint64) {
	t.Helper()
	var err error
	tr.Do(func() {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err = unix.Capget(&header, &data[0]); err != nil {
			return
		}
		effective := change(uint64(data[1].Effective)<<32 | uint64(data[0].Effective))
		data[0].Effective, data[1].Effective = uint32(effective), uint32(effective>>32)
		err = unix.Capset(&header, &data[0])
	})
	if err != nil {
		skip.Missing(t, "capabilities", err)
	}
}

// The reason why a process may not be traced is looked for with the tracer's own rights.
func TestReasonsOfRefusals(t *testing.T) {
	if os.Getuid() != 0 {
		skip.Missing(t, "root, to have rights and to lose them")
	}
	without := func(effective uint64) uint64 { return effective &^ (1 << unix.CAP_SYS_PTRACE) }
	for _, c := range []struct {
		name   string
		rights func(uint64) uint64
		says   []string // one of them, by what the machine forbids
	}{
		{"with the right", func(e uint64) uint64 { return e }, []string{"a container or a security module forbids it, though", "ptrace_scope is 3"}},
		{"without it", without, []string{"be root, with CAP_SYS_PTRACE", "only children may be traced"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTracer(t, &recorder{}, Options{})
			target, err := waiting(t, "/bin/sleep", "100")
			if err != nil {
				t.Fatal(err)
			}
			capabilities(t, tr, c.rights)
			deny(t, tr, unix.SYS_PTRACE, unix.PTRACE_SEIZE, unix.EPERM)
			tr.Do(func() {
				_, err := tr.Attach(target.Process.Pid)
				if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), c.says[0]) && !strings.Contains(err.Error(), c.says[1]) {
					t.Errorf("%v, want one of %q", err, c.says)
				}
			})
			untouched(t, target)
		})
	}
}

// TestKilledWhileStopped kills a process that is stopped: whatever is asked of it then, it
// has ended.
func TestKilledWhileStopped(t *testing.T) {
	const addr = 0x20_0000_0000
	for name, f := range map[string]func(p *Process, th *Thread) error{
		"read":        func(p *Process, th *Thread) error { return p.Read(make([]byte, 8), th.PC()) },
		"write":       func(p *Process, th *Thread) error { return p.WriteWord(addr, 1) },
		"maps":        func(p *Process, th *Thread) error { _, err := p.Maps(); return err },
		"system call": func(p *Process, th *Thread) error { _, err := p.Syscall(syscall.SYS_GETPID); return err },
		"map":         func(p *Process, th *Thread) error { return p.Map(addr, pageSize, machine.PermRead) },
		"map shared":  func(p *Process, th *Thread) error { _, err := p.MapShared(addr, pageSize); return err },
		"unmap":       func(p *Process, th *Thread) error { return p.Unmap(addr, pageSize) },
		"protect":     func(p *Process, th *Thread) error { return p.Protect(addr, pageSize, machine.PermRead) },
		"synchronize": func(p *Process, th *Thread) error { return p.SyncCore() },
		"step":        func(p *Process, th *Thread) error { return th.Step() },
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			tr := newTracer(t, r, Options{})
			c := spawnProgram(t, "waits")
			c.line(t)
			p := attach(t, tr, c.Process.Pid)
			do(t, tr, p.Stop)
			th := p.Threads()[0]
			do(t, tr, func() error { _, err := p.Syscall(syscall.SYS_GETPID); return err }) // it knows the way
			c.Process.Kill()
			become(t, c.Process.Pid, "Z")
			tr.Do(func() {
				err := f(p, th)
				oneLine(t, err, ErrGone, fmt.Sprintf("process %d", p.PID()))
			})
			tr.Do(func() { p.Resume() })
			run(t, tr)
			if status := r.exit(p.PID()); status.Signal() != syscall.SIGKILL {
				t.Errorf("it has ended with %#x", status)
			}
			do(t, tr, p.Detach) // of a process that is no more, there is nothing to do
		})
	}
}

// TestMemoryErrors asks for memory that cannot be.
func TestMemoryErrors(t *testing.T) {
	tr := newTracer(t, &recorder{}, Options{})
	c := spawnProgram(t, "waits")
	c.line(t)
	p := attach(t, tr, c.Process.Pid)
	const addr = 0x20_0000_0000
	do(t, tr, func() error {
		if err := p.Map(addr, pageSize, machine.PermRead); err != nil {
			return err
		}
		oneLine(t, p.Map(addr, pageSize, machine.PermRead), ErrTaken, "0x2000000000")
		_, err := p.MapShared(addr, pageSize)
		oneLine(t, err, ErrTaken, "0x2000000000")
		oneLine(t, p.Map(addr+1<<20+1, pageSize, machine.PermRead), unix.EINVAL, "mmap")
		oneLine(t, p.Unmap(addr+1, pageSize), unix.EINVAL, "munmap")
		oneLine(t, p.Protect(addr+1<<20, pageSize, machine.PermRead), unix.ENOMEM, "mprotect")
		var e *AddressError
		if err := p.WriteWord(addr+1<<20, 1); !errors.As(err, &e) || e.Access != "write" || e.Addr != addr+1<<20 {
			t.Errorf("%v", err)
		}
		oneLine(t, p.Threads()[0].Step(), ErrNoThread, "not stopped")
		if err := p.Resume(); err == nil || !strings.Contains(err.Error(), "it is not stopped") {
			t.Error(err)
		}
		return p.Unmap(addr, pageSize)
	})
	do(t, tr, p.Detach)
	c.in.Write([]byte{7})
	if got := c.line(t); got != "8" {
		t.Error(got)
	}
}

// Where the tracer may not suspend filters, programs that have one are not made to call the
// system; others are.
func TestFilterThatStays(t *testing.T) {
	r, tr := newCounter(t, Options{})
	free := spawnProgram(t, "waits")
	free.line(t)
	deny(t, tr, unix.SYS_PTRACE, unix.PTRACE_SETOPTIONS, unix.EPERM)
	p := attach(t, tr, free.Process.Pid)
	do(t, tr, func() error {
		if pid, err := p.Syscall(syscall.SYS_GETPID); err != nil || int(pid) != p.PID() {
			t.Errorf("getpid of a process without a filter: %d, %v", pid, err)
		}
		return p.Detach()
	})
	asked := 0
	r.busy = func(th *Thread) error {
		_, err := th.Process().Syscall(syscall.SYS_GETPID)
		oneLine(t, err, ErrFiltered, "root, outside of containers, can suspend it")
		asked++
		return nil
	}
	r.expect(tr, "", 0, 3, "filtered", "3")
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

// TestErrorsOfHandlers has handlers return errors, which end the tracer's run. The program
// goes on by itself.
func TestErrorsOfHandlers(t *testing.T) {
	mine := errors.New("an error of the handler")
	for _, c := range []struct {
		name, script string
		set          func(r *recorder)
	}{
		{"start", "read x; exit 3", func(r *recorder) { r.started = func(*Process) error { return mine } }},
		{"mapped", "read x; exit 3", func(r *recorder) { r.mapped = func(*Process, *Thread) error { return mine } }},
		{"forked", "(exit 0); read x; exit 3", func(r *recorder) { r.forked = func(_, _ *Process, _ *Thread) error { return mine } }},
		{"signal", "kill -WINCH $$; read x; exit 3", func(r *recorder) { r.signal = func(*Thread, *Signal) error { return mine } }},
	} {
		for _, follow := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, ", followed ", follow), func(t *testing.T) {
				r := &recorder{}
				c.set(r)
				tr := newTracer(t, r, Options{Follow: follow})
				read, write, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer read.Close()
				var p *Process
				do(t, tr, func() (err error) {
					p, err = tr.Start(&Command{Path: "/bin/bash", Args: []string{"bash", "-c", c.script}, Files: []*os.File{read}})
					return err
				})
				if err := tr.Run(t.Context()); !errors.Is(err, mine) {
					t.Errorf("%v, want %v", err, mine)
				}
				if err := tr.Close(); err != nil {
					t.Error(err)
				}
				write.Close()
				var status unix.WaitStatus
				if _, err := unix.Wait4(p.PID(), &status, 0, nil); err != nil || status.ExitStatus() != 3 {
					t.Errorf("status %#x, %v", status, err)
				}
			})
		}
	}
}

// TestPolling traces where no signal ends the tracer's waiting.
func TestPolling(t *testing.T) {
	c, tr := newCounter(t, Options{})
	tr.bell.polling.Store(true)
	c.expect(tr, "ready\n1000\n", 0, 400, "churn", "100")
}

// TestClosedTracer asks what has been closed, or runs already.
func TestClosedTracer(t *testing.T) {
	tr := newTracer(t, &recorder{}, Options{})
	c := spawnProgram(t, "waits")
	c.line(t)
	attach(t, tr, c.Process.Pid)
	wait := background(t, tr)
	time.Sleep(10 * time.Millisecond)
	if err := tr.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "running already") {
		t.Error(err)
	}
	for range 2 {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
	wait()
	if err := tr.Do(func() { t.Error("done") }); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := tr.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	c.in.Write([]byte{7})
	if got := c.line(t); got != "8" {
		t.Error(got)
	}
}

// TestProgramOfOtherWidth has a traced process execute a program of 32 bits, which goes on by
// itself.
func TestProgramOfOtherWidth(t *testing.T) {
	narrow := program32(t)
	if target, err := waiting(t, narrow); err != nil {
		skip.Missing(t, "a kernel that runs programs of 32 bits", err)
	} else {
		target.Process.Kill()
	}
	tr := newTracer(t, &recorder{}, Options{})
	p := start(t, tr, newOutput(t), "sh", "-c", "exec "+narrow)
	run(t, tr)
	become(t, p.PID(), "S")
	if tracer, err := statusField(p.PID(), "TracerPid"); err != nil || tracer != "0" {
		t.Errorf("traced by %s, %v", tracer, err)
	}
	syscall.Kill(p.PID(), syscall.SIGKILL)
	unix.Wait4(p.PID(), nil, 0, nil)
}

// TestAttachBeforeTheLoader attaches to a process that has not executed an instruction: its
// libraries are told of as of one that was started.
func TestAttachBeforeTheLoader(t *testing.T) {
	r := &recorder{}
	tr := newTracer(t, r, Options{})
	path, _ := program(t)
	var target *exec.Cmd
	done := make(chan error)
	go func() { // on a thread of its own, which traces it for that long
		runtime.LockOSThread()
		target = exec.Command(path, "forks", "3")
		target.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		err := target.Start()
		if err == nil {
			var status syscall.WaitStatus
			if _, err = syscall.Wait4(target.Process.Pid, &status, 0, nil); err == nil {
				err = ptrace(unix.PTRACE_DETACH, target.Process.Pid, 0, uintptr(unix.SIGSTOP))
			}
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	defer target.Process.Kill()
	become(t, target.Process.Pid, "T")
	p := attach(t, tr, target.Process.Pid)
	do(t, tr, func() error {
		if !p.Starting() {
			t.Error("its libraries are there")
		}
		return nil
	})
	libc := false
	r.mapped = func(p *Process, th *Thread) error {
		maps, err := p.Maps()
		for _, m := range maps {
			libc = libc || strings.Contains(m.Path, "libc.so")
		}
		if p.Starting() {
			t.Error("it is starting")
		}
		return err
	}
	wait := background(t, tr)
	target.Process.Signal(syscall.SIGCONT)
	wait()
	if !libc || r.exit(p.PID()) != 0 {
		t.Errorf("libc %v, status %#x", libc, r.exit(p.PID()))
	}
}

// TestKilledAtAnyMoment kills programs while they are stopped, called into and resumed: the
// tracer tells of their end and ends without an error.
func TestKilledAtAnyMoment(t *testing.T) {
	const rounds = 15
	for _, args := range []string{"busy 3000000", "churn 100000", "forks 100000", "spawn 100000"} {
		t.Run(args, func(t *testing.T) {
			path, _ := program(t)
			for i := range rounds {
				c, tr := newCounter(t, Options{Follow: true})
				p := start(t, tr, newOutput(t), append([]string{path}, strings.Fields(args)...)...)
				wait := background(t, tr)
				ended := make(chan bool)
				go func() {
					defer close(ended)
					time.Sleep(time.Duration(3+2*i) * time.Millisecond)
					syscall.Kill(p.PID(), syscall.SIGKILL)
				}()
				stopper(t, tr, p, 1000, func() error {
					_, err := p.Syscall(syscall.SYS_GETPID)
					if err == nil {
						err = p.SyncCore()
					}
					if err != nil && !errors.Is(err, ErrGone) {
						t.Error(err)
					}
					return err
				})
				<-ended
				wait()
				if status := c.exit(p.PID()); status.Signal() != syscall.SIGKILL {
					t.Errorf("it has ended with %#x", status)
				}
			}
		})
	}
}

// A program whose interpreter does not tell debuggers of libraries: they are there when the
// program starts.
func TestInterpreterThatTellsNothing(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		skip.Missing(t, "gcc")
	}
	dir := t.TempDir()
	interpreter, path := dir+"/interpreter", dir+"/program"
	assemble := func(out, text string, flags ...string) {
		t.Helper()
		cmd := exec.Command(gcc, append([]string{"-nostdlib", "-x", "assembler", "-", "-o", out}, flags...)...)
		cmd.Stdin = strings.NewReader(text)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	// It goes on at AT_ENTRY, after the arguments and the environment.
	assemble(interpreter, `
		.globl _start
		_start:	mov (%rsp), %rax
		lea 16(%rsp,%rax,8), %rsi
		1: lodsq
		test %rax, %rax
		jne 1b
		2: lodsq
		mov %rax, %rcx
		lodsq
		cmp $9, %rcx
		jne 2b
		jmp *%rax
	`, "-shared", "-Wl,-e,_start")
	assemble(path, `
		.globl _start
		_start:	mov $231, %eax
		mov $7, %edi
		syscall
	`, "-pie", "-Wl,--dynamic-linker,"+interpreter)
	r := &recorder{}
	tr := newTracer(t, r, Options{})
	r.mapped = func(p *Process, th *Thread) error {
		if p.Starting() {
			t.Error("it is starting")
		}
		var code [5]byte
		if err := p.Read(code[:], th.PC()); err != nil || string(code[:]) != "\xb8\xe7\x00\x00\x00" {
			t.Errorf("at %#x: % x, %v", th.PC(), code, err)
		}
		return nil
	}
	p := start(t, tr, newOutput(t), path)
	run(t, tr)
	if got, want := strings.Join(r.events, " "), "started mapped exited"; got != want || r.exit(p.PID()).ExitStatus() != 7 {
		t.Errorf("%s, status %#x", got, r.exit(p.PID()))
	}
}

// TestStepsAtHits executes the instruction after each breakpoint by a step of its own, also
// where the program blocks SIGTRAP, and where signals come meanwhile: it notices nothing.
func TestStepsAtHits(t *testing.T) {
	const lea = 4 // bytes of the instruction after the first one of hot
	for _, c := range []struct {
		args, want string
		hits       int
	}{
		{"busy 300", "ready\n2400 40 ticked\n", 2400}, {"churn 50", "ready\n500\n", 200}, {"values 300", "ready\n300 0\n", 600},
		{"traps 100", "1 3 4 1 5\n", 102}, {"faults 100", "100 0\n", 100},
	} {
		t.Run(c.args, func(t *testing.T) {
			h, tr := newCounter(t, Options{})
			stepped := 0
			h.busy = func(th *Thread) error {
				from := th.PC()
				switch err := th.Step(); {
				case errors.Is(err, ErrInterrupted):
				case err != nil:
					return err
				case th.PC() != from+lea:
					t.Errorf("a step from %#x has come to %#x", from, th.PC())
				default:
					stepped++
				}
				return nil
			}
			h.expect(tr, c.want, 0, c.hits, strings.Fields(c.args)...)
			if stepped < c.hits/2 {
				t.Errorf("%d steps of %d hits", stepped, c.hits)
			}
		})
	}
}
