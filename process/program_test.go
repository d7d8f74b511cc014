//go:build linux && amd64

package process

import (
	"bufio"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xol/internal/skip"
)

var built struct {
	sync.Once
	dir, path string
	hot       uint64 // in the file
	err       error
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == goProgramArgument {
		goProgram()
		return
	}
	status := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(status)
}

// program returns the path of testdata/program.c, compiled, and the address of its function
// hot in the file.
func program(t testing.TB) (path string, hot uint64) {
	t.Helper()
	built.Do(func() {
		gcc, err := exec.LookPath("gcc")
		if err != nil {
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "xol-process"); built.err != nil {
			return
		}
		path := filepath.Join(built.dir, "program")
		if out, err := exec.Command(gcc, "-O1", "-w", "-pthread", "-o", path, "testdata/program.c", "-ldl").CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
			return
		}
		built.path = path
		built.hot, built.err = symbolIn(path, "hot")
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	if built.path == "" {
		skip.Missing(t, "gcc")
	}
	return built.path, built.hot
}

func symbolIn(path, name string) (uint64, error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == name {
			return s.Value, nil
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}

// bias returns how far from its addresses in the file a program is.
func bias(p *Process, path string) (uint64, error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	maps, err := p.Maps()
	if err != nil {
		return 0, err
	}
	for _, m := range maps {
		if m.Path == path && m.Offset == 0 {
			if f.Type == elf.ET_EXEC {
				return 0, nil
			}
			return m.Lo, nil
		}
	}
	return 0, fmt.Errorf("%s is not mapped", path)
}

// counter puts a breakpoint on the function hot of each process that executes the program,
// and counts how often it is hit.
type counter struct {
	recorder
	t      testing.TB
	follow bool
	at     uint64
	set    map[*Process]bool
	hits   int
	busy   func(th *Thread) error // at each hit
}

func newCounter(t testing.TB, opt Options) (*counter, *Tracer) {
	c := &counter{t: t, follow: opt.Follow, set: map[*Process]bool{}}
	c.trap = func(th *Thread) (bool, error) {
		if th.PC() != c.at {
			return false, nil
		}
		c.hits++
		th.SetPC(c.at + 1) // hot starts with a nop
		if c.busy != nil {
			return true, c.busy(th)
		}
		return true, nil
	}
	c.started = func(p *Process) error { return c.arm(p) }
	c.forked = func(parent, child *Process, th *Thread) error {
		if child.Shares() != nil {
			return nil
		}
		if c.follow {
			c.set[child] = c.set[parent]
			return nil
		}
		if c.set[parent] {
			return child.Write(c.at, []byte{0x90})
		}
		return nil
	}
	return c, newTracer(t, c, opt)
}

func (c *counter) arm(p *Process) error {
	path, hot := program(c.t)
	b, err := bias(p, path)
	if err != nil {
		c.set[p] = false
		return nil // another program
	}
	c.at, c.set[p] = b+hot, true
	return p.Write(c.at, []byte{0xcc})
}

func (c *counter) disarm(p *Process) error { return p.Write(c.at, []byte{0x90}) }

// expect runs the program with arguments and compares output, status and hits; -1 hits are
// not compared.
func (c *counter) expect(tr *Tracer, want string, status, hits int, args ...string) {
	c.t.Helper()
	path, _ := program(c.t)
	o := newOutput(c.t)
	p := start(c.t, tr, o, append([]string{path}, args...)...)
	run(c.t, tr)
	got := c.exits[p.PID()]
	if o.String() != want || !got.Exited() || got.ExitStatus() != status {
		c.t.Errorf("%q, status %#x; want %q, %d", o, got, want, status)
	}
	if hits >= 0 && c.hits != hits {
		c.t.Errorf("%d hits, want %d", c.hits, hits)
	}
}

func TestHitsAreCounted(t *testing.T) {
	for _, c := range []struct {
		args       string
		want       string
		status     int
		hits, deep int // without children, and with
	}{
		{"busy 3000", "ready\n24000 376 ticked\n", 0, 24000, 24000},
		{"churn 100", "ready\n1000\n", 0, 400, 400},
		{"forks 60", "180\n", 0, 60, 60 + 60 + 15},
		// The children of vfork share the breakpoint.
		{"spawn 10", "140\n", 0, 40, 40},
		{"execute", "executed\n", 0, -1, -1},
		{"leader 2000", "ready\n2000\n", 5, 2000, 2000},
		{"values 500", "ready\n500 0\n", 0, 1000, 1000},
		{"faults 200", "200 0\n", 0, 200, 200},
		{"loads", "2 2 2 \n", 0, 0, 0},
	} {
		for _, follow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", c.args, follow), func(t *testing.T) {
				h, tr := newCounter(t, Options{Follow: follow})
				hits := c.hits
				if follow {
					hits = c.deep
				}
				h.expect(tr, c.want, c.status, hits, strings.Fields(c.args)...)
			})
		}
	}
}

