package amd64

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/place"
)

// kernelLists are the samples of recorded verdicts in testdata (every third or
// second function, and those with a rare kind of answer), and the complete
// lists that they come from.
var kernelLists = map[string]string{
	"testdata/kernel-verdicts.jsonl.gz":         "amd64.jsonl.gz",
	"testdata/kernel-verdicts-nomitig.jsonl.gz": "amd64-nomitig.jsonl.gz",
}

var recorded = archtest.Kernel{ISA: ISA{}, SiteLen: siteLen, Hits: true}

func TestKprobeVerdicts(t *testing.T) {
	for sample, full := range kernelLists {
		t.Run(full, func(t *testing.T) { recorded.CheckProbes(t, sample) })
		t.Run("all of "+full, func(t *testing.T) { recorded.CheckProbes(t, refdata.Full(t, "kernel-verdicts", full)) })
	}
}

// siteLen returns the length of a jump-label or static-call site. A return is
// the static form of a tail call to nowhere, padded to the length of a call.
func siteLen(code []byte) uint64 {
	if code[0] == 0xC3 {
		return 5
	}
	var inst decode.Inst
	if (ISA{}).Decode(&inst, code, 0) != nil {
		return 1
	}
	return uint64(inst.Len)
}

const testAddr = 0xffffffff81000000

func testFunc(code []byte, marks ...place.Mark) *classify.Func {
	f := archtest.Func(ISA{}, testAddr, code)
	f.Marks = marks
	f.Marks.Sort()
	return f
}

