//go:build unicorn

package runtime_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"xol/arch"
	"xol/classify"
	"xol/guest"
	"xol/internal/isatest"
	"xol/machine"
	"xol/runtime"
)

// refusedBy checks that an error is a refusal by a rule.
func refusedBy(t *testing.T, what string, err error, rule string, errno classify.Errno) {
	t.Helper()
	var refused *runtime.RegisterError
	if !errors.As(err, &refused) || refused.Rule.ID != rule || !errors.Is(err, errno) {
		t.Errorf("%s: %v, want %v (%s)", what, err, errno, rule)
	}
}

// TestOptionsAreRefused asks for what no runtime, or no machine of the ISA, can do.
func TestOptionsAreRefused(t *testing.T) {
	for _, isa := range arch.Names() {
		i, err := isatest.Named(isa)
		if err != nil {
			t.Fatal(err)
		}
		m, err := guest.Open(guest.Options{ISA: i})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		for _, c := range []struct {
			option string
			opt    runtime.Options
			fine   bool
		}{
			{"Pass", runtime.Options{Pass: -1}, false},
			{"Pass", runtime.Options{Pass: math.MinInt}, false},
			{"Stepping", runtime.Options{Stepping: 7}, false},
			{"Stepping", runtime.Options{Stepping: runtime.StepTrap}, steps(isa)},
			{"Pass", runtime.Options{Pass: 1}, true},
		} {
			_, err := runtime.New(m, i, c.opt)
			var refused *runtime.OptionError
			if c.fine && err != nil || !c.fine && (!errors.As(err, &refused) || refused.Option != c.option) {
				t.Errorf("%s: %+v: %v", isa, c.opt, err)
			}
		}
		if !steps(isa) {
			_, err := runtime.New(m, i, runtime.Options{Stepping: runtime.StepTrap})
			same(t, "the cause", errors.Is(err, guest.ErrNoStep), true)
		}
		if _, err := guest.Open(guest.Options{ISA: i, Turn: -1}); err == nil {
			t.Errorf("%s: turns of -1 instructions", isa)
		}
	}
}

// TestProbesAreRefused registers what cannot be: nothing is left.
func TestProbesAreRefused(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		for _, size := range []int{4097, math.MaxInt, -1, math.MinInt} {
			err := try(p, runtime.ReturnProbe{Symbol: "tail", DataSize: size})
			refusedBy(t, fmt.Sprintf("%d bytes", size), err, "runtime/data-size", classify.E2BIG)
		}
		good := runtime.Probe{Symbol: "tail"}
		_, errAll := p.AttachAll(good, nil)
		for what, err := range map[string]error{"nil": try(p, nil), "a pointer": try(p, &good), "a nil pointer": try(p, (*runtime.Probe)(nil)), "AttachAll": errAll} {
			refusedBy(t, what, err, "runtime/nil", classify.EINVAL)
		}
		for _, l := range []*runtime.Link{nil, {}} {
			for what, err := range map[string]error{
				"Close": l.Close(), "Enable": l.Enable(), "Disable": l.Disable(), "CloseAll": runtime.CloseAll(l), "Lost": l.Lost(),
			} {
				if what == "Lost" {
					same(t, what, err, nil)
					continue
				}
				refusedBy(t, what, err, "runtime/not-registered", classify.EINVAL)
			}
			if l.Hits()+l.Nmissed()+l.Address() != 0 || l.Enabled() || l.Optimized() || l.Boosted() || l.Called() || l.Gone() || l.Watching() || l.Verdict().Rule != nil {
				t.Errorf("a link of nothing is something: %+v", l)
			}
		}
		if p.Unload(nil) == nil {
			t.Error("no image is unloaded")
		}
		same(t, "what is left", p.Stats(), runtime.Stats{})
		largest := p.returnProbe(t, runtime.ReturnProbe{Symbol: "tail", DataSize: 4096, EntryHandler: func(c *runtime.ReturnContext) bool {
			c.Data[4095]++
			return false
		}})
		p.calls(t, 6, "tail", 2)
		same(t, "returns", largest.Hits(), 1)
	})
}

// TestTwoRuntimes attaches the same specs to two runtimes: each has its own.
func TestTwoRuntimes(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		other := openReturns(t, p.m.ISA.Name(), guest.Options{}, runtime.Options{})
		spec := runtime.Probe{Symbol: "tail"}
		probe, own := attach(t, p, spec), attach(t, other, spec)
		counter := attach(t, p, runtime.Probe{Symbol: "tail", Counter: true})
		returns := p.returnProbe(t, runtime.ReturnProbe{Symbol: "tail"})
		mirror := attach(t, p, runtime.Jprobe{Symbol: "many", Mirror: p.function(t, "bottom")})
		watch := attach(t, p, runtime.WatchProbe{Addr: bufferAddr, Len: 8, Kind: machine.WatchWrite})
		if other.Unload(p.image) == nil {
			t.Error("the other one's image is unloaded")
		}
		for range 3 {
			p.calls(t, 6, "tail", 2)
			p.settled(t)
		}
		other.calls(t, 6, "tail", 2)
		same(t, "hits", probe.Hits(), 3)
		same(t, "hits of the counter", counter.Hits(), 3)
		same(t, "returns", returns.Hits(), 3)
		same(t, "the other one's hits", own.Hits(), 1)
		if err := errors.Join(probe.Close(), counter.Close(), returns.Close(), mirror.Close(),
			watch.Close(), own.Close(), p.Unload(p.image)); err != nil {
			t.Error(err)
		}
	})
}

