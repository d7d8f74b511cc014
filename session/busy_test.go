//go:build linux && amd64

package session_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"xol/image"
	"xol/session"
)

var (
	deaths = flag.Int("deaths", 3, "how often a session is killed")
	cycles = flag.Int("cycles", 20, "how often probes are armed, optimized, unoptimized and disarmed")
)

// busy builds the program of threads that call hot functions.
func busy(t *testing.T) string {
	t.Helper()
	mayTrace(t)
	return build(t, "busy.c", "-pthread")
}

var hot = []string{"hot0", "hot1", "hot2", "hot3", "hot4", "hot5", "hot6", "hot7"}

// calls reads what the program prints: how often it has called each function itself.
func calls(t *testing.T, out string) (n []uint64) {
	t.Helper()
	for line := range strings.Lines(out) {
		var name string
		var v uint64
		if _, err := fmt.Sscan(line, &name, &v); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		n = append(n, v)
	}
	if len(n) != len(hot) {
		t.Fatalf("%q", out)
	}
	n[0], n[1] = n[0]+n[3], n[1]+n[3] // hot3 calls both
	return n
}

// TestCountsAreExact compares counts with what threads under a timer's signals have
// counted themselves.
func TestCountsAreExact(t *testing.T) {
	program := busy(t)
	for _, c := range []struct {
		name string
		want selecting
	}{{"entries", named(hot...)}, {"every instruction", everything()}, {"returns", returns(hot...)}} {
		t.Run(c.name, func(t *testing.T) {
			s, printed := startPrinting(t, []string{program}, session.Options{Select: c.want})
			begun := func(p *session.Placed) bool { return strings.HasPrefix(p.Probe.Symbol, "hot") && s.Hits(p) > 0 }
			for !slices.ContainsFunc(s.Placed(), begun) {
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(300 * time.Millisecond)
			syscall.Kill(s.PID(), syscall.SIGTERM)
			succeed(t, s)
			want := calls(t, printed())
			for _, p := range s.Placed() {
				i := strings.IndexByte("01234567", p.Probe.Symbol[len(p.Probe.Symbol)-1])
				if !strings.HasPrefix(p.Probe.Symbol, "hot") || p.Probe.Offset != 0 {
					continue
				}
				if got := s.Hits(p); got != want[i] {
					t.Errorf("%s: %d hits by %v, want %d (%v %v)", p.Probe.Symbol, got, p.Way, want[i], p.Refused, p.Err)
				}
			}
			shut(t, s)
		})
	}
}

// TestHitsAreToldOnce compares the hits that are told of with what threads under a timer's
// signals have counted themselves: most signals come while a thread waits at a gate.
func TestHitsAreToldOnce(t *testing.T) {
	program := busy(t)
	for _, c := range []struct {
		name string
		want selecting
	}{{"entries", named("hot0", "hot6")}, {"returns", returns("hot0", "hot6")}} {
		t.Run(c.name, func(t *testing.T) {
			told := map[string]uint64{}
			s, printed := startPrinting(t, []string{program}, session.Options{
				Select: doing(session.Trace, c.want), Hit: func(h *session.Hit) { told[h.Placed.Probe.Symbol]++ },
			})
			time.Sleep(time.Second)
			syscall.Kill(s.PID(), syscall.SIGTERM)
			succeed(t, s)
			want := calls(t, printed())
			if told["hot0"] != want[0] || told["hot6"] != want[6] {
				t.Errorf("%v, want %d and %d", told, want[0], want[6])
			}
			shut(t, s)
		})
	}
}

// functions wants a probe at every instruction of functions whose names start so.
func functions(names ...string) selecting {
	return func(m *session.Module) (list []session.Probe, err error) {
		if !strings.Contains(m.Path, "churn") {
			return nil, nil
		}
		list, err = everything(filepath.Base(m.Path))(m)
		return slices.DeleteFunc(list, func(p session.Probe) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(p.Symbol, name) }) ||
				strings.HasSuffix(p.Symbol, "@plt")
		}), err
	}
}

// started is the program, run by this test.
type started struct {
	*exec.Cmd
	out bytes.Buffer
}

func start(t *testing.T, program string, args ...string) *started {
	t.Helper()
	s := &started{Cmd: exec.Command(program, args...)}
	s.Stdout, s.Stderr = &s.out, &s.out
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Process.Kill() })
	time.Sleep(20 * time.Millisecond)
	return s
}

// finish ends the program, which has to say that nothing went wrong.
func (s *started) finish(t *testing.T) {
	t.Helper()
	s.Process.Signal(syscall.SIGTERM)
	if err := s.Wait(); err != nil {
		t.Fatalf("%v: %s", err, s.out.Bytes())
	}
}

