//go:build unicorn

package runtime_test

import (
	"errors"
	"os"
	"testing"

	"xol/arch"
	"xol/arch/amd64"
	"xol/classify"
	"xol/guest"
	"xol/image"
	"xol/internal/isatest"
	"xol/internal/workload"
	"xol/machine"
	"xol/runtime"
)

// The processes of the tests have their file at different addresses.
var biases = []uint64{0x5555_5555_0000, 0x7f12_3450_0000, 0x10_0000}

// system is the group of uprobes of a test, with the file that all map.
type system struct {
	*runtime.Uprobes
	isa  arch.Prober
	path string
	file *runtime.Executable
}

func newSystem(t *testing.T, isaName string) *system {
	t.Helper()
	isa, err := isatest.Named(isaName)
	if err != nil {
		t.Fatal(err)
	}
	s := &system{Uprobes: &runtime.Uprobes{}, isa: isa, path: "../testdata/guest/pie/" + isaName}
	img, err := image.OpenFile(s.path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	if s.file, err = runtime.NewExecutable("pie", img); err != nil {
		t.Fatal(err)
	}
	return s
}

// user is a process of a test.
type user struct {
	*runtime.Process
	m    *guest.Machine
	p    *guest.Program
	bias uint64
}

func (s *system) start(t *testing.T, bias uint64, opt runtime.Options) *user {
	t.Helper()
	m, err := guest.Open(guest.Options{ISA: s.isa})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	f, err := os.Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := m.LoadAt(f, bias)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Map(bufferAddr, workload.Size, machine.PermRead|machine.PermWrite); err != nil {
		t.Fatal(err)
	}
	opt.Uprobes = true
	r, err := runtime.New(m, s.isa, opt)
	if err != nil {
		t.Fatal(err)
	}
	process, err := s.Start(r)
	if err != nil {
		t.Fatal(err)
	}
	u := &user{process, m, p, bias}
	if err := u.Map(s.file, bias); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *user) call(t *testing.T, name string, args ...uint64) uint64 {
	t.Helper()
	f, err := u.p.Function(name)
	if err != nil {
		t.Fatal(err)
	}
	result, err := u.Call(t.Context(), 0, f, args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return result
}

// counter returns the value of the semaphore.
func (u *user) counter(t *testing.T) uint16 {
	t.Helper()
	addr, _, err := u.p.Symbol("semaphore")
	if err != nil {
		t.Fatal(err)
	}
	var b [2]byte
	if err := u.m.Read(b[:], addr); err != nil {
		t.Fatal(err)
	}
	return u.m.Order.Uint16(b[:])
}

// semaphoreOffset returns where in the file the semaphore is.
func (s *system) semaphoreOffset(t *testing.T, u *user) uint64 {
	t.Helper()
	addr, _, err := u.p.Symbol("semaphore")
	if err != nil {
		t.Fatal(err)
	}
	off, ok := s.file.Image.OffsetOf(addr - u.bias)
	if !ok {
		t.Fatal("the semaphore is not in the file")
	}
	return off
}

func eachISA(t *testing.T, f func(t *testing.T, isa string)) {
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) { f(t, isa) })
	}
}

// marked is what the function returns.
func marked(n uint64, listening bool) uint64 {
	sum := n * 4 * n
	if listening {
		sum += n * 1_000_000
	}
	return sum
}

// TestUprobes has a probe on a marker in processes that run, that start later, and
// that are not wanted.
func TestUprobes(t *testing.T) {
	eachISA(t, func(t *testing.T, isa string) {
		s := newSystem(t, isa)
		first := s.start(t, biases[0], runtime.Options{})
		unwanted := s.start(t, biases[1], runtime.Options{})
		hits := map[*runtime.Process]int{}
		var p *runtime.Link
		pSpec := runtime.Uprobe{Executable: s.file, Symbol: "mark_site", Semaphore: s.semaphoreOffset(t, first)}
		pSpec.Handler = func(c *runtime.UprobeContext) bool {
			hits[c.Process]++
			return c.Process != first.Process && hits[c.Process] == 3
		}
		pSpec.Filter = func(p *runtime.Process) bool { return p != unwanted.Process }
		other := attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Symbol: "mark_site", Filter: pSpec.Filter})
		p = attachUprobe(t, s, pSpec)
		later := s.start(t, biases[2], runtime.Options{})
		for _, u := range []*user{first, later} {
			if u.counter(t) != 1 {
				t.Errorf("%d listen, want 1", u.counter(t))
			}
		}
		if got := first.call(t, "marked", 10); got != marked(10, true) || hits[first.Process] != 10 {
			t.Errorf("%d, %d hits", got, hits[first.Process])
		}
		if got := unwanted.call(t, "marked", 10); got != marked(10, false) || hits[unwanted.Process] != 0 || unwanted.counter(t) != 0 {
			t.Errorf("not wanted: %d, %d hits", got, hits[unwanted.Process])
		}
		// The third hit takes the probe out, before the marker is asked.
		if got := later.call(t, "marked", 10); got != marked(10, false)+2_000_000 || hits[later.Process] != 3 || later.counter(t) != 0 {
			t.Errorf("removed by its handler: %d, %d hits", got, hits[later.Process])
		}
		if p.Hits() != 13 || other.Hits() != 20 {
			t.Errorf("%d and %d hits", p.Hits(), other.Hits())
		}
		if err := errors.Join(p.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
		for _, u := range []*user{first, later, unwanted} {
			if got := u.call(t, "marked", 10); got != marked(10, false) || u.counter(t) != 0 || len(u.Links()) != 0 {
				t.Errorf("unregistered: %d, %d listen, %d probes", got, u.counter(t), len(u.Links()))
			}
		}
		if p.Hits() != 13 {
			t.Errorf("hit when it was gone: %d", p.Hits())
		}
	})
}

