//go:build unicorn

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"xol/arch"
	"xol/guest"
	"xol/machine"
	"xol/runtime"
)

// executions are the ways in which probed instructions are executed.
var executions = []mode{
	{name: "stepped", opt: runtime.Options{NoBoost: true, NoOptimize: true}},
	{name: "trapped", opt: runtime.Options{Stepping: runtime.StepTrap, NoBoost: true, NoOptimize: true}, suits: steps},
	{name: "boosted", opt: runtime.Options{NoOptimize: true}},
	{name: "optimized", apart: true},
}

// eachWay calls f for every ISA and way.
func eachWay(t *testing.T, f func(t *testing.T, isa string, way *mode)) {
	for _, isa := range arch.Names() {
		for i := range executions {
			if way := &executions[i]; way.suits == nil || way.suits(isa) {
				t.Run(isa+" "+way.name, func(t *testing.T) { f(t, isa, way) })
			}
		}
	}
}

// probed is a program with probes on the instructions of its functions.
type probedProgram struct {
	*program
	probes []*held
	times  map[uint64]uint64 // how often a call executes the instructions
}

// openProbed opens the program of return probes, with a probe on every instruction that
// the way has room for. times are those of a call without probes.
func openProbed(t *testing.T, isa string, way *mode, opt runtime.Options, function string, args ...uint64) *probedProgram {
	t.Helper()
	free := openReturns(t, isa, guest.Options{Exact: true}, runtime.Options{NoOptimize: true})
	x := execution{times: map[uint64]uint64{}}
	if err := free.m.CPUs[0].Call(free.function(t, function), args...); err != nil {
		t.Fatal(err)
	}
	x.step(t, free, free.m.CPUs[0])
	p := &probedProgram{program: openReturns(t, isa, guest.Options{Exact: true}, opt), times: x.times}
	end := uint64(0)
	for _, inst := range instsIn(t, returnsPath(isa)) {
		if way.apart && inst.addr < end {
			continue
		}
		probe := hold(runtime.Probe{Addr: inst.addr})
		if inst.addr%3 == 0 {
			probe.PreHandler = readArg
		}
		if probe.attach(p) == nil {
			p.probes = append(p.probes, probe)
			end = inst.addr + uint64(inst.Region)
		}
	}
	return p
}

// counts returns the hits of the probes, and how many they missed in all.
func (p *probedProgram) counts() (hits []uint64, missed uint64) {
	for _, probe := range p.probes {
		hits = append(hits, probe.Hits())
		missed += probe.Nmissed()
	}
	return hits, missed
}

// countdown is a context that ends when it has been asked for its end some times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func (c *countdown) Deadline() (time.Time, bool) { return time.Time{}, true }

// TestGivingUp gives a call up after any number of instructions: for its context, on
// request, and because the CPU is started anew. The next call's hits are right, and
// nothing stays open.
func TestGivingUp(t *testing.T) {
	const depth, slice = 1, 7
	ends := map[string]func(t *testing.T, p *probedProgram, f machine.Function, n int) (returned bool){
		"by its context": func(t *testing.T, p *probedProgram, f machine.Function, n int) bool {
			_, err := p.Call(&countdown{t.Context(), n}, 0, f, depth)
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			same(t, "the CPU is running", p.m.CPU(0).Running(), false)
			return err == nil
		},
		"on request": func(t *testing.T, p *probedProgram, f machine.Function, n int) bool {
			err := errors.Join(p.Start(0, f, depth), p.Run(t.Context(), n+1))
			if err != nil && !errors.Is(err, runtime.ErrBudget) {
				t.Fatal(err)
			}
			same(t, "the CPU is running", p.m.CPU(0).Running(), err != nil)
			same(t, "giving up", errors.Join(p.GiveUp(0), p.GiveUp(0)), nil)
			same(t, "the CPU is running", p.m.CPU(0).Running(), false)
			return err == nil
		},
		"by the next start": func(t *testing.T, p *probedProgram, f machine.Function, n int) bool {
			err := errors.Join(p.Start(0, f, depth), p.Run(t.Context(), n+1))
			if err != nil && !errors.Is(err, runtime.ErrBudget) {
				t.Fatal(err)
			}
			return err == nil
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, isa string, way *mode) {
				opt := way.opt
				opt.Pass = slice
				p := openProbed(t, isa, way, opt, "descend", depth)
				f := p.function(t, "descend")
				rp := p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend", MaxActive: depth + 1})
				for range 3 {
					p.calls(t, descending(depth), "descend", depth)
					p.settled(t)
				}
				stack := p.m.CPU(0).Reg(p.m.File.SP)
				for n := 0; ; n += 1 + n/32 {
					returned := end(t, p, f, n)
					before, missed := p.counts()
					returns := rp.Hits()
					p.calls(t, descending(depth), "descend", depth)
					after, missedAfter := p.counts()
					for i, probe := range p.probes {
						if got, want := after[i]-before[i], p.times[probe.Addr]; got != want {
							t.Fatalf("given up after %d: %d hits at %#x, want %d", n, got, probe.Addr, want)
						}
					}
					same(t, "missed", missedAfter-missed, 0)
					same(t, "returns", rp.Hits()-returns, depth+1)
					same(t, "missed returns", rp.Nmissed(), 0)
					same(t, "open calls", p.Depth(0), 0)
					same(t, "the stack pointer", p.m.CPU(0).Reg(p.m.File.SP), stack)
					if returned || t.Failed() {
						break
					}
				}
				if err := errors.Join(rp.Close(), closeAll(p.probes), p.Settle()); err != nil {
					t.Fatal(err)
				}
				same(t, "what waits for a CPU to leave", p.Stats().Pending, 0)
			})
		})
	}
}

