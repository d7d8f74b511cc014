//go:build linux && amd64

package session_test

import (
	"fmt"
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
	"xol/session"
)

// TestDeathOfGuard kills the process that traces the program: the session says so, and
// the program, whose probes are jumps, goes on. It takes no signals, and no thread is about
// to come from its original instructions to copies, where it needs the guard.
func TestDeathOfGuard(t *testing.T) {
	p := start(t, busy(t), "quiet")
	s, err := session.Attach(t.Context(), p.Process.Pid, session.Options{
		Select: named(hot...), Guard: []string{"/proc/self/exe", "-xol-test-guard"},
	})
	if err != nil {
		t.Fatal(err)
	}
	haveRun(t, p.Process.Pid, 8)
	tracer, err := strconv.Atoi(tracerOf(p.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(tracer, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, ended, err := s.Wait(t.Context()); ended || err == nil || !strings.Contains(err.Error(), "the guard has ended") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, %v", ended, err)
	}
	before := s.Hits(s.Placed()[0])
	time.Sleep(50 * time.Millisecond)
	if after := s.Hits(s.Placed()[0]); after <= before {
		t.Errorf("%d hits, %d before", after, before)
	}
	if err := s.SetArmed(false); err == nil {
		t.Error("it was disarmed by a guard that is dead")
	}
	if err := s.Close(); err == nil {
		t.Error("it was closed by a guard that is dead")
	}
	p.finish(t)
}

// haveRun returns when so many threads of a process have run since it was called.
func haveRun(t *testing.T, pid, wanted int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if len(files) == 0 {
		skip.Missing(t, "schedstat of threads")
	}
	if err != nil || len(files) < wanted {
		t.Fatal(len(files), err)
	}
	times := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		on, _, _ := strings.Cut(string(text), " ")
		return on
	}
	before := make(map[string]string)
	for _, f := range files {
		before[f] = times(f)
	}
	for ran := 0; ran < wanted; time.Sleep(time.Millisecond) {
		ran = 0
		for _, f := range files {
			if times(f) != before[f] {
				ran++
			}
		}
	}
}

// TestCloseWhilePlanning ends a session while it still finds out what to do in a child, as
// a short --duration or Ctrl-C may: that is no error, and the program goes on.
func TestCloseWhilePlanning(t *testing.T) {
	mayTrace(t)
	for name, guard := range map[string][]string{"alone": nil, "with a guard": {"/proc/self/exe", "-xol-test-guard"}} {
		t.Run(name, func(t *testing.T) {
			shell := exec.Command("/bin/sh", "-c", "while :; do /bin/sleep 0.02; done")
			if err := shell.Start(); err != nil {
				t.Fatal(err)
			}
			defer shell.Wait()
			defer shell.Process.Kill()
			planning := make(chan bool)
			var once sync.Once
			s, err := session.Attach(t.Context(), shell.Process.Pid, session.Options{
				Follow: true, Guard: guard,
				Select: func(m *session.Module) ([]session.Probe, error) {
					if strings.HasSuffix(m.Path, "/sleep") {
						once.Do(func() { close(planning); time.Sleep(300 * time.Millisecond) })
					}
					return nil, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			<-planning
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if tracer := tracerOf(shell.Process.Pid); tracer != "0" {
				t.Errorf("the program is traced by %s", tracer)
			}
		})
	}
}
