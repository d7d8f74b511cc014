//go:build unicorn

package verify_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"

	"xol/analyze"
	"xol/arch/arm64"
	"xol/decode"
	"xol/image"
	"xol/internal/archtest"
	"xol/internal/emulator"
	"xol/internal/skip"
	"xol/machine"
	"xol/relocate"
	"xol/verify"
)

// armTarget is arm64 with other dead registers, or with moved code that is
// then changed.
type armTarget struct {
	arm64.ISA
	dead   func(inst *decode.Inst) uint32
	mutate func(p *relocate.Plan, code []byte, to uint64) []byte
}

func (a armTarget) DeadRegisters(inst *decode.Inst) uint32 {
	if a.dead != nil {
		return a.dead(inst)
	}
	return a.ISA.DeadRegisters(inst)
}

func (a armTarget) Encode(dst []byte, p *relocate.Plan, to uint64) (int, error) {
	n, err := a.ISA.Encode(dst, p, to)
	if err == nil && a.mutate != nil {
		n = copy(dst, a.mutate(p, bytes.Clone(dst[:n]), to))
	}
	return n, err
}

func armCode(words ...uint32) (code []byte) {
	for _, w := range words {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	return code
}

func armInsts(t testing.TB, addr uint64, words ...uint32) []decode.Inst {
	t.Helper()
	return archtest.Sweep(t, arm64.ISA{}, armCode(words...), addr)
}

func armOptions(target armTarget, reach relocate.Reach) verify.Options {
	return verify.Options{Target: target, Reach: reach, Seed: 3, Engines: func() ([]machine.Engine, error) {
		e, err := emulator.Open("arm64", arm64.Registers())
		return []machine.Engine{e}, err
	}}
}

// armVerify verifies words as an instruction or as a region.
func armVerify(t *testing.T, target armTarget, reach relocate.Reach, words ...uint32) *verify.Report {
	t.Helper()
	insts := armInsts(t, 0x40_1000, words...)
	return run(t, insts, len(insts) > 1, armOptions(target, reach))
}

// The instructions that other relocators move wrongly, and the words that a
// mere copy of moves wrongly, too.
var armCases = []struct {
	name   string
	words  []uint32
	copies bool // a copy does the same
}{
	{"b", []uint32{0x14000040}, false},
	{"b backward", []uint32{0x17ffffc0}, false},
	{"b to itself", []uint32{0x14000000}, false},
	{"b.al", []uint32{0x5400020e}, false},
	{"b.eq", []uint32{0x54000200}, false},
	{"b.lt backward", []uint32{0x54fffe0b}, false},
	{"cbz x", []uint32{0xb4000203}, false},
	{"cbnz w", []uint32{0x35000203}, false},
	{"cbz xzr", []uint32{0xb400021f}, false},
	{"tbz out of range", []uint32{0xb6400203}, false},
	{"tbnz of bit 7", []uint32{0x373ffe03}, false},
	{"bl", []uint32{0x94000040}, false},
	{"bl to the next instruction", []uint32{0x94000001}, false},
	{"blr", []uint32{0xd63f0060}, false},
	{"blr x16", []uint32{0xd63f0200}, false},
	{"adr", []uint32{0x30000105}, false},
	{"adr backward", []uint32{0x70fffefe}, false},
	{"adr xzr", []uint32{0x3000011f}, true},
	{"adrp", []uint32{0xb0000105}, false},
	{"adrp out of range", []uint32{0x90800005}, false},
	{"ldr w", []uint32{0x18000205}, false},
	{"ldr x", []uint32{0x58000205}, false},
	{"ldr x30", []uint32{0x5800021e}, false},
	{"ldr xzr", []uint32{0x5800021f}, true},
	{"ldrsw", []uint32{0x98000205}, false},
	{"ldrsw xzr", []uint32{0x9800021f}, true},
	{"prfm", []uint32{0xd8000200}, true},
	{"ldr s", []uint32{0x1c000205}, false},
	{"ldr d", []uint32{0x5c000205}, false},
	{"ldr q", []uint32{0x9c000205}, false},
	{"ldr q31", []uint32{0x9c00021f}, false},
	{"br", []uint32{0xd61f0060}, true},
	{"ret", []uint32{0xd65f03c0}, true},
	{"a result that is dead before it", []uint32{0xd2800029}, true},
	{"a loaded pair with writeback", []uint32{0xa8c12969}, true},
	{"a push of x16", []uint32{0xf81f0ff0}, true},
	{"branch back into the region", []uint32{0x91000529, 0xf1000421, 0x54ffffc1}, true},
	{"branch forward over a longer form", []uint32{0x54000040, 0x30000105, 0x91000421}, false},
	{"cbz and tbz inside the region", []uint32{0xb4000063, 0xb6400043, 0xd1000463, 0xb5ffffa3}, true},
	{"branches out of the region, over one another", []uint32{0x54000400, 0xb4000403, 0xb6400403, 0x54000021}, false},
	{"bl into the region", []uint32{0x94000002, 0x91000421, 0x91000529}, false},
	{"a literal, then its use", []uint32{0x58000205, 0xf94000a6, 0x8b0600a7}, false},
	{"a SIMD literal between pushes", []uint32{0xf81f0ff0, 0x9c000205, 0xf84107f0}, false},
	{"an exclusive sequence with its loop", []uint32{0xc85f7c41, 0x91000421, 0xc8037c41, 0x35ffffa3}, true},
}

func TestARM64Moved(t *testing.T) {
	for name, reach := range reaches {
		for _, c := range armCases {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				r := armVerify(t, armTarget{}, reach, c.words...)
				if r.Executed != 1 {
					t.Errorf("skipped: %v", r.Skipped)
				}
				report(t, arm64.ISA{}, r)
			})
		}
	}
}