// The expected answers are those of the rules as read in the kernel's sources
// and image; each row names one.
func TestKprobeRules(t *testing.T) {
	cfiTrap := place.Mark{Addr: testAddr + 12, Len: 2, Kind: place.CFITrap}
	for _, c := range []struct {
		name     string
		code     string
		off      uint64
		cfi      bool
		marks    []place.Mark
		rule     string
		errno    classify.Errno
		emulator string
		boost    bool
		culprit  uint64 // offset + 1, 0 for none
		instead  uint64 // likewise
	}{
		{name: "start of an instruction", code: "90 4889c0", off: 1, boost: true},
		{name: "inside an instruction", code: "90 4889c0 c3", off: 2, rule: "amd64/kprobe-inside-instruction", errno: classify.EILSEQ, culprit: 2, instead: 2},
		{name: "bytes that the kernel cannot decode", code: "90 c4e37968d911 90", off: 1, rule: "amd64/kprobe-undecodable", errno: classify.EILSEQ},
		{name: "after them", code: "90 c4e37968d911 90", off: 7, rule: "amd64/kprobe-undecodable", errno: classify.EILSEQ, culprit: 2},
		{name: "kernel counts differently", code: "8fe878c2fa0d 90", off: 6, rule: "amd64/kprobe-inside-instruction", errno: classify.EILSEQ, culprit: 6},
		{name: "after the function", code: "90", off: 1, rule: "amd64/kprobe-outside", errno: classify.EINVAL},
		{name: "int3", code: "cc", rule: "amd64/kprobe-trap", errno: classify.EILSEQ},
		{name: "int1", code: "f1", rule: "amd64/kprobe-trap", errno: classify.EILSEQ},
		{name: "int n", code: "cd80", rule: "amd64/kprobe-trap", errno: classify.EILSEQ},
		{name: "ud2", code: "0f0b", rule: "amd64/kprobe-trap", errno: classify.EILSEQ},
		{name: "ud1", code: "0fb9c0", rule: "amd64/kprobe-trap", errno: classify.EILSEQ},
		{name: "ud0", code: "0fffc0", rule: "amd64/kprobe-trap", errno: classify.EILSEQ},
		{name: "vpsllw has the opcode of int1", code: "c5f1f1c0", rule: "amd64/kprobe-trap", errno: classify.EILSEQ},
		{name: "forced emulation", code: "0f0b78656e 0fa2", rule: "amd64/kprobe-forced-emulation", errno: classify.EINVAL},
		{name: "mov to ss", code: "8ed0", rule: "amd64/kprobe-stack-segment", errno: classify.EINVAL},
		{name: "mov to ds", code: "8ed8", boost: true},
		{name: "rip-relative in reach", code: "488b0500000000", boost: true},
		{name: "far call", code: "ff1d00000000", rule: "amd64/kprobe-far-indirect", errno: classify.EOPNOTSUPP},
		{name: "iret", code: "48cf", rule: "amd64/kprobe-iret", errno: classify.EOPNOTSUPP},
		{name: "vgf2p8affineinvqb has the opcode of iret", code: "c4e3f1cfc000", rule: "amd64/kprobe-opcode-clash", errno: classify.EOPNOTSUPP},
		{name: "call through memory", code: "ff10", rule: "amd64/kprobe-indirect-memory", errno: classify.EOPNOTSUPP},
		{name: "call with address size", code: "67ffd0", rule: "amd64/kprobe-indirect-size", errno: classify.EOPNOTSUPP},
		{name: "call through a register", code: "ffd0", emulator: "call_indirect"},
		{name: "jump through a register", code: "41ffe3", emulator: "jmp_indirect", boost: true},
		{name: "push of memory", code: "ff30"},
		{name: "vmcall", code: "0f01c1", rule: "amd64/kprobe-vm", errno: classify.EOPNOTSUPP},
		{name: "monitor", code: "0f01c8"},
		{name: "fifteen bytes", code: "2e2e2e48c784c01122334411223344", rule: "amd64/kprobe-no-room", errno: classify.ENOSPC},
		{name: "loop", code: "e200", emulator: "loop"},
		{name: "cli", code: "fa", emulator: "ifmodifiers", boost: true},
		{name: "cs prefix is not boosted", code: "2e4889c0"},
		{name: "shift /6", code: "c0f001"},
		{name: "shift /4", code: "c0e001", boost: true},
		{name: "test /1", code: "f6c801"},
		{name: "test /0", code: "f6c001", boost: true},
		{name: "three opcode bytes", code: "0f38f0c0"},
		{name: "rdtsc", code: "0f31", boost: true},
		{name: "exception table", code: "4889c0", marks: []place.Mark{{Addr: testAddr, Len: 1, Kind: place.ExTable}}},
		{name: "alternatives", code: "4889c0", marks: []place.Mark{{Addr: testAddr, Len: 3, Kind: place.Alternative}}, boost: true},
		{name: "cfi mov", code: "41ba11223344 4503 53fc 7402 0f0b", cfi: true, marks: []place.Mark{cfiTrap}, rule: "amd64/kprobe-cfi-check", errno: classify.EILSEQ},
		{name: "cfi add", code: "41ba11223344 450353fc 7402 0f0b", off: 6, cfi: true, marks: []place.Mark{cfiTrap}, rule: "amd64/kprobe-cfi-check", errno: classify.EILSEQ},
		{name: "cfi jump", code: "41ba11223344 450353fc 7402 0f0b", off: 10, cfi: true, marks: []place.Mark{cfiTrap}, emulator: "jcc"},
		{name: "the same without the option", code: "41ba11223344 450353fc 7402 0f0b", marks: []place.Mark{cfiTrap}, boost: true},
		{name: "mov without a trap after", code: "41ba11223344 450353fc 7402 9090", cfi: true, boost: true},
	} {
		p, _ := ISA{}.Profile(classify.Linux612, classify.KernelOptions{CFI: c.cfi, Preemption: true})
		f := testFunc(unhex(t, c.code), c.marks...)
		at := func(off uint64) uint64 {
			if off == 0 {
				return 0
			}
			return f.Addr + off - 1
		}
		v := p.At(f, f.Addr+c.off)
		rule, _ := archtest.IDs(&v)
		if rule != c.rule || archtest.Errno(&v) != c.errno || v.Emulator != c.emulator || v.Boost != c.boost ||
			v.Culprit != at(c.culprit) || v.Instead != at(c.instead) {
			t.Errorf("%s: got rule %q %+v, want %+v", c.name, rule, v, c)
		}
	}
}

func TestKprobeCopyRange(t *testing.T) {
	code := unhex(t, "488b0500000000")
	for _, c := range []struct {
		addr uint64
		ok   bool
	}{
		{0xffffffff81000000, true},
		{0, true}, // such as per-CPU variables
		{0x555555554000, false},
		{0xffff888000000000, false},
	} {
		v := kprobe612.Lone(code, c.addr)
		if v.OK() != c.ok || !c.ok && archtest.Errno(&v) != classify.EINVAL {
			t.Errorf("%#x: got %+v", c.addr, v)
		}
	}
}

