//go:build unicorn

package runtime_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"xol/arch"
	"xol/decode"
	"xol/guest"
	"xol/image"
	"xol/machine"
	"xol/runtime"
)

// probed is what the benchmarks probe: the first instruction of what compares
// two words for sort_words.
const probed = "by_value"

// sorter sorts the same words again and again: a call hits a probe of the
// comparison several thousand times.
type sorter struct {
	*program
	f     machine.Function
	words []byte
	best  time.Duration // of a call
	hits  uint64        // of a call
}

const (
	sorterWords  = 400
	sorterBudget = 1 << 40
)

func newSorter(b *testing.B, isa string, opt runtime.Options) *sorter {
	b.Helper()
	s := &sorter{program: open(b, isa, "2", guest.Options{}, opt), best: math.MaxInt64}
	var err error
	if s.f, err = s.p.Function("sort_words"); err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	s.words = make([]byte, 8*sorterWords)
	for i := range s.words {
		s.words[i] = byte(r.Uint32())
	}
	return s
}

// probe registers p at the comparison.
func (s *sorter) probe(b *testing.B, p *held) {
	b.Helper()
	p.Symbol = probed
	if err := p.attach(s); err != nil {
		b.Fatal(err)
	}
	s.settle(b, p)
}

// settle has the first hits prepare what they prepare, and counts those of a
// call.
func (s *sorter) settle(b *testing.B, p interface{ Hits() uint64 }) {
	b.Helper()
	s.sort(b)
	if err := s.Settle(); err != nil {
		b.Fatal(err)
	}
	before := p.Hits()
	s.sort(b)
	s.hits = p.Hits() - before
	if s.hits == 0 {
		b.Fatal("no hits")
	}
	s.best = math.MaxInt64
}

// sort makes a call, and keeps the shortest time of one.
func (s *sorter) sort(b *testing.B) {
	if err := s.m.Write(bufferAddr, s.words); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if _, err := s.Call(b.Context(), 0, s.f, bufferAddr, sorterWords); err != nil {
		b.Fatal(err)
	}
	s.best = min(s.best, time.Since(start))
}

// perHit is what a hit costs over what the program costs without probes, in
// nanoseconds.
func (s *sorter) perHit(bare *sorter) float64 {
	return float64(s.best-bare.best) / float64(s.hits)
}

// sink keeps what handlers read.
var sink uint64

func readArg(c *runtime.Context) bool {
	sink, _ = c.Regs.Arg(0)
	return false
}

// BenchmarkHit measures what a hit costs in each way of execution, as ratios to
// a stepped one. All ways take turns; the fastest call of each counts.
func BenchmarkHit(b *testing.B) {
	ways := []struct {
		name    string
		opt     runtime.Options
		counter bool
	}{
		{"stepped", runtime.Options{NoBoost: true, NoOptimize: true}, false},
		{"boosted", runtime.Options{NoOptimize: true}, false},
		{"optimized", runtime.Options{}, false},
		{"counter", runtime.Options{}, true},
	}
	for _, isa := range arch.Names() {
		b.Run(isa, func(b *testing.B) {
			bare := newSorter(b, isa, runtime.Options{})
			sorters := make([]*sorter, len(ways))
			for i, w := range ways {
				p := hold(runtime.Probe{Counter: w.counter})
				if !w.counter {
					p.PreHandler = readArg
				}
				sorters[i] = newSorter(b, isa, w.opt)
				sorters[i].probe(b, p)
				if p.Optimized() != !w.opt.NoOptimize {
					b.Fatalf("%s: optimized: %t", w.name, p.Optimized())
				}
			}
			for b.Loop() {
				bare.sort(b)
				for _, s := range sorters {
					s.sort(b)
				}
			}
			stepped := sorters[0].perHit(bare)
			b.ReportMetric(stepped, "ns/stepped-hit")
			for i, w := range ways[1:] {
				b.ReportMetric(sorters[i+1].perHit(bare)/stepped, w.name+"/stepped")
			}
		})
	}
}

// elsewhere returns the addresses of n instructions that may be probed, and that
// no sorting executes, before that of the comparison.
func (s *sorter) elsewhere(b *testing.B, n int) []uint64 {
	b.Helper()
	functions, err := s.img.Functions(image.ExtentSymbol)
	if err != nil {
		b.Fatal(err)
	}
	var addrs []uint64
	for _, f := range functions {
		if strings.Contains(f.Name, "sort") || f.Name == "sift" || f.Name == "swap" || f.Name == probed {
			continue
		}
		code, err := s.img.Code(nil, f.Addr, f.Size)
		if err != nil {
			b.Fatal(err)
		}
		for _, inst := range decode.Sweep(s.m.ISA, nil, code, f.Addr) {
			p := hold(runtime.Probe{Addr: inst.Addr, PreHandler: readArg})
			if len(addrs) < n && p.attach(s) == nil {
				addrs = append(addrs, inst.Addr)
			}
		}
	}
	if len(addrs) < n {
		b.Fatalf("%d instructions, want %d", len(addrs), n)
	}
	return addrs
}

// BenchmarkHook measures a hit of an optimized probe that counts, and of one
// whose handler reads a register, against the plain alternative: a hook of the
// emulator's for each address, which counts and reads a register. It says how
// many times a hit of a hook costs as much. One of the addresses is hit.
func BenchmarkHook(b *testing.B) {
	for _, isa := range arch.Names() {
		for _, n := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/%d", isa, n), func(b *testing.B) { benchmarkHook(b, isa, n) })
		}
	}
}

func benchmarkHook(b *testing.B, isa string, n int) {
	whole := runtime.Options{Pass: sorterBudget} // the engine stops at no hook
	bare, hooked := newSorter(b, isa, whole), newSorter(b, isa, whole)
	probes := []*held{hold(runtime.Probe{Counter: true}), hold(runtime.Probe{PreHandler: readArg})}
	var addrs []uint64
	var sorters []*sorter
	for _, p := range probes {
		s := newSorter(b, isa, whole)
		addrs = s.elsewhere(b, n-1)
		if s.probe(b, p); !p.Optimized() {
			b.Fatal("not optimized")
		}
		sorters = append(sorters, s)
	}
	arg := hooked.m.ISA.Convention().Args[0]
	err := hooked.m.CPUs[0].HookCode(append(addrs, probes[0].Address()), arg, func(v uint64) { sink = v; hooked.hits++ })
	if err != nil {
		b.Fatal(err)
	}
	if hooked.sort(b); hooked.hits != sorters[0].hits {
		b.Fatalf("%d hits of hooks, %d of probes", hooked.hits, sorters[0].hits)
	}
	for b.Loop() {
		bare.sort(b)
		hooked.hits = 0
		hooked.sort(b)
		for _, s := range sorters {
			s.sort(b)
		}
	}
	hook := hooked.perHit(bare)
	b.ReportMetric(hook, "ns/hook-hit")
	b.ReportMetric(hook/sorters[0].perHit(bare), "hook/counter")
	b.ReportMetric(hook/sorters[1].perHit(bare), "hook/handler")
}
