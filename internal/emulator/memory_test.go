//go:build unicorn

package emulator

import (
	"testing"

	"xol/arch/arm64"
	"xol/decode"
	"xol/machine"
)

// TestCodeAtEveryOffset runs code all over a page: the engine's own pages may
// be smaller. Around the code there is what it cannot bear, were it translated.
func TestCodeAtEveryOffset(t *testing.T) {
	g := arm64Guest(t)
	code := []byte{0x00, 0xa8, 0x00, 0x91} // add x0, x0, #42
	out := g.file.NewState()
	for at := uint64(codeAt); at < codeAt+0x2000; at += 0x44 {
		if err := g.Load([]machine.Part{{Addr: at, Code: code}}); err != nil {
			t.Fatal(err)
		}
		g.file.SetWord(g.start, g.file.PC, at)
		for seed := range uint64(3) {
			event, _, err := g.Run(out, g.start, seed, machine.Range{Lo: at, Hi: at + 4}, 10)
			if err != nil || event.Kind != machine.EventLeft || g.file.Word(out, arm64.X0) != 42 {
				t.Fatalf("at %#x: %v, %v, x0 is %d", at, event.Kind, err, g.file.Word(out, arm64.X0))
			}
		}
	}
}

// TestBranchToWhatIsNoCode lands on memory that appears, where the engine
// would translate any words.
func TestBranchToWhatIsNoCode(t *testing.T) {
	g := arm64Guest(t)
	for i := range uint64(200) {
		g.file.SetWord(g.start, arm64.X0+1, codeAt+0x100+i*4)
		out, event, _ := g.run(t, "20001fd6", 1) // br x1
		if pc := g.file.Word(out, g.file.PC); event.Kind != machine.EventLeft || pc != codeAt+0x100+i*4 {
			t.Fatalf("%v at %#x", event.Kind, pc)
		}
	}
}

// TestDataBesideCode reads the code and what is around it: the code is there,
// the rest depends on the seed.
func TestDataBesideCode(t *testing.T) {
	g := arm64Guest(t)
	code := []byte{0x20, 0x00, 0x40, 0xf9, 0x1f, 0x20, 0x03, 0xd5} // ldr x0, [x1]; nop
	if err := g.Load([]machine.Part{{Addr: codeAt, Code: code}}); err != nil {
		t.Fatal(err)
	}
	out := g.file.NewState()
	load := func(addr, seed uint64) uint64 {
		g.file.SetWord(g.start, arm64.X0+1, addr)
		if _, _, err := g.Run(out, g.start, seed, machine.Range{Lo: codeAt, Hi: codeAt + 4}, 10); err != nil {
			t.Fatal(err)
		}
		return g.file.Word(out, arm64.X0)
	}
	for _, seed := range []uint64{1, 2, 1, 3, 3} {
		if got := load(codeAt, seed); got != 0xd503201ff9400020 {
			t.Errorf("seed %d: the code reads %#x", seed, got)
		}
		if got, want := load(codeAt+0x800, seed), machine.Word(codeAt+0x800, seed); got != want {
			t.Errorf("seed %d: beside the code there is %#x, want %#x", seed, got, want)
		}
	}
}

func TestARM64DefectsAreSkipped(t *testing.T) {
	g := arm64Guest(t)
	for _, c := range []struct {
		text string
		code []byte
		skip bool
	}{
		{"famax v5.8h, v16.8h, v25.8h", []byte{0x05, 0x1e, 0xd9, 0x4e}, true},
		{"famin v0.4h, v2.4h, v26.4h", []byte{0x40, 0x1c, 0xda, 0x2e}, true},
		{"fscale v19.4h, v15.4h, v9.4h", []byte{0xf3, 0x3d, 0xc9, 0x2e}, true},
		{"fmul v0.8h, v1.8h, v2.8h", []byte{0x20, 0x1c, 0x42, 0x6e}, false},
		{"fdiv v0.8h, v1.8h, v2.8h", []byte{0x20, 0x3c, 0x42, 0x6e}, false},
		{"svc #0", []byte{0x01, 0x00, 0x00, 0xd4}, true},
		{"mrs x0, cntvct_el0", []byte{0x40, 0xe0, 0x3b, 0xd5}, true},
		{"mrs x0, nzcv", []byte{0x00, 0x42, 0x3b, 0xd5}, false},
		{"eret", []byte{0xe0, 0x03, 0x9f, 0xd6}, true},
	} {
		var inst decode.Inst
		if err := (arm64.ISA{}).Decode(&inst, c.code, codeAt); err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if reason := g.Skip(&inst); (reason != "") != c.skip {
			t.Errorf("%s: %q", c.text, reason)
		}
	}
}