// TestUprobeApply has a filter change its mind.
func TestUprobeApply(t *testing.T) {
	s := newSystem(t, "amd64")
	u := s.start(t, biases[0], runtime.Options{})
	wanted := false
	p := attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Symbol: "mark_site", Filter: func(*runtime.Process) bool { return wanted }})
	for _, want := range []uint64{0, 5, 5, 10} {
		u.call(t, "marked", 5)
		if p.Hits() != want {
			t.Errorf("%d hits, want %d", p.Hits(), want)
		}
		wanted = !wanted
		if err := s.Apply(); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Unmap(s.file); err != nil || u.Unmap(s.file) == nil {
		t.Error(err)
	}
}

// TestUprobeFork forks a process in the middle of a probed function.
func TestUprobeFork(t *testing.T) {
	eachISA(t, func(t *testing.T, isa string) {
		s := newSystem(t, isa)
		parent := s.start(t, biases[0], runtime.Options{})
		returns := map[*runtime.Process]uint64{}
		calls := map[*runtime.Process]int{}
		outer := attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Symbol: "fork_twice", ReturnHandler: func(c *runtime.UreturnContext) {
			returns[c.Process] = c.Regs.ReturnValue()
		}})
		inner := attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Symbol: "forking", Handler: func(*runtime.UprobeContext) bool { return false },
			ReturnHandler: func(*runtime.UreturnContext) {}})
		countSpec := runtime.Uprobe{Executable: s.file, Symbol: "count_call", Semaphore: s.semaphoreOffset(t, parent),
			Handler: func(c *runtime.UprobeContext) bool { calls[c.Process]++; return false }}
		never := attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Symbol: "count_call", Semaphore: countSpec.Semaphore,
			Filter: func(p *runtime.Process) bool { return p == parent.Process }})
		count := attachUprobe(t, s, countSpec)
		f, err := parent.p.Function("fork_twice")
		if err != nil {
			t.Fatal(err)
		}
		if err := parent.Process.Runtime.Start(0, f, 100); err != nil {
			t.Fatal(err)
		}
		var stop *runtime.StopError
		if err := parent.Run(t.Context(), 100_000); !errors.As(err, &stop) || stop.Event.Kind != machine.EventSyscall {
			t.Fatal(err)
		}
		m, err := parent.m.Copy()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		process, err := parent.Fork(m)
		if err != nil {
			t.Fatal(err)
		}
		child := &user{process, m, parent.p, parent.bias}
		if parent.counter(t) != 2 || child.counter(t) != 1 {
			t.Errorf("%d and %d listen, want 2 and 1", parent.counter(t), child.counter(t))
		}
		result := s.isa.Convention().Result
		parent.m.CPUs[0].SetReg(result, 42)
		m.CPUs[0].SetReg(result, 0)
		if err := errors.Join(child.Run(t.Context(), 100_000), parent.Run(t.Context(), 100_000)); err != nil {
			t.Fatal(err)
		}
		if got := m.CPUs[0].Result(); got != 100+0+1001 || returns[child.Process] != got || calls[child.Process] != 1 {
			t.Errorf("child: %d, seen %d, %d calls", got, returns[child.Process], calls[child.Process])
		}
		if got := parent.m.CPUs[0].Result(); got != 100+42+1001 || returns[parent.Process] != got || calls[parent.Process] != 1 {
			t.Errorf("parent: %d, seen %d, %d calls", got, returns[parent.Process], calls[parent.Process])
		}
		if child.Depth(0) != 0 || parent.Depth(0) != 0 {
			t.Error("calls are still going on")
		}
		child.Exit()
		for _, p := range []*runtime.Link{outer, inner, count, never} {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		if parent.counter(t) != 0 {
			t.Errorf("%d listen", parent.counter(t))
		}
	})
}

