//go:build linux && amd64

package session_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"xol/session"
)

// markers wants a probe at each static marker that has a semaphore.
func markers(m *session.Module) (list []session.Probe, err error) {
	all, err := m.Image.Markers()
	for i := range all {
		if m := &all[i]; m.Semaphore != 0 && m.Provider == "demo" {
			list = append(list, session.Probe{Addr: m.Location, Semaphore: m.Semaphore, Symbol: m.Name})
		}
	}
	return list, err
}

// TestSemaphores counts the hits of a marker that a program passes only as long as its
// semaphore is raised.
func TestSemaphores(t *testing.T) {
	program := build(t, "marks.c")
	library := build(t, "marks.c", "-shared", "-fPIC", "-DSHARED")
	linked := build(t, "marks.c", "-DLIBRARY", library, "-Wl,-rpath,"+filepath.Dir(library))
	mayTrace(t)
	guard := []string{"/proc/self/exe", "-xol-test-guard"}
	for _, c := range []struct {
		name, program string
		guard         []string
	}{{"in a program", program, nil}, {"in a library", linked, nil}, {"by a guard", linked, guard}} {
		t.Run(c.name+", started", func(t *testing.T) {
			s, printed := startPrinting(t, []string{c.program}, session.Options{Select: markers, Guard: c.guard})
			waitForHits(t, s)
			syscall.Kill(s.PID(), syscall.SIGTERM)
			succeed(t, s)
			if got, want := printed(), fmt.Sprintf("%d 1\n", s.Summary().Hits); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			s.Close()
		})
		t.Run(c.name+", attached to", func(t *testing.T) {
			p := start(t, c.program)
			s, err := session.Attach(t.Context(), p.Process.Pid, session.Options{Select: markers, Guard: c.guard})
			if err != nil {
				t.Fatal(err)
			}
			waitForHits(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			p.Process.Signal(syscall.SIGTERM)
			p.Wait()
			// It may have looked at the semaphore before it was lowered.
			hits := s.Summary().Hits
			if got := p.out.String(); got != fmt.Sprintf("%d 0\n", hits) && got != fmt.Sprintf("%d 0\n", hits+1) {
				t.Errorf("%q, %d hits", got, hits)
			}
		})
	}
}

func waitForHits(t *testing.T, s *session.Session) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); s.Summary().Hits == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no hits: %+v", s.Summary())
		}
	}
}