func TestKprobeEntry(t *testing.T) {
	for _, c := range []struct {
		name, code string
		moved      bool
	}{
		{"endbr64", "f30f1efa 55", true},
		{"endbr32", "f30f1efb 55", true},
		{"sealed endbr64", "660f1f00 55", true},
		{"other nop", "0f1f4000 55", false},
		{"nothing after it", "f30f1efa", false},
	} {
		f := testFunc(unhex(t, c.code))
		v := kprobe612.At(f, f.Addr)
		if got := v.MovedTo == f.Addr+4; got != c.moved || !v.OK() {
			t.Errorf("%s: got %+v", c.name, v)
		}
		if all := kprobe612.Func(nil, f); all[0] != v {
			t.Errorf("%s: Func says %+v, At %+v", c.name, all[0], v)
		}
	}
}

func TestKprobeHazards(t *testing.T) {
	for _, c := range []struct{ name, code, hazard string }{
		{"mov", "4889c0", ""},
		{"call", "e800000000", ""},
		{"ret", "c3", ""},
		{"loop", "e200", "amd64/kprobe-loop"},
		{"loopne with ecx", "67e000", "amd64/kprobe-loop"},
		{"jrcxz", "e300", ""},
		{"ret 8", "c20800", "amd64/kprobe-return-immediate"},
		{"ret 0", "c20000", ""},
		{"lret", "cb", "amd64/kprobe-far-return"},
		{"lret 8", "ca0800", "amd64/kprobe-far-return"},
		{"pushf", "9c", ""},
		{"pushfw", "669c", "amd64/kprobe-flags-16"},
		{"popfw", "669d", "amd64/kprobe-flags-16"},
		{"call rax", "ffd0", ""},
		{"call rsp", "ffd4", "amd64/kprobe-call-rsp"},
		{"call r12", "41ffd4", ""},
		{"vpshufd as jcc", "c5f970c000", "amd64/kprobe-opcode-clash-emulated"},
		{"vcmpps as ret", "c5f8c2c000", "amd64/kprobe-opcode-clash-emulated"},
		{"vpsubd as cli", "c5f9fac0", "amd64/kprobe-opcode-clash-emulated"},
		{"vpavgb as loop", "c5f9e0c0", "amd64/kprobe-opcode-clash-emulated"},
		{"vmovaps", "c5f828c0", ""},
		{"xbegin", "c7f810000000", "amd64/kprobe-slot-relative"},
		{"hlt", "f4", "amd64/kprobe-halt"},
		{"sysret", "480f07", "amd64/kprobe-leaves-slot"},
		{"xop", "8fe878c2fa0d", "amd64/kprobe-wrong-length"},
		{"xop, rip-relative", "8fe8d8a305440d060030", "amd64/kprobe-wrong-address"},
	} {
		v := kprobe612.Lone(unhex(t, c.code), testAddr)
		if _, got := archtest.IDs(&v); got != c.hazard || !v.OK() {
			t.Errorf("%s: got %q, want %q; %+v", c.name, got, c.hazard, v)
		}
	}
}