func TestSIGTRAPStaysTheProgramsOwn(t *testing.T) {
	h, tr := newCounter(t, Options{})
	h.expect(tr, "ready\n"[:0]+"1 3 4 1 5\n", 0, 102, "traps", "100")
}

// A program whose filter ends it for a call of mmap lives on, whether or not the tracer may
// suspend the filter.
func TestFilterOfSystemCalls(t *testing.T) {
	c, tr := newCounter(t, Options{})
	c.busy = func(th *Thread) error {
		p := th.Process()
		const addr = 0x20_0000_0000
		f, err := p.MapShared(addr, 4096)
		if errors.Is(err, ErrFiltered) {
			t.Log(err)
			return nil
		}
		if err != nil {
			return err
		}
		f.Close()
		return p.Unmap(addr, 4096)
	}
	c.expect(tr, "", 0, 5, "filtered", "5")
}

// stopper stops and resumes p over and over until it has ended or f says no.
func stopper(t *testing.T, tr *Tracer, p *Process, times int, f func() error) int {
	n := 0
	for range times {
		var err error
		over := false
		tr.Do(func() {
			if err = p.Stop(); err != nil {
				over = true
				return
			}
			if f != nil {
				if err = f(); err != nil {
					over = errors.Is(err, ErrGone)
				}
			}
			p.Resume()
		})
		if over {
			break
		}
		if err != nil {
			t.Error(err)
			break
		}
		n++
		time.Sleep(200 * time.Microsecond)
	}
	return n
}

// background runs the tracer until the test is over.
func background(t testing.TB, tr *Tracer) (wait func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	done := make(chan error, 1)
	go func() { done <- tr.Run(ctx) }()
	return func() {
		t.Helper()
		if err := <-done; err != nil {
			t.Error(err)
		}
		cancel()
	}
}

func TestStopsWhileThreadsRun(t *testing.T) {
	for _, args := range []string{"busy 3000000", "churn 1500", "forks 700", "spawn 100", "values 30000"} {
		t.Run(args, func(t *testing.T) {
			path, _ := program(t)
			c, tr := newCounter(t, Options{Follow: true})
			c.started = nil
			want, err := exec.Command(path, strings.Fields(args)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			o := newOutput(t)
			p := start(t, tr, o, append([]string{path}, strings.Fields(args)...)...)
			wait := background(t, tr)
			longest := time.Duration(0)
			begun := time.Now()
			n := stopper(t, tr, p, 1000, func() error {
				for _, th := range p.Tasks() {
					if th.Stopped() && th.PC() == 0 {
						t.Errorf("%v has no registers", th)
					}
				}
				longest = max(longest, time.Since(begun))
				begun = time.Now()
				return nil
			})
			wait()
			if o.String() != string(want) || c.exits[p.PID()] != 0 {
				t.Errorf("%q, status %#x; want %q", o, c.exits[p.PID()], want)
			}
			t.Logf("stopped %d times, %v at most from one to the next", n, longest)
		})
	}
}

// TestBreakpointsComeAndGo changes the text while threads execute it, some of which have
// executed the breakpoint when it is taken away.
func TestBreakpointsComeAndGo(t *testing.T) {
	for _, args := range []string{"busy 40000", "churn 1000", "forks 300"} {
		t.Run(args, func(t *testing.T) {
			path, _ := program(t)
			c, tr := newCounter(t, Options{Follow: true})
			want, err := exec.Command(path, strings.Fields(args)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			o := newOutput(t)
			p := start(t, tr, o, append([]string{path}, strings.Fields(args)...)...)
			wait := background(t, tr)
			on := true
			n := stopper(t, tr, p, 1000, func() error {
				if !c.set[p] {
					return nil
				}
				on = !on
				if on {
					return c.arm(p)
				}
				return c.disarm(p)
			})
			wait()
			if o.String() != string(want) || c.exits[p.PID()] != 0 {
				t.Errorf("%q, status %#x; want %q", o, c.exits[p.PID()], want)
			}
			t.Logf("%d changes, %d hits", n, c.hits)
		})
	}
}

// child is a program that runs by itself.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func spawnProgram(t testing.TB, args ...string) *child {
	t.Helper()
	path, _ := program(t)
	c := &child{Cmd: exec.Command(path, args...)}
	c.in, _ = c.StdinPipe()
	out, _ := c.StdoutPipe()
	c.out = bufio.NewReader(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.in.Close()
		c.Process.Kill()
		c.Wait()
	})
	return c
}