// TestARM64CopiesDiffer shows that the cases tell right from wrong.
func TestARM64CopiesDiffer(t *testing.T) {
	target := armTarget{mutate: func(p *relocate.Plan, _ []byte, to uint64) (code []byte) {
		for i := range p.Steps {
			code = append(code, p.Steps[i].Inst.Bytes()...)
		}
		return append(code, armCode(0x14000000|uint32((p.Next()-to-uint64(len(code)))>>2)&0x3ffffff)...)
	}}
	for _, c := range armCases {
		if r := armVerify(t, target, relocate.Near, c.words...); (r.Differences == 0) != c.copies {
			t.Errorf("%s: a copy differs in %d", c.name, r.Differences)
		}
	}
}

// TestARM64KnownFailures gives moved code the failures of other relocators, all
// of which must show.
func TestARM64KnownFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		word   uint32
		mutate func(code []byte) []byte
	}{
		{"literal value frozen", 0x58000205, func(code []byte) []byte {
			return replaceWord(code, 0xf94000a5, 0xd2800025) // ldr x5, [x5] by mov x5, #1
		}},
		{"prfm turned into a load", 0xd8000200, func(code []byte) []byte {
			return replaceWord(code, 0xf9800000, 0xf9400000) // prfm by ldr, of any registers
		}},
		{"ldrsw turned into ldr", 0x98000205, func(code []byte) []byte {
			return replaceWord(code, 0xb98000a5, 0xb94000a5)
		}},
		{"x17 clobbered", 0x91000421, func(code []byte) []byte {
			return append(armCode(0xd2800011), code...)
		}},
		{"the link register of the moved code", 0xd63f0060, func(code []byte) []byte {
			return armCode(0x1000005e, 0xd61f0060) // adr x30, .+8; br x3
		}},
		{"a register of 64 bits for one of 32", 0x18000205, func(code []byte) []byte {
			return replaceWord(code, 0xb94000a5, 0xf94000a5)
		}},
		{"half of a vector", 0x9c000205, func(code []byte) []byte {
			return replaceWord(code, 0x3dc00005, 0xfd400005)
		}},
		{"a branch that is not opposite", 0x54000200, func(code []byte) []byte {
			code[0] ^= 1
			return code
		}},
	} {
		changed := false
		target := armTarget{mutate: func(_ *relocate.Plan, code []byte, _ uint64) []byte {
			was := bytes.Clone(code)
			code = c.mutate(code)
			changed = changed || !bytes.Equal(was, code)
			return code
		}}
		if r := armVerify(t, target, relocate.Far, c.word); r.Differences != 1 || !changed {
			t.Errorf("%s does not show (changed: %t)", c.name, changed)
		}
	}
}

