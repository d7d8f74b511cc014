//go:build unicorn

package runtime_test

import (
	"testing"

	"xol/arch"
	"xol/runtime"
)

// BenchmarkReturn measures what a call costs whose return is probed, in each way
// of execution, as ratios to a stepped entry with the classic trampoline; and
// what a probe of the entry adds to it, as a ratio to the same without. All ways
// take turns; the fastest round of each counts. Where the ISA has a single-step
// exception, the ratios to an entry stepped by that are given as well.
func BenchmarkReturn(b *testing.B) {
	ways := []struct {
		name string
		opt  runtime.Options
	}{
		{"stepped", runtime.Options{NoBoost: true, NoOptimize: true, ClassicTrampoline: true}},
		{"boosted", runtime.Options{NoOptimize: true}},
		{"optimized", runtime.Options{}},
	}
	for _, isa := range arch.Names() {
		b.Run(isa, func(b *testing.B) {
			bare := newSorter(b, isa, runtime.Options{})
			var alone, both []*sorter
			for _, w := range ways {
				for _, list := range []*[]*sorter{&alone, &both} {
					s := newSorter(b, isa, w.opt)
					s.probeReturn(b, list == &both)
					*list = append(*list, s)
				}
			}
			var trapped *sorter
			if steps(isa) {
				trapped = newSorter(b, isa, runtime.Options{Stepping: runtime.StepTrap, NoBoost: true, NoOptimize: true, ClassicTrampoline: true})
				trapped.probeReturn(b, false)
			}
			for b.Loop() {
				bare.sort(b)
				if trapped != nil {
					trapped.sort(b)
				}
				for i := range ways {
					alone[i].sort(b)
					both[i].sort(b)
				}
			}
			stepped := alone[0].perHit(bare)
			b.ReportMetric(stepped, "ns/stepped-return")
			for i, w := range ways {
				if i > 0 {
					b.ReportMetric(alone[i].perHit(bare)/stepped, w.name+"/stepped")
				}
				if i > 0 && trapped != nil {
					b.ReportMetric(alone[i].perHit(bare)/trapped.perHit(bare), w.name+"/trapped")
				}
				b.ReportMetric(both[i].perHit(bare)/alone[i].perHit(bare), w.name+"+entry/"+w.name)
			}
		})
	}
}

// probeReturn registers a return probe of the comparison, and another probe at its
// entry.
func (s *sorter) probeReturn(b *testing.B, entry bool) {
	b.Helper()
	rp := attach(b, s, runtime.ReturnProbe{Symbol: probed, Handler: func(c *runtime.ReturnContext) { sink = c.Regs.ReturnValue() }})
	if entry {
		attach(b, s, runtime.Probe{Addr: rp.Address(), PreHandler: readArg})
	}
	s.settle(b, rp)
	returns := rp.Hits()
	s.sort(b)
	if n := rp.Hits() - returns; n != s.hits || rp.Nmissed() != 0 {
		b.Fatalf("%d returns, %d missed, of %d calls", n, rp.Nmissed(), s.hits)
	}
}
