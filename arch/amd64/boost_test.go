package amd64

import (
	"testing"

	"xol/classify"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/place"
)

// TestBoosted asks for the verdicts of a kernel with and of one without
// CONFIG_PREEMPTION.
func TestBoosted(t *testing.T) {
	fault := []place.Mark{{Addr: testAddr, Len: 1, Kind: place.ExTable}}
	for _, c := range []struct {
		name, code string
		marks      []place.Mark
		preemption bool
		want       string // how it runs
		hazard     string
	}{
		{name: "add", code: "4801d8", want: "boosted"},
		{name: "add with preemption", code: "4801d8", preemption: true, want: "slot"},
		{name: "10 bytes", code: "48b81122334455667788", want: "boosted"},
		{name: "11 bytes leave no room for the jump", code: "c784241122334411223344", want: "slot"},
		{name: "cpuid does not pass the test", code: "0fa2", want: "slot"},
		{name: "ret", code: "c3", want: "boosted"},
		{name: "ret with preemption", code: "c3", preemption: true, want: "ret"},
		{name: "ret imm16 runs as it is", code: "c20800", want: "boosted"},
		{name: "ret imm16 with preemption", code: "c20800", preemption: true, want: "ret", hazard: "amd64/kprobe-return-immediate"},
		{name: "jmp *rax", code: "ffe0", want: "boosted"},
		{name: "call *rax", code: "ffd0", want: "call_indirect"},
		{name: "cli", code: "fa", want: "boosted"},
		{name: "its fault is handled", code: "4801d8", marks: fault, want: "slot"},
		{name: "so is that of what is emulated", code: "c20800", marks: fault, want: "ret", hazard: "amd64/kprobe-return-immediate"},
	} {
		p, _ := ISA{}.Profile(classify.Linux612, classify.KernelOptions{Preemption: c.preemption})
		f := testFunc(unhex(t, c.code), c.marks...)
		v := p.Func(nil, f)[0]
		_, hazard := archtest.IDs(&v)
		if got := execution(&v); got != c.want || hazard != c.hazard {
			t.Errorf("%s: %s, hazard %q; want %s, %q", c.name, got, hazard, c.want, c.hazard)
		}
		if at := p.At(f, f.Addr); at != v {
			t.Errorf("%s: At says %+v, Func %+v", c.name, at, v)
		}
		if lone := p.Lone(f.Code, f.Addr); c.marks == nil && lone != v {
			t.Errorf("%s: Lone says %+v, Func %+v", c.name, lone, v)
		}
	}
}

// execution says how a probed instruction runs.
func execution(v *classify.Verdict) string {
	switch {
	case v.Boosted:
		return "boosted"
	case v.Emulator != "":
		return v.Emulator
	}
	return v.Exec.String()
}

// TestBoostedAsMeasured compares with the slots of a running 5.10, which is
// built without CONFIG_PREEMPTION. What passes its test of boosting has a jump
// back there, also where it could be emulated; up to 6.1 the test knew fewer
// opcodes, so that only what passes both is compared.
func TestBoostedAsMeasured(t *testing.T) {
	t.Run("sample", func(t *testing.T) { checkBoosted(t, "testdata/boosted-5.10.jsonl.gz", 60) })
	t.Run("full", func(t *testing.T) {
		checkBoosted(t, refdata.Full(t, "kernel-verdicts", "amd64-5.10.218.jsonl.gz"), 1000)
	})
}

func checkBoosted(t *testing.T, path string, atLeast int) {
	t.Helper()
	funcs, err := refdata.KernelVerdicts(path)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := ISA{}.Profile(classify.Linux612, classify.KernelOptions{FtraceProbes: true})
	boosted := 0
	for i := range funcs {
		kf := &funcs[i]
		f := kf.Func(ISA{}, siteLen)
		for _, row := range kf.Rows {
			v := p.At(f, f.Addr+row.Off)
			measured := row.Boosted != nil && *row.Boosted
			if !v.OK() || row.Errno != 0 || v.MovedTo != 0 || v.Boost != (row.Boost != nil && *row.Boost) {
				continue
			}
			if v.Boosted != measured {
				t.Errorf("%s+%#x: boosted %v, measured %v", kf.Sym, row.Off, v.Boosted, measured)
			}
			if measured {
				boosted++
			}
		}
	}
	if boosted < atLeast {
		t.Errorf("only %d boosted copies were compared", boosted)
	}
}
