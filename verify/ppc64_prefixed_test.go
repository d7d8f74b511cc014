package verify_test

import (
	"context"
	"debug/elf"
	"testing"

	"xol/arch/ppc64"
	"xol/decode"
	"xol/relocate"
	"xol/verify"
)

// prefixedInsts returns the prefixed instructions of a program.
func prefixedInsts(t *testing.T, isa ppc64.ISA) (insts []decode.Inst) {
	t.Helper()
	f, err := elf.Open("../testdata/guest/" + isa.Name() + "-O2-power10")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	code, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	for _, inst := range decode.Sweep(isa, nil, code, text.Addr) {
		if inst.Len == 8 {
			insts = append(insts, inst)
		}
	}
	return insts
}

// TestPPC64Prefixed verifies what the engine does not know by itself.
func TestPPC64Prefixed(t *testing.T) {
	for _, library := range ppc64Libraries {
		for name, reach := range reaches {
			t.Run(library.isa.Name()+" "+name, func(t *testing.T) {
				opt := ppc64Options(t, library.isa, reach)
				r, err := verify.Instructions(context.Background(), prefixedInsts(t, library.isa), opt)
				if err != nil {
					t.Fatal(err)
				}
				report(t, library.isa, r)
				t.Log(summary(r))
				if r.Executed < 15 || r.Executed != r.Distinct {
					t.Errorf("%d of %d executed; skipped: %v", r.Executed, r.Distinct, r.Skipped)
				}
			})
		}
	}
}

// withoutWord makes a word of moved code a nop.
type withoutWord struct {
	ppc64.ISA
	word int
}

func (w withoutWord) Encode(dst []byte, p *relocate.Plan, to uint64) (int, error) {
	n, err := w.ISA.Encode(dst, p, to)
	if at := 4 * w.word; err == nil && at >= 0 && at < n {
		copy(dst[at:], []byte{0x60, 0, 0, 0})
	}
	return n, err
}

// TestPPC64PrefixedMistakesAreFound makes each word of the far form of a pld a nop,
// one at a time.
func TestPPC64PrefixedMistakesAreFound(t *testing.T) {
	isa := ppc64.ISA{}
	pld := decode.Sweep(isa, nil, []byte{0x04, 0x10, 0, 0, 0xe4, 0x60, 0x12, 0x34}, 0x12345670) // pld r3,0x1234, relative
	opt := ppc64Options(t, isa, relocate.Far)
	const none, words = -1, 6 // a constant of four, and pld
	for word := none; word < words; word++ {
		opt.Target = withoutWord{isa, word}
		r, err := verify.Instructions(context.Background(), pld, opt)
		if err != nil {
			t.Fatal(err)
		}
		if r.Executed != 1 || (r.Differences == 0) != (word == none) {
			t.Errorf("without word %d: %d executed, %d differences", word, r.Executed, r.Differences)
		}
	}
}
