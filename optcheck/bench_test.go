package optcheck_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"xol/arch"
	"xol/decode"
	"xol/optcheck"
	"xol/place"
)

// benchmarkSizes are numbers of instructions: what one of them costs must not
// grow with them.
var benchmarkSizes = []int{1_000, 10_000, 100_000}

// indirectEvery is how many instructions there are to an indirect jump.
const indirectEvery = 500

// synthetic returns a function of n instructions of all sorts, some of which
// are landed on or must stay.
func synthetic(b *testing.B, isa arch.ISA, n int) *optcheck.Function {
	r := rand.New(rand.NewPCG(6, 7))
	var plain, indirect [][]byte
	for _, text := range samplesOf(b, isa.Name()) {
		var inst decode.Inst
		switch err := isa.Decode(&inst, text, codeAt); {
		case err != nil:
		case inst.Flow == decode.FlowJumpIndirect:
			indirect = append(indirect, text)
		default:
			plain = append(plain, text)
		}
	}
	var code []byte
	for i := range n {
		from := plain
		if i%indirectEvery == 0 {
			from = indirect
		}
		code = append(code, from[r.IntN(len(from))]...)
	}
	f := function(isa, code, codeAt)
	for i := range f.Insts {
		switch addr := f.Insts[i].Addr; r.IntN(20) {
		case 0:
			f.Landings = append(f.Landings, place.Landing{Addr: addr, Kind: place.LandPointer, From: tableAt})
		case 1:
			f.Marks = append(f.Marks, place.Mark{Addr: addr, Len: 1, Kind: place.ExTable})
		case 2:
			f.Armed = append(f.Armed, addr)
		}
	}
	return f
}

func benchmark(b *testing.B, work func(*optcheck.Function, arch.ISA) func()) {
	for _, name := range arch.Names() {
		isa := isaNamed(b, name)
		for _, n := range benchmarkSizes {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				f := synthetic(b, isa, n)
				run := work(f, isa)
				run() // memory that is used again
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(f.Insts)), "ns/inst")
			})
		}
	}
}

// BenchmarkOptimize measures the verdicts on a whole function.
func BenchmarkOptimize(b *testing.B) {
	benchmark(b, func(f *optcheck.Function, isa arch.ISA) func() {
		var s optcheck.Scratch
		var verdicts []optcheck.Verdict
		o := optimizer(isa)
		return func() { verdicts = o.Func(verdicts[:0], f, &s) }
	})
}

// BenchmarkSurvey measures what finds the landings that a function makes
// elsewhere, indirect jumps included.
func BenchmarkSurvey(b *testing.B) {
	benchmark(b, func(f *optcheck.Function, isa arch.ISA) func() {
		starts := new(optcheck.Addresses)
		starts.AddRange(f.Addr, f.End())
		p := optcheck.Program{Arch: isa, Memory: new(memory), Starts: starts}
		var found optcheck.Findings
		return func() {
			found = optcheck.Findings{Landings: found.Landings[:0], Unresolved: found.Unresolved[:0]}
			p.Survey(f.Func, &found)
		}
	})
}