// TestGivingUpAmongCPUs gives up the calls of some CPUs at random while others run.
func TestGivingUpAmongCPUs(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		const cpus, rounds = 4, 300
		p := openReturns(t, isa, guest.Options{CPUs: cpus, Turn: 3}, way.opt)
		returned := uint64(0)
		rp := p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend", MaxActive: 100, Handler: func(*runtime.ReturnContext) { returned++ }})
		for _, name := range []string{"bottom", "even", "odd", "tail"} {
			if err := try(p, runtime.Probe{Addr: p.entryOf(t, name), PreHandler: readArg}); err != nil {
				t.Fatal(err)
			}
		}
		random := rand.New(rand.NewPCG(1, 2))
		f := p.function(t, "descend")
		for range rounds {
			for cpu := range cpus {
				if p.m.CPU(cpu).Running() {
					if random.IntN(4) != 0 {
						continue
					}
					if err := p.GiveUp(cpu); err != nil {
						t.Fatal(err)
					}
				}
				same(t, "open calls", p.Depth(uint64(cpu)), 0)
				if err := p.Start(cpu, f, 3); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Run(t.Context(), 1+random.IntN(100)); err != nil && !errors.Is(err, runtime.ErrBudget) {
				t.Fatal(err)
			}
		}
		if err := p.Run(t.Context(), 1<<20); err != nil {
			t.Fatal(err)
		}
		same(t, "returns", returned, rp.Hits())
		for cpu := range cpus {
			same(t, "open calls", p.Depth(uint64(cpu)), 0)
			same(t, "the result", p.Result(cpu), descending(3))
		}
	})
}

// TestRunningInHandlers has handlers run the machine that runs them: that is refused,
// and what they disturb is nothing.
func TestRunningInHandlers(t *testing.T) {
	eachReturns(t, func(t *testing.T, p *program) {
		f := p.function(t, "tail")
		calls := 0
		try := func() {
			calls++
			_, err := p.Call(t.Context(), 0, f, 5)
			for what, err := range map[string]error{
				"Call": err, "Run": p.Run(t.Context(), 100), "Step": p.Step(0, 1), "Interrupt": p.Interrupt(0, f, 1),
				"Start": p.Start(0, f, 1), "GiveUp": p.GiveUp(0),
			} {
				if !errors.Is(err, runtime.ErrInHandler) {
					t.Errorf("%s in a handler: %v", what, err)
				}
			}
		}
		var inside uint64
		for _, probe := range []runtime.Probe{
			{Symbol: "descend", PreHandler: func(c *runtime.Context) bool {
				try()
				var err error
				inside, err = c.Call(f, 5)
				same(t, "Context.Call", err, nil)
				return false
			}},
			{Symbol: "bottom", PostHandler: func(*runtime.Context) { try() }},
		} {
			attach(t, p, probe)
		}
		p.returnProbe(t, runtime.ReturnProbe{Symbol: "descend", Handler: func(*runtime.ReturnContext) { try() }})
		for range 3 {
			p.calls(t, descending(3), "descend", 3)
			p.settled(t)
		}
		same(t, "the result of Context.Call", inside, 15)
		same(t, "handlers", calls, 3*(4+1+4))
	})
}

// TestHandlersStartOtherCPUs has a handler start, and give up, what another CPU does.
func TestHandlersStartOtherCPUs(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		p := openReturns(t, isa, guest.Options{CPUs: 2}, way.opt)
		f, left := p.function(t, "descend"), 5
		err := try(p, runtime.Probe{Addr: p.entryOf(t, "bottom"), PreHandler: func(c *runtime.Context) bool {
			if left--; left > 0 {
				same(t, "starting another CPU", errors.Join(p.Start(1-c.CPU, f, 9), p.GiveUp(1-c.CPU), p.Start(1-c.CPU, f, uint64(left))), nil)
			}
			return false
		}})
		if err := errors.Join(err, p.Start(0, f, 5), p.Run(t.Context(), 1<<20)); err != nil {
			t.Fatal(err)
		}
		same(t, "handlers that did not come to run", left <= 0, true)
	})
}

