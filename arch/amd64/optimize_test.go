package amd64

import (
	"encoding/binary"
	"strings"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/kernel"
	"xol/optcheck"
	"xol/place"
)

func TestKprobeOptimization(t *testing.T) {
	for sample, full := range kernelLists {
		t.Run(full, func(t *testing.T) { recorded.CheckJumps(t, sample) })
		t.Run("all of "+full, func(t *testing.T) { recorded.CheckJumps(t, refdata.Full(t, "kernel-verdicts", full)) })
	}
}

// optimize returns the verdicts of linux-6.12 on f.
func optimize(f *classify.Func, opt classify.KernelOptions, armed ...uint64) []optcheck.Verdict {
	p, _ := ISA{}.Profile(classify.Linux612, opt)
	o, _ := ISA{}.Optimizer(classify.Linux612, opt)
	return o.Func(nil, &optcheck.Function{Func: f, Verdicts: p.Func(nil, f), Armed: armed}, new(optcheck.Scratch))
}

// The expected answers are those of the rules as read in the kernel's sources;
// each row names one. The offsets culprit and armed are given 1 too high, 0 for
// none.
func TestOptimizeRules(t *testing.T) {
	const pad = " 90 90 90 90 90 90"
	mark := func(off, n uint64, kind place.Kind) []place.Mark {
		return []place.Mark{{Addr: testAddr + off, Len: n, Kind: kind}}
	}
	for _, c := range []struct {
		name     string
		code     string
		off      uint64
		indirect bool // the kernel has neither retpolines nor IBT
		marks    []place.Mark
		armed    uint64
		region   uint8
		rule     string
		culprit  uint64
	}{
		{name: "one instruction of five bytes", code: "b811223344 c3", region: 5},
		{name: "one of seven", code: "48c7c011223344 c3", region: 7},
		{name: "whole instructions", code: "4889c0 4889c0 c3", region: 6},
		{name: "nineteen bytes", code: "90909090 363e2648c784c01122334411223344", region: 19},
		{name: "the last is long", code: "90909090 48b81122334455667788 c3", region: 14},
		{name: "the function ends after the jump", code: "4889c0 31c0", region: 5},
		{name: "it ends before", code: "4889c0 c3", rule: "amd64/optimize-beyond-function", culprit: 5},
		{name: "a jump through a register ends the region", code: "4889c0 ffe0 c3", region: 5},
		{name: "so does iret", code: "90 90 90 48cf c3", region: 5},
		{name: "and a jump through memory", code: "90 90 90 ff20 c3", region: 5},
		{name: "return and what follows it", code: "90 c3" + pad, region: 5},
		{name: "jump", code: "eb10" + pad, rule: "amd64/optimize-not-boostable"},
		{name: "call", code: "e800000000" + pad, rule: "amd64/optimize-not-boostable"},
		{name: "ud2 inside", code: "90 0f0b" + pad, rule: "amd64/optimize-not-boostable", culprit: 2},
		{name: "breakpoint inside", code: "90 cc" + pad, rule: "amd64/optimize-not-boostable", culprit: 2},
		{name: "three opcode bytes inside", code: "90 0f38f0c0" + pad, rule: "amd64/optimize-not-boostable", culprit: 2},
		{name: "cs prefix inside", code: "90 2e4889c0" + pad, rule: "amd64/optimize-not-boostable", culprit: 2},
		{name: "mov to ss inside", code: "90 8ed0" + pad, rule: "amd64/optimize-not-boostable", culprit: 2},
		{name: "forced emulation inside", code: "90 0f0b78656e 31c0" + pad, rule: "amd64/optimize-not-boostable", culprit: 2},
		{name: "fifteen bytes inside", code: "90 363e2648c784c01122334411223344" + pad, region: 16},
		{name: "branch to the second byte", code: "4889c0 4889c0 c3 ebf8", rule: "amd64/optimize-jump-target", culprit: 8},
		{name: "to the first", code: "4889c0 4889c0 c3 ebf7", region: 6},
		{name: "to the fifth byte after it", code: "4889c0 4889c0 c3 ebfc", rule: "amd64/optimize-jump-target", culprit: 8},
		{name: "to the sixth, inside the last instruction", code: "4889c0 48c7c011223344 c3 ebfa", region: 10},
		{name: "loop", code: "4889c0 4889c0 c3 e2fa", rule: "amd64/optimize-jump-target", culprit: 8},
		{name: "jrcxz", code: "4889c0 4889c0 c3 e3fa", rule: "amd64/optimize-jump-target", culprit: 8},
		{name: "jcc", code: "4889c0 4889c0 c3 74fa", rule: "amd64/optimize-jump-target", culprit: 8},
		{name: "near jcc", code: "4889c0 4889c0 c3 0f84f6ffffff", rule: "amd64/optimize-jump-target", culprit: 8},
		{name: "near jump", code: "4889c0 4889c0 c3 e9f7ffffff", rule: "amd64/optimize-jump-target", culprit: 8},
		{name: "near jump with 66", code: "4889c0 4889c0 c3 66e9f6ffffff", rule: "amd64/optimize-jump-target", culprit: 8},
		{name: "a call does not count", code: "4889c0 4889c0 c3 e8f7ffffff", region: 6},
		{name: "xbegin does not count", code: "4889c0 4889c0 c3 c7f8f6ffffff", region: 6},
		{name: "the first of two branches is named", code: "74 04 4889c0 4889c0 c3 ebf8", off: 2, rule: "amd64/optimize-jump-target", culprit: 1},
		{name: "branch from the start of the function", code: "eb03 4889c0 4889c0 c3", off: 2, rule: "amd64/optimize-jump-target", culprit: 1},
		{name: "branch to the end of the function", code: "eb05 b811223344", off: 2, rule: "amd64/optimize-jump-target", culprit: 1},
		{name: "vpshufd counts as a jump", code: "4889c0 4889c0 c3 c5f970c0f8", rule: "amd64/optimize-jump-target", culprit: 8},
		{name: "vpor counts as a jump to what follows", code: "4889c0 c5f9ebc0 4889c0 b811223344", off: 3, rule: "amd64/optimize-jump-target", culprit: 4},
		{name: "before vpor", code: "4889c0 90 c5f9ebc0 b811223344", off: 0, rule: "amd64/optimize-not-boostable", culprit: 5},
		{name: "bytes that the kernel cannot decode", code: "b811223344 c4e37968d911 90", rule: "amd64/optimize-undecodable", culprit: 6},
		{name: "too near to the end comes first", code: "b811223344 90 06", off: 5, rule: "amd64/optimize-beyond-function", culprit: 8},
		{name: "exception table", code: "b811223344 4889c0 c3", marks: mark(5, 1, place.ExTable), rule: "amd64/optimize-exception-table", culprit: 6},
		{name: "exception table inside an instruction", code: "b811223344 4889c0 c3", marks: mark(6, 1, place.ExTable), region: 5},
		{name: "fixup of an exception", code: "b811223344 4889c0 c3", marks: mark(5, 1, place.ExFixup), region: 5},
		{name: "indirect jump", code: "b811223344 ffe0", indirect: true, rule: "amd64/optimize-indirect-jump", culprit: 6},
		{name: "indirect jump through memory", code: "b811223344 ff20", indirect: true, rule: "amd64/optimize-indirect-jump", culprit: 6},
		{name: "indirect call", code: "b811223344 ffd0", indirect: true, region: 5},
		{name: "indirect jump where retpolines are", code: "b811223344 ffe0", region: 5},
		{name: "ftrace site", code: "90 0f1f440000 b811223344", marks: mark(1, 5, place.Ftrace), rule: "amd64/optimize-ftrace-site", culprit: 2},
		{name: "call of an ftrace site counts as a nop", code: "90 e811223344 b811223344", marks: mark(1, 5, place.Ftrace), rule: "amd64/optimize-ftrace-site", culprit: 2},
		{name: "probe on the ftrace site", code: "90 0f1f440000 b811223344", off: 1, marks: mark(1, 5, place.Ftrace), rule: "linux/optimize-ftrace"},
		{name: "jump label at the end of the region", code: "31c0 0f1f00 0f1f440000 c3", off: 2, marks: mark(5, 5, place.JumpLabel), rule: "amd64/optimize-jump-label", culprit: 6},
		{name: "jump label after it", code: "31c0 0f1f00 0f1f440000 c3", marks: mark(5, 5, place.JumpLabel), region: 5},
		{name: "static call", code: "90 0f1f440000 c3", marks: mark(1, 5, place.StaticCall), rule: "amd64/optimize-static-call", culprit: 2},
		{name: "alternatives are not reserved", code: "b811223344 c3", marks: mark(0, 5, place.Alternative), region: 5},
		{name: "probe that is refused", code: "0f1f440000 c3", marks: mark(0, 5, place.JumpLabel)},
		{name: "other probe inside", code: "90 90 90 90 90 c3", armed: 5, rule: "amd64/optimize-other-probe", culprit: 5},
		{name: "other probe after", code: "90 90 90 90 90 c3", armed: 6, region: 5},
		{name: "the probe itself is armed", code: "90 90 90 90 90 c3", armed: 1, region: 5},
		{name: "moved from endbr64", code: "f30f1efa b811223344 c3", region: 5},
		{name: "and refused there", code: "f30f1efa 90 cc" + pad, rule: "amd64/optimize-not-boostable", culprit: 6},
		{name: "moved to an ftrace site", code: "f30f1efa 0f1f440000 c3", marks: mark(4, 5, place.Ftrace), rule: "linux/optimize-ftrace"},
	} {
		opt := kernel.Debian("amd64", linux6_12)
		opt.Retpoline = !c.indirect
		f := testFunc(unhex(t, c.code), c.marks...)
		i, start := decode.Find(f.Insts, f.Addr+c.off)
		if !start {
			t.Errorf("%s: no instruction there", c.name)
			continue
		}
		var armed []uint64
		if c.armed != 0 {
			armed = []uint64{f.Addr + c.armed - 1}
		}
		v := optimize(f, opt, armed...)[i]
		want := optcheck.Verdict{Region: c.region, Moved: c.region}
		if c.culprit != 0 {
			want.Culprit = f.Addr + c.culprit - 1
		}
		want.Rule = v.Rule
		if archtest.RuleID(v.Rule) != c.rule || v != want {
			t.Errorf("%s: got %s, want %+v", c.name, archtest.JumpText(&v), c)
		}
		if v.Culprit != 0 && strings.Contains(v.Rule.Reason, "this instruction") {
			t.Errorf("%s: the culprit is another instruction, but %q", c.name, v.Rule.Reason)
		}
	}
}

