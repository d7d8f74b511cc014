package ppc64

import (
	"math/rand/v2"
	"strings"
	"testing"

	"xol/decode"
	"xol/internal/archtest"
	"xol/optcheck"
	"xol/relocate"
)

func TestImmovableAgreesWithPlan(t *testing.T) {
	var p relocate.Plan
	for _, isa := range byteOrders {
		t.Run(isa.Name()+"/real", func(t *testing.T) {
			insts := decode.Sweep(isa, nil, realText(t, isa), moveFrom)
			for i := range insts {
				archtest.CheckImmovable(t, isa, &p, &insts[i])
			}
		})
		t.Run(isa.Name()+"/random", func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 5))
			refused := 0
			for range 200000 {
				at := r.Uint64() >> r.IntN(64) &^ 3
				inst := decode.Sweep(isa, nil, isa.bytesOf(randomWord(r)), at)[0]
				if !archtest.CheckImmovable(t, isa, &p, &inst) {
					refused++
				}
			}
			if refused == 0 {
				t.Error("the sample has nothing that is refused")
			}
		})
	}
}

func TestImmovable(t *testing.T) {
	for _, c := range []struct {
		name string
		word uint64
		rule string
	}{
		{"addi", 0x38630001, ""},
		{"bl", 0x48000101, ""},
		{"bclrl", 0x4e800021, ""},
		{"bctarl", 0x4e800461, ""},
		{"mttar", 0x7c6fcba6, ""},
		{"pld", 0x04100000_e4600800, ""},
		{"scv", 0x44000001, ""},
		{"lwarx", 0x7c601828, "ppc64/move-reservation"},
		{"stdcx.", 0x7c6019ad, "ppc64/move-reservation"},
		{"trap", 0x7fe00008, "ppc64/move-trap"},
		{"tdi", 0x08630001, "ppc64/move-trap"},
		{"no instruction", 0, "ppc64/region-undecodable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, isa := range byteOrders {
				inst := decode.Sweep(isa, nil, isa.bytesOf(c.word), moveFrom)[0]
				if got := archtest.RuleID(isa.Immovable(&inst)); got != c.rule {
					t.Errorf("%s: %q, want %q", isa.Name(), got, c.rule)
				}
			}
		})
	}
}

func TestRegionRules(t *testing.T) {
	never := map[optcheck.Reason]bool{
		optcheck.KeepLandingPad: true, optcheck.KeepCFITrap: true, optcheck.LandedReturn: true,
		optcheck.LandedIndirect: true, optcheck.BeyondFunction: true,
		optcheck.UnresolvedJump: true, optcheck.UnreadTables: true,
	}
	seen := map[string]bool{}
	for reason, rule := range (ISA{}).RegionRules() {
		if never[optcheck.Reason(reason)] != (rule.ID == "") {
			t.Errorf("reason %d: rule %q", reason, rule.ID)
		}
		if rule.ID == "" {
			continue
		}
		if seen[rule.ID] || !strings.HasPrefix(rule.ID, "ppc64/region-") || rule.Reason == "" {
			t.Errorf("reason %d: rule %+v", reason, rule)
		}
		seen[rule.ID] = true
	}
}

func BenchmarkImmovable(b *testing.B) {
	isa := ISA{LittleEndian: true}
	insts := decode.Sweep(isa, nil, realText(b, isa), moveFrom)
	b.ReportAllocs()
	moved := 0
	for i := 0; b.Loop(); i++ {
		if isa.Immovable(&insts[i%len(insts)]) == nil {
			moved++
		}
	}
	if moved == 0 {
		b.Fatal("everything is refused")
	}
}