// TestRegisteringAgain has a probe that has missed hits registered once more: as in
// Linux, its second life begins without.
func TestRegisteringAgain(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		p := openReturns(t, isa, guest.Options{}, way.opt)
		tail := p.function(t, "tail")
		attach(t, p, runtime.Probe{Symbol: "bottom", PreHandler: func(c *runtime.Context) bool {
			_, err := c.Call(tail, 1)
			same(t, "a call", err, nil)
			return false
		}})
		inner, counter := hold(runtime.Probe{Addr: p.entryOf(t, "tail")}), hold(runtime.Probe{Addr: p.entryOf(t, "tail"), Counter: true})
		attach(t, p, runtime.Probe{Symbol: "head", Counter: true})
		mirror := again[runtime.Jprobe]{spec: runtime.Jprobe{Symbol: "tail", Mirror: p.function(t, "even")}}

		for life := range uint64(3) {
			if err := errors.Join(inner.attach(p), counter.attach(p), mirror.attach(p)); err != nil {
				t.Fatal(err)
			}
			same(t, "missed at the start of a life", inner.Nmissed()+counter.Nmissed()+mirror.Nmissed(), 0)
			for range 4 {
				p.calls(t, 12, "bottom", 5)
				p.settled(t)
			}
			same(t, "missed", inner.Nmissed(), 4)
			same(t, "missed by the jprobe", mirror.Nmissed(), 4)
			same(t, "hits", inner.Hits(), 0)
			same(t, "missed by a counter", counter.Nmissed(), 0)
			same(t, "hits of a counter inside hits", counter.Hits(), 4*(life+1))
			if err := errors.Join(inner.Close(), counter.Close(), mirror.Close()); err != nil {
				t.Fatal(err)
			}
			same(t, "hits of a counter that is not registered", counter.Hits(), 4*(life+1))
		}
	})
}

// TestCountersInsideHits has hits of a counter inside hits: they count as others, by
// breakpoint and by jump.
func TestCountersInsideHits(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		p := openReturns(t, isa, guest.Options{}, way.opt)
		tail := p.function(t, "tail")
		counter := attach(t, p, runtime.Probe{Addr: p.entryOf(t, "tail"), Counter: true})
		attach(t, p, runtime.Probe{Symbol: "bottom", PreHandler: func(c *runtime.Context) bool {
			_, err := c.Call(tail, 1)
			return err != nil
		}})

		for n := range uint64(5) {
			p.calls(t, 12, "bottom", 5)
			p.calls(t, 6, "tail", 2)
			same(t, fmt.Sprintf("hits, optimized: %t", counter.Optimized()), counter.Hits(), 2*(n+1))
			same(t, "missed", counter.Nmissed(), 0)
			p.settled(t)
		}
		same(t, "a jump", counter.Optimized(), way.name == "optimized")
	})
}

// TestSettingRegisters sets every register in every kind of handler: what Set says is
// what the program finds.
func TestSettingRegisters(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		p := openReturns(t, isa, guest.Options{}, way.opt)
		file := p.m.File
		sp, pc := file.Registers[file.SP].Name, file.Registers[file.PC].Name
		set := map[string]bool{}
		note := func(kind string, c *runtime.Regs) {
			before := c.SP()
			if set[kind+" sp"] = c.Set(sp, before); set[kind+" sp"] && c.SP() != before {
				t.Errorf("%s: the stack pointer is %#x", kind, c.SP())
			}
			ip := c.IP()
			set[kind+" pc"] = c.Set(pc, ip+64)
			same(t, kind+": the instruction pointer has been set", c.IP() == ip+64, set[kind+" pc"])
			c.Set(pc, ip)
			set[kind+" nothing"] = c.Set("no such register", 1)
		}
		lastSpec := runtime.Probe{Addr: p.entryOf(t, "bottom"), PreHandler: func(c *runtime.Context) bool { note("pre", &c.Regs); return false }}
		p.returnProbe(t, runtime.ReturnProbe{Symbol: "tail", Handler: func(c *runtime.ReturnContext) { note("return", &c.Regs) },
			EntryHandler: func(c *runtime.ReturnContext) bool { note("entry", &c.Regs); return false }})
		last := attach(t, p, lastSpec)
		for range 3 {
			p.calls(t, 12, "bottom", 5)
			p.calls(t, 6, "tail", 2)
			p.settled(t)
		}
		jump := last.Optimized()
		same(t, "a jump", jump, way.name == "optimized")
		same(t, "the instruction pointer before", set["pre pc"], !jump)
		same(t, "the instruction pointer at a return", set["return pc"] || set["entry pc"], false)
		same(t, "no register", set["pre nothing"] || set["return nothing"], false)
		frame := p.m.ISA.PtRegs()
		restored := true
		for _, f := range frame.Fields {
			if f.Register == file.SP {
				restored = f.Restored
			}
		}
		same(t, "the stack pointer before", set["pre sp"], !jump || restored)
	})
}
