//go:build linux && amd64

package process

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xol/internal/skip"
)

// recorder is a Handler that notes what it is told, and calls what is set.
type recorder struct {
	trap    func(*Thread) (bool, error)
	signal  func(*Thread, *Signal) error
	started func(*Process) error
	mapped  func(*Process, *Thread) error
	forked  func(parent, child *Process, th *Thread) error

	mu     sync.Mutex
	exits  map[int]syscall.WaitStatus
	events []string
}

func (r *recorder) note(s string) {
	r.mu.Lock()
	r.events = append(r.events, s)
	r.mu.Unlock()
}

func (r *recorder) Trap(th *Thread) (bool, error) {
	if r.trap == nil {
		return false, nil
	}
	return r.trap(th)
}

func (r *recorder) Signal(th *Thread, s *Signal) error {
	if r.signal == nil {
		return nil
	}
	return r.signal(th, s)
}

func (r *recorder) Started(p *Process) error {
	r.note("started")
	if r.started == nil {
		return nil
	}
	return r.started(p)
}

func (r *recorder) Mapped(p *Process, th *Thread) error {
	r.note("mapped")
	if r.mapped == nil {
		return nil
	}
	return r.mapped(p, th)
}

func (r *recorder) Forked(parent, child *Process, th *Thread) error {
	r.note("forked")
	if r.forked == nil {
		return nil
	}
	return r.forked(parent, child, th)
}

func (r *recorder) Exited(p *Process, status syscall.WaitStatus) {
	r.note("exited")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.exits == nil {
		r.exits = map[int]syscall.WaitStatus{}
	}
	r.exits[p.PID()] = status
}

// exit returns the status that a process has ended with, as far as is known.
func (r *recorder) exit(pid int) syscall.WaitStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exits[pid]
}

// mayTrace skips a test where no process can be traced.
func mayTrace(t testing.TB) {
	t.Helper()
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		skip.Missing(t, "the right to trace a process", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
}

func newTracer(t testing.TB, h Handler, opt Options) *Tracer {
	t.Helper()
	mayTrace(t)
	tr := New(h, opt)
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// output is where a traced program writes to.
type output struct {
	file *os.File
	path string
}

func newOutput(t testing.TB) *output {
	t.Helper()
	path := filepath.Join(t.TempDir(), "output")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &output{f, path}
}

func (o *output) String() string {
	text, _ := os.ReadFile(o.path)
	return string(text)
}

// start starts a program under the tracer.
func start(t testing.TB, tr *Tracer, o *output, args ...string) *Process {
	t.Helper()
	path, err := exec.LookPath(args[0])
	if err != nil {
		skip.Missing(t, args[0])
	}
	var p *Process
	if e := tr.Do(func() {
		p, err = tr.Start(&Command{Path: path, Args: args, Files: []*os.File{nil, o.file, o.file}})
	}); e != nil || err != nil {
		t.Fatal(e, err)
	}
	return p
}

// run runs the tracer until no process is left.
func run(t testing.TB, tr *Tracer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := tr.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// do runs f on the tracer's thread, which fails the test by an error.
func do(t testing.TB, tr *Tracer, f func() error) {
	t.Helper()
	var err error
	if e := tr.Do(func() { err = f() }); e != nil || err != nil {
		t.Fatal(e, err)
	}
}

func TestStartedProgramRunsAsWithout(t *testing.T) {
	for _, opt := range []Options{{}, {Follow: true}, {EachMapping: true}, {Follow: true, EachMapping: true}} {
		for _, c := range []struct {
			name, script, want string
			status             int
		}{
			{"echo", "echo hello", "hello\n", 0},
			{"status", "exit 7", "", 7},
			{"pipe", "seq 1 1000 | sort -n | tail -n 1", "1000\n", 0},
			{"subshell", "x=$( (echo a; echo b) | tr ab cd); echo $x; for i in 1 2 3; do (echo $i); done", "c d\n1\n2\n3\n", 0},
			{"trap", "trap 'echo got' USR1; kill -USR1 $$; kill -TRAP $$ || true; echo no", "got\n", -int(syscall.SIGTRAP)},
			{"background", "sleep 0.05 & wait; echo done", "done\n", 0},
		} {
			r := &recorder{}
			tr := newTracer(t, r, opt)
			o := newOutput(t)
			p := start(t, tr, o, "bash", "-c", c.script)
			run(t, tr)
			status := r.exits[p.PID()]
			got := status.ExitStatus()
			if status.Signaled() {
				got = -int(status.Signal())
			}
			if o.String() != c.want || got != c.status {
				t.Errorf("%s %+v: %q, status %d; want %q, %d: %s", c.name, opt, o, got, c.want, c.status, strings.Join(r.events, " "))
			}
		}
	}
}

func TestMapAndSyscall(t *testing.T) {
	r := &recorder{}
	tr := newTracer(t, r, Options{})
	r.started = func(p *Process) error {
		const addr = 0x20_0000_0000
		if err := p.Map(addr, 8192, 3); err != nil {
			return err
		}
		if err := p.Map(addr, 4096, 3); err == nil {
			t.Error("mapped twice")
		} else {
			t.Log(err)
		}
		want := bytes.Repeat([]byte("xol!"), 1024)
		if err := p.Write(addr+2048, want); err != nil {
			return err
		}
		got := make([]byte, len(want))
		if err := p.Read(got, addr+2048); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			t.Error("memory differs")
		}
		pid, err := p.Syscall(syscall.SYS_GETPID)
		if err != nil || int(pid) != p.PID() {
			t.Errorf("getpid: %d, %v", pid, err)
		}
		if err := p.Read(got, addr+8192-8); err == nil {
			t.Error("read past the end")
		}
		f, err := p.MapShared(addr+0x10000, 8192)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte("shared"), 4096); err != nil {
			return err
		}
		if err := p.Read(got[:6], addr+0x10000+4096); err != nil || string(got[:6]) != "shared" {
			t.Errorf("%q %v", got[:6], err)
		}
		if err := p.SyncCore(); err != nil {
			t.Error(err)
		}
		return p.Unmap(addr, 8192)
	}
	o := newOutput(t)
	p := start(t, tr, o, "echo", "fine")
	run(t, tr)
	if o.String() != "fine\n" || r.exits[p.PID()] != 0 {
		t.Errorf("%q %v", o, r.exits)
	}
}
