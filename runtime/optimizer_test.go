//go:build unicorn

package runtime_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"xol/classify"
	"xol/guest"
	"xol/image"
	"xol/machine"
	"xol/runtime"
)

// unhurried is how many instructions there are between the optimizer's passes where a
// test asks for each of them.
const unhurried = 1 << 40

// TestNoJumpInHit asks for a jump while a hit of its probe is going on, and another one
// inside it: the jump is not written until the hit is over, as the CPU may come to the
// middle of what it replaces. Only amd64 has to wait: elsewhere a jump replaces one
// instruction.
func TestNoJumpInHit(t *testing.T) {
	var p *program
	outer, inner := hold(runtime.Probe{}), hold(runtime.Probe{PostHandler: func(*runtime.Context) {}})
	var during []bool // whether there is a jump
	settle := func() {
		p.settled(t)
		during = append(during, outer.Optimized())
	}
	p = openReturns(t, "amd64", guest.Options{}, runtime.Options{NoOptimize: true, Pass: unhurried, Observe: func(now runtime.Transition) {
		if now.Addr == inner.Address() && now.Status == runtime.Reenter {
			settle()
		}
	}})
	tail := p.function(t, "tail")
	outer.PreHandler = func(c *runtime.Context) bool {
		p.SetOptimization(true)
		settle()
		_, err := c.Call(tail, 1)
		same(t, "a call", err, nil)
		settle()
		return false
	}
	outer.Addr, inner.Addr = p.entryOf(t, "bottom"), tail.Entry
	if err := errors.Join(outer.attach(p), inner.attach(p)); err != nil {
		t.Fatal(err)
	}
	p.calls(t, 12, "bottom", 5)
	if len(during) < 3 || slices.Contains(during, true) {
		t.Errorf("a jump before, in and after the inner hit: %v", during)
	}
	p.settled(t)
	same(t, "a jump afterwards", outer.Optimized(), true)
}

// TestOptimizingAnew takes a jump back after each pass of the optimizer, and has it made
// once more: hits go the ways that they went the first time, pass by pass.
func TestOptimizingAnew(t *testing.T) {
	eachISA(t, func(t *testing.T, isa string) {
		var way runtime.Method
		p := openReturns(t, isa, guest.Options{}, runtime.Options{NoOptimize: true, Pass: unhurried, Observe: func(now runtime.Transition) {
			if now.Method != runtime.MethodNone {
				way = now.Method
			}
		}})
		probe := attach(t, p, runtime.Probe{Addr: p.entryOf(t, "bottom")})
		hit := func() runtime.Method {
			way = runtime.MethodNone // a jump's hit has none of its own
			p.calls(t, 12, "bottom", 5)
			return way
		}
		hit() // it is boosted now
		before := hit()
		var first []runtime.Method
		for passes, jump := 0, false; !jump; passes++ {
			p.SetOptimization(true)
			for range passes {
				if err := p.Pass(); err != nil {
					t.Fatal(err)
				}
			}
			jump = probe.Optimized()
			p.SetOptimization(false)
			p.settled(t)
			same(t, "the way without optimization", hit(), before)
			p.SetOptimization(true)
			var ways []runtime.Method
			for !probe.Optimized() && len(ways) < 100 {
				ways = append(ways, hit())
				if err := p.Pass(); err != nil {
					t.Fatal(err)
				}
			}
			if first == nil {
				first = ways
			}
			if !slices.Equal(ways, first) {
				t.Errorf("taken back after %d passes: ways %v, want %v", passes, ways, first)
			}
			p.SetOptimization(false)
			p.settled(t)
		}
	})
}

// TestFreeSlotsOutOfReach has probes in two copies of a program that are further from each
// other than a jump leads: what the probe in the one has left is of no use to the other,
// which is boosted and optimized all the same.
func TestFreeSlotsOutOfReach(t *testing.T) {
	eachISA(t, func(t *testing.T, isa string) {
		p := openReturns(t, isa, guest.Options{}, runtime.Options{})
		path := "../testdata/guest/pie/" + isa
		img, err := image.OpenFile(path, image.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { img.Close() })
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var jumps [2]bool
		for i, bias := range biases[:2] {
			program, err := p.m.LoadAt(f, bias)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.LoadAt("pie", img, bias); err != nil {
				t.Fatal(err)
			}
			function, err := program.Function("count_call")
			if err != nil {
				t.Fatal(err)
			}
			probe := attach(t, p, runtime.Probe{Addr: function.Entry})
			for n := range uint64(3) {
				got, err := p.Call(t.Context(), 0, function, 1)
				same(t, "the error", err, nil)
				same(t, "the result", got, 1001+n)
				same(t, "hits", probe.Hits(), n+1)
				p.settled(t)
			}
			same(t, "boosted", probe.Boosted(), true)
			jumps[i] = probe.Optimized()
			if err := probe.Close(); err != nil {
				t.Fatal(err)
			}
			p.settled(t)
		}
		same(t, "a jump in the second copy", jumps[1], jumps[0])
	})
}

// TestCountsAreUsedAgain has room for one page of counts, and more counters than it holds,
// one after the other: of those that are refused, and of those that are taken away, the
// counts are free again.
func TestCountsAreUsedAgain(t *testing.T) {
	const around, size, page, many = 0x7c00_0000_0000, 1 << 20, 4096, 600
	eachISA(t, func(t *testing.T, isa string) {
		p := openReturns(t, isa, guest.Options{}, runtime.Options{})
		probe := hold(runtime.Probe{Symbol: "tail", Counter: true})
		for i := range many {
			if err := errors.Join(probe.attach(p), probe.Close()); err != nil {
				t.Fatalf("counter %d: %v", i, err)
			}
			p.settled(t)
			for at := uint64(around); i == 0 && at < around+size; at += page {
				if p.m.Perm(at) != 0 {
					continue
				}
				if err := p.m.Map(at, page, machine.PermRead); err != nil {
					t.Fatal(err)
				}
			}
			refused := runtime.Probe{Symbol: "tail", Offset: 1 << 16, Counter: true}
			if err := try(p, refused); err == nil || errors.Is(err, classify.ENOMEM) {
				t.Fatalf("refused counter %d: %v", i, err)
			}
		}
	})
}