func (c *child) line(t testing.TB) string {
	t.Helper()
	s, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatal(s, err)
	}
	return strings.TrimSuffix(s, "\n")
}

func attach(t testing.TB, tr *Tracer, pid int) *Process {
	t.Helper()
	var p *Process
	do(t, tr, func() (err error) {
		p, err = tr.Attach(pid)
		return err
	})
	return p
}

func TestSystemCallsThatWaitGoOn(t *testing.T) {
	mayTrace(t)
	c := spawnProgram(t, "blocked")
	r := &recorder{}
	tr := newTracer(t, r, Options{})
	if got := c.line(t); got != "ready" {
		t.Fatal(got)
	}
	p := attach(t, tr, c.Process.Pid)
	wait := background(t, tr)
	calls := 0
	stopper(t, tr, p, 50, func() error {
		for _, th := range p.Threads() {
			pid, err := th.call(syscall.SYS_GETPID, nil)
			if err != nil || int(pid) != p.PID() {
				return fmt.Errorf("getpid in %v: %d, %w", th, pid, err)
			}
			calls++
		}
		return nil
	})
	if calls < 40*14 {
		t.Errorf("%d calls", calls)
	}
	io.WriteString(c.in, "x")
	if got := c.line(t); got != "no EINTR" {
		t.Error(got)
	}
	wait()
}

func TestSignalsEndSystemCallsThatHaveNoRestart(t *testing.T) {
	mayTrace(t)
	c := spawnProgram(t, "wakes")
	tr := newTracer(t, &recorder{}, Options{})
	c.line(t)
	p := attach(t, tr, c.Process.Pid)
	wait := background(t, tr)
	time.Sleep(20 * time.Millisecond)
	stopper(t, tr, p, 5, nil)
	c.Process.Signal(syscall.SIGWINCH) // does nothing
	time.Sleep(20 * time.Millisecond)
	do(t, tr, p.Stop)
	c.Process.Signal(syscall.SIGUSR1) // comes while it is stopped
	time.Sleep(5 * time.Millisecond)
	do(t, tr, p.Resume)
	if got := c.line(t); got != "-1 Interrupted system call" {
		t.Error(got)
	}
	c.line(t)
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		c.Process.Signal(syscall.SIGWINCH)
	}
	if got := c.line(t); got != "0 1" {
		t.Error(got)
	}
	wait()
}

func TestIgnoredSIGTRAPStaysSo(t *testing.T) {
	mayTrace(t)
	c := spawnProgram(t, "ignores", "20000")
	h, tr := newCounter(t, Options{})
	c.line(t)
	p := attach(t, tr, c.Process.Pid)
	do(t, tr, func() error { return h.arm(p) })
	background(t, tr)
	io.WriteString(c.in, "x")
	c.line(t)
	do(t, tr, func() error {
		if err := p.Stop(); err != nil {
			return err
		}
		if err := h.disarm(p); err != nil {
			return err
		}
		return p.Detach()
	})
	io.WriteString(c.in, "x")
	if got := c.line(t); got != "1" {
		t.Error(got)
	}
	if h.hits == 0 {
		t.Error("no hits")
	}
}

