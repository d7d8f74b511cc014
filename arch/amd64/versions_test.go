package amd64

import (
	"testing"

	"xol/classify"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/kernel"
	"xol/optcheck"
	"xol/place"
)

// TestKprobesByVersion compares with what kernels of other versions answered,
// and with the jumps that they made.
func TestKprobesByVersion(t *testing.T) {
	for _, c := range []struct {
		list   string
		v      classify.Version
		thunks textRange // of the kernel that was asked
		plain  bool      // booted without mitigations: retpolines are indirect branches
	}{
		{"5.10.218", linux5_10, textRange{0xffffffff81c01bee, 0xffffffff81c01f42}, false},
		{"6.1.176", linux6_1, textRange{0xffffffff81e01578, 0xffffffff81e01d32}, false},
		{"6.1.176-nomitig", linux6_1, textRange{0xffffffff81e01578, 0xffffffff81e01d32}, true},
		{"7.3.4", linux7_3, textRange{}, false},
		{"7.3.4-nomitig", linux7_3, textRange{}, true},
	} {
		opt := kernel.Debian("amd64", c.v)
		opt.Symbol = thunkSymbols(c.thunks, 0)
		k := archtest.Kernel{ISA: ISA{}, SiteLen: siteLen, Hits: true, Version: c.v, Options: &opt}
		t.Run(c.list, func(t *testing.T) {
			path := "testdata/kprobe/" + c.list + ".jsonl.gz"
			k.CheckProbes(t, path)
			k.CheckJumps(t, path)
		})
		t.Run("all of "+c.list, func(t *testing.T) {
			path := refdata.Full(t, "kernel-verdicts", "amd64-"+c.list+".jsonl.gz")
			k.CheckProbes(t, path)
			k.CheckJumps(t, path)
		})
	}
}

// What kprobes of some versions only do. The answers are those of the kernels
// that were asked.
func TestKprobeRulesByVersion(t *testing.T) {
	const refused, int3 = "amd64/kprobe-trap", "amd64/kprobe-int3"
	for _, c := range []struct {
		name, code    string
		before, since string // rule, until 6.12 and from then on
		hazard        string // until 6.12
		boost         [2]bool
	}{
		{name: "int3", code: "cc", before: int3, since: refused},
		{name: "ud1", code: "0fb9c0", since: refused, hazard: "amd64/kprobe-trap-in-slot"},
		{name: "ud2", code: "0f0b", since: refused, hazard: "amd64/kprobe-trap-in-slot"},
		{name: "shl", code: "c1e003", boost: [2]bool{false, true}},
		{name: "not", code: "f7d0", boost: [2]bool{false, true}},
		{name: "incb", code: "fec0", boost: [2]bool{false, true}},
		{name: "inc", code: "ffc0", boost: [2]bool{false, true}},
		{name: "jmp *rax", code: "ffe0", boost: [2]bool{true, true}},
		{name: "push through memory", code: "ff30"},
		{name: "add", code: "01d8", boost: [2]bool{true, true}},
	} {
		for _, v := range known.Kprobes {
			rule, hazard, boost := c.before, c.hazard, c.boost[0]
			if v >= linux6_12 {
				rule, hazard, boost = c.since, "", c.boost[1]
			}
			got := kprobeProfile(v, kernel.Debian("amd64", v)).Lone(unhex(t, c.code), testAddr)
			if r, h := archtest.IDs(&got); r != rule || h != hazard || got.Boost != boost {
				t.Errorf("%s on %v: got %q %q %+v, want %q %q, boost %v", c.name, v, r, h, got, rule, hazard, boost)
			}
		}
	}
}

// Where a probe on the start of a function is put.
func TestKprobeEntryByVersion(t *testing.T) {
	for _, c := range []struct {
		name, code string
		moved      classify.Span
	}{
		{"endbr64", "f30f1efa 90", since(linux6_12)},
		{"sealed as in 6.12", "660f1f00 90", classify.Span{Since: linux6_12, Until: linux7_3}},
		{"sealed as in 7.3", "0f1f40d6 90", since(linux7_3)},
		{"another nop", "0f1f4000 90", classify.Span{Since: linux7_3, Until: linux7_3}},
	} {
		for _, v := range known.Kprobes {
			f := testFunc(unhex(t, c.code))
			p := kprobeProfile(v, kernel.Debian("amd64", v))
			got := p.At(f, f.Addr)
			if moved := got.MovedTo == f.Addr+4; moved != c.moved.Holds(v) || p.Func(nil, f)[0] != got {
				t.Errorf("%s on %v: got %+v", c.name, v, got)
			}
		}
	}
}

