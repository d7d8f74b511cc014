//go:build unicorn

package runtime_test

import (
	"errors"
	"testing"

	"xol/arch"
	"xol/classify"
	"xol/guest"
	"xol/machine"
	"xol/runtime"
)

// eachMoment calls f with a CPU after each instruction of a call of tail, from that of
// an optimized probe at its entry on.
func eachMoment(t *testing.T, probe func() *held, f func(t *testing.T, p *program, early *held)) {
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			p := openReturns(t, isa, guest.Options{Exact: true}, runtime.Options{Pass: 1 << 40})
			entry, tail := p.entryOf(t, "tail"), p.function(t, "tail")
			for steps, running := 1, true; running; steps++ {
				early := probe()
				early.Addr = entry
				if err := errors.Join(early.attach(p), p.Settle(), p.Start(0, tail, 5)); err != nil {
					t.Fatal(err)
				}
				same(t, "optimized", early.Optimized(), true)
				for left := steps; left > 0; {
					if p.m.CPUs[0].PC() == entry || left < steps {
						left--
					}
					if err := p.Step(0, 1); err != nil {
						t.Fatal(err)
					}
				}
				running = p.m.CPU(0).Running()
				f(t, p, early)
				same(t, "the result", p.Result(0), 15)
			}
		})
	}
}

// TestLateProbes registers what a jump has no room for while a CPU is in the detour
// buffer: it is not hit.
func TestLateProbes(t *testing.T) {
	eachMoment(t, func() *held { return hold(runtime.Probe{}) }, func(t *testing.T, p *program, early *held) {
		redirecting := hold(runtime.Probe{Addr: early.Addr, Redirects: true})
		after := hold(runtime.Probe{Addr: early.Addr, PostHandler: func(*runtime.Context) {}})
		mirror := again[runtime.Jprobe]{spec: runtime.Jprobe{Symbol: "tail", Mirror: p.function(t, "bottom")}}
		if err := errors.Join(redirecting.attach(p), after.attach(p), mirror.attach(p), p.Run(t.Context(), 1000)); err != nil {
			t.Fatal(err)
		}
		same(t, "hits", early.Hits(), 1)
		same(t, "late hits", redirecting.Hits()+after.Hits()+mirror.Hits(), 0)
		if err := errors.Join(early.Close(), redirecting.Close(), after.Close(), mirror.Close()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLateCounts unregisters a counter while a CPU is about to count: it does not in
// the place of another one.
func TestLateCounts(t *testing.T) {
	eachMoment(t, func() *held { return hold(runtime.Probe{Counter: true}) }, func(t *testing.T, p *program, early *held) {
		other := hold(runtime.Probe{Symbol: "bottom", Counter: true})
		if err := errors.Join(early.Close(), p.Settle(), other.attach(p), p.Run(t.Context(), 1000)); err != nil {
			t.Fatal(err)
		}
		same(t, "another's hits", other.Hits(), 0)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLateSwitch has the global switch turned off while a CPU is in the detour buffer: no
// handler runs any more.
func TestLateSwitch(t *testing.T) {
	eachMoment(t, func() *held { return hold(runtime.Probe{}) }, func(t *testing.T, p *program, early *held) {
		hits := early.Hits()
		if err := errors.Join(p.SetArmed(false), p.Run(t.Context(), 1000)); err != nil {
			t.Fatal(err)
		}
		same(t, "hits with the switch off", early.Hits(), hits)
		if err := errors.Join(p.SetArmed(true), early.Close()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRedirectionWithoutEffect has a handler say that it redirects where that has no
// effect: the probe after it is hit as well.
func TestRedirectionWithoutEffect(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		entry := p.entryOf(t, "tail")
		first := hold(runtime.Probe{Addr: entry, PreHandler: func(c *runtime.Context) bool { return c.Link.Optimized() }})
		second := hold(runtime.Probe{Addr: entry})
		if err := errors.Join(first.attach(p), second.attach(p)); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			p.calls(t, 15, "tail", 5)
			p.settled(t)
		}
		same(t, "hits", second.Hits(), 4)
	})
}

// TestNoRoomForCount has the memory for counts taken: a probe that wants one is refused
// and leaves nothing after.
func TestNoRoomForCount(t *testing.T) {
	const around, size = 0x7c00_0000_0000, 1 << 20
	eachReturns(t, func(t *testing.T, p *program) {
		if err := p.m.Map(around, size, machine.PermRead); err != nil {
			t.Fatal(err)
		}
		probe := hold(runtime.Probe{Symbol: "tail", Counter: true})
		if err := probe.attach(p); !errors.Is(err, classify.ENOMEM) {
			t.Fatalf("error %v", err)
		}
		same(t, "what is left", p.Stats(), runtime.Stats{})
		if err := p.m.Unmap(around, size); err != nil {
			t.Fatal(err)
		}
		if err := probe.attach(p); err != nil {
			t.Fatal(err)
		}
		p.calls(t, 15, "tail", 5)
		same(t, "hits", probe.Hits(), 1)
	})
}
