//go:build linux && amd64

package session_test

import (
	"bufio"
	"errors"
	"os/exec"
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

// TestChangedTextIsLeftOut attaches to a program that has changed an instruction inside of
// a function: a copy of that would execute what the file has. Others can be probed.
func TestChangedTextIsLeftOut(t *testing.T) {
	mayTrace(t)
	program := build(t, "changed.c")
	for _, c := range []struct {
		name  string
		wants []string
		hits  uint64
	}{
		{"beside another function", []string{"changed", "same"}, 100},
		{"alone", []string{"changed"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(program)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(pipe)
			if line, err := out.ReadString('\n'); line != "changed\n" {
				t.Fatal(line, err)
			}
			s, err := session.Attach(t.Context(), cmd.Process.Pid, session.Options{Select: named(c.wants...)})
			if err != nil {
				t.Fatal(err)
			}
			in.Close()
			// The sum of i+1+3 and i+1+2, for i below 100.
			if line, err := out.ReadString('\n'); line != "10600\n" {
				t.Error(line, err)
			}
			succeed(t, s)
			shut(t, s)
			for _, p := range s.Placed() {
				switch hits := s.Hits(p); p.Probe.Symbol {
				case "changed":
					if !errors.Is(p.Err, session.ErrText) || p.Way != session.None || hits != 0 {
						t.Errorf("%v, %v, %d hits", p.Err, p.Way, hits)
					}
				default:
					if p.Err != nil || hits != c.hits {
						t.Errorf("%v, %d hits", p.Err, hits)
					}
				}
			}
			if n := s.Summary().Refused["text"]; n != 1 {
				t.Errorf("%d are refused by their text", n)
			}
		})
	}
}
