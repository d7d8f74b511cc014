//go:build linux && amd64

package session_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xol/analyze"
	"xol/internal/skip"
	"xol/session"
)

var background = context.Background()

// TestMain is also the program that tests put probes into.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("XOL_TEST_PROGRAM") != "":
		program()
	case len(os.Args) == 2 && os.Args[1] == "-xol-test-guard":
		session.Guard()
		return
	case os.Getenv("XOL_TEST_FRONT") != "":
		front(os.Getenv("XOL_TEST_FRONT"))
	}
	os.Exit(m.Run())
}

// program counts calls of functions that are found by their names.
func program() {
	total := 0
	for i := range 1000 {
		total += countedFunction(i)
	}
	os.Exit(total % 200)
}

//go:noinline
func countedFunction(i int) int {
	if i%2 == 0 {
		return 1
	}
	return otherFunction(i)
}

//go:noinline
func otherFunction(i int) int { return i % 3 }

// mayTrace skips a test where there is no ptrace.
func mayTrace(t testing.TB) {
	t.Helper()
	s, err := session.Start(t.Context(), session.Command{Path: "/bin/true", Args: []string{"true"}}, session.Options{
		Select: func(*session.Module) ([]session.Probe, error) { return nil, nil },
	})
	if err != nil {
		skip.Missing(t, "ptrace", err)
	}
	s.Wait(t.Context())
	s.Close()
}

// named wants a probe at functions of the program.
func named(names ...string) selecting {
	return func(m *session.Module) (list []session.Probe, err error) {
		if !m.Program {
			return nil, nil
		}
		for _, name := range names {
			places, err := m.Image.Resolve(name)
			if err != nil {
				return nil, err
			}
			list = append(list, session.Probe{Addr: places[0].Addr, Symbol: name})
		}
		return list, nil
	}
}

// everything wants a probe at every instruction of the program and of libraries whose
// names start so.
func everything(libraries ...string) selecting {
	return func(m *session.Module) (list []session.Probe, err error) {
		wanted := m.Program
		for _, l := range libraries {
			wanted = wanted || strings.HasPrefix(filepath.Base(m.Path), l)
		}
		if !wanted {
			return nil, nil
		}
		err = analyze.Each(context.Background(), m.Analysis, m.Analysis.Functions(), func(r *analyze.Result) (in []session.Probe) {
			for i := range r.Insts {
				if r.Verdicts[i].OK() {
					in = append(in, session.Probe{Addr: r.Insts[i].Addr, Symbol: r.Name, Offset: r.Insts[i].Addr - r.Addr})
				}
			}
			return in
		}, func(in []session.Probe) error {
			list = append(list, in...)
			return nil
		})
		return list, err
	}
}

// runOwn runs this test's own program with probes, to its end.
func runOwn(t *testing.T, want selecting) *session.Session {
	t.Helper()
	mayTrace(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Start(t.Context(), session.Command{
		Path: self, Args: []string{self}, Env: append(os.Environ(), "XOL_TEST_PROGRAM=1"),
	}, session.Options{Select: want})
	if err != nil {
		t.Fatal(err)
	}
	if status, ended, err := s.Wait(t.Context()); err != nil || !ended || !status.Exited() {
		t.Fatal(status, ended, err)
	}
	shut(t, s)
	return s
}

func TestCountsCalls(t *testing.T) {
	s := runOwn(t, named("xol/session_test.countedFunction", "xol/session_test.otherFunction"))
	for i, want := range []uint64{1000, 500} {
		p := s.Placed()[i]
		if got := s.Hits(p); got != want || p.Way != session.Jump {
			t.Errorf("%s: %d hits by %v, want %d; %v %v", p.Probe.Symbol, got, p.Way, want, p.Refused, p.Err)
		}
	}
}

// TestProgramsNoticeNothing compares what programs print and return with and without a
// probe at every instruction.
func TestProgramsNoticeNothing(t *testing.T) {
	mayTrace(t)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"echo", []string{"/bin/echo", "hello"}},
		{"shell with pipes", []string{"/bin/sh", "-c", "for i in 1 2 3; do echo $i | tr 1-3 a-c; done; (exit 3) || echo $?; kill -0 $$; exit 7"}},
		{"shell with a signal", []string{"/bin/bash", "-c", "trap 'echo caught' USR1; kill -USR1 $$; echo $(echo inner)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := os.Stat(c.args[0]); err != nil {
				skip.Missing(t, c.args[0])
			}
			cmd := exec.Command(c.args[0], c.args[1:]...)
			want, _ := cmd.Output()
			s, printed := startPrinting(t, c.args, session.Options{Select: everything("libc.so"), Follow: true})
			status, ended, err := s.Wait(t.Context())
			if err != nil || !ended || status.ExitStatus() != cmd.ProcessState.ExitCode() {
				t.Errorf("status %v, %v, %v; want %v", status, ended, err, cmd.ProcessState)
			}
			if got := printed(); got != string(want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if sum := s.Summary(); sum.Hits == 0 || sum.Jumps < 10*sum.Breakpoints {
				t.Errorf("%+v", sum)
			}
			shut(t, s)
		})
	}
}

// TestDetachLeavesNothing attaches to a running program, again and again.
func TestDetachLeavesNothing(t *testing.T) {
	mayTrace(t)
	cmd := exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	time.Sleep(20 * time.Millisecond)
	maps := func() string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := maps()
	for range 5 {
		s, err := session.Attach(t.Context(), cmd.Process.Pid, session.Options{Select: everything("libc.so")})
		if err != nil {
			t.Fatal(err)
		}
		waitForHits(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if after := maps(); after != before {
			t.Fatalf("mappings differ:\n%s\n%s", before, after)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
}

// TestUnmappedTextIsLost has a program load libraries, one after the other. One that is
// loaded again has its probes again.
func TestUnmappedTextIsLost(t *testing.T) {
	mayTrace(t)
	program := build(t, "loads.c")
	one, other := build(t, "answer.c", "-shared", "-fPIC"), build(t, "answer.c", "-shared", "-fPIC")
	answers := func(m *session.Module) ([]session.Probe, error) {
		library := *m
		library.Program = filepath.Base(m.Path) == filepath.Base(one)
		return named("answer")(&library)
	}
	for _, c := range []struct {
		name string
		load []string
		hits map[string]uint64
		lost uint64
	}{
		{"none", []string{one}, map[string]uint64{one: 1}, 0},
		{"the first", []string{one, other}, map[string]uint64{one: 1, other: 1}, 1},
		{"the second", []string{one, other, one}, map[string]uint64{one: 2, other: 1}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := run(t, append([]string{program}, c.load...), session.Options{Select: answers})
			hits := map[string]uint64{}
			for _, p := range s.Placed() {
				hits[p.Module.Path] += s.Hits(p)
			}
			if !maps.Equal(hits, c.hits) {
				t.Errorf("%v, want %v", hits, c.hits)
			}
			if n := s.Summary().Lost; n != c.lost {
				t.Errorf("%d are lost, want %d", n, c.lost)
			}
		})
	}
}