// replaceWord replaces instructions that equal from but for the base register
// by to with that base register.
func replaceWord(code []byte, from, to uint32) []byte {
	const base = 31 << 5
	for i := 0; i+4 <= len(code); i += 4 {
		if w := binary.LittleEndian.Uint32(code[i:]); w&^base == from&^base {
			binary.LittleEndian.PutUint32(code[i:], to&^base|w&base)
		}
	}
	return code
}

// TestARM64WithDeadRegister is what is refused without one.
func TestARM64WithDeadRegister(t *testing.T) {
	for _, word := range []uint32{
		0xd63f03c0,                         // blr x30
		0xd63f087f, 0xd63f0c7f, 0xd63f0bdf, // blraaz x3, blrabz x3, blraaz x30
		0xd73f0864, 0xd73f087f, 0xd73f0e04, 0xd73f087e, 0xd73f0bc3, // blraa, blrab, with x30 and sp
	} {
		r := armVerify(t, armTarget{}, relocate.Far, word)
		if r.Executed != 1 {
			t.Errorf("%08x: %v", word, r.Skipped)
		}
		report(t, arm64.ISA{}, r)
	}
}

// TestARM64SavedRegister loads literals by way of a register on the stack.
func TestARM64SavedRegister(t *testing.T) {
	var used int
	target := armTarget{mutate: func(_ *relocate.Plan, code []byte, _ uint64) []byte {
		if bytes.HasPrefix(code, armCode(0xf81f0ff0)) { // str x16, [sp, #-16]!
			used++
		}
		return code
	}}
	words := []uint32{0x5800021f, 0x1800021f, 0x9800021f, 0xd8000200, 0x1c000205, 0x5c000205, 0x9c00021f}
	for _, word := range words {
		r := armVerify(t, target, relocate.Near, word)
		if r.Executed != 1 {
			t.Errorf("%08x: %v", word, r.Skipped)
		}
		report(t, arm64.ISA{}, r)
	}
	if used != len(words) {
		t.Errorf("%d of %d save a register", used, len(words))
	}
}

func TestARM64Random(t *testing.T) {
	groups := []struct{ value, free uint32 }{
		{0x14000000, 0x03ffffff}, {0x94000000, 0x03ffffff}, {0x54000000, 0x00ffffef}, {0x34000000, 0x81ffffff},
		{0x36000000, 0x81ffffff}, {0x10000000, 0x60ffffff}, {0x90000000, 0x60ffffff}, {0x18000000, 0x40ffffff},
		{0x98000000, 0x40ffffff}, {0x1c000000, 0xc0ffffff}, {0xd63f0000, 0x000003e0}, {0xd61f0000, 0x000003e0},
	}
	r := rand.New(rand.NewPCG(5, 6))
	var insts []decode.Inst
	for len(insts) < 3000 {
		g := groups[r.IntN(len(groups))]
		var inst decode.Inst
		if (arm64.ISA{}).Decode(&inst, armCode(g.value|r.Uint32()&g.free), r.Uint64()>>36&^3) == nil {
			insts = append(insts, inst)
		}
	}
	for name, reach := range reaches {
		result, err := verify.Instructions(context.Background(), insts, armOptions(armTarget{}, reach))
		if err != nil {
			t.Fatal(err)
		}
		if result.Executed < len(insts)*98/100 {
			t.Errorf("%s: %d of %d executed, skipped %v", name, result.Executed, len(insts), result.Skipped)
		}
		report(t, arm64.ISA{}, result)
	}
}

// TestARM64File verifies a library of the cross compiler, where there is one.
func TestARM64File(t *testing.T) {
	img, err := image.OpenFile("/usr/aarch64-linux-gnu/lib/libm.so.6", image.Options{})
	if os.IsNotExist(err) {
		skip.Missing(t, "libraries of the ISA", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := analyze.New(img, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, reach := range reaches {
		opt := armOptions(armTarget{}, reach)
		opt.Sample = 2000
		r, err := verify.File(context.Background(), a, opt)
		if err != nil {
			t.Fatal(err)
		}
		if r.Executed < r.Distinct*98/100 || r.Distinct != opt.Sample {
			t.Errorf("%s: %d of %d executed, skipped %v", name, r.Executed, r.Distinct, r.Skipped)
		}
		report(t, arm64.ISA{}, r)
	}
}