func TestISA(t *testing.T) {
	mark := func(kind place.Kind) []place.Mark { return []place.Mark{{Addr: testAddr, Len: 5, Kind: kind}} }
	for _, c := range []struct {
		name, code string
		off        uint64
		marks      []place.Mark
		rule       string
		exec       classify.Exec
		boost      bool
	}{
		{name: "mov", code: "4889c0", exec: classify.ExecSlot, boost: true},
		{name: "endbr64", code: "f30f1efa", exec: classify.ExecSlot, boost: true},
		{name: "call", code: "e811223344", exec: classify.ExecSlot, boost: true},
		{name: "call through memory", code: "ff1511223344", exec: classify.ExecSlot, boost: true},
		{name: "loop", code: "e200", exec: classify.ExecSlot, boost: true},
		{name: "syscall", code: "0f05", exec: classify.ExecSlot, boost: true},
		{name: "int n", code: "cd80", exec: classify.ExecSlot, boost: true},
		{name: "lock", code: "f0ff00", exec: classify.ExecSlot, boost: true},
		{name: "vector", code: "c5f877", exec: classify.ExecSlot, boost: true},
		{name: "vpshufd has the opcode of a jump", code: "66 c5f970c000", rule: "amd64/not-instruction"},
		{name: "ud2", code: "0f0b", exec: classify.ExecEmulate},
		{name: "int1", code: "f1", exec: classify.ExecEmulate},
		{name: "int3", code: "cc", rule: "amd64/int3"},
		{name: "not an instruction", code: "06", rule: "amd64/not-instruction"},
		{name: "inside an instruction", code: "4889c0", off: 1, rule: "amd64/inside-instruction"},
		{name: "after the function", code: "4889c0", off: 3, rule: "amd64/outside"},
		{name: "jmp with 66", code: "66e911223344", rule: "amd64/branch-66"},
		{name: "jcc with 66", code: "667510", rule: "amd64/branch-66"},
		{name: "long jcc with 66", code: "660f8411223344", rule: "amd64/branch-66"},
		{name: "ret with 66", code: "66c3", rule: "amd64/branch-66"},
		{name: "indirect call with 66", code: "66ffd0", rule: "amd64/branch-66"},
		{name: "loop with 66", code: "66e210", rule: "amd64/branch-66"},
		{name: "call with 66 and rex.w", code: "6648e811223344", exec: classify.ExecSlot, boost: true},
		{name: "push with 66", code: "66ff30", exec: classify.ExecSlot, boost: true},
		{name: "jump label", code: "0f1f440000", marks: mark(place.JumpLabel), rule: "isa/jump-label"},
		{name: "static call", code: "e811223344", marks: mark(place.StaticCall), rule: "isa/static-call"},
		{name: "ftrace site", code: "0f1f440000", marks: mark(place.Ftrace), rule: "isa/ftrace-site"},
		{name: "after the site", code: "0f1f440000 90", off: 5, marks: mark(place.Ftrace), exec: classify.ExecSlot, boost: true},
		{name: "data", code: "9090", marks: mark(place.Data), rule: "isa/data"},
		{name: "alternatives", code: "9090", marks: mark(place.Alternative), exec: classify.ExecSlot, boost: true},
		{name: "blacklist of the kernel", code: "9090", marks: mark(place.Blacklist), exec: classify.ExecSlot, boost: true},
	} {
		p, _ := ISA{}.Profile(classify.ISA, classify.KernelOptions{})
		f := testFunc(unhex(t, c.code), c.marks...)
		v := p.At(f, f.Addr+c.off)
		rule, _ := archtest.IDs(&v)
		if rule != c.rule || v.Exec != c.exec || v.Boost != c.boost || archtest.Errno(&v) != 0 {
			t.Errorf("%s: got rule %q %+v, want %+v", c.name, rule, v, c)
		}
		if i, start := decode.Find(f.Insts, f.Addr+c.off); start {
			if all := p.Func(nil, f); all[i] != v {
				t.Errorf("%s: Func says %+v, At %+v", c.name, all[i], v)
			}
		}
	}
}

func TestISALone(t *testing.T) {
	for code, want := range map[string]string{
		"90": "", "06": "amd64/not-instruction", "e81122": "amd64/truncated", "": "amd64/truncated",
		"666666666666666666666666666666e9": "amd64/too-long",
	} {
		v := isaProfile().Lone(unhex(t, code), 0)
		if got, _ := archtest.IDs(&v); got != want {
			t.Errorf("%q: got %q, want %q", code, got, want)
		}
	}
}

func TestISAOwnedText(t *testing.T) { archtest.CheckOwnedText(t, ISA{}, []byte{0x90}) }

func TestProfileNames(t *testing.T) { archtest.CheckNames(t, ISA{}) }

func TestRulesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	check := func(id, sentence string) {
		switch {
		case !strings.HasPrefix(id, "amd64/"), seen[id]:
			t.Errorf("%q is no good id, or not the only one", id)
		case sentence == "" || strings.HasSuffix(sentence, ".") || sentence != strings.TrimSpace(sentence):
			t.Errorf("%s: %q is no sentence to put after a colon", id, sentence)
		}
		seen[id] = true
	}
	silent := append(slices.Clone(isaRules[:]), optimizeRules[:]...)
	for i := range reservedRules {
		silent = append(silent, reservedRules[i].rule)
	}
	for _, r := range silent {
		check(r.ID, r.Reason)
		if r.Errno != 0 {
			t.Errorf("%s has an errno", r.ID)
		}
	}
	for _, rules := range [][]classify.Rule{kprobeRules[kprobeAccepted+1:], uprobeRules[uprobeAccepted+1:]} {
		for _, r := range rules {
			check(r.ID, r.Reason)
			if r.Errno == 0 {
				t.Errorf("%s has no errno", r.ID)
			}
		}
	}
	for _, hazards := range [][]classify.Hazard{isaHazards[isaRight+1:], kprobeHazards[kprobeRight+1:], uprobeHazards[uprobeRight+1:]} {
		for _, h := range hazards {
			check(h.ID, h.Text)
		}
	}
}

