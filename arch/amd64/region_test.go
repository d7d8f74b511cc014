package amd64

import (
	"math/rand/v2"
	"strings"
	"testing"

	"xol/decode"
	"xol/internal/archtest"
	"xol/optcheck"
	"xol/relocate"
)

func TestRegionRules(t *testing.T) {
	rules, seen := ISA{}.RegionRules(), map[string]bool{}
	for reason := range optcheck.Reasons {
		r := &rules[reason]
		if reason == int(optcheck.LandedLocal) {
			if r.ID != "" {
				t.Errorf("amd64 has no local entry points, but rule %s", r.ID)
			}
			continue
		}
		if !strings.HasPrefix(r.ID, "amd64/") || seen[r.ID] || r.Reason == "" || strings.HasSuffix(r.Reason, ".") || r.Errno != 0 {
			t.Errorf("reason %d: %+v", reason, *r)
		}
		seen[r.ID] = true
	}
}

func TestImmovableLikePlan(t *testing.T) {
	var p relocate.Plan
	judged, refused := 0, 0
	check := func(raw []byte) {
		for _, inst := range decode.Sweep(ISA{}, nil, raw, 0x401000) {
			judged++
			if !archtest.CheckImmovable(t, ISA{}, &p, &inst) {
				refused++
			}
		}
	}
	for _, path := range []string{"testdata/decode-lists.tsv.gz", "testdata/decode-cpu.tsv.gz"} {
		rows(t, path, func(columns []string) { check(unhex(t, columns[0])) })
	}
	check(randomBytes(1 << 18))
	t.Logf("%d instructions, of which %d are refused", judged, refused)
	if refused == 0 || refused == judged {
		t.Error("nothing was told apart")
	}
}

// randomBytes returns n bytes, the same ones in every run.
func randomBytes(n int) []byte {
	rng, raw := rand.New(rand.NewPCG(4, 64)), make([]byte, n)
	for i := range raw {
		raw[i] = byte(rng.Uint32())
	}
	return raw
}

func TestImmovable(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"plain", "4889e5", ""},
		{"RIP-relative", "488b05f9ff0f00", ""},
		{"call", "e800000000", ""},
		{"far call", "ff1c24", "amd64/move-far-call"},
		{"breakpoint", "cc", "amd64/move-trap"},
		{"ud2", "0f0b", "amd64/move-trap"},
		{"system call by number", "cd80", ""},
		{"a short near branch with 66", "66eb00", "amd64/move-branch-66"},
		{"jump to itself", "ebfe", ""},
		{"jump into itself", "ebff", "amd64/move-branch-into-instruction"},
		{"jump after itself", "eb00", ""},
		{"no instruction", "06", "amd64/not-instruction"},
	} {
		inst := sweepHex(t, c.code, moveFrom)[0]
		got := ""
		if rule := (ISA{}).Immovable(&inst); rule != nil {
			got = rule.ID
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

func TestFormsAddress(t *testing.T) {
	const none = 1 // no row has it
	for _, c := range []struct {
		code string // of GNU as
		want uint64
	}{
		{"b800104000", 0x401000},                     // mov $0x401000,%eax
		{"41ba00104000", 0x401000},                   // mov $0x401000,%r10d
		{"b8001000f0", 0xf0001000},                   // mov $0xf0001000,%eax
		{"66b80010", none},                           // mov $0x1000,%ax
		{"b010", none},                               // mov $0x10,%al
		{"48b80000d0000080ffff", 0xffff800000d00000}, // movabs
		{"48c7c000104000", 0x401000},                 // mov $0x401000,%rax
		{"48c7c0001000f0", 0xfffffffff0001000},       // mov $0xfffffffff0001000,%rax
		{"c705f6ff0f0000104000", 0x401000},           // movl $0x401000,0xff6(%rip)
		{"48c744240800104000", 0x401000},             // movq $0x401000,0x8(%rsp)
		{"c744240800104000", 0x401000},               // movl $0x401000,0x8(%rsp)
		{"6800104000", 0x401000},                     // push $0x401000
		{"68001000f0", 0xfffffffff0001000},           // push $0xfffffffff0001000
		{"6a10", none},                               // push $0x10
		{"4881fb00104000", 0x401000},                 // cmp $0x401000,%rbx
		{"483d00104000", 0x401000},                   // cmp $0x401000,%rax
		{"4805001000f0", 0xfffffffff0001000},         // add $0xfffffffff0001000,%rax
		{"4881c300104000", 0x401000},                 // add $0x401000,%rbx
		{"4881e300104000", none},                     // and $0x401000,%rbx
		{"488d042500104000", 0x401000},               // lea 0x401000,%rax
		{"488d04c500104000", 0x401000},               // lea 0x401000(,%rax,8),%rax
		{"488d05f9ff0f00", none},                     // lea 0xff9(%rip),%rax
		{"488b042500104000", none},                   // mov 0x401000,%rax
		{"e800104000", none},                         // call
		{"c7f800104000", none},                       // xbegin
	} {
		inst := sweepHex(t, c.code, moveFrom)[0]
		addr, ok := ISA{}.FormsAddress(&inst)
		if ok != (c.want != none) || ok && addr != c.want {
			t.Errorf("%s: %#x %t, not %#x", c.code, addr, ok, c.want)
		}
	}
}

func BenchmarkImmovable(b *testing.B) {
	insts := decode.Sweep(ISA{}, nil, benchText(b), 0)
	b.ReportAllocs()
	refused := 0
	for b.Loop() {
		for i := range insts {
			if (ISA{}).Immovable(&insts[i]) != nil {
				refused++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(insts)), "ns/inst")
}

func BenchmarkFormsAddress(b *testing.B) {
	insts := decode.Sweep(ISA{}, nil, benchText(b), 0)
	b.ReportAllocs()
	formed := 0
	for b.Loop() {
		for i := range insts {
			if _, ok := (ISA{}).FormsAddress(&insts[i]); ok {
				formed++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(insts)), "ns/inst")
}