// Inside a jump to the thunk of returns INT3s stand on CPUs that need no thunk, which
// kernels before 6.12 refuse with another error than bytes inside an instruction.
func TestInsideReturnThunkJump(t *testing.T) {
	f := testFunc(unhex(t, "90 e9f2000000 90"))
	f.Marks = place.Marks{{Addr: f.Addr + 1, Len: jumpNear, Kind: place.ReturnThunk}}
	for _, v := range known.Kprobes {
		p := kprobeProfile(v, kernel.Debian("amd64", v))
		for off := uint64(0); off < uint64(len(f.Code)); off++ {
			if off == 1 {
				continue // the jump itself: see TestThunksByVersion
			}
			want := v < linux6_12 && off > 1 && off < 1+jumpNear
			if got := p.At(f, f.Addr+off); got.Depends != want {
				t.Errorf("+%d on %v: %+v", off, v, got)
			}
		}
	}
}

// A branch to a thunk is emulated, and what stands there on CPUs that need no thunk is
// run in a slot by kernels that do not emulate returns and indirect branches.
func TestThunksByVersion(t *testing.T) {
	f := testFunc(unhex(t, "e8f2000000 e9f2000000 e9f2000000 90")) // call, jmp, jmp
	f.Marks = place.Marks{
		{Addr: f.Addr, Len: jumpNear, Kind: place.BranchThunk},
		{Addr: f.Addr + 5, Len: jumpNear, Kind: place.BranchThunk},
		{Addr: f.Addr + 10, Len: jumpNear, Kind: place.ReturnThunk},
	}
	without := testFunc(unhex(t, "ffd0 ffe0 c3 90"))
	for _, v := range known.Kprobes {
		p := kprobeProfile(v, kernel.Debian("amd64", v))
		verdicts, others := p.Func(nil, f), p.Func(nil, without)
		for i := range f.Insts {
			if got, want := verdicts[i].Depends, verdicts[i].Exec != others[i].Exec; got != want {
				t.Errorf("instruction %d on %v: depends %v, %s and %s", i, v, got, verdicts[i].Exec, others[i].Exec)
			}
		}
	}
}

// A jump to a retpoline counts as an indirect one until 6.12, one to the thunk of
// returns does not: it is a return in the running kernel.
func TestOptimizeThunksByVersion(t *testing.T) {
	f := testFunc(unhex(t, "4801d8 4801d8 4801d8 e9f2000000")) // three times add, then jmp to +0x100
	const thunk = 0x100
	for _, c := range []struct {
		name     string
		from, to uint64 // of the thunks, in f
		returns  uint64
		indirect bool
	}{
		{"into a thunk", thunk, thunk + 0x20, 0, true},
		{"to the last byte", thunk - 0x20, thunk + 1, 0, true},
		{"before the thunks", thunk + 1, thunk + 0x20, 0, false},
		{"after the thunks", thunk - 0x20, thunk, 0, false},
		{"to the thunk of returns", thunk - 0x20, thunk + 0x20, thunk, false},
		{"beside the thunk of returns", thunk - 0x20, thunk + 0x20, thunk + 2, true},
	} {
		opt := kernel.Debian("amd64", linux6_12)
		opt.Symbol = thunkSymbols(textRange{f.Addr + c.from, f.Addr + c.to}, f.Addr+c.returns)
		for _, v := range known.Kprobes {
			want := ""
			if c.indirect && v < linux6_12 {
				want = "amd64/optimize-indirect-jump"
			}
			p, o := kprobeProfile(v, opt), newKprobeOptimizer(v, opt)
			var s optcheck.Scratch
			got := o.Func(nil, &optcheck.Function{Func: f, Verdicts: p.Func(nil, f)}, &s)
			if archtest.RuleID(got[0].Rule) != want {
				t.Errorf("%s on %v: got %s, want %q", c.name, v, archtest.JumpText(&got[0]), want)
			}
		}
	}
}

// thunkSymbols are the symbols of a kernel that say where its thunks are.
func thunkSymbols(thunks textRange, returns uint64) func(name string) (uint64, bool) {
	return archtest.Symbols(map[string]uint64{
		"__indirect_thunk_start": thunks.from, "__indirect_thunk_end": thunks.to, "__x86_return_thunk": returns,
	})
}
