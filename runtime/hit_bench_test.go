//go:build unicorn

package runtime_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"xol/arch"
	"xol/internal/guest"
	"xol/runtime"
)

// probed is what the benchmarks probe: the first instruction of what compares
// two words for sort_words.
const probed = "by_value"

// sorter sorts the same words again and again: a call hits a probe of the
// comparison several thousand times.
type sorter struct {
	*program
	f     runtime.Function
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

// probe registers p at the comparison and has the first hits prepare what they
// prepare.
func (s *sorter) probe(b *testing.B, p *runtime.Probe) {
	b.Helper()
	p.Symbol = probed
	if err := s.Register(p); err != nil {
		b.Fatal(err)
	}
	s.sort(b)
	if err := s.Settle(); err != nil {
		b.Fatal(err)
	}
	before := s.Hits(p)
	s.sort(b)
	s.hits = s.Hits(p) - before
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
	if _, err := s.Call(0, s.f, bufferAddr, sorterWords); err != nil {
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
				p := &runtime.Probe{Counter: w.counter}
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
