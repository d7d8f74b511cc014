//go:build unicorn

package runtime_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"xol/arch"
	"xol/classify"
	"xol/guest"
	"xol/machine"
	"xol/runtime"
)

func eachProgram(t *testing.T, f func(t *testing.T, isa, level string)) {
	for _, isa := range arch.Names() {
		for _, level := range []string{"0", "2"} {
			t.Run(isa+" -O"+level, func(t *testing.T) { f(t, isa, level) })
		}
	}
}

// TestWatchWrites watches a counter that the program increments atomically. The
// handler comes after each write on amd64, before it elsewhere.
func TestWatchWrites(t *testing.T) {
	const sum, times = bufferAddr + 0x100, 20
	eachProgram(t, func(t *testing.T, isa, level string) {
		p := open(t, isa, level, guest.Options{}, runtime.Options{})
		after := p.m.ISA.WatchUnit().After
		if err := p.m.WriteWord(sum, 1000); err != nil {
			t.Fatal(err)
		}
		n := uint64(1000)
		wSpec := runtime.WatchProbe{Addr: sum, Len: 8, Kind: machine.WatchWrite}
		wSpec.Handler = func(c *runtime.WatchContext) {
			now, err := p.m.ReadWord(sum)
			if err != nil {
				t.Error(err)
			}
			want := n
			if after {
				want++
			}
			if c.Old != n || c.New != n+1 || now != want || c.Addr != sum || c.Size != 8 || c.Kind&machine.WatchWrite == 0 {
				t.Errorf("%+v, memory %d; want %d", c.Watched, now, n)
			}
			n++
		}
		w := attach(t, p, wSpec)
		f, err := p.p.Function("add_many")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Call(t.Context(), 0, f, sum, times); err != nil || got != times {
			t.Fatalf("%d, %v", got, err)
		}
		if w.Hits() != times || n != 1000+times {
			t.Errorf("%d hits, want %d", w.Hits(), times)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Call(t.Context(), 0, f, sum, times); err != nil || w.Hits() != times {
			t.Errorf("%d hits without the watchpoint, %v", w.Hits(), err)
		}
	})
}

// TestWatchBytes watches one byte of data that are read one by one, with and
// without probes on all instructions: what the handler sees is the same.
func TestWatchBytes(t *testing.T) {
	const at = 77
	modes := []runtime.Options{
		{NoOptimize: true, NoBoost: true}, {NoOptimize: true}, {Pass: 100},
	}
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			want := watchByte(t, isa, "2", at, runtime.Options{}, false)
			if len(want) != 1 {
				t.Fatalf("read at %#x, want once", want)
			}
			for i, opt := range modes {
				if got := watchByte(t, isa, "2", at, opt, true); !slices.Equal(got, want) {
					t.Errorf("mode %d: read at %#x, want %#x", i, got, want)
				}
			}
		})
	}
}

// watchByte returns the instruction pointers of the reads of a byte.
func watchByte(t *testing.T, isa, level string, at uint64, opt runtime.Options, probed bool) (ips []uint64) {
	t.Helper()
	p := open(t, isa, level, guest.Options{}, opt)
	data := make([]byte, 200)
	for i := range data {
		data[i] = byte(i * 3)
	}
	if err := p.m.Write(bufferAddr, data); err != nil {
		t.Fatal(err)
	}
	if probed {
		for _, inst := range instsOf(t, isa, level) {
			_ = try(p, runtime.Probe{Addr: inst.addr}) // those that may be
		}
		if err := p.Settle(); err != nil {
			t.Fatal(err)
		}
	}
	wSpec := runtime.WatchProbe{Addr: bufferAddr + at, Len: 1, Kind: machine.WatchAccess}
	wSpec.Handler = func(c *runtime.WatchContext) {
		if c.Old != uint64(data[at]) || c.New != c.Old || c.Kind != machine.WatchRead {
			t.Errorf("%+v", c.Watched)
		}
		ips = append(ips, c.Regs.IP())
	}
	attach(t, p, wSpec)
	f, err := p.p.Function("crc32")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Call(t.Context(), 0, f, bufferAddr, uint64(len(data))); err != nil {
		t.Fatal(err)
	}
	return ips
}

