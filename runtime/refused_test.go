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

// TestProbesAreRefused registers what cannot be: nothing is left behind.
func TestProbesAreRefused(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		for _, size := range []int{4097, math.MaxInt, -1, math.MinInt} {
			err := p.RegisterReturn(&runtime.ReturnProbe{Symbol: "tail", DataSize: size})
			refusedBy(t, fmt.Sprintf("%d bytes", size), err, "runtime/data-size", classify.E2BIG)
		}
		good := &runtime.Probe{Symbol: "tail"}
		group := &runtime.Uprobes{}
		for what, err := range map[string]error{
			"Register": p.Register(nil), "Unregister": p.Unregister(nil), "Enable": p.Enable(nil), "Disable": p.Disable(nil),
			"RegisterAll": p.RegisterAll([]*runtime.Probe{good, nil}), "UnregisterAll": p.UnregisterAll([]*runtime.Probe{nil}),
			"RegisterReturn": p.RegisterReturn(nil), "UnregisterReturn": p.UnregisterReturn(nil),
			"EnableReturn": p.EnableReturn(nil), "DisableReturn": p.DisableReturn(nil),
			"RegisterJprobe": p.RegisterJprobe(nil), "UnregisterJprobe": p.UnregisterJprobe(nil),
			"RegisterWatch": p.RegisterWatch(nil), "UnregisterWatch": p.UnregisterWatch(nil),
			"EnableWatch": p.EnableWatch(nil), "DisableWatch": p.DisableWatch(nil),
			"Uprobes.Register": group.Register(nil), "Uprobes.Unregister": group.Unregister(nil),
		} {
			refusedBy(t, what, err, "runtime/nil", classify.EINVAL)
		}
		if p.Unload(nil) == nil {
			t.Error("no image is unloaded")
		}
		same(t, "what is left", p.Stats(), runtime.Stats{})
		same(t, "the good one's address", good.Address(), 0)
		if err := p.RegisterAll([]*runtime.Probe{good, good}); err == nil || good.Address() != 0 || p.Stats().Probes != 0 {
			t.Errorf("one probe twice: %v, at %#x", err, good.Address())
		}
		largest := p.returnProbe(t, &runtime.ReturnProbe{Symbol: "tail", DataSize: 4096, EntryHandler: func(c *runtime.ReturnContext) bool {
			c.Data[4095]++
			return false
		}})
		p.calls(t, 6, "tail", 2)
		same(t, "returns", largest.Returns(), 1)
	})
}

