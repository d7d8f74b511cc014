//go:build linux && amd64

package session_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"xol/session"
)

// TestDeathOfGuard kills the process that traces the program: the session says so, and
// the program, whose probes are jumps, goes on.
func TestDeathOfGuard(t *testing.T) {
	p := start(t, busy(t))
	s, err := session.Attach(t.Context(), p.Process.Pid, session.Options{
		Select: named(hot...), Guard: []string{"/proc/self/exe", "-xol-test-guard"},
	})
	if err != nil {
		t.Fatal(err)
	}
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