func TestAttachAndDetachWhileItRuns(t *testing.T) {
	const wanted = 50
	mayTrace(t)
	for args, want := range map[string]string{
		"busy 30000000": "240000000 3750000 ticked\n", "churn 8000": "80000\n",
	} {
		t.Run(args, func(t *testing.T) {
			programs, n := 0, 0
			for ; n < wanted; programs++ {
				n += attachOften(t, strings.Fields(args), want)
			}
			t.Logf("%d times, %d programs", n, programs)
		})
	}
}

// attachOften attaches to a program and detaches over and over until it ends, and returns
// how often.
func attachOften(t *testing.T, args []string, want string) (n int) {
	t.Helper()
	const most = 200
	c := spawnProgram(t, args...)
	c.line(t)
	h, tr := newCounter(t, Options{})
	for ; n < most; n++ {
		var p *Process
		var err error
		tr.Do(func() {
			if p, err = tr.Attach(c.Process.Pid); err == nil {
				err = h.arm(p)
			}
		})
		if err != nil {
			t.Log("it ends: ", err)
			break
		}
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Microsecond)
		tr.Run(ctx)
		cancel()
		tr.Do(func() {
			if err = p.Stop(); err == nil {
				err = errors.Join(h.disarm(p), p.Detach())
			}
		})
		if err != nil {
			t.Log("it ends: ", err)
			break
		}
	}
	// Where it ends while it is traced, the tracer waits for it.
	run(t, tr)
	got, _ := c.out.ReadString('\n')
	if err := c.Wait(); err != nil && !errors.Is(err, syscall.ECHILD) || h.exit(c.Process.Pid) != 0 {
		t.Error(err, h.exit(c.Process.Pid))
	}
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	return n
}

