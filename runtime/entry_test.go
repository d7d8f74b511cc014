//go:build unicorn

package runtime_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"xol/guest"
	"xol/image"
	"xol/internal/workload"
	"xol/machine"
	"xol/runtime"
)

// entryPrograms have patchable function entries of every kind.
var entryPrograms = []struct{ isa, kind string }{
	{"amd64", "fentry"}, {"amd64", "patchable"}, {"arm64", "patchable"},
	{"ppc64", "patchable"}, {"ppc64le", "patchable"}, {"ppc64le", "profile"},
}

func eachEntryProgram(t *testing.T, f func(t *testing.T, isa, path string)) {
	for _, p := range entryPrograms {
		name := p.isa + "-" + p.kind
		t.Run(name, func(t *testing.T) { f(t, p.isa, "../testdata/guest/entry/"+name) })
	}
}

// arrival is what a function finds when it starts.
type arrival struct {
	site, sp, to uint64
	args         [3]uint64
}

// arrivals steps through calls of all functions, and notes what arrives at
// the entry sites where nothing has changed the text.
func arrivals(t *testing.T, isa, path string, seed uint64) (list []arrival) {
	p := openFile(t, isa, path, guest.Options{Exact: true}, runtime.Options{})
	sites, err := p.img.EntrySites()
	if err != nil || len(sites) < 25 {
		t.Fatalf("%d sites: %v", len(sites), err)
	}
	b := &workload.Buffer{Memory: p.m, Order: p.m.Order, Addr: bufferAddr}
	random := rand.New(rand.NewPCG(seed, 0))
	c, conv := p.m.CPUs[0], p.m.ISA.Convention()
	for _, w := range workload.All() {
		call, err := w.New(b, random)
		if err != nil {
			t.Fatal(err)
		}
		f, err := p.p.Function(call.Function)
		if err != nil {
			t.Fatal(err)
		}
		sp := c.Reg(p.m.File.SP)
		if err := c.Call(f, call.Args...); err != nil {
			t.Fatal(err)
		}
		for ev := (machine.Event{}); ev.Kind == machine.EventBudget; {
			if _, found := slices.BinarySearch(sites, c.PC()); found {
				a := arrival{site: c.PC(), sp: c.Reg(p.m.File.SP)}
				for i := range a.args {
					a.args[i] = c.Reg(conv.Args[i])
				}
				if conv.Link >= 0 {
					a.to = c.Reg(conv.Link)
				} else if a.to, err = p.m.ReadWord(a.sp); err != nil {
					t.Fatal(err)
				}
				list = append(list, a)
			}
			if ev, err = c.Run(1); err != nil {
				t.Fatal(err)
			}
		}
		c.SetReg(p.m.File.SP, sp)
		if err := call.Check(c.Result()); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// TestEntryProbes has handlers at the entries of all functions see what the
// functions would.
func TestEntryProbes(t *testing.T) {
	eachEntryProgram(t, func(t *testing.T, isa, path string) {
		want := arrivals(t, isa, path, 1)
		p := openFile(t, isa, path, guest.Options{}, runtime.Options{EntryProbes: true})
		sites, err := p.img.EntrySites()
		if err != nil {
			t.Fatal(err)
		}
		var got []arrival
		var second, after int
		for _, site := range sites {
			first := attach(t, p, runtime.Probe{Addr: site, PreHandler: func(c *runtime.Context) bool {
				a := arrival{site: c.Regs.IP(), sp: c.Regs.SP(), to: c.Regs.ReturnAddress()}
				for i := range a.args {
					a.args[i], _ = c.Regs.Arg(i)
				}
				got = append(got, a)
				return false
			}})
			attach(t, p, runtime.Probe{
				Addr:        site,
				PreHandler:  func(*runtime.Context) bool { second++; return false },
				PostHandler: func(*runtime.Context) { after++ },
			})

			if !first.Called() || first.Optimized() {
				t.Errorf("%#x: called: %v, optimized: %v", site, first.Called(), first.Optimized())
			}
		}
		p.callAll(t, 1)
		if !slices.Equal(got, want) || second != len(want) || after != len(want) {
			t.Errorf("%d arrivals (%d, %d), want %d", len(got), second, after, len(want))
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("%d: %+x, want %+x", i, got[i], want[i])
				}
			}
		}
		var list bytes.Buffer
		if err := p.List(&list); err != nil || strings.Count(list.String(), "[FTRACE]") != 2*len(sites) {
			t.Errorf("%v, %s", err, list.String())
		}
		for _, probe := range p.Links() {
			if err := probe.Close(); err != nil {
				t.Error(err)
			}
		}
		got = nil
		p.callAll(t, 2)
		if len(got) != 0 {
			t.Errorf("%d arrivals without probes", len(got))
		}
	})
}

