//go:build unicorn

package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"xol/arch"
	"xol/guest"
	"xol/image"
	"xol/internal/workload"
	"xol/runtime"
)

var trampolines = []struct {
	name string
	opt  runtime.Options
}{
	{"boosted", runtime.Options{NoOptimize: true}},
	{"boosted, entries optimized", runtime.Options{Pass: 500}},
	{"classic", runtime.Options{ClassicTrampoline: true, NoOptimize: true}},
	{"classic, stepped", runtime.Options{ClassicTrampoline: true, NoOptimize: true, NoBoost: true, Stepping: runtime.StepTrap}},
}

// TestReturnProbesEverywhere has a return probe on every function at once.
func TestReturnProbesEverywhere(t *testing.T) {
	for _, isa := range arch.Names() {
		for _, level := range []string{"0", "2"} {
			for _, mode := range trampolines {
				if isa == "arm64" && mode.opt.Stepping == runtime.StepTrap {
					continue
				}
				t.Run(fmt.Sprintf("%s -O%s %s", isa, level, mode.name), func(t *testing.T) {
					p := open(t, isa, level, guest.Options{}, mode.opt)
					functions, err := p.img.Functions(image.ExtentSymbol)
					if err != nil {
						t.Fatal(err)
					}
					var calls, returns uint64
					for _, f := range functions {
						if strings.Contains(f.Name, "save_context") {
							continue // it returns twice
						}
						rp := runtime.ReturnProbe{
							Addr:         f.Addr,
							EntryHandler: func(*runtime.ReturnContext) bool { calls++; return false },
							Handler:      func(*runtime.ReturnContext) { returns++ },
							MaxActive:    100,
						}
						if err := try(p, rp); err != nil {
							t.Logf("%s: %v", f.Name, err)
						}
					}
					p.callAll(t, 1)
					if p.Depth(0) != 0 || returns == 0 || returns > calls {
						t.Errorf("%d calls, %d returns, %d still going on", calls, returns, p.Depth(0))
					}
				})
			}
		}
	}
}

// TestReturnProbesOnCPUs has four CPUs run with a return probe on every function;
// every other probe has one call at a time only.
func TestReturnProbesOnCPUs(t *testing.T) {
	for _, isa := range arch.Names() {
		for _, level := range []string{"0", "2"} {
			for _, mode := range trampolines[:3] {
				for seed := range uint64(2 * *seeds) {
					t.Run(fmt.Sprintf("%s -O%s %s seed %d", isa, level, mode.name, seed), func(t *testing.T) {
						returnsOnCPUs(t, open(t, isa, level, guest.Options{CPUs: 4, Seed: seed}, mode.opt), seed)
					})
				}
			}
		}
	}
}

func returnsOnCPUs(t *testing.T, p *program, seed uint64) {
	functions, err := p.img.Functions(image.ExtentSymbol)
	if err != nil {
		t.Fatal(err)
	}
	type counted struct {
		*runtime.Link
		calls, returns uint64
	}
	var probes []*counted
	for i, f := range functions {
		if strings.Contains(f.Name, "save_context") {
			continue
		}
		c := &counted{}
		spec := runtime.ReturnProbe{
			Addr: f.Addr, DataSize: 8,
			MaxActive: []int{1, 1000}[(uint64(i)+seed)%2],
			EntryHandler: func(rc *runtime.ReturnContext) bool {
				c.calls++
				p.m.Order.PutUint64(rc.Data, uint64(rc.CPU)<<32|rc.To&0xffffffff)
				return false
			},
			Handler: func(rc *runtime.ReturnContext) {
				c.returns++
				if got := p.m.Order.Uint64(rc.Data); got != uint64(rc.CPU)<<32|rc.To&0xffffffff {
					t.Errorf("%s: CPU %d returns to %#x, was called with %#x", f.Name, rc.CPU, rc.To, got)
				}
			},
		}
		var err error
		if c.Link, err = p.Attach(spec); err == nil {
			probes = append(probes, c)
		}
	}
	e := &everywhere{program: p, mode: &mode{}, random: rand.New(rand.NewPCG(seed, 1)), workers: p.workers(seed)}
	e.run(t)
	var returns, missed uint64
	for _, c := range probes {
		returns, missed = returns+c.returns, missed+c.Nmissed()
		if c.returns > c.calls || c.returns != c.Hits() {
			t.Errorf("%#x: %d calls, %d returns, %d of the probe", c.Address(), c.calls, c.returns, c.Hits())
		}
	}
	if returns == 0 || len(probes) < len(functions)*9/10 {
		t.Errorf("%d probes of %d functions, %d returns, %d missed", len(probes), len(functions), returns, missed)
	}
	for cpu := range p.m.CPUs {
		if n := p.Depth(uint64(cpu)); n != 0 {
			t.Errorf("%d calls are going on on CPU %d", n, cpu)
		}
	}
}

// callAll calls every function of the program once, with random arguments, and
// checks the results.
func (p *program) callAll(t *testing.T, seed uint64) {
	t.Helper()
	b := &workload.Buffer{Memory: p.m, Order: p.m.Order, Addr: bufferAddr}
	random := rand.New(rand.NewPCG(seed, 0))
	for _, w := range workload.All() {
		c, err := w.New(b, random)
		if err != nil {
			t.Fatal(err)
		}
		f, err := p.p.Function(c.Function)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Call(t.Context(), 0, f, c.Args...)
		if err != nil {
			t.Fatalf("%s: %v", w.Name, err)
		}
		if err := c.Check(got); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		}
	}
}