func state(t testing.TB, pid int) byte {
	s, err := stateOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// become waits until a process is in a state.
func become(t testing.TB, pid int, states string) {
	t.Helper()
	for range 2000 {
		if strings.IndexByte(states, state(t, pid)) >= 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("process %d is in state %c, not %s", pid, state(t, pid), states)
}

// TestJobControl stops and continues a program whose parent is a shell, which has to be
// told as without a tracer.
func TestJobControl(t *testing.T) {
	mayTrace(t)
	path, _ := program(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	const script = `set -m; "$0" waits <&3 3<&- & exec 3<&-; echo $!; wait $!; echo $?; read x; wait $!; echo $?; read x; wait $!; echo $?`
	shell := exec.Command("bash", "-c", script, path)
	shell.ExtraFiles = []*os.File{read}
	commands, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		skip.Missing(t, "bash", err)
	}
	read.Close()
	c := &child{Cmd: shell, in: write, out: bufio.NewReader(pipe)}
	defer func() {
		write.Close()
		shell.Wait()
	}()
	says := func(want string) {
		t.Helper()
		if got := c.line(t); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	first, second := c.line(t), c.line(t)
	if first == "ready" {
		first, second = second, first
	}
	pid, err := strconv.Atoi(first)
	if err != nil || second != "ready" {
		t.Fatal(first, second)
	}
	tr := newTracer(t, &recorder{}, Options{})
	p := attach(t, tr, pid)
	wait := background(t, tr)
	for _, s := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGSTOP} {
		syscall.Kill(pid, s)
		says(strconv.Itoa(128 + int(s)))
		stopper(t, tr, p, 3, func() error { // stays stopped
			if got, err := p.Syscall(syscall.SYS_GETPID); err != nil || int(got) != pid {
				t.Errorf("getpid: %d, %v", got, err)
			}
			return nil
		})
		io.WriteString(c.in, "\x01")
		time.Sleep(20 * time.Millisecond)
		if s := state(t, pid); s != 't' && s != 'T' {
			t.Errorf("state %c", s)
		}
		if s == syscall.SIGTSTP {
			syscall.Kill(pid, syscall.SIGCONT)
			says("2")
			io.WriteString(commands, "\n")
		}
	}
	do(t, tr, p.Detach)
	become(t, pid, "T")
	wait()
	p = attach(t, tr, pid) // one that is stopped
	wait = background(t, tr)
	stopper(t, tr, p, 2, nil)
	do(t, tr, p.Detach)
	wait()
	become(t, pid, "T")
	io.WriteString(c.in, "\x02")
	syscall.Kill(pid, syscall.SIGCONT)
	says("2")
	says("3")
	io.WriteString(commands, "\n")
	write.Close()
	says("end")
	says("6")
}

func TestErrors(t *testing.T) {
	mayTrace(t)
	tr := newTracer(t, &recorder{}, Options{})
	refused := func(pid int, want error, say string) {
		t.Helper()
		tr.Do(func() {
			p, err := tr.Attach(pid)
			if !errors.Is(err, want) || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "\n") {
				t.Errorf("attach to %d: %v, want %v", pid, err, want)
			}
			t.Log(err)
			if p != nil {
				p.Detach()
			}
		})
	}
	refused(0, ErrNoProcess, "")
	refused(1<<22-1, ErrNoProcess, strconv.Itoa(1<<22-1))
	refused(os.Getpid(), ErrPermission, "itself")
	if _, err := os.Stat("/proc/2/exe"); err == nil || os.IsPermission(err) || os.IsNotExist(err) {
		if name, _ := os.ReadFile("/proc/2/comm"); string(name) == "kthreadd\n" {
			refused(2, ErrKernelThread, "")
		}
	}
	zombie := exec.Command("/bin/true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	become(t, zombie.Process.Pid, "Z")
	refused(zombie.Process.Pid, ErrZombie, "")
	zombie.Wait()

	c := spawnProgram(t, "waits")
	c.line(t)
	p := attach(t, tr, c.Process.Pid)
	refused(c.Process.Pid, ErrTraced, "")
	other := New(&recorder{}, Options{})
	defer other.Close()
	other.Do(func() {
		if _, err := other.Attach(c.Process.Pid); !errors.Is(err, ErrTraced) {
			t.Error(err)
		} else {
			t.Log(err)
		}
	})
	do(t, tr, func() error {
		if err := p.Read(make([]byte, 1), 8); err == nil {
			t.Error("read at 8")
		} else {
			t.Log(err)
		}
		return nil
	})
	c.Process.Kill()
	run(t, tr)
	tr.Do(func() {
		for _, err := range []error{p.Stop(), p.Write(0x1000, []byte{1})} {
			if !errors.Is(err, ErrGone) {
				t.Error(err)
			}
		}
		if _, err := p.Syscall(syscall.SYS_GETPID); !errors.Is(err, ErrGone) {
			t.Error(err)
		}
		_, err := tr.Start(&Command{Path: "/nonexistent/program", Args: []string{"x"}})
		if !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
}

func TestLibrariesAreReported(t *testing.T) {
	for _, each := range []bool{false, true} {
		h, tr := newCounter(t, Options{EachMapping: each})
		seen := map[string]int{}
		h.mapped = func(p *Process, th *Thread) error {
			maps, err := p.Maps()
			if err != nil {
				return err
			}
			for _, m := range maps {
				if strings.Contains(m.Path, "libm.so") && m.Perm&4 != 0 {
					seen["libm"]++
				}
				if strings.Contains(m.Path, "libc.so") && m.Perm&4 != 0 {
					seen["libc"]++
				}
			}
			seen["all"]++
			// The address of a breakpoint of the package's own reads as the program's.
			for at := range p.space.breaks {
				var b [1]byte
				if err := p.Read(b[:], at); err != nil || b[0] == 0xcc {
					t.Errorf("%x %v", b, err)
				}
			}
			return p.Map(0x30_0000_0000+uint64(seen["all"])*0x10000, 4096, 3)
		}
		h.expect(tr, "2 2 2 \n", 0, 0, "loads")
		// Start-up, and three times dlopen and dlclose.
		if min := 7; seen["all"] < min || seen["libm"] < 3 || seen["libc"] != seen["all"] && !each {
			t.Errorf("each mapping %v: %v", each, seen)
		} else {
			t.Log(each, seen)
		}
	}
}

const goProgramArgument = "-go-program-that-is-traced"