// TestSwitchesUnderLoad arms, optimizes, unoptimizes and disarms probes of a program that
// runs: alone, with children that are followed or not, and with a library that comes and
// goes.
func TestSwitchesUnderLoad(t *testing.T) {
	mayTrace(t)
	program := build(t, "churn.c", "-pthread")
	library := build(t, "churn.c", "-shared", "-fPIC", "-DLIBRARY")
	for _, c := range []struct {
		name   string
		args   []string
		follow bool
	}{
		{"threads", nil, false}, {"children", []string{"fork"}, false}, {"children followed", []string{"fork"}, true},
		{"library", []string{library}, false}, {"children and library", []string{"fork", library}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, program, c.args...)
			s, err := session.Attach(t.Context(), p.Process.Pid, session.Options{Select: functions("hot", "str"), Follow: c.follow})
			if err != nil {
				t.Fatal(err)
			}
			jumps := 0
			for _, p := range s.Placed() {
				if p.Refused != nil || p.Err != nil {
					t.Fatalf("%s+%#x: %v %v", p.Probe.Symbol, p.Probe.Offset, p.Refused, p.Err)
				}
				if p.Way == session.Jump {
					jumps++
				} else if p.Probe.Symbol == "hot_short" && p.Probe.Offset == 0 {
					t.Errorf("no jump at the entry of hot_short")
				}
			}
			if jumps < 500 {
				t.Errorf("%d jumps", jumps)
			}
			for i := range *cycles {
				for _, step := range []func() error{
					func() error { return s.SetOptimization(false) }, func() error { return s.SetOptimization(true) },
					func() error { return s.SetArmed(false) }, func() error { return s.SetArmed(true) },
				} {
					if err := step(); err != nil {
						p.alive(t, i)
						t.Fatalf("cycle %d: %v", i, err)
					}
					time.Sleep(time.Millisecond)
				}
				p.alive(t, i)
			}
			shut(t, s)
			t.Logf("%+v", s.Summary())
			original(t, p.Process.Pid, program)
			p.finish(t)
			t.Logf("%s", p.out.Bytes())
		})
	}
}

// TestThreadsThatWait stops threads that wait in system calls, which go on from copies and
// are taken out of them: no count may come out below zero.
func TestThreadsThatWait(t *testing.T) {
	program := busy(t)
	p := start(t, program)
	s, err := session.Attach(t.Context(), p.Process.Pid, session.Options{Select: everything("libc.so")})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for _, on := range []bool{false, true} {
			if err := s.SetArmed(on); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	shut(t, s)
	for _, p := range s.Placed() {
		if n := s.Hits(p); int64(n) < 0 {
			t.Errorf("%s+%#x: %d hits", p.Probe.Symbol, p.Probe.Offset, int64(n))
		}
	}
	p.finish(t)
}

// original checks that the program's text in memory is that of its file.
func original(t *testing.T, pid int, program string) {
	t.Helper()
	img, err := image.OpenFile(program, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(maps), "memfd:xol") {
		t.Errorf("memory is left:\n%s", maps)
	}
	base := uint64(0)
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(strings.TrimSpace(line), program) {
			base, _ = strconv.ParseUint(line[:strings.IndexByte(line, '-')], 16, 64)
			break
		}
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	for _, r := range img.Text() {
		want, err := img.Code(nil, r.Addr, r.Size)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, r.Size)
		if _, err := mem.ReadAt(got, int64(base+r.Addr)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("the text of %s is not original", r.Section)
		}
	}
}

// TestDeath kills sessions at random moments.
func TestDeath(t *testing.T) {
	program := busy(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, program)
	for i := range *deaths {
		front := exec.Command(self)
		front.Env = append(os.Environ(), "XOL_TEST_FRONT="+strconv.Itoa(p.Process.Pid))
		front.Stderr = os.Stderr
		if err := front.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(400_000)) * time.Microsecond)
		front.Process.Kill()
		front.Wait()
		for deadline := time.Now().Add(time.Minute); tracerOf(p.Process.Pid) != "0"; {
			if time.Now().After(deadline) {
				t.Fatalf("death %d: the guard does not end", i)
			}
			time.Sleep(time.Millisecond)
		}
		p.alive(t, i)
		original(t, p.Process.Pid, program)
	}
	p.finish(t)
}

// alive checks that the program has survived.
func (s *started) alive(t *testing.T, times int) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process.Pid))
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		return
	}
	err = s.Wait()
	t.Fatalf("after %d times: %v: %s", times, err, s.out.Bytes())
}

// tracerOf returns the tracer of a process.
func tracerOf(pid int) string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "TracerPid:")
	line, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(line)
}

// front is a session that is going to be killed.
func front(pid string) {
	n, err := strconv.Atoi(pid)
	if err != nil {
		panic(err)
	}
	s, err := session.Attach(background, n, session.Options{
		Select: everything(), Guard: []string{"/proc/self/exe", "-xol-test-guard"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for {
		s.SetOptimization(false)
		s.SetOptimization(true)
	}
}

// TestTimesOfCalls measures calls whose times are known: each sleeps as long as it says.
func TestTimesOfCalls(t *testing.T) {
	mayTrace(t)
	program := build(t, "naps.c", "-pthread")
	s := run(t, []string{program}, session.Options{Select: doing(session.Time, named("nap", "depth", "left"))})
	for i, c := range []struct {
		calls uint64
		least int // bits of the nanoseconds of most calls
	}{{40, 20}, {400, 1}, {20, 1}} {
		p, n, long := s.Placed()[i], uint64(0), uint64(0)
		for bits, calls := range s.Times(p) {
			n += calls
			if bits >= c.least {
				long += calls
			}
		}
		if n != c.calls || long < n/2 || p.Refused != nil || p.Err != nil {
			t.Errorf("%s: %d calls, want %d; %d of at least %d bits; %v %v: %v", p.Probe.Symbol, n, c.calls, long, c.least, p.Refused, p.Err, s.Times(p))
		}
	}
}

// TestTimesOfTooManyCalls has more calls open than there is room for: those that are not
// measured are counted.
func TestTimesOfTooManyCalls(t *testing.T) {
	mayTrace(t)
	program := build(t, "deep.c")
	for depth, mayMiss := range map[int]bool{100: false, 20_000: true} {
		s := run(t, []string{program, strconv.Itoa(depth)}, session.Options{Select: doing(session.Time, named("deep"))})
		sum := s.Summary()
		if measured := s.Hits(s.Placed()[0]); measured+sum.Missed != uint64(depth) || sum.Missed > 0 != mayMiss {
			t.Errorf("of %d calls %d are measured, %d missed", depth, measured, sum.Missed)
		}
	}
}