// TestUprobeOwnBreakpoint has a program run into a breakpoint of its own.
func TestUprobeOwnBreakpoint(t *testing.T) {
	eachISA(t, func(t *testing.T, isa string) {
		s := newSystem(t, isa)
		u := s.start(t, biases[0], runtime.Options{})
		attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Symbol: "count_call"})
		f, err := u.p.Function("trapping")
		if err != nil {
			t.Fatal(err)
		}
		at, _, err := u.p.Symbol("own_trap")
		if err != nil {
			t.Fatal(err)
		}
		_, err = u.Call(t.Context(), 0, f, 1)
		var stop *runtime.StopError
		if !errors.As(err, &stop) || stop.Event.Addr != at {
			t.Fatalf("%v, want a stop at %#x", err, at)
		}
		if signal, ok := stop.Signal(); !ok || signal != runtime.SIGTRAP {
			t.Errorf("signal %d", signal)
		}
		want := at
		if isa == "amd64" {
			want++ // int3 is a trap
		}
		if pc := u.m.CPUs[0].PC(); pc != want {
			t.Errorf("stopped at %#x, want %#x", pc, want)
		}
	})
}

// TestUprobesEverywhere has uprobes on all instructions that the rules allow.
func TestUprobesEverywhere(t *testing.T) {
	modes := []runtime.Options{{}, {OptimizeNops: true, Pass: 100}, {Stepping: runtime.StepTrap}}
	eachISA(t, func(t *testing.T, isa string) {
		for i, opt := range modes {
			if isa == "arm64" && opt.Stepping == runtime.StepTrap {
				continue
			}
			s := newSystem(t, isa)
			u := s.start(t, biases[i], opt)
			var probes []*runtime.Link
			refused := 0
			for _, off := range s.offsets(t) {
				p, err := s.Attach(runtime.Uprobe{Executable: s.file, Offset: off})
				if err != nil {
					refused++
					continue
				}
				probes = append(probes, p)
			}
			prog := &program{Runtime: u.Runtime, m: u.m, p: u.p}
			prog.callAll(t, 1)
			var hits uint64
			for _, p := range probes {
				hits += p.Hits()
			}
			if len(probes) < 10*refused || hits < 10_000 {
				t.Errorf("mode %d: %d probes, %d refused, %d hits", i, len(probes), refused, hits)
			}
			for _, p := range u.Links() {
				if p.Boosted() {
					t.Fatalf("%#x is boosted", p.Address())
				}
			}
			for _, p := range probes {
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
			}
			prog.callAll(t, 2)
		}
	})
}

// offsets returns where in the file the instructions are.
func (s *system) offsets(t *testing.T) (list []uint64) {
	t.Helper()
	for _, inst := range instsIn(t, s.path) {
		off, ok := s.file.Image.OffsetOf(inst.addr)
		if !ok {
			t.Fatalf("%#x is not in the file", inst.addr)
		}
		list = append(list, off)
	}
	return list
}

// TestUprobeOptimized has a jump in the place of a NOP of a function that uses the
// red zone.
func TestUprobeOptimized(t *testing.T) {
	eachISA(t, func(t *testing.T, isa string) {
		s := newSystem(t, isa)
		u := s.start(t, biases[0], runtime.Options{OptimizeNops: true})
		p := attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Symbol: "mark_site"})
		attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Symbol: "fork_twice"})
		if err := u.Settle(); err != nil {
			t.Fatal(err)
		}
		optimized := 0
		for _, probe := range u.Links() {
			if probe.Optimized() {
				optimized++
			}
		}
		if got := u.call(t, "marked", 50); got != marked(50, false) || p.Hits() != 50 || optimized != 1 {
			t.Errorf("%d, %d hits, %d jumps", got, p.Hits(), optimized)
		}
	})
}

