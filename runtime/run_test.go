//go:build unicorn

package runtime_test

import (
	"context"
	"errors"
	"testing"

	"xol/arch"
	"xol/guest"
	"xol/machine"
	"xol/runtime"
)

// TestContextEndsRun has a handler end the context: the run ends with it, goes on
// under another one, and sorts all the same.
func TestContextEndsRun(t *testing.T) {
	eachQuick(t, func(t *testing.T, p *program, sort machine.Function) {
		ctx, cancel := context.WithCancel(t.Context())
		var hits int
		p.start(t, sort, runtime.Probe{PreHandler: func(*runtime.Context) bool {
			if hits++; hits == 300 {
				cancel()
			}
			return false
		}})
		hits = 0
		if err := p.reverseWords(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(p.Start(0, sort, bufferAddr, sortedWords), p.Run(ctx, 1<<30)); !errors.Is(err, context.Canceled) {
			t.Fatalf("Run returned %v after %d hits", err, hits)
		}
		if !p.m.CPU(0).Running() {
			t.Fatal("the function has returned")
		}
		if err := p.Run(ctx, 1000); !errors.Is(err, context.Canceled) {
			t.Fatalf("Run returned %v", err)
		}
		if err := p.Run(t.Context(), 1<<30); err != nil {
			t.Fatal(err)
		}
		if err := p.checkWords(); err != nil {
			t.Error(err)
		}
	})
}

// TestContextEndsHandlersCall has a handler end the context and call a function: it
// does not run.
func TestContextEndsHandlersCall(t *testing.T) {
	eachQuick(t, func(t *testing.T, p *program, sort machine.Function) {
		ctx, cancel := context.WithCancel(t.Context())
		end := false
		p.start(t, sort, runtime.Probe{PreHandler: func(c *runtime.Context) bool {
			if end {
				cancel()
			}
			if _, err := c.Call(sort, bufferAddr, 0); errors.Is(err, context.Canceled) != end {
				t.Errorf("the context has ended: %t, the call returned %v", end, err)
			}
			return false
		}})
		end = true
		if err := p.sortWords(ctx, sort); !errors.Is(err, context.Canceled) {
			t.Errorf("Call returned %v", err)
		}
	})
}

// TestNestedCallsKeepRegisters has a function of the program called in a handler and
// by an interrupt that uses other registers than addresses are in.
func TestNestedCallsKeepRegisters(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		mirror := p.function(t, "mirror_scale")
		probe := attach(t, p, runtime.Probe{Symbol: "scale", PreHandler: func(c *runtime.Context) bool {
			_, err := c.Call(mirror)
			same(t, "the error of a call in a handler", err, nil)
			return false
		}})

		for x := range uint64(4) {
			p.calls(t, x*4+3, "calls_scale", x)
			p.settled(t)
		}
		same(t, "hits", probe.Hits(), 4)
		if err := errors.Join(probe.Close(), p.Start(0, p.function(t, "calls_scale"), 9)); err != nil {
			t.Fatal(err)
		}
		for p.m.CPU(0).Running() {
			same(t, "the error of an interrupt", p.Interrupt(0, mirror), nil)
			if err := p.Step(0, 1); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "the interrupted function", p.Result(0), 9*4+3)
	})
}

// TestHandlerPanics has handlers panic before an instruction and after it: what
// runs later is not inside their hit.
func TestHandlerPanics(t *testing.T) {
	for _, after := range []bool{false, true} {
		eachReturns(t, func(t *testing.T, p *program) {
			panics := false
			handler := func() {
				if panics {
					panics = false
					panic("no")
				}
			}
			rp := p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend"})
			probeSpec := runtime.Probe{Symbol: "bottom", PreHandler: func(*runtime.Context) bool { handler(); return false }}
			if after {
				probeSpec.PreHandler, probeSpec.PostHandler = nil, func(*runtime.Context) { handler() }
			}
			probe := attach(t, p, probeSpec)
			call := func() (panicked any) {
				defer func() { panicked = recover() }()
				p.calls(t, descending(3), "descend", 3)
				return nil
			}
			for range 2 {
				same(t, "a panic", call(), nil)
				p.settled(t)
			}
			panics = true
			same(t, "a panic", call(), any("no"))
			if err := p.Run(t.Context(), 1<<16); err != nil {
				t.Fatal(err)
			}
			same(t, "the result", p.Result(0), descending(3))
			same(t, "a panic", call(), nil)
			same(t, "missed", probe.Nmissed()+rp.Nmissed(), 0)
			same(t, "returns", rp.Hits(), 4*4)
		})
	}
}

// TestInterruptsCallProbedFunctions has interrupts before each instruction call
// the function that they interrupt: returns of both are told apart.
func TestInterruptsCallProbedFunctions(t *testing.T) {
	for _, isa := range arch.Names() {
		for _, mode := range trampolines[:3] {
			t.Run(isa+" "+mode.name, func(t *testing.T) {
				p := openReturns(t, isa, guest.Options{Exact: true}, mode.opt)
				rp := p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend"})
				f := p.function(t, "descend")
				for range 2 {
					p.calls(t, descending(1), "descend", 1)
					p.settled(t)
				}
				calls := rp.Hits()
				if err := p.Start(0, f, 1); err != nil {
					t.Fatal(err)
				}
				interrupts := uint64(0)
				for ; p.m.CPU(0).Running(); interrupts++ {
					if err := errors.Join(p.Interrupt(0, f, 0), p.Step(0, 1)); err != nil {
						t.Fatal(err)
					}
				}
				same(t, "the result", p.Result(0), descending(1))
				same(t, "returns and misses", rp.Hits()+rp.Nmissed(), calls+2+interrupts)
				same(t, "calls that are going on", p.Depth(0), 0)
			})
		}
	}
}
