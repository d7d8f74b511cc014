//go:build linux && amd64

package session_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"xol/internal/skip"
	"xol/session"
)

// BenchmarkCall measures calls of a function: bare, counted by a jump, by a breakpoint, at
// its return, and by the kernel's uprobe.
func BenchmarkCall(b *testing.B) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		skip.Missing(b, "gcc")
	}
	program := filepath.Join(b.TempDir(), "calls")
	if out, err := exec.Command(gcc, "-O2", "-o", program, "testdata/calls.c").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	measure := func(calls int, opt *session.Options, jumps bool) float64 {
		out, err := os.Create(filepath.Join(b.TempDir(), "out"))
		if err != nil {
			b.Fatal(err)
		}
		defer out.Close()
		args := []string{program, strconv.Itoa(calls)}
		if opt == nil {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Stdout = out
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		} else {
			s, err := session.Start(b.Context(), session.Command{Path: program, Args: args, Files: []*os.File{nil, out, os.Stderr}}, *opt)
			if err != nil {
				skip.Missing(b, "ptrace", err)
			}
			if !jumps {
				if err := s.SetOptimization(false); err != nil {
					b.Fatal(err)
				}
			}
			if status, ended, err := s.Wait(b.Context()); err != nil || !ended || status != 0 {
				b.Fatal(status, ended, err)
			}
			if got := s.Hits(s.Placed()[0]); got != uint64(calls) {
				b.Fatalf("%d hits, want %d", got, calls)
			}
			s.Close()
		}
		text, _ := os.ReadFile(out.Name())
		ns, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		if err != nil {
			b.Fatal(err)
		}
		return ns
	}
	entry, exit := &session.Options{Select: named("target")}, &session.Options{Select: returns("target")}
	for _, c := range []struct {
		name  string
		opt   *session.Options
		jumps bool
		calls int
	}{
		{"bare", nil, true, 50_000_000}, {"jump", entry, true, 50_000_000}, {"return-jump", exit, true, 50_000_000},
		{"breakpoint", entry, false, 20_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			best := 0.0
			for b.Loop() {
				if ns := measure(c.calls, c.opt, c.jumps); best == 0 || ns < best {
					best = ns
				}
			}
			b.ReportMetric(best, "ns/call")
			b.ReportMetric(0, "ns/op")
		})
	}
}