func TestOptimizeOutOfReach(t *testing.T) {
	code := unhex(t, "b811223344 c3")
	for addr, want := range map[uint64]string{
		0xffffffff81000000: "", 0: "", 0x555555554000: "amd64/optimize-slot-range", 0xffff888000000000: "amd64/optimize-slot-range",
	} {
		f := &classify.Func{Addr: addr, Code: code, Insts: decode.Sweep(ISA{}, nil, code, addr)}
		if v := optimize(f, kernel.Debian("amd64", linux6_12))[0]; archtest.RuleID(v.Rule) != want {
			t.Errorf("%#x: %s, want %q", addr, archtest.JumpText(&v), want)
		}
	}
}

func TestUprobesStay(t *testing.T) {
	archtest.CheckUprobesStay(t, ISA{}, testFunc(unhex(t, "b811223344 c3")))
}

// FuzzOptimize looks for panics and for regions that cannot be.
func FuzzOptimize(f *testing.F) {
	funcs, err := refdata.KernelVerdicts("testdata/kernel-verdicts.jsonl.gz")
	if err != nil {
		f.Fatal(err)
	}
	for i := range funcs {
		f.Add([]byte(funcs[i].Text[:min(len(funcs[i].Text), 64)]), uint64(i))
	}
	var s optcheck.Scratch
	f.Fuzz(func(t *testing.T, code []byte, seed uint64) {
		code = code[:min(len(code), 256)]
		fn := testFunc(code, randomMarks(seed, len(code))...)
		for i := range fn.Marks {
			fn.Marks[i].Kind &^= place.Ftrace // there the kernel sees a NOP
		}
		for _, profile := range []string{classify.Linux612, classify.Uprobe612} {
			opt := classify.KernelOptions{Retpoline: seed&1 != 0, FtraceProbes: seed&2 != 0}
			p, _ := ISA{}.Profile(profile, opt)
			o, _ := ISA{}.Optimizer(profile, opt)
			probes := p.Func(nil, fn)
			verdicts := o.Func(nil, &optcheck.Function{Func: fn, Verdicts: probes, Armed: []uint64{fn.Addr + seed%64}}, &s)
			if len(verdicts) != len(fn.Insts) {
				t.Fatalf("%d verdicts on %d instructions", len(verdicts), len(fn.Insts))
			}
			for i := range verdicts {
				v := &verdicts[i]
				start := max(fn.Insts[i].Addr, probes[i].MovedTo)
				switch {
				case probes[i].OK() != (v.OK() || v.Rule != nil), v.OK() && v.Rule != nil:
					t.Fatalf("%#x: %s on a probe with %+v", start, archtest.JumpText(v), probes[i])
				case v.OK() && (v.Region < jumpNear || v.Region > maxRegion || fn.End()-start < jumpNear):
					t.Fatalf("%#x: %s", start, archtest.JumpText(v))
				case v.OK() || v.Rule == &optimizeRules[optimizeTarget] || v.Rule == &optimizeRules[optimizeFixed]:
					if want := decodedRegion(fn, start-fn.Addr); uint64(v.Region) != want {
						t.Fatalf("%#x: %s, want %d bytes", start, archtest.JumpText(v), want)
					}
				}
			}
		}
	})
}