// TestEntryProbePlaces names functions in all the ways that there are.
func TestEntryProbePlaces(t *testing.T) {
	eachEntryProgram(t, func(t *testing.T, isa, path string) {
		p := openFile(t, isa, path, guest.Options{}, runtime.Options{EntryProbes: true})
		functions, err := p.img.Functions(image.ExtentSymbol)
		if err != nil {
			t.Fatal(err)
		}
		sites, err := p.img.EntrySites()
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, f := range functions {
			i, _ := slices.BinarySearch(sites, f.Addr)
			if i == len(sites) || sites[i] >= f.Addr+f.Size {
				continue
			}
			found++
			probe, err := p.Attach(runtime.Probe{Addr: f.Addr})
			if err != nil || probe.Address() != sites[i] {
				t.Errorf("%s: %#x, %v, want %#x", f.Name, probe.Address(), err, sites[i])
			}
			if err := try(p, runtime.Probe{Addr: sites[i] + 1}); err == nil {
				t.Errorf("%s: a probe inside the site", f.Name)
			}
		}
		if found != len(sites) {
			t.Errorf("%d functions with sites, want %d", found, len(sites))
		}
	})
}

// TestEntryReturnProbes has return probes on all functions, entered by calls, and
// holds them against ones that are entered by breakpoints. Where GCC puts the
// entry before ppc64le's global entry point, calls may pass it by: there are
// breakpoints then.
func TestEntryReturnProbes(t *testing.T) {
	eachEntryProgram(t, func(t *testing.T, isa, path string) {
		calls, returns, called := countReturns(t, isa, path, runtime.Options{EntryProbes: true})
		wantCalls, wantReturns, _ := countReturns(t, isa, path, runtime.Options{NoOptimize: true})
		if calls != wantCalls || returns != wantReturns || returns == 0 {
			t.Errorf("%d calls, %d returns, want %d, %d", calls, returns, wantCalls, wantReturns)
		}
		if called != !strings.HasSuffix(path, "ppc64le-patchable") {
			t.Errorf("entered by calls: %v", called)
		}
	})
}

func countReturns(t *testing.T, isa, path string, opt runtime.Options) (calls, returns uint64, called bool) {
	t.Helper()
	p := openFile(t, isa, path, guest.Options{}, opt)
	sites, err := p.img.EntrySites()
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range sites {
		rp := runtime.ReturnProbe{
			Addr:         p.functionAt(t, site),
			EntryHandler: func(*runtime.ReturnContext) bool { calls++; return false },
			Handler:      func(*runtime.ReturnContext) { returns++ },
			MaxActive:    100,
		}
		if err := try(p, rp); err != nil {
			t.Errorf("%#x: %v", site, err)
		}
	}
	called = !slices.ContainsFunc(p.Links(), func(p *runtime.Link) bool { return !p.Called() })
	p.callAll(t, 1)
	return calls, returns, called
}

func (p *program) functionAt(t *testing.T, site uint64) uint64 {
	t.Helper()
	functions, err := p.img.Functions(image.ExtentSymbol)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range functions {
		if site-f.Addr < f.Size {
			return f.Addr
		}
	}
	t.Fatalf("%#x is in no function", site)
	return 0
}