// TestWatchPrograms has all functions run with their stack and buffers watched.
func TestWatchPrograms(t *testing.T) {
	eachProgram(t, func(t *testing.T, isa, level string) {
		p := open(t, isa, level, guest.Options{}, runtime.Options{})
		sp := p.m.CPUs[0].Reg(p.m.File.SP)
		var probes []*runtime.Link
		conv := p.m.ISA.Convention()
		for _, addr := range []uint64{bufferAddr + 64, (sp - conv.RedZone - conv.Frame - 0x88) &^ 7} {
			w := attach(t, p, runtime.WatchProbe{Addr: addr, Len: 8, Kind: machine.WatchAccess})

			probes = append(probes, w)
		}
		p.callAll(t, 1)
		for i, w := range probes {
			if w.Hits() == 0 {
				t.Errorf("no hits of %d", i)
			}
		}
	})
}

// TestWatchCPUs has four CPUs increment one counter, and two of them watch it.
func TestWatchCPUs(t *testing.T) {
	const sum, times = bufferAddr + 0x100, 10
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			p := open(t, isa, "2", guest.Options{CPUs: 4, Turn: 7}, runtime.Options{})
			var hits [4]int
			wSpec := runtime.WatchProbe{Addr: sum, Len: 4, Kind: machine.WatchWrite, CPUs: []int{1, 3, 1}}
			wSpec.Handler = func(c *runtime.WatchContext) { hits[c.CPU]++ }
			attach(t, p, wSpec)
			f, err := p.p.Function("add_many")
			if err != nil {
				t.Fatal(err)
			}
			for cpu := range p.m.CPUs {
				if err := p.Start(cpu, f, sum, times); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Run(t.Context(), 1_000_000); err != nil {
				t.Fatal(err)
			}
			got, err := p.m.ReadWord(sum)
			if err != nil || got != 4*times {
				t.Errorf("%d, %v", got, err)
			}
			// A store that fails and is tried again may count twice.
			if hits[0]+hits[2] != 0 || hits[1] < times || hits[3] < times || isa == "amd64" && hits[1]+hits[3] != 2*times {
				t.Errorf("hits %v", hits)
			}
		})
	}
}

// TestWatchReturn watches the return address of a call on amd64: the access is
// reported though the CPU runs no more after it.
func TestWatchReturn(t *testing.T) {
	p := open(t, "amd64", "2", guest.Options{}, runtime.Options{})
	conv := p.m.ISA.Convention()
	slot := (p.m.CPUs[0].Reg(p.m.File.SP)-conv.RedZone-conv.Frame)&^15 - conv.Misalignment
	wSpec := runtime.WatchProbe{Addr: slot, Len: 8, Kind: machine.WatchAccess}
	wSpec.Handler = func(c *runtime.WatchContext) {
		if c.Kind != machine.WatchRead || c.Old != guest.ExitAddress || c.Regs.IP() != guest.ExitAddress {
			t.Errorf("%+v at %#x", c.Watched, c.Regs.IP())
		}
	}
	w := attach(t, p, wSpec)
	f, err := p.p.Function("length")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Call(t.Context(), 0, f, bufferAddr); err != nil || got != 0 || w.Hits() != 1 || p.m.CPUs[0].Running() {
		t.Errorf("%d, %v, %d hits", got, err, w.Hits())
	}
}

// TestWatchSlots takes all slots, and then some.
func TestWatchSlots(t *testing.T) {
	want := map[string]int{"amd64": 4, "arm64": 4, "ppc64": 2, "ppc64le": 2}
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			p := open(t, isa, "2", guest.Options{CPUs: 2}, runtime.Options{})
			var log []string
			probe := func(i, priority int) runtime.WatchProbe {
				return runtime.WatchProbe{
					Addr: bufferAddr + uint64(8*i), Len: 8, Kind: machine.WatchWrite, Priority: priority, CPUs: []int{1},
					Relinquished: func(w *runtime.Link) { log = append(log, fmt.Sprint(i)) },
				}
			}
			var all []*runtime.Link
			for i := range want[isa] {
				all = append(all, attach(t, p, probe(i, i)))
			}
			lateSpec := probe(90, 0)
			if err := try(p, lateSpec); !errors.Is(err, classify.ENOSPC) {
				t.Errorf("without a slot: %v", err)
			}
			lateSpec.CPUs = []int{0}
			late, err := p.Attach(lateSpec)
			if err != nil {
				t.Errorf("on another CPU: %v", err)
			}
			demandingSpec := probe(91, 10)
			demandingSpec.CPUs = nil
			demanding, err := p.Attach(demandingSpec)
			if err != nil || all[0].Watching() || !all[1].Watching() || !late.Watching() {
				t.Errorf("a more demanding one: %v", err)
			}
			if !slices.Equal(log, []string{"0"}) {
				t.Errorf("relinquished: %v", log)
			}
			if err := demanding.Disable(); err != nil || !all[0].Watching() {
				t.Errorf("the slot is not given back: %v", err)
			}
			if err := demanding.Enable(); err != nil || all[0].Watching() || !demanding.Watching() {
				t.Errorf("the slot is not taken again: %v", err)
			}
			for _, w := range append(all, demanding, late) {
				if err := w.Close(); err != nil || w.Watching() {
					t.Error(err)
				}
			}
			if err := late.Close(); !errors.Is(err, classify.EINVAL) {
				t.Errorf("unregistered twice: %v", err)
			}
		})
	}
}

