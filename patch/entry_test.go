package patch_test

import (
	"bytes"
	"testing"

	"xol/machine"
	"xol/patch"
)

// TestPlanEntry shows all texts that CPUs may meet: each is a whole instruction,
// or a breakpoint before bytes that nothing executes.
func TestPlanEntry(t *testing.T) {
	const at, stub = 0x401000, 0x409000
	cases := []struct {
		isa, nop string
		arm      []string
	}{
		{"amd64", "0f1f440000", []string{"0f1f440000", "cc1f440000", "ccfb7f0000", "e8fb7f0000"}},
		{"arm64", "1f2003d5", []string{"1f2003d5", "00200094"}},
		{"ppc64", "60000000", []string{"60000000", "48008001"}},
		{"ppc64le", "00000060", []string{"00000060", "01800048"}},
	}
	for _, c := range cases {
		t.Run(c.isa, func(t *testing.T) {
			isa := isaOf(t, c.isa)
			site := &patch.Site{Addr: at, Original: unhex(t, c.nop), Detour: machine.Range{Lo: stub, Hi: stub + 8}}
			arm, err := isa.PlanEntry(patch.Arm, site)
			if err != nil {
				t.Fatal(err)
			}
			expectTexts(t, arm, c.arm)
			disarm, err := isa.PlanEntry(patch.Disarm, site)
			if err != nil {
				t.Fatal(err)
			}
			var back []string
			for i := len(c.arm); i > 0; i-- {
				back = append(back, c.arm[i-1])
			}
			expectTexts(t, disarm, back)
			if _, err := isa.PlanEntry(patch.Optimize, site); err == nil {
				t.Error("another operation")
			}
			site.Detour = machine.Range{Lo: at + 1<<40, Hi: at + 1<<40 + 8}
			if _, err := isa.PlanEntry(patch.Arm, site); err == nil {
				t.Error("a stub out of reach")
			}
		})
	}
}

func expectTexts(t *testing.T, p *patch.Plan, want []string) {
	t.Helper()
	var texts [][]byte
	for _, s := range p.States() {
		if n := len(texts); n == 0 || !bytes.Equal(texts[n-1], s.Text) {
			texts = append(texts, s.Text)
		}
	}
	if len(texts) != len(want) {
		t.Fatalf("%v: %x, want %v", p.Operation, texts, want)
	}
	for i := range want {
		if !bytes.Equal(texts[i], unhex(t, want[i])) {
			t.Errorf("%v: %x, want %v", p.Operation, texts, want)
		}
	}
}