// TestNoSuchCPU names CPUs that there are not.
func TestNoSuchCPU(t *testing.T) {
	p := openReturns(t, "amd64", guest.Options{}, runtime.Options{})
	for _, cpu := range []int{-1, 1, 1 << 40} {
		f := p.function(t, "tail")
		_, err := p.Call(t.Context(), cpu, f, 1)
		for i, err := range []error{err, p.Start(cpu, f, 1), p.Step(cpu, 1), p.Interrupt(cpu, f, 1), p.GiveUp(cpu)} {
			if !errors.Is(err, runtime.ErrNoCPU) {
				t.Errorf("%d: CPU %d: %v", i, cpu, err)
			}
		}
		same(t, "the result", p.Result(cpu), 0)
	}
}

// TestReturnHandlersPanic has the n-th return handler panic, of two at each return: the
// rest of the calls return, and each is counted once.
func TestReturnHandlersPanic(t *testing.T) {
	const depth = 3
	eachReturns(t, func(t *testing.T, p *program) {
		f, left := p.function(t, "descend"), -1
		handler := func(*runtime.ReturnContext) bool {
			if left--; left == 0 {
				panic("no")
			}
			return false
		}
		var probes []*runtime.Link
		for i := range 2 {
			rp := runtime.ReturnProbe{Symbol: "descend", MaxActive: depth + 1, Handler: func(c *runtime.ReturnContext) { handler(c) }}
			if i == 1 {
				rp.EntryHandler = handler
			}
			probes = append(probes, p.returnProbe(t, rp))
		}
		for range 3 {
			p.calls(t, descending(depth), "descend", depth)
			p.settled(t)
		}
		for n := 1; n <= 3*(depth+1); n++ {
			before := probes[0].Hits() + probes[1].Hits() + probes[0].Nmissed() + probes[1].Nmissed()
			left = n
			func() {
				defer func() { same(t, "a panic", recover(), any("no")) }()
				_, err := p.Call(t.Context(), 0, f, depth)
				t.Errorf("handler %d does not panic: %v", n, err)
			}()
			if err := p.Run(t.Context(), 1<<16); err != nil {
				t.Fatalf("handler %d: %v", n, err)
			}
			same(t, "the result", p.Result(0), descending(depth))
			same(t, "open calls", p.Depth(0), 0)
			after := probes[0].Hits() + probes[1].Hits() + probes[0].Nmissed() + probes[1].Nmissed()
			same(t, fmt.Sprintf("returns and misses, handler %d", n), after-before, 2*(depth+1))
		}
		missed := probes[0].Nmissed() + probes[1].Nmissed()
		p.calls(t, descending(depth), "descend", depth)
		same(t, "missed after the panics", probes[0].Nmissed()+probes[1].Nmissed(), missed)
	})
}

// TestPanicsCount has the handler of one of several probes of an instruction panic: each
// of them counts the instruction once, as a hit or as missed.
func TestPanicsCount(t *testing.T) {
	eachWay(t, func(t *testing.T, isa string, way *mode) {
		p := openReturns(t, isa, guest.Options{}, way.opt)
		bad := -1
		probes := make([]*held, 4)
		for i := range probes {
			probes[i] = hold(runtime.Probe{Addr: p.entryOf(t, "bottom"), Counter: i == 3, PreHandler: func(*runtime.Context) bool {
				if i == bad {
					panic("no")
				}
				return false
			}})
			if i == 3 {
				probes[i].PreHandler = nil
			}
		}
		if err := attachAll(p.Runtime, probes); err != nil {
			t.Fatal(err)
		}
		f := p.function(t, "descend")
		calls := uint64(0)
		call := func() {
			defer func() { recover() }()
			calls++
			if err := p.Start(0, f, 1); err != nil {
				t.Fatal(err)
			}
			if err := p.Run(t.Context(), 1<<20); err != nil {
				t.Error(err)
			}
		}
		for range 3 {
			call()
			p.settled(t)
		}
		for bad = range 3 {
			call()
			same(t, "the CPU is running", p.m.CPU(0).Running(), true)
			if err := p.Run(t.Context(), 1<<20); err != nil {
				t.Fatal(err)
			}
			same(t, "the result", p.Result(0), descending(1))
			for i, probe := range probes {
				same(t, fmt.Sprintf("hits and misses of %d when %d panics", i, bad), probe.Hits()+probe.Nmissed(), calls)
			}
		}
		same(t, "hits of the counter", probes[3].Hits(), calls)
	})
}
