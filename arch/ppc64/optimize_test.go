package ppc64

import (
	"bytes"
	"strconv"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/kernel"
	"xol/optcheck"
	"xol/place"
)

func TestKprobeOptimization(t *testing.T) { recorded.CheckJumps(t, kernelList) }

func TestKprobeOptimizationComplete(t *testing.T) {
	recorded.CheckJumps(t, refdata.Full(t, "kernel-verdicts", "ppc64el.jsonl.gz"))
}

// optimize returns the verdict of linux-6.12 on the first instruction of f.
func optimize(isa ISA, f *classify.Func, opt classify.KernelOptions) optcheck.Verdict {
	p, _ := isa.Profile(classify.Linux612, opt)
	o, _ := isa.Optimizer(classify.Linux612, opt)
	return o.Func(nil, &optcheck.Function{Func: f, Verdicts: p.Func(nil, f)}, new(optcheck.Scratch))[0]
}

// The expected answers are those of the rules as read in the kernel's sources;
// each row names one.
func TestOptimizeRules(t *testing.T) {
	const add = 0x7c642a14
	const reach = 1 << 25
	for _, c := range []struct {
		name    string
		word    uint64
		marks   place.Kind
		module  bool
		cpu     CPU
		slots   uint64
		region  uint8
		rule    string
		culprit uint64
	}{
		{name: "add", word: add, region: 4},
		{name: "add in a module", word: add, module: true, rule: "ppc64/optimize-module"},
		{name: "probe that is refused", word: add, marks: place.Blacklist},
		{name: "ftrace site", word: add, marks: place.Ftrace, rule: "linux/optimize-ftrace"},
		{name: "handled fault", word: add, marks: place.ExTable, region: 4},
		{name: "b", word: 0x48000100, region: 4},
		{name: "bl", word: 0x48000101, region: 4},
		{name: "ba out of reach", word: 0x48000102, rule: "ppc64/optimize-return-range", culprit: 0x100},
		{name: "beq", word: 0x41820010, rule: "ppc64/optimize-conditional-branch"},
		{name: "bcl always", word: 0x429f0005, rule: "ppc64/optimize-conditional-branch"},
		{name: "blr", word: 0x4e800020, rule: "ppc64/optimize-conditional-branch"},
		{name: "bctr", word: 0x4e800420, rule: "ppc64/optimize-conditional-branch"},
		{name: "bctar", word: 0x4e800460, rule: "ppc64/optimize-conditional-branch"},
		{name: "ld", word: 0xe8610020, rule: "ppc64/optimize-memory"},
		{name: "std", word: 0xf8610020, rule: "ppc64/optimize-memory"},
		{name: "lwarx", word: 0x7c602028, rule: "ppc64/optimize-memory"},
		{name: "dcbt", word: 0x7c00222c, rule: "ppc64/optimize-memory"},
		{name: "lfd", word: 0xc8010020, rule: "ppc64/optimize-memory"},
		{name: "sync", word: 0x7c0004ac, region: 4},
		{name: "isync", word: 0x4c00012c, region: 4},
		{name: "mflr", word: 0x7c0802a6, region: 4},
		{name: "mtctr", word: 0x7c0903a6, region: 4},
		{name: "mfspr of another register", word: 0x7c7a02a6, rule: "ppc64/optimize-not-emulated"},
		{name: "mfmsr", word: 0x7c6000a6, rule: "ppc64/optimize-machine-state"},
		{name: "vaddubm", word: 0x10642800, rule: "ppc64/optimize-not-emulated"},
		{name: "no instruction", word: 0, rule: "ppc64/optimize-not-emulated"},
		{name: "prefixed", word: 0x06100001_38600010, region: 8},
		{name: "prefixed on a CPU without it", word: 0x06100001_38600010, cpu: POWER9, rule: "ppc64/optimize-not-emulated"},
		{name: "slots just in reach above", word: add, slots: testAddr + reach - 1<<16, region: 4},
		{name: "slots out of reach above", word: add, slots: testAddr + reach - 1<<16 + 4, rule: "ppc64/optimize-slot-range", culprit: testAddr + reach - 1<<16 + 4},
		{name: "slots just in reach below", word: add, slots: testAddr - reach + 8, region: 4},
		{name: "slots out of reach of the return", word: add, slots: testAddr - reach + 4, rule: "ppc64/optimize-return-range", culprit: testAddr + 4},
		{name: "slots out of reach below", word: add, slots: testAddr - reach, rule: "ppc64/optimize-slot-range", culprit: testAddr - reach},
		{name: "target out of the slots' reach", word: 0x49fffffc, slots: testAddr - 1<<16, rule: "ppc64/optimize-return-range", culprit: testAddr + 0x1fffffc},
		{name: "target back in reach", word: 0x4a000000, slots: testAddr - 1<<17, region: 4},
	} {
		for _, isa := range byteOrders {
			isa.CPU = c.cpu
			opt := kernel.Debian("ppc64", classify.Linux(6, 12))
			opt.Module, opt.Symbol = c.module, archtest.Symbols(map[string]uint64{"optinsn_slot": c.slots})
			f := testFunc(isa, c.word)
			if c.marks != 0 {
				f.Marks = place.Marks{{Addr: testAddr, Len: 4, Kind: c.marks}}
			}
			v := optimize(isa, f, opt)
			want := optcheck.Verdict{Rule: v.Rule, Culprit: c.culprit, Region: c.region, Moved: c.region}
			if archtest.RuleID(v.Rule) != c.rule || v != want {
				t.Errorf("%s, %s: got %s, want %+v", isa.Name(), c.name, archtest.JumpText(&v), c)
			}
		}
	}
}

