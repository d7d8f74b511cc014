//go:build unicorn

package runtime_test

import (
	"errors"
	"testing"

	"xol/guest"
	"xol/machine"
	"xol/runtime"
)

// openNested returns the program of return probes with a probe on bottom, whose handler
// calls a function.
func openNested(t *testing.T, isa string, way *mode, function string) *program {
	t.Helper()
	p := openReturns(t, isa, guest.Options{}, way.opt)
	f := p.function(t, function)
	outer := hold(runtime.Probe{Addr: p.entryOf(t, "bottom"), PreHandler: func(c *runtime.Context) bool {
		_, err := c.Call(f, 1)
		same(t, "a call", err, nil)
		return false
	}})
	if err := outer.attach(p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestDisabledProbesMissNothing has hits inside hits where a probe is disabled: it would
// not have seen them anyway.
func TestDisabledProbesMissNothing(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		p := openNested(t, isa, way, "tail")
		inner := hold(runtime.Probe{Addr: p.entryOf(t, "tail")})
		disabled := hold(runtime.Probe{Addr: inner.Addr, Disabled: true})
		if err := errors.Join(inner.attach(p), disabled.attach(p)); err != nil {
			t.Fatal(err)
		}
		for n := range uint64(4) {
			p.calls(t, 12, "bottom", 5)
			p.settled(t)
			same(t, "missed", inner.Nmissed(), n+1)
			same(t, "missed by the disabled one", disabled.Nmissed(), 0)
		}
		same(t, "hits", inner.Hits()+disabled.Hits(), 0)
	})
}

// TestProbeMovesDuringHit has a handler take the probe that comes next to another place:
// there it is hit, and not by the hit that is going on.
func TestProbeMovesDuringHit(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		p := openReturns(t, isa, guest.Options{}, way.opt)
		places := [2]uint64{p.entryOf(t, "bottom"), p.entryOf(t, "tail")}
		for _, settled := range []bool{false, true} {
			moving := hold(runtime.Probe{Addr: places[0]})
			moving.PreHandler = func(c *runtime.Context) bool {
				same(t, "where the moved probe is hit", c.Regs.IP(), places[1])
				return false
			}
			move := true
			first := hold(runtime.Probe{Addr: places[0], PreHandler: func(*runtime.Context) bool {
				if !move {
					return false
				}
				move = false
				err := moving.Close()
				moving.Addr = places[1]
				same(t, "the error", errors.Join(err, moving.attach(p)), nil)
				return false
			}})
			if err := errors.Join(first.attach(p), moving.attach(p)); err != nil {
				t.Fatal(err)
			}
			if settled {
				p.settled(t)
			}
			p.calls(t, 12, "bottom", 5)
			same(t, "hits of the moved probe", moving.Hits(), 0)
			p.calls(t, 6, "tail", 2)
			same(t, "hits at its new place", moving.Hits(), 1)
			if err := errors.Join(first.Close(), moving.Close()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestWatchedInHandlers has a handler call a function that writes what is watched: what
// handlers access is not reported, but missed.
func TestWatchedInHandlers(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		p := openNested(t, isa, way, "mirror_scale")
		seen, _, err := p.p.Symbol("seen")
		if err != nil {
			t.Fatal(err)
		}
		w := attach(t, p, runtime.WatchProbe{Addr: seen, Len: 8, Kind: machine.WatchWrite,
			Handler: func(*runtime.WatchContext) { t.Error("an access of a handler is reported") }})
		for n := range uint64(4) {
			p.calls(t, 12, "bottom", 5)
			p.settled(t)
			same(t, "missed", w.Nmissed(), n+1)
			same(t, "hits", w.Hits(), 0)
		}
	})
}

// interrupting is a machine on which something happens between a breakpoint and the
// moment that the runtime is told of it.
type interrupting struct {
	*guest.Machine
	meanwhile func(machine.Event)
}

func (m *interrupting) Run(budget int) (cpu int, ev machine.Event, err error) {
	if cpu, ev, err = m.Machine.Run(budget); err == nil && ev.Kind == machine.EventBreakpoint {
		m.meanwhile(ev)
	}
	return cpu, ev, err
}

// TestBreakpointGoesMeanwhile takes a breakpoint away that a CPU has already come to: the
// CPU goes on with the instruction, as in Linux.
func TestBreakpointGoesMeanwhile(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		p := openReturns(t, isa, guest.Options{}, way.opt)
		m := &interrupting{Machine: p.m}
		r, err := runtime.New(m, p.m.ISA, way.opt)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Load("again", p.img); err != nil {
			t.Fatal(err)
		}
		for name, away := range map[string]func(*held) error{
			"closed": (*held).Close, "disabled": (*held).Disable,
			"disarmed": func(*held) error { return r.SetArmed(false) },
		} {
			probe := hold(runtime.Probe{Addr: p.entryOf(t, "tail")})
			times := 0
			m.meanwhile = func(ev machine.Event) {
				times++
				same(t, name+": the breakpoint", ev.Addr, probe.Addr)
				same(t, name+": the error", away(probe), nil)
			}
			if err := errors.Join(r.SetArmed(true), probe.attach(r), r.Start(0, p.function(t, "tail"), 5)); err != nil {
				t.Fatal(err)
			}
			same(t, name+": Run", r.Run(t.Context(), 10_000), nil)
			same(t, name+": the result", r.Result(0), 15)
			same(t, name+": breakpoints", times, 1)
			same(t, name+": hits", probe.Hits(), 0)
			if name != "closed" {
				same(t, name+": Unregister", probe.Close(), nil)
			}
		}
	})
}