// TestOtherRuntimesProbes hands a runtime the probes of another one: they stay as they
// are, where they are.
func TestOtherRuntimesProbes(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		other := openReturns(t, p.m.ISA.Name(), guest.Options{}, runtime.Options{})
		probe, counter := &runtime.Probe{Symbol: "tail"}, &runtime.Probe{Symbol: "tail", Counter: true}
		mirror := &runtime.Jprobe{Symbol: "many", Mirror: p.function(t, "bottom")}
		watch := &runtime.WatchProbe{Addr: bufferAddr, Len: 8, Kind: machine.WatchWrite}
		returns := p.returnProbe(t, &runtime.ReturnProbe{Symbol: "tail"})
		if err := errors.Join(p.Register(probe), p.Register(counter), p.RegisterJprobe(mirror), p.RegisterWatch(watch)); err != nil {
			t.Fatal(err)
		}
		own := &runtime.Probe{Symbol: "tail"}
		if err := other.Register(own); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			"Unregister": other.Unregister(probe), "Unregister a counter": other.Unregister(counter), "Enable": other.Enable(probe),
			"Disable": other.Disable(probe), "UnregisterAll": other.UnregisterAll([]*runtime.Probe{probe}),
			"UnregisterReturn": other.UnregisterReturn(returns), "DisableReturn": other.DisableReturn(returns),
			"UnregisterJprobe": other.UnregisterJprobe(mirror), "UnregisterWatch": other.UnregisterWatch(watch),
			"DisableWatch": other.DisableWatch(watch), "EnableWatch": other.EnableWatch(watch),
		} {
			refusedBy(t, what, err, "runtime/other-runtime", classify.EINVAL)
		}
		refusedBy(t, "Register", other.Register(probe), "runtime/registered", classify.EINVAL)
		if other.Unload(p.image) == nil {
			t.Error("the other one's image is unloaded")
		}
		for range 3 {
			p.calls(t, 6, "tail", 2)
			p.settled(t)
		}
		other.calls(t, 6, "tail", 2)
		same(t, "hits", p.Hits(probe), 3)
		same(t, "hits that the other runtime tells", other.Hits(counter), 3)
		same(t, "returns", returns.Returns(), 3)
		same(t, "the other one's hits", other.Hits(own), 1)
		if err := errors.Join(p.Unregister(probe), p.Unregister(counter), p.UnregisterReturn(returns), p.UnregisterJprobe(mirror),
			p.UnregisterWatch(watch), other.Unregister(own), p.Unload(p.image)); err != nil {
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
		outer := &runtime.Probe{Symbol: "bottom", PreHandler: func(c *runtime.Context) bool {
			_, err := c.Call(tail, 1)
			same(t, "a call", err, nil)
			return false
		}}
		inner, counter := &runtime.Probe{Addr: p.entryOf(t, "tail")}, &runtime.Probe{Addr: p.entryOf(t, "tail"), Counter: true}
		lone := &runtime.Probe{Symbol: "head", Counter: true}
		mirror := &runtime.Jprobe{Symbol: "tail", Mirror: p.function(t, "even")}
		if err := errors.Join(p.Register(outer), p.Register(lone)); err != nil {
			t.Fatal(err)
		}
		for life := range uint64(3) {
			if err := errors.Join(p.Register(inner), p.Register(counter), p.RegisterJprobe(mirror)); err != nil {
				t.Fatal(err)
			}
			same(t, "missed at the start of a life", inner.Nmissed()+counter.Nmissed()+mirror.Nmissed(), 0)
			for range 4 {
				p.calls(t, 12, "bottom", 5)
				p.settled(t)
			}
			same(t, "missed", inner.Nmissed(), 4)
			same(t, "missed by the jprobe", mirror.Nmissed(), 4)
			same(t, "hits", p.Hits(inner), 0)
			same(t, "missed by a counter", counter.Nmissed(), 0)
			same(t, "hits of a counter inside hits", p.Hits(counter), 4*(life+1))
			if err := errors.Join(p.Unregister(inner), p.Unregister(counter), p.UnregisterJprobe(mirror)); err != nil {
				t.Fatal(err)
			}
			same(t, "hits of a counter that is not registered", p.Hits(counter), 4*(life+1))
		}
	})
}

// TestCountersInsideHits has hits of a counter inside hits: they count as others, by
// breakpoint and by jump.
func TestCountersInsideHits(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		p := openReturns(t, isa, guest.Options{}, way.opt)
		tail := p.function(t, "tail")
		counter := &runtime.Probe{Addr: p.entryOf(t, "tail"), Counter: true}
		outer := &runtime.Probe{Symbol: "bottom", PreHandler: func(c *runtime.Context) bool {
			_, err := c.Call(tail, 1)
			return err != nil
		}}
		if err := errors.Join(p.Register(counter), p.Register(outer)); err != nil {
			t.Fatal(err)
		}
		for n := range uint64(5) {
			p.calls(t, 12, "bottom", 5)
			p.calls(t, 6, "tail", 2)
			same(t, fmt.Sprintf("hits, optimized: %t", counter.Optimized()), p.Hits(counter), 2*(n+1))
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
		last := &runtime.Probe{Addr: p.entryOf(t, "bottom"), PreHandler: func(c *runtime.Context) bool { note("pre", &c.Regs); return false }}
		p.returnProbe(t, &runtime.ReturnProbe{Symbol: "tail", Handler: func(c *runtime.ReturnContext) { note("return", &c.Regs) },
			EntryHandler: func(c *runtime.ReturnContext) bool { note("entry", &c.Regs); return false }})
		if err := p.Register(last); err != nil {
			t.Fatal(err)
		}
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
