package verify_test

import (
	"context"
	"testing"

	"xol/arch/ppc64"
	"xol/decode"
	"xol/internal/skip"
	"xol/machine"
	"xol/relocate"
	"xol/verify"
)

// Pieces of the text of Debian 12's C libraries, and their addresses.
var ppc64Libraries = []struct {
	isa  ppc64.ISA
	addr uint64
}{
	{ppc64.ISA{}, 0x10d400},
	{ppc64.ISA{LittleEndian: true}, 0x121300},
}

// ppc64Text returns the instructions of one piece.
func ppc64Text(t *testing.T, isa ppc64.ISA, addr uint64) []decode.Inst {
	t.Helper()
	return decode.Sweep(isa, nil, testText(t, "libc."+isa.Name()+".gz"), addr)
}

// ppc64Options chooses the emulator, or skips the test where there is none.
func ppc64Options(t *testing.T, isa ppc64.ISA, reach relocate.Reach) verify.Options {
	t.Helper()
	open := func() ([]machine.Engine, error) {
		e, err := openEmulator(isa.Name(), ppc64.Registers())
		return []machine.Engine{e}, err
	}
	engines, err := open()
	if err != nil {
		skip.Missing(t, "an engine", err)
	}
	if err := engines[0].Close(); err != nil {
		t.Fatal(err)
	}
	return verify.Options{Target: isa, Engines: open, Reach: reach, Workers: 2, States: 8}
}

func TestPPC64Instructions(t *testing.T) {
	for _, library := range ppc64Libraries {
		for name, reach := range reaches {
			t.Run(library.isa.Name()+" "+name, func(t *testing.T) {
				opt := ppc64Options(t, library.isa, reach)
				seen := map[string]bool{}
				var insts []decode.Inst
				for _, inst := range ppc64Text(t, library.isa, library.addr) {
					if key := string(inst.Bytes()); !inst.Has(decode.Invalid) && !seen[key] {
						seen[key] = true
						insts = append(insts, inst)
					}
				}
				r, err := verify.Instructions(context.Background(), insts, opt)
				if err != nil {
					t.Fatal(err)
				}
				report(t, library.isa, r)
				t.Log(summary(r))
				if r.Executed*100 < r.Distinct*98 {
					t.Errorf("%d of %d executed; skipped: %v", r.Executed, r.Distinct, r.Skipped)
				}
			})
		}
	}
}

func TestPPC64Regions(t *testing.T) {
	for _, library := range ppc64Libraries {
		for name, reach := range reaches {
			t.Run(library.isa.Name()+" "+name, func(t *testing.T) {
				opt := ppc64Options(t, library.isa, reach)
				insts := ppc64Text(t, library.isa, library.addr)
				r, err := verify.Regions(context.Background(), randomRuns(insts, 800, 2, 5), opt)
				if err != nil {
					t.Fatal(err)
				}
				report(t, library.isa, r)
				t.Log(summary(r))
				if r.Executed < 500 {
					t.Errorf("%d of %d executed; skipped: %v", r.Executed, r.Distinct, r.Skipped)
				}
			})
		}
	}
}

// wrongPPC64 leaves one word out of moved code.
type wrongPPC64 struct {
	ppc64.ISA
	without int
	words   *int // of the code
}

func (w wrongPPC64) Plan(p *relocate.Plan, insts []decode.Inst, opt relocate.Options) error {
	opt.Back = relocate.BackNone
	return w.ISA.Plan(p, insts, opt)
}

func (w wrongPPC64) Encode(dst []byte, p *relocate.Plan, to uint64) (int, error) {
	n, err := w.ISA.Encode(dst, p, to)
	*w.words = n / 4
	if at := 4 * w.without; err == nil && at < n {
		copy(dst[at:], []byte{0x60, 0, 0, 0}) // nop
	}
	return n, err
}

// TestPPC64MistakesAreFound makes each instruction of a far bl a nop, one at a
// time: a register, memory or the next address tells.
func TestPPC64MistakesAreFound(t *testing.T) {
	isa := ppc64.ISA{}
	bl := decode.Sweep(isa, nil, []byte{0x48, 0x12, 0x34, 0x55}, 0x12345670)
	opt := ppc64Options(t, isa, relocate.Far)
	words := 1
	for without := 0; without <= words; without++ {
		opt.Target = wrongPPC64{isa, without, &words}
		r, err := verify.Instructions(context.Background(), bl, opt)
		if err != nil {
			t.Fatal(err)
		}
		if r.Executed != 1 || (r.Differences == 0) != (without == words) {
			t.Errorf("without word %d of %d: %d differences", without, words, r.Differences)
		}
	}
}
