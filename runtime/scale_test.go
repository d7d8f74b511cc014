//go:build unicorn

package runtime_test

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	gort "runtime"
	"slices"
	"testing"
	"time"

	"github.com/ulikunitz/xz"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/guest"
	"xol/image"
	"xol/internal/isatest"
	"xol/internal/skip"
	"xol/machine"
	"xol/runtime"
)

const (
	kernelPath = "../../shared/kernels/amd64.vmlinux.xz"
	// manyProbes is how many probes are registered at once.
	manyProbes = 100_000
	// Goals per probe, in bytes.
	guestGoal = 400
	heapGoal  = 1 << 10
)

// openKernel returns a runtime with the text and data of a kernel that has not
// booted. Its functions of strings and numbers run all the same.
func openKernel(t testing.TB, opt runtime.Options) *program {
	t.Helper()
	elf := unpackKernel(t)
	isa, err := isatest.Named("amd64")
	if err != nil {
		t.Fatal(err)
	}
	m, err := guest.Open(guest.Options{ISA: isa})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := m.Load(elf)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Map(bufferAddr, bufferSize, machine.PermRead|machine.PermWrite); err != nil {
		t.Fatal(err)
	}
	r, err := runtime.New(m, isa, opt)
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.Open(elf, elf.Size(), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	im, err := r.Load("vmlinux", img)
	if err != nil {
		t.Fatal(err)
	}
	return &program{r, m, p, img, im}
}

const bufferSize = 8192

func unpackKernel(t testing.TB) *bytes.Reader {
	t.Helper()
	f, err := os.Open(kernelPath)
	if err != nil {
		skip.Missing(t, "a kernel", err)
	}
	defer f.Close()
	r, err := xz.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	elf, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(elf)
}

// optimizable returns the addresses of n instructions that can have an optimized
// probe each, all at the same time, those of kernelCalls first.
func (p *program) optimizable(t testing.TB, n int) (addrs []uint64) {
	t.Helper()
	a, err := analyze.New(p.img, analyze.Options{Profile: classify.ISA, Optimize: true, AsFile: true})
	if err != nil {
		t.Fatal(err)
	}
	functions := slices.Clone(a.Functions())
	slices.SortStableFunc(functions, func(a, b image.Function) int {
		return cmp.Compare(len(kernelCalls[b.Name].args), len(kernelCalls[a.Name].args))
	})
	taken := map[uint64]bool{} // functions may overlap
	for _, f := range functions {
		r := a.Judge(f)
		for i := range r.Optimize {
			v, at := &r.Optimize[i], r.Insts[i].Addr
			if end := at + uint64(v.Region); v.OK() && goesOn(r.Insts[i:], end) && !taken[at] && !taken[end-1] {
				addrs = append(addrs, at)
				for ; at < end; at++ {
					taken[at] = true
				}
			}
		}
		if len(addrs) >= n {
			return addrs[:n]
		}
	}
	t.Fatalf("%d instructions, want %d", len(addrs), n)
	return nil
}

// goesOn reports whether the instructions before end only go on to the next
// one. Of the others the runtime leaves some alone: those that would fault
// elsewhere than in their place.
func goesOn(insts []decode.Inst, end uint64) bool {
	for i := range insts {
		if insts[i].Addr >= end {
			return true
		}
		if insts[i].Flow != decode.FlowNone {
			return false
		}
	}
	return true
}

func heap() uint64 {
	var s gort.MemStats
	gort.GC()
	gort.ReadMemStats(&s)
	return s.HeapAlloc
}

func TestScale(t *testing.T) {
	skip.Long(t, "a whole kernel")
	p := openKernel(t, runtime.Options{Kernel: true})
	addrs := p.optimizable(t, manyProbes)
	// What the image keeps for all probes is no probe's.
	first := hold(runtime.Probe{Addr: addrs[0]})
	if err := errors.Join(first.attach(p), first.Close()); err != nil {
		t.Fatal(err)
	}

	before := heap()
	probes := make([]*held, len(addrs))
	for i, a := range addrs {
		probes[i] = hold(runtime.Probe{Addr: a})
	}
	start := time.Now()
	if err := attachAll(p.Runtime, probes); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d probes registered in %v", len(probes), time.Since(start).Round(time.Millisecond))
	start = time.Now()
	if err := p.Settle(); err != nil {
		t.Fatal(err)
	}
	st := p.Stats()
	perProbe := uint64(len(probes))
	used, held := uint64(st.Guest)/perProbe, (heap()-before)/perProbe
	t.Logf("optimized in %v; a probe takes %d bytes of the guest, %d of the heap", time.Since(start).Round(time.Millisecond), used, held)
	if st.Optimized != len(probes) {
		t.Errorf("%d of %d probes optimized: %+v", st.Optimized, len(probes), st)
	}
	if used > guestGoal || held > heapGoal {
		t.Errorf("want %d and %d bytes at most", guestGoal, heapGoal)
	}
	var hits uint64
	p.runKernel(t)
	for _, pr := range probes {
		hits += pr.Hits()
	}
	if hits == 0 {
		t.Error("no hits")
	}
	t.Logf("%d hits", hits)
	if err := closeAll(probes); err != nil {
		t.Error(err)
	}
}

// kernelCalls are functions of the kernel that need no booting: arguments, and
// what they return for 300 bytes of text at bufferAddr.
var kernelCalls = map[string]struct {
	args []uint64
	want uint64
}{
	"strlen":   {[]uint64{bufferAddr}, textSize},
	"strnlen":  {[]uint64{bufferAddr, 77}, 77},
	"memcmp":   {[]uint64{bufferAddr, bufferAddr, textSize}, 0},
	"strcmp":   {[]uint64{bufferAddr, bufferAddr}, 0},
	"int_sqrt": {[]uint64{99_980_001}, 9_999},
	"int_pow":  {[]uint64{3, 20}, 3_486_784_401},
	"gcd":      {[]uint64{1_071, 462}, 21},
}

const textSize = 300

// runKernel calls them.
func (p *program) runKernel(t *testing.T) {
	t.Helper()
	if err := p.m.Write(bufferAddr, append(bytes.Repeat([]byte("x"), textSize), 0)); err != nil {
		t.Fatal(err)
	}
	for name, c := range kernelCalls {
		f, err := p.p.Function(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Call(t.Context(), 0, f, c.args...)
		if err != nil || got != c.want {
			t.Errorf("%s returned %d, %v, want %d", name, got, err, c.want)
		}
	}
}

// BenchmarkProbes measures what a hit costs while many probes are registered, in
// a kernel's text.
func BenchmarkProbes(b *testing.B) {
	for _, way := range []struct {
		name string
		opt  runtime.Options
	}{{"boosted", runtime.Options{Kernel: true, NoOptimize: true}}, {"optimized", runtime.Options{Kernel: true}}} {
		b.Run(way.name, func(b *testing.B) { benchmarkProbes(b, way.opt) })
	}
}

func benchmarkProbes(b *testing.B, opt runtime.Options) {
	const length = 4000
	p := openKernel(b, opt)
	f, err := p.p.Function("strlen")
	if err != nil {
		b.Fatal(err)
	}
	if err := p.m.Write(bufferAddr, append(bytes.Repeat([]byte{'x'}, length), 0)); err != nil {
		b.Fatal(err)
	}
	const loop = 12 // where strlen's loop starts
	pr := hold(runtime.Probe{Symbol: "strlen", Offset: loop, PreHandler: readArg})
	if err := pr.attach(p); err != nil {
		b.Fatal(err)
	}
	registered := 1
	for _, n := range []int{1, 1_000, manyProbes} {
		if n > registered {
			registered += len(p.registerSome(b, n-registered))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if err := p.Settle(); err != nil {
				b.Fatal(err)
			}
			best := time.Duration(math.MaxInt64)
			for b.Loop() {
				start := time.Now()
				if got, err := p.Call(b.Context(), 0, f, bufferAddr); err != nil || got != length {
					b.Fatal(got, err)
				}
				best = min(best, time.Since(start))
			}
			b.ReportMetric(float64(best.Nanoseconds())/length, "ns/hit")
			b.ReportMetric(float64(p.Stats().Probes), "probes")
		})
	}
}

// registerSome registers n probes in functions other than strlen.
func (p *program) registerSome(t testing.TB, n int) (probes []*held) {
	functions, err := p.img.Functions(image.ExtentSymbol)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range functions {
		code, err := p.img.Code(nil, f.Addr, min(f.Size, 4096))
		if err != nil || f.Name == "strlen" {
			continue
		}
		for _, inst := range decode.Sweep(p.m.ISA, nil, code, f.Addr) {
			pr := hold(runtime.Probe{Addr: inst.Addr})
			if len(probes) < n && pr.attach(p) == nil {
				probes = append(probes, pr)
			}
		}
	}
	return probes
}