// TestEntryProbesChange enables, disables, registers and unregisters probes
// while four CPUs run.
func TestEntryProbesChange(t *testing.T) {
	eachEntryProgram(t, func(t *testing.T, isa, path string) {
		for seed := range uint64(2) {
			p := openFile(t, isa, path, guest.Options{CPUs: 4, Seed: seed}, runtime.Options{EntryProbes: true})
			sites, err := p.img.EntrySites()
			if err != nil {
				t.Fatal(err)
			}
			e := &everywhere{program: p, mode: &mode{}, random: rand.New(rand.NewPCG(seed, 1)), workers: p.workers(seed)}
			e.mode.churn = true
			before := p.siteTexts(t, sites)
			for _, site := range sites {
				for range 2 {
					probe := hold(runtime.Probe{Addr: site, Disabled: e.random.IntN(2) == 0})
					if err := probe.attach(p); err != nil {
						t.Fatal(err)
					}
					e.loose = append(e.loose, &watched{held: probe})
				}
			}
			e.run(t)
			var hits uint64
			for _, w := range e.loose {
				hits += w.Hits()
			}
			for _, probe := range p.Links() {
				if err := probe.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if hits == 0 || p.siteTexts(t, sites) != before {
				t.Errorf("%d hits; the text has changed: %v", hits, p.siteTexts(t, sites) != before)
			}
		}
	})
}

func (p *program) siteTexts(t *testing.T, sites []uint64) string {
	t.Helper()
	var b strings.Builder
	for _, site := range sites {
		var text [8]byte
		if err := p.m.ReadText(text[:], site-4); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%x ", text)
	}
	return b.String()
}

// TestEntryProbesMiss has a handler call a function that has a probe at its entry, too:
// the hit is missed, as one by a breakpoint would be.
func TestEntryProbesMiss(t *testing.T) {
	eachEntryProgram(t, func(t *testing.T, isa, path string) {
		p := openFile(t, isa, path, guest.Options{}, runtime.Options{EntryProbes: true})
		number, length := p.function(t, "number"), p.function(t, "length")
		inner := attach(t, p, runtime.Probe{Addr: length.Entry})
		outer := attach(t, p, runtime.Probe{Addr: number.Entry, PreHandler: func(c *runtime.Context) bool {
			n, err := c.Call(length, bufferAddr)
			same(t, "the error of a call", err, nil)
			same(t, "the result of a call", n, 5)
			return false
		}})
		if err := p.m.Write(bufferAddr, []byte("12345\x00")); err != nil {
			t.Fatal(err)
		}
		same(t, "called", inner.Called() && outer.Called(), true)
		for n := range uint64(3) {
			p.calls(t, 12345, "number", bufferAddr)
			same(t, "hits", outer.Hits(), n+1)
			same(t, "missed", inner.Nmissed(), n+1)
			same(t, "hits inside", inner.Hits(), 0)
		}
	})
}

// TestEntryRedirect has a handler return from the function in its place.
func TestEntryRedirect(t *testing.T) {
	eachEntryProgram(t, func(t *testing.T, isa, path string) {
		p := openFile(t, isa, path, guest.Options{}, runtime.Options{EntryProbes: true})
		probeSpec := runtime.Probe{Symbol: "number", Redirects: true}
		f, err := p.p.Function("length")
		if err != nil {
			t.Fatal(err)
		}
		probeSpec.PreHandler = func(c *runtime.Context) bool { c.Regs.SetIP(f.Entry); return true }
		if isa == "ppc64le" {
			probeSpec.Symbol = ""
			g, err := p.p.Function("number")
			if err != nil {
				t.Fatal(err)
			}
			probeSpec.Addr = g.Entry // calls go to the global entry
			probeSpec.PreHandler = func(c *runtime.Context) bool {
				c.Regs.Set("r12", f.Entry)
				c.Regs.SetIP(f.Entry)
				return true
			}
		}
		probe := attach(t, p, probeSpec)
		if err := p.m.Write(bufferAddr, append([]byte("12345"), 0)); err != nil {
			t.Fatal(err)
		}
		g, err := p.p.Function("number")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Call(t.Context(), 0, g, bufferAddr); err != nil || got != 5 {
			t.Errorf("%d, %v; want the length", got, err)
		}
		if err := probe.Disable(); err != nil {
			t.Fatal(err)
		}
		if got, err := p.Call(t.Context(), 0, g, bufferAddr); err != nil || got != 12345 {
			t.Errorf("disabled: %d, %v", got, err)
		}
	})
}
