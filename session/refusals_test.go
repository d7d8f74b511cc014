//go:build linux && amd64

package session_test

import (
	"os"
	"testing"

	"xol/session"
)

// TestNoFunctionIsRefused wants a probe where there is no function.
func TestNoFunctionIsRefused(t *testing.T) {
	mayTrace(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Start(t.Context(), session.Command{
		Path: self, Args: []string{self}, Env: append(os.Environ(), "XOL_TEST_PROGRAM=1"),
	}, session.Options{Select: func(m *session.Module) ([]session.Probe, error) {
		list, err := named("xol/session_test.countedFunction")(m)
		if len(list) > 0 {
			list = append(list, session.Probe{Addr: 16})
		}
		return list, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if status, ended, err := s.Wait(t.Context()); err != nil || !ended || !status.Exited() {
		t.Fatal(status, ended, err)
	}
	placed := s.Placed()
	if len(placed) != 2 || placed[1].Refused == nil || placed[1].Refused.ID != "process/no-function" {
		t.Fatalf("%+v", placed)
	}
	if n := s.Hits(placed[1]); placed[1].Way != session.None || n != 0 {
		t.Errorf("a probe that is refused: %v, %d hits", placed[1].Way, n)
	}
	if n := s.Hits(placed[0]); placed[0].Refused != nil || n != 1000 {
		t.Errorf("the other one: %v, %d hits", placed[0].Refused, n)
	}
}
