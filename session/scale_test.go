//go:build linux && amd64

package session_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"xol/internal/skip"
	"xol/session"
)

var scale = flag.Bool("scale", false, "count all functions of a library of 100 MB, and measure")

// What counting the functions of a library may cost.
const (
	mostUntilArmed = 3 * time.Second
	mostPerProbe   = 250 // bytes
	longestStop    = 50 * time.Millisecond
)

// largeLibrary returns the largest library that is at hand.
func largeLibrary(t *testing.T) string {
	const large = 100 << 20
	paths, _ := filepath.Glob("/usr/lib/x86_64-linux-gnu/libLLVM*.so*")
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Size() >= large {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				return path
			}
		}
	}
	skip.Missing(t, "a library of 100 MB", "libLLVM")
	return ""
}

// memory is what a process has.
type memory struct {
	mapped, resident map[string]int // bytes, by file; that of no file is at the empty name
	dirty            map[string]int // private copies
}

var smapsHead = regexp.MustCompile(`^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)`)

func memoryOf(t *testing.T, pid int) memory {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := memory{map[string]int{}, map[string]int{}, map[string]int{}}
	name := ""
	for line := range strings.Lines(string(text)) {
		if head := smapsHead.FindStringSubmatch(line); head != nil {
			if name = head[1]; strings.HasPrefix(name, "/memfd:") {
				name = ""
			}
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch key {
		case "Size":
			m.mapped[name] += n << 10
		case "Rss":
			m.resident[name] += n << 10
		case "Private_Dirty":
			m.dirty[name] += n << 10
		}
	}
	return m
}

// TestScale counts all functions of libraries in a program that runs, through a guard as
// the command has it.
func TestScale(t *testing.T) {
	skip.Unasked(t, *scale, "counting all functions of a large library")
	mayTrace(t)
	program := build(t, "ticks.c", "-ldl")
	large := largeLibrary(t)
	for _, c := range []struct {
		library string
		probes  int // at least
	}{{"libc.so.6", 2000}, {filepath.Base(large), 50_000}} {
		t.Run(c.library, func(t *testing.T) { measureScale(t, exec.Command(program, large), c.library, c.probes) })
	}
}

func measureScale(t *testing.T, cmd *exec.Cmd, library string, probes int) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("%q", lines.Text())
	}
	pid := cmd.Process.Pid
	before := memoryOf(t, pid)
	pause := func() float64 { // milliseconds
		cmd.Process.Signal(syscall.SIGUSR1)
		lines.Scan()
		us, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		return float64(us) / 1e3
	}
	pause()
	var cpu syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &cpu)
	begun := time.Now()
	s, err := session.Attach(t.Context(), pid, session.Options{
		Guard: []string{"/proc/self/exe", "-xol-test-guard"},
		Select: func(m *session.Module) (list []session.Probe, err error) {
			if filepath.Base(m.Path) != library {
				return nil, nil
			}
			for _, f := range m.Analysis.Functions() {
				list = append(list, session.Probe{Addr: f.Addr, Symbol: f.Name})
			}
			return list, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	used := cpu
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	arming := pause()
	after := memoryOf(t, pid)
	sum := s.Summary()
	pause()
	begun = time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	leaving := time.Since(begun)
	var guard syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_CHILDREN, &guard)
	goingOn := pause()
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	armed := sum.Jumps + sum.Breakpoints
	if armed < probes {
		t.Fatalf("%+v", sum)
	}
	mapped, resident := (after.mapped[""]-before.mapped[""])/armed, (after.resident[""]-before.resident[""])/armed
	copied := 0
	for name := range after.dirty {
		if strings.Contains(name, "lib") {
			copied += after.dirty[name] - before.dirty[name]
		}
	}
	cpuTime := time.Duration(used.Utime.Nano() + used.Stime.Nano() - cpu.Utime.Nano() - cpu.Stime.Nano())
	t.Logf("%d probes: armed in %.2f s (CPUs: %.2f s of the session, %.2f s of the guard), taken back in %.2f s", armed, took.Seconds(), cpuTime.Seconds(), time.Duration(guard.Utime.Nano()+guard.Stime.Nano()).Seconds(), leaving.Seconds())
	t.Logf("bytes per probe: %d mapped, %d resident; pages of text that were copied: %d", mapped, resident, copied/armed)
	t.Logf("longest stop: %.1f ms; the program's longest pause, as it is probed: %.1f ms; as all is taken back: %.1f ms", sum.LongestStop.Seconds()*1e3, arming, goingOn)
	if took > mostUntilArmed {
		t.Errorf("it took %v until all was armed", took)
	}
	if mapped > mostPerProbe {
		t.Errorf("%d bytes per probe", mapped)
	}
	if longest := s.Summary().LongestStop; longest > longestStop {
		t.Errorf("the process was stopped for %v", longest)
	}
}