// profiles are all of them, with the kernel's own rules bare and as callers
// get them.
func profiles() []classify.Profile {
	linux, _ := ISA{}.Profile(classify.Linux612, classify.KernelOptions{CFI: true})
	return []classify.Profile{isaProfile(), kprobeProfile(linux6_12, classify.KernelOptions{CFI: true, Preemption: true}), uprobe612, linux}
}

// randomMarks derives marks in and around a function from a seed.
func randomMarks(seed uint64, size int) place.Marks {
	r := rand.New(rand.NewPCG(seed, 0))
	marks := make(place.Marks, r.IntN(8))
	for i := range marks {
		marks[i] = place.Mark{Addr: testAddr + r.Uint64N(uint64(size)+8) - 4, Len: 1 + r.Uint64N(12), Kind: 1 << r.IntN(15)}
	}
	marks.Sort()
	return marks
}

// FuzzClassify judges bytes with random marks at every address in and around
// them: nothing panics, every verdict is whole, and Func, At and Lone agree.
func FuzzClassify(f *testing.F) {
	funcs, err := refdata.KernelVerdicts("testdata/kernel-verdicts-nomitig.jsonl.gz")
	if err != nil {
		f.Fatal(err)
	}
	for i := range funcs {
		f.Add([]byte(funcs[i].Text[:min(len(funcs[i].Text), 64)]), uint64(i))
	}
	f.Fuzz(func(t *testing.T, code []byte, seed uint64) {
		fn := testFunc(code[:min(len(code), 256)], randomMarks(seed, len(code))...)
		for i, p := range profiles() {
			verdicts := p.Func(nil, fn)
			if len(verdicts) != len(fn.Insts) {
				t.Fatalf("%s: %d verdicts on %d instructions", p.Name(), len(verdicts), len(fn.Insts))
			}
			for off := range uint64(len(fn.Code)) + 20 {
				v := p.At(fn, fn.Addr+off-2)
				checkWhole(t, &v)
				if n, start := decode.Find(fn.Insts, fn.Addr+off-2); start && i < 3 && verdicts[n] != v {
					t.Fatalf("%s: Func says %+v, At %+v", p.Name(), verdicts[n], v)
				}
			}
			v := p.Lone(code, seed)
			checkWhole(t, &v)
		}
	})
}

// checkWhole checks what holds for every verdict.
func checkWhole(t *testing.T, v *classify.Verdict) {
	switch {
	case v.OK() == (v.Exec == classify.ExecNone),
		!v.OK() && (v.Hazard != nil || v.Boost || v.Fixups != 0 || v.Scratch != 0 || v.Emulator != ""),
		(v.Exec == classify.ExecEmulate) != (v.Emulator != ""):
		t.Fatalf("contradiction in %+v", v)
	}
}

// benchmarkFuncs returns the functions of a sample, enough to measure by.
func benchmarkFuncs(b *testing.B) (funcs []*classify.Func, insts int) {
	list, err := refdata.KernelVerdicts("testdata/kernel-verdicts.jsonl.gz")
	if err != nil {
		b.Fatal(err)
	}
	for i := range list {
		f := list[i].Func(ISA{}, siteLen)
		funcs = append(funcs, f)
		insts += len(f.Insts)
	}
	return funcs, insts
}

func BenchmarkProfiles(b *testing.B) {
	funcs, _ := benchmarkFuncs(b)
	archtest.BenchmarkProfiles(b, ISA{}, funcs...)
}

func TestFuncDoesNotAllocate(t *testing.T) {
	f := testFunc(unhex(t, "f30f1efa 0f1f440000 55 4889e5 c5f877 e811223344 7510 5d c3 06 90"), randomMarks(3, 30)...)
	for _, p := range profiles() {
		verdicts := make([]classify.Verdict, 0, len(f.Insts))
		if n := testing.AllocsPerRun(100, func() { p.Func(verdicts, f) }); n != 0 {
			t.Errorf("%s: %v allocations", p.Name(), n)
		}
	}
}

func TestPlacesAreAccepted(t *testing.T) { archtest.CheckPlaces(t, ISA{}, []byte{0x90}, []byte{0xcc}) }