func TestUprobesStay(t *testing.T) { archtest.CheckUprobesStay(t, ISA{}, testFunc(ISA{}, 0x7c642a14)) }

// FuzzOptimize looks for panics and for contradictions.
func FuzzOptimize(f *testing.F) {
	for _, isa := range byteOrders {
		text := realText(f, isa)
		for i := 0; i+64 < len(text) && i < 8000; i += 512 {
			f.Add(text[i:i+64], uint64(testAddr), uint64(testAddr), isa.LittleEndian)
		}
	}
	f.Fuzz(func(t *testing.T, code []byte, addr, slots uint64, little bool) {
		isa := ISA{LittleEndian: little}
		opt := classify.KernelOptions{Symbol: archtest.Symbols(map[string]uint64{"optinsn_slot": slots})}
		p, _ := isa.Profile(classify.Linux612, opt)
		o, _ := isa.Optimizer(classify.Linux612, opt)
		fn := &classify.Func{Name: "f", Addr: addr, Code: code, Insts: decode.Sweep(isa, nil, code, addr)}
		probes := p.Func(nil, fn)
		verdicts := o.Func(nil, &optcheck.Function{Func: fn, Verdicts: probes}, nil)
		if len(verdicts) != len(fn.Insts) {
			t.Fatalf("%d verdicts for %d instructions", len(verdicts), len(fn.Insts))
		}
		for i := range verdicts {
			v := &verdicts[i]
			if probes[i].OK() != (v.OK() || v.Rule != nil) || v.OK() && v.Rule != nil {
				t.Fatalf("%#x: %s on a probe with %+v", fn.Insts[i].Addr, archtest.JumpText(v), probes[i])
			}
		}
	})
}

// BenchmarkOptimize judges real text as functions of two lengths; the metric is
// the time per instruction beyond what its verdict as a probe takes.
func BenchmarkOptimize(b *testing.B) {
	isa := ISA{LittleEndian: true}
	p, _ := isa.Profile(classify.Linux612, kernel.Debian("ppc64", classify.Linux(6, 12)))
	o, _ := isa.Optimizer(classify.Linux612, kernel.Debian("ppc64", classify.Linux(6, 12)))
	text := realText(b, isa)
	for _, n := range []int{1000, 100000} {
		code := bytes.Repeat(text, 1+4*n/len(text))[:4*n]
		f := &classify.Func{Addr: testAddr, Code: code, Insts: decode.Sweep(isa, nil, code, testAddr)}
		fn := optcheck.Function{Func: f, Verdicts: p.Func(nil, f)}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			var verdicts []optcheck.Verdict
			for b.Loop() {
				verdicts = o.Func(verdicts[:0], &fn, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(f.Insts)), "ns/inst")
		})
	}
}

func TestOptimizeDoesNotAllocate(t *testing.T) {
	isa := ISA{LittleEndian: true}
	p, _ := isa.Profile(classify.Linux612, kernel.Debian("ppc64", classify.Linux(6, 12)))
	o, _ := isa.Optimizer(classify.Linux612, kernel.Debian("ppc64", classify.Linux(6, 12)))
	text := realText(t, isa)
	f := &classify.Func{Addr: testAddr, Code: text, Insts: decode.Sweep(isa, nil, text, testAddr)}
	fn := optcheck.Function{Func: f, Verdicts: p.Func(nil, f)}
	dst := o.Func(nil, &fn, nil)
	if n := testing.AllocsPerRun(5, func() { dst = o.Func(dst[:0], &fn, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