// decodedRegion says by the kernel's decoder alone, one instruction after the
// other, how many bytes at off a jump would replace, 0 where it may not. It
// looks at no marks.
func decodedRegion(f *classify.Func, off uint64) (region uint64) {
	var k kernelInsn
	var buf [kernelWindow]byte
	for at := uint64(0); at < uint64(len(f.Code)); at += uint64(k.len) {
		code := window(f.Code, at, &buf)
		if !decoder612.decode(&k, code) {
			return 0
		}
		next := at + uint64(k.len)
		if distance, ok := k.jumps(code); ok {
			if to := next + distance - off; to >= 1 && to <= jumpNear {
				return 0
			}
		}
		if at >= off && at < off+jumpNear {
			if k.fixed(f.Addr + at) {
				return 0
			}
			region = next - off
		}
	}
	return region
}

func TestOptimizeDoesNotAllocate(t *testing.T) {
	f := &optcheck.Function{Func: longFunc(1000), Armed: []uint64{testAddr + 50}}
	f.Marks = randomMarks(3, 1000)
	p, _ := ISA{}.Profile(classify.Linux612, kernel.Debian("amd64", linux6_12))
	o, _ := ISA{}.Optimizer(classify.Linux612, kernel.Debian("amd64", linux6_12))
	f.Verdicts = p.Func(nil, f.Func)
	var s optcheck.Scratch
	dst := o.Func(nil, f, &s)
	if n := testing.AllocsPerRun(10, func() { dst = o.Func(dst[:0], f, &s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// longFunc returns a function of n instructions with branches to its start, its
// end and in between.
func longFunc(n int) *classify.Func {
	var code []byte
	for i := range n {
		switch i % 8 {
		case 3: // jne to what follows 2 instructions on
			code = append(code, 0x75, 6)
		case 6: // jmp to the start
			code = append(code, 0xE9)
			code = binary.LittleEndian.AppendUint32(code, uint32(-len(code)-4))
		default: // mov rax, rdx
			code = append(code, 0x48, 0x89, 0xD0)
		}
	}
	return &classify.Func{Name: "long", Addr: testAddr, Code: code, Insts: decode.Sweep(ISA{}, nil, code, testAddr)}
}

// BenchmarkOptimize judges the functions of a sample, and functions of 1,000
// and 100,000 instructions; the metric is the time per instruction beyond what
// its verdict as a probe takes.
func BenchmarkOptimize(b *testing.B) {
	sample, _ := benchmarkFuncs(b)
	for _, c := range []struct {
		name  string
		funcs []*classify.Func
	}{
		{"sample", sample}, {"1000", []*classify.Func{longFunc(1000)}}, {"100000", []*classify.Func{longFunc(100000)}},
	} {
		p, _ := ISA{}.Profile(classify.Linux612, kernel.Debian("amd64", linux6_12))
		o, _ := ISA{}.Optimizer(classify.Linux612, kernel.Debian("amd64", linux6_12))
		var funcs []optcheck.Function
		insts := 0
		for _, f := range c.funcs {
			funcs = append(funcs, optcheck.Function{Func: f, Verdicts: p.Func(nil, f)})
			insts += len(f.Insts)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var s optcheck.Scratch
			var verdicts []optcheck.Verdict
			for b.Loop() {
				for i := range funcs {
					verdicts = o.Func(verdicts[:0], &funcs[i], &s)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*insts), "ns/inst")
		})
	}
}
