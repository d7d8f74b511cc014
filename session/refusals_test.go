//go:build linux && amd64

package session_test

import (
	"testing"

	"xol/session"
)

// TestNoFunctionIsRefused wants a probe where there is no function.
func TestNoFunctionIsRefused(t *testing.T) {
	s := runOwn(t, func(m *session.Module) ([]session.Probe, error) {
		list, err := named("xol/session_test.countedFunction")(m)
		if len(list) > 0 {
			list = append(list, session.Probe{Addr: 16})
		}
		return list, err
	})
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
