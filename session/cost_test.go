//go:build linux && amd64

package session_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"xol/image"
	"xol/internal/skip"
	"xol/session"
)

// called is the program that calls a function.
type called struct {
	path     string
	function string
	calls    int // of a round
	rounds   int
}

func (c *called) args() []string {
	return []string{c.path, c.function, strconv.Itoa(c.calls), strconv.Itoa(c.rounds)}
}

// BenchmarkHit measures what a hit costs a program, in nanoseconds: those of a call with
// and without it. The bare call, ours by a jump at the entry and at the return, the time of
// calls, ours by a breakpoint; then the kernel's, where it emulates the instruction, where
// it has it executed out of line and where it replaces a NOP; then a breakpoint of gdb. The
// last of them gives the ratios.
func BenchmarkHit(b *testing.B) {
	program := build(b, "calls.c")
	ours := func(p session.Probe, jumps bool) func(*testing.B, *called) float64 {
		return func(b *testing.B, c *called) float64 { return c.probed(b, p, jumps) }
	}
	uprobe := func(ret uint64) func(*testing.B, *called) float64 {
		return func(b *testing.B, c *called) float64 { return c.uprobed(b, ret) }
	}
	call := map[string]float64{}
	for _, m := range []struct {
		name          string
		function      string
		calls, rounds int
		measure       func(*testing.B, *called) float64
	}{
		{"bare", "target", 100_000, 1000, func(b *testing.B, c *called) float64 { return c.run(b, exec.Command(c.path, c.args()[1:]...)) }},
		{"jump", "target", 100_000, 1000, ours(session.Probe{}, true)},
		{"return", "target", 100_000, 1000, ours(session.Probe{Return: true}, true)},
		{"time", "target", 20_000, 1000, ours(session.Probe{Action: session.Time}, true)},
		{"breakpoint", "target", 100, 200, ours(session.Probe{}, false)},
		{"uprobe", "target", 1000, 500, uprobe(0)},
		{"uprobe-stepped", "stepped", 300, 200, uprobe(0)},
		{"uprobe-nop5", "nop5", 1000, 500, uprobe(0)},
		{"uretprobe", "target", 1000, 500, uprobe(1)},
		{"gdb", "target", 100, 20, func(b *testing.B, c *called) float64 { return c.debugged(b) }},
	} {
		b.Run(m.name, func(b *testing.B) {
			c := &called{program, m.function, m.calls, m.rounds}
			best := 0.0
			for b.Loop() {
				if ns := m.measure(b, c); best == 0 || ns < best {
					best = ns
				}
			}
			call[m.name] = best
			b.ReportMetric(best, "ns/call")
			b.ReportMetric(best-call["bare"], "ns/hit")
			b.ReportMetric(0, "ns/op")
		})
	}
	b.Run("ratios", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(0, "ns/op")
		for _, r := range []struct{ more, less string }{
			{"uprobe", "jump"}, {"uretprobe", "return"}, {"breakpoint", "jump"}, {"gdb", "breakpoint"}, {"breakpoint", "uprobe"},
		} {
			more, less, bare := call[r.more], call[r.less], call["bare"]
			if more == 0 || less <= bare || bare == 0 {
				continue
			}
			b.ReportMetric((more-bare)/(less-bare), r.more+"/"+r.less)
			b.ReportMetric(more/less, r.more+"-call/"+r.less+"-call")
		}
	})
}

// run runs the program, and returns what it prints: nanoseconds per call.
func (c *called) run(b *testing.B, cmd *exec.Cmd) float64 {
	b.Helper()
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	return c.read(b, string(out))
}

func (c *called) read(b *testing.B, out string) float64 {
	b.Helper()
	ns, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil {
		b.Fatal(err)
	}
	return ns
}

// probed has a probe of ours hit.
func (c *called) probed(b *testing.B, p session.Probe, jumps bool) float64 {
	b.Helper()
	mayTrace(b)
	s, printed := startPrinting(b, c.args(), session.Options{
		Select: with(named(c.function), func(want *session.Probe) { want.Return, want.Action = p.Return, p.Action }),
	})
	if !jumps {
		if err := s.SetOptimization(false); err != nil {
			b.Fatal(err)
		}
	}
	succeed(b, s)
	if placed := s.Placed()[0]; s.Hits(placed) != uint64(c.calls*c.rounds) || placed.Way != session.Jump {
		b.Fatalf("%d hits by %v, want %d", s.Hits(placed), placed.Way, c.calls*c.rounds)
	}
	shut(b, s)
	return c.read(b, printed())
}

// uprobed has the kernel's uprobe hit, or the uretprobe where ret is 1, by an event that
// only counts.
func (c *called) uprobed(b *testing.B, ret uint64) float64 {
	b.Helper()
	kind, err := os.ReadFile("/sys/bus/event_source/devices/uprobe/type")
	if err != nil {
		skip.Missing(b, "uprobes of the kernel", err)
	}
	number, err := strconv.ParseUint(strings.TrimSpace(string(kind)), 10, 32)
	if err != nil {
		b.Fatal(err)
	}
	path, err := unix.BytePtrFromString(c.path)
	if err != nil {
		b.Fatal(err)
	}
	attr := unix.PerfEventAttr{
		Type: uint32(number), Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: ret,
		Ext1: uint64(uintptr(unsafe.Pointer(path))), Ext2: c.offset(b),
	}
	var events []int
	for cpu := range runtime.NumCPU() {
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			skip.Missing(b, "uprobes of the kernel", err)
		}
		defer unix.Close(fd)
		events = append(events, fd)
	}
	runtime.KeepAlive(path)
	ns := c.run(b, exec.Command(c.path, c.args()[1:]...))
	total := uint64(0)
	for _, fd := range events {
		var hits [8]byte
		if _, err := unix.Read(fd, hits[:]); err != nil {
			b.Fatal(err)
		}
		total += binary.NativeEndian.Uint64(hits[:])
	}
	if total != uint64(c.calls*c.rounds) {
		b.Fatalf("%d hits, want %d", total, c.calls*c.rounds)
	}
	return ns
}

// offset returns where the function is in the file.
func (c *called) offset(b *testing.B) uint64 {
	b.Helper()
	img, err := image.OpenFile(c.path, image.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer img.Close()
	places, err := img.Resolve(c.function)
	if err != nil {
		b.Fatal(err)
	}
	off, ok := img.OffsetOf(places[0].Addr)
	if !ok {
		b.Fatal("the function is not in the file")
	}
	return off
}

// debugged has a breakpoint of gdb hit, which it only counts.
func (c *called) debugged(b *testing.B) float64 {
	b.Helper()
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		skip.Missing(b, "gdb")
	}
	args := []string{"-nx", "-batch", "-ex", "break *" + c.function, "-ex", "ignore 1 1000000000", "-ex", "run", "-ex", "info breakpoints", "--args"}
	out, err := exec.Command(gdb, append(args, c.args()...)...).Output()
	if err != nil {
		skip.Missing(b, "gdb", err)
	}
	if want := fmt.Sprintf("already hit %d times", c.calls*c.rounds); !strings.Contains(string(out), want) {
		b.Fatalf("not %s: %s", want, out)
	}
	for line := range strings.Lines(string(out)) {
		if ns, err := strconv.ParseFloat(strings.TrimSpace(line), 64); err == nil {
			return ns
		}
	}
	b.Fatalf("no time: %s", out)
	return 0
}