// TestJumpThroughMemoryFaults has a probed instruction jump through memory that is not
// there; the fault handler gives it another address. The hit ends with the jump: what is
// there is hit, and not missed. Only amd64 has such an instruction.
func TestJumpThroughMemoryFaults(t *testing.T) {
	const page, nowhere = 0x7000_0000, 0x10
	for i := range executions {
		way := &executions[i]
		t.Run(way.name, func(t *testing.T) {
			p := openSnippets(t, "amd64", []snippet{
				{"through", "ff6708"},  // jmp *8(%rdi)
				{"target", "8d4703c3"}, // lea 3(%rdi),%eax; ret
			}, guest.Options{}, way.opt)
			if err := errors.Join(p.m.Map(page, 4096, machine.PermRead), p.m.WriteWord(page+8, p.at["target"])); err != nil {
				t.Fatal(err)
			}
			faults := 0
			through := hold(runtime.Probe{Symbol: "through", FaultHandler: func(c *runtime.Context, _ *runtime.Fault) bool {
				faults++
				return c.Regs.SetArg(0, page)
			}})
			target := hold(runtime.Probe{Symbol: "target"})
			if err := errors.Join(through.attach(p), target.attach(p)); err != nil {
				t.Fatal(err)
			}
			for n := range uint64(3) {
				same(t, "the result", p.call(0, "through", nowhere), page+3)
				same(t, "hits", through.Hits(), n+1)
				same(t, "hits of the target", target.Hits(), n+1)
				p.settle()
			}
			same(t, "missed", through.Nmissed()+target.Nmissed(), 0)
			same(t, "faults", faults, 3)
		})
	}
}

// TestInterruptsDuringHits has an interrupt call a probed function after each instruction
// of a call, and of what its probes execute: the call's own hits are as without.
func TestInterruptsDuringHits(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		p := openProbed(t, isa, way, way.opt, "descend", 2)
		interrupt := p.function(t, "tail")
		if err := p.Start(0, p.function(t, "descend"), 2); err != nil {
			t.Fatal(err)
		}
		for steps := 0; p.m.CPU(0).Running() && steps < 100_000; steps++ {
			if err := errors.Join(p.Step(0, 1), p.Interrupt(0, interrupt, 1)); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "running", p.m.CPU(0).Running(), false)
		same(t, "the result", p.Result(0), descending(2))
		own := 0
		for _, probe := range p.probes {
			want := p.times[probe.Addr]
			if want == 0 {
				continue
			}
			own++
			if probe.Hits() != want || probe.Nmissed() != 0 {
				t.Errorf("%#x: %d hits and %d missed, want %d", probe.Addr, probe.Hits(), probe.Nmissed(), want)
			}
		}
		if own < 4 {
			t.Errorf("%d probes are on the way", own)
		}
	})
}
