//go:build linux && amd64

package session_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xol/internal/skip"
	"xol/session"
)

// build compiles a C file of testdata.
func build(t testing.TB, source string, flags ...string) (path string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		skip.Missing(t, "gcc")
	}
	path = filepath.Join(t.TempDir(), strings.TrimSuffix(source, ".c"))
	args := append([]string{"-O2", "-o", path, "testdata/" + source}, flags...)
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// startPrinting starts a program with probes. printed returns what it has printed.
func startPrinting(t testing.TB, args []string, opt session.Options) (s *session.Session, printed func() string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s, err = session.Start(t.Context(), session.Command{Path: args[0], Args: args, Files: []*os.File{nil, out, os.Stderr}}, opt)
	if err != nil {
		t.Fatal(err)
	}
	return s, func() string {
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// succeed waits for the end of a program, which has to return 0.
func succeed(t testing.TB, s *session.Session) {
	t.Helper()
	if status, ended, err := s.Wait(t.Context()); err != nil || !ended || status != 0 {
		t.Fatal(status, ended, err)
	}
}

// shut ends a session.
func shut(t testing.TB, s *session.Session) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// run runs a program with probes to its end.
func run(t testing.TB, args []string, opt session.Options) *session.Session {
	t.Helper()
	s, err := session.Start(t.Context(), session.Command{Path: args[0], Args: args}, opt)
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, s)
	shut(t, s)
	return s
}

// selecting says which probes are wanted in a file.
type selecting = func(m *session.Module) ([]session.Probe, error)

// with changes all probes that are wanted.
func with(want selecting, change func(p *session.Probe)) selecting {
	return func(m *session.Module) ([]session.Probe, error) {
		list, err := want(m)
		for i := range list {
			change(&list[i])
		}
		return list, err
	}
}

// returns wants a probe at the returns of functions.
func returns(names ...string) selecting {
	return with(named(names...), func(p *session.Probe) { p.Return = true })
}

// doing has all probes that are wanted do something else than count.
func doing(action session.Action, want selecting) selecting {
	return with(want, func(p *session.Probe) { p.Action = action })
}