// TestUprobeScratch looks at an operand that is relative to the instruction
// pointer.
func TestUprobeScratch(t *testing.T) {
	s := newSystem(t, "amd64")
	u := s.start(t, biases[1], runtime.Options{})
	f, err := u.p.Function("count_call")
	if err != nil {
		t.Fatal(err)
	}
	off, _ := s.file.Image.OffsetOf(f.Entry - u.bias + 4) // after the landing pad: mov calls(%rip),%rax
	p := attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Offset: off})
	v := p.Verdict()
	if v.Exec != classify.ExecSlot || v.Scratch != amd64.RSI || v.Hazard != nil {
		t.Errorf("%+v", v)
	}
	const rsi = 0x1234_5678_9abc
	if got := u.call(t, "count_call", 7, rsi); got != 1007 {
		t.Errorf("%d", got)
	}
	if got := u.m.CPUs[0].Reg(s.isa.Registers().Index("rsi")); got != rsi {
		t.Errorf("rsi is %#x", got)
	}
	same(t, "hits", p.Hits(), 1)
}

func TestUprobeRefused(t *testing.T) {
	s := newSystem(t, "amd64")
	u := s.start(t, biases[0], runtime.Options{})
	l := attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Symbol: "marked"})
	for name, p := range map[string]runtime.Uprobe{
		"no file":           {Symbol: "marked"},
		"no place":          {Executable: s.file},
		"two places":        {Executable: s.file, Symbol: "marked", Offset: 0x1000},
		"no such symbol":    {Executable: s.file, Symbol: "none"},
		"outside the text":  {Executable: s.file, Offset: 1},
		"a breakpoint":      {Executable: s.file, Symbol: "own_trap"},
		"no such semaphore": {Executable: s.file, Symbol: "marked", Semaphore: 1 << 40},
		"return handler inside": {Executable: s.file, Symbol: "mark_site",
			ReturnHandler: func(*runtime.UreturnContext) {}},
	} {
		var refused *runtime.RegisterError
		if _, err := s.Attach(p); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(u.Links()); n != 1 {
		t.Errorf("%d probes are left", n)
	}
	if err := errors.Join(l.Disable(), l.Disable(), l.Enable(), l.Close()); err != nil {
		t.Error(err)
	}
	for _, err := range []error{l.Close(), l.Enable(), l.Disable()} {
		if !errors.Is(err, classify.EINVAL) {
			t.Errorf("a link that was closed: %v", err)
		}
	}
	r, err := runtime.New(u.m, s.isa, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(r); err == nil {
		t.Error("a process without Options.Uprobes")
	}
}

// TestUprobeHazard has a warning come with a probe that Linux accepts and then
// executes wrongly: one in the middle of a NOP of 5 bytes.
func TestUprobeHazard(t *testing.T) {
	s := newSystem(t, "amd64")
	u := s.start(t, biases[0], runtime.Options{})
	at, _, err := u.p.Symbol("mark_site")
	if err != nil {
		t.Fatal(err)
	}
	off, _ := s.file.Image.OffsetOf(at - u.bias + 3)
	p := attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Offset: off})
	if h := p.Verdict().Hazard; h == nil || h.ID != "amd64/uprobe-inside-instruction" {
		t.Errorf("%+v", h)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if got := u.call(t, "marked", 3); got != marked(3, false) {
		t.Errorf("the text is not what it was: %d", got)
	}
}

// TestUprobeMappedTwice has a handler take a probe out of a process that maps its
// file twice, and both mappings go away.
func TestUprobeMappedTwice(t *testing.T) {
	eachISA(t, func(t *testing.T, isa string) {
		s := newSystem(t, isa)
		u := s.start(t, biases[0], runtime.Options{})
		f, err := os.Open(s.path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := u.m.LoadAt(f, biases[1]); err != nil {
			t.Fatal(err)
		}
		once := attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Symbol: "mark_site", Semaphore: s.semaphoreOffset(t, u),
			Handler: func(*runtime.UprobeContext) bool { return true }})
		attachUprobe(t, s, runtime.Uprobe{Executable: s.file, Symbol: "marked", ReturnHandler: func(*runtime.UreturnContext) {}})
		if err := u.Map(s.file, biases[1]); err != nil {
			t.Fatal(err)
		}
		same(t, "probes", len(u.Links()), 6)
		same(t, "the result", u.call(t, "marked", 10), marked(10, false)) // the counter is asked after the marker
		same(t, "hits", once.Hits(), 1)
		same(t, "those who listen", u.counter(t), 0)
		same(t, "probes when one is taken out", len(u.Links()), 4)
		if err := errors.Join(u.Unmap(s.file), u.Unmap(s.file)); err != nil {
			t.Fatal(err)
		}
		same(t, "probes of what is mapped no more", len(u.Links()), 0)
		m, err := u.m.Copy()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		child, err := u.Fork(m)
		if err != nil {
			t.Fatal(err)
		}
		child.Exit()
	})
}
