package arm64

import (
	"math/rand/v2"
	"strings"
	"testing"

	"xol/decode"
	"xol/internal/archtest"
	"xol/optcheck"
	"xol/relocate"
)

func TestImmovable(t *testing.T) {
	for _, c := range []struct {
		name string
		word uint32
		want string // rule; empty: may be moved
	}{
		{"add", 0x8b020020, ""},
		{"b", 0x14000001, ""},
		{"b to itself", 0x14000000, ""},
		{"bl", 0x94000001, ""},
		{"cbz", 0xb4000040, ""},
		{"adrp", 0xb0000000, ""},
		{"ldr, literal", 0x58000040, ""},
		{"ldr of a vector register, literal", 0x9c800000, ""},
		{"ret", 0xd65f03c0, ""},
		{"br x16", 0xd61f0200, ""},
		{"svc", 0xd4000001, ""},
		{"blr x8", 0xd63f0100, ""},
		{"blr x30, whose target would be overwritten", 0xd63f03c0, "arm64/move-link-operand"},
		{"blraaz x8, which lands by way of x16 or x17 only", 0xd63f091f, "arm64/move-authenticated-call"},
		{"blraaz x16", 0xd63f0a1f, ""},
		{"ldxr", 0xc85f7c41, "arm64/move-exclusive"},
		{"stxr", 0xc8047c41, "arm64/move-exclusive"},
		{"brk", 0xd4200000, "arm64/move-trap"},
		{"udf", 0x00000000, "arm64/move-trap"},
		{"paciasppc", 0xdac1a3fe, "arm64/move-signature"},
		{"pacm", 0xd50324ff, "arm64/move-signature"},
		{"cpyp", 0x1d010440, "arm64/move-memory-copy"},
		{"no instruction", 0x00010000, "arm64/region-undecodable"},
	} {
		inst := &decode.Sweep(ISA{}, nil, bytesOf(c.word), moveFrom)[0]
		if got := archtest.RuleID(ISA{}.Immovable(inst)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		archtest.CheckImmovable(t, ISA{}, new(relocate.Plan), inst)
	}
}

// TestImmovableAgrees compares with Plan over real and random words.
func TestImmovableAgrees(t *testing.T) {
	text := realText(t)
	r := rand.New(rand.NewPCG(4, 6))
	for range 200_000 {
		text = append(text, bytesOf(r.Uint32())...)
	}
	var p relocate.Plan
	insts := decode.Sweep(ISA{}, nil, text, moveFrom)
	for i := range insts {
		archtest.CheckImmovable(t, ISA{}, &p, &insts[i])
	}
	misaligned := decode.Sweep(ISA{}, nil, bytesOf(0x8b020020, 0x14000001), moveFrom+2)
	for i := range misaligned {
		archtest.CheckImmovable(t, ISA{}, &p, &misaligned[i])
	}
	archtest.CheckImmovable(t, ISA{}, &p, &decode.Inst{Addr: moveFrom})
}

// TestRegionRules checks that a region of one word has just the rules that can
// apply to it.
func TestRegionRules(t *testing.T) {
	can := map[optcheck.Reason]string{
		optcheck.KeepLandingPad:  "landing-pad",
		optcheck.KeepFtrace:      "region-ftrace-site",
		optcheck.KeepJumpLabel:   "region-jump-label",
		optcheck.KeepAlternative: "region-alternative",
		optcheck.KeepBug:         "region-bug",
		optcheck.KeepException:   "region-exception-entry",
		optcheck.KeepData:        "region-data",
		optcheck.KeepProbe:       "region-other-probe",
		optcheck.Undecodable:     "region-undecodable",
	}
	rules := ISA{}.RegionRules()
	for i := range rules {
		rule, stem := &rules[i], can[optcheck.Reason(i)]
		if stem == "" && rule.ID != "" || stem != "" && rule.ID != "arm64/"+stem {
			t.Errorf("reason %d: %q, want %q", i, rule.ID, stem)
		}
		if rule.ID != "" && (rule.Reason == "" || strings.HasSuffix(rule.Reason, ".") || rule.Errno != 0) {
			t.Errorf("%s: %+v", rule.ID, rule)
		}
	}
}

func TestFormsAddress(t *testing.T) {
	insts := decode.Sweep(ISA{}, nil, realText(t), moveFrom)
	for i := range insts {
		if addr, ok := (ISA{}).FormsAddress(&insts[i]); ok || addr != 0 {
			t.Fatalf("%08x forms %#x", WordOf(&insts[i]), addr)
		}
	}
}

func TestImmovableAllocs(t *testing.T) {
	insts := decode.Sweep(ISA{}, nil, realText(t), moveFrom)
	if n := testing.AllocsPerRun(1, func() {
		for i := range insts {
			ISA{}.Immovable(&insts[i])
		}
	}); n != 0 {
		t.Errorf("%v allocations for %d instructions", n, len(insts))
	}
}

func BenchmarkImmovable(b *testing.B) {
	insts := decode.Sweep(ISA{}, nil, realText(b), moveFrom)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ISA{}.Immovable(&insts[i%len(insts)])
	}
}