func TestWatchRefused(t *testing.T) {
	p := open(t, "amd64", "2", guest.Options{}, runtime.Options{})
	for name, w := range map[string]runtime.WatchProbe{
		"no kind":     {Addr: bufferAddr, Len: 8},
		"no bytes":    {Addr: bufferAddr, Kind: machine.WatchWrite},
		"no such CPU": {Addr: bufferAddr, Len: 8, Kind: machine.WatchWrite, CPUs: []int{1}},
		"reads":       {Addr: bufferAddr, Len: 8, Kind: machine.WatchRead},
		"misaligned":  {Addr: bufferAddr + 4, Len: 8, Kind: machine.WatchWrite},
	} {
		var refused *runtime.RegisterError
		if err := try(p, w); !errors.As(err, &refused) || !errors.Is(err, classify.EINVAL) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// accesses returns the accesses to words of the stack, and to a variable, that calls make, with probes on most instructions or none. Where a return address is written the
// instruction pointer is left out: it may be after a copy of the call.
func accesses(t *testing.T, isa string, opt runtime.Options, probed bool) (log []string) {
	t.Helper()
	p := openReturns(t, isa, guest.Options{Exact: true}, opt)
	sp := p.m.CPUs[0].Reg(p.m.File.SP) - 0x100 // there are arguments on the stack
	p.m.CPUs[0].SetReg(p.m.File.SP, sp)
	if probed {
		end := uint64(0) // of the last region, which another probe would keep from becoming a jump
		for _, inst := range instsIn(t, returnsPath(isa)) {
			if inst.addr >= end && try(p, runtime.Probe{Addr: inst.addr}) == nil { // those that may be
				end = inst.addr + uint64(inst.Region)
			}
		}
		p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend", MaxActive: 100})
	}
	call := func() {
		for _, name := range []string{"descend", "mirror_many"} {
			if _, err := p.Call(t.Context(), 0, p.function(t, name), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 { // so that copies are boosted, and jumps stand
		call()
		p.settled(t)
	}
	variable, _, err := p.p.Symbol("seen")
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []uint64{sp - 0x10, sp - 0x18, sp - 0x88, sp - 0x98, sp - 0x140, sp - 0x160, sp - 0x260, sp - 0x278, sp - 0x2e0, variable} {
		wSpec := runtime.WatchProbe{Addr: addr, Len: 8, Kind: machine.WatchAccess}
		wSpec.Handler = func(c *runtime.WatchContext) {
			ip := c.Regs.IP()
			if p.m.Perm(c.New)&machine.PermExec != 0 || c.New == guest.ExitAddress {
				ip = 0
			}
			log = append(log, fmt.Sprintf("%v %#x of %d bytes at %#x", c.Kind, sp-c.Addr, c.Size, ip))
		}
		w := attach(t, p, wSpec)
		call()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// TestWatchStack watches what detour buffers and the trampoline use as well: only the
// program's accesses are reported.
func TestWatchStack(t *testing.T) {
	for _, isa := range arch.Names() {
		for _, opt := range []runtime.Options{{NoOptimize: true}, {}} {
			t.Run(fmt.Sprintf("%s optimized=%t", isa, !opt.NoOptimize), func(t *testing.T) {
				want := accesses(t, isa, opt, false)
				if got := accesses(t, isa, opt, true); !slices.Equal(got, want) || len(want) == 0 {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
}

// TestWatchDisarmed has the global switch off: accesses are neither hits nor missed.
func TestWatchDisarmed(t *testing.T) {
	eachISA(t, func(t *testing.T, isa string) {
		p := openReturns(t, isa, guest.Options{}, runtime.Options{})
		p.m.CPUs[0].SetReg(p.m.File.SP, p.m.CPUs[0].Reg(p.m.File.SP)-0x100) // there are arguments on the stack
		variable, _, err := p.p.Symbol("mirror_end")
		if err != nil {
			t.Fatal(err)
		}
		w := attach(t, p, runtime.WatchProbe{Addr: variable, Len: 8, Kind: machine.WatchAccess})

		for i, on := range []bool{false, true} {
			same(t, "the error", p.SetArmed(on), nil)
			p.calls(t, 0, "mirror_many", 5)
			same(t, "hits", w.Hits(), uint64(i))
			same(t, "missed", w.Nmissed(), 0)
		}
	})
}

// TestWatchesOfOneAccess has two watchpoints report one access; the handler of the first
// takes the second away, which does not report it then.
func TestWatchesOfOneAccess(t *testing.T) {
	eachISA(t, func(t *testing.T, isa string) {
		p := openReturns(t, isa, guest.Options{}, runtime.Options{})
		seen, _, err := p.p.Symbol("seen")
		if err != nil {
			t.Fatal(err)
		}
		call := func() {
			if _, err := p.Call(t.Context(), 0, p.function(t, "mirror_scale")); err != nil {
				t.Fatal(err)
			}
		}
		var away func(*runtime.Link) error
		firstSpec := runtime.WatchProbe{Addr: seen, Len: 8, Kind: machine.WatchWrite}
		var second *runtime.Link
		secondSpec := runtime.WatchProbe{Addr: seen, Len: 8, Kind: machine.WatchWrite}
		firstSpec.Handler = func(*runtime.WatchContext) {
			if away != nil {
				same(t, "the error", away(second), nil)
			}
		}
		first := attach(t, p, firstSpec)
		second = attach(t, p, secondSpec)
		call()
		same(t, "hits of the first", first.Hits(), 1)
		same(t, "hits of the second", second.Hits(), 1)
		away = (*runtime.Link).Disable
		call()
		same(t, "hits of the second, disabled", second.Hits(), 1)
		if away = (*runtime.Link).Close; second.Enable() != nil {
			t.Fatal("it is not enabled again")
		}
		call()
		same(t, "hits of the second, unregistered", second.Hits(), 1)
		same(t, "missed", first.Nmissed()+second.Nmissed(), 0)
		same(t, "hits of the first", first.Hits(), 3)
	})
}

// TestWatchInterrupted has an interrupt after each step, and after each access: what
// is reported is what is reported without.
func TestWatchInterrupted(t *testing.T) {
	for _, isa := range arch.Names() {
		for _, opt := range []runtime.Options{{}, {Stepping: runtime.StepTrap, NoBoost: true, NoOptimize: true}} {
			if isa == "arm64" && opt.Stepping == runtime.StepTrap {
				continue
			}
			t.Run(fmt.Sprint(isa, " ", opt.Stepping), func(t *testing.T) {
				p := openReturns(t, isa, guest.Options{Exact: true}, opt)
				for _, inst := range instsIn(t, returnsPath(isa)) {
					_ = try(p, runtime.Probe{Addr: inst.addr}) // those that may be
				}
				counter, _, err := p.p.Symbol("seen")
				if err != nil {
					t.Fatal(err)
				}
				w := attach(t, p, runtime.WatchProbe{Addr: counter, Len: 8, Kind: machine.WatchAccess})
				if err := p.Start(0, p.function(t, "mirror_scale")); err != nil {
					t.Fatal(err)
				}
				interrupt := p.function(t, "bottom")
				for steps := 0; p.m.CPU(0).Running() && steps < 10_000; steps++ {
					if err := errors.Join(p.Step(0, 1), p.Interrupt(0, interrupt, 3)); err != nil {
						t.Fatal(err)
					}
				}
				same(t, "hits", w.Hits(), 1)
				same(t, "running", p.m.CPU(0).Running(), false)
			})
		}
	}
}
