package instrument

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"xol/analyze"
	"xol/internal/skip"
)

// TestRebase compares a layout that is rebased with one that is made for the other
// addresses.
func TestRebase(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const delta = 0x1_2345_6000
	some := func(r *analyze.Result) []Want {
		if r.Addr/16%8 != 0 {
			return nil
		}
		return everyInst(r)
	}
	for _, path := range []string{self, "/lib/x86_64-linux-gnu/libc.so.6"} {
		if _, err := os.Stat(path); err != nil {
			skip.Missing(t, path)
		}
		here, there := layOut(t, path, some), layOutAt(t, path, testBias+delta, some)
		if here.layout.Fixed || len(here.layout.Parts) != len(there.layout.Parts) {
			t.Fatalf("%s: fixed %v; %d parts, %d there", path, here.layout.Fixed, len(here.layout.Parts), len(there.layout.Parts))
		}
		for i := range here.layout.Parts {
			part, want := &here.layout.Parts[i], &there.layout.Parts[i]
			code := bytes.Clone(part.Code)
			if err := here.layout.Rebase(here.p.isa, part, code, delta); err != nil {
				t.Fatal(err)
			}
			if part.Addr+delta != want.Addr || !bytes.Equal(code, want.Code) {
				t.Errorf("%s: the part at %#x differs", path, part.Addr)
			}
			if len(code) > 1<<16 && bytes.Equal(code, part.Code) {
				t.Errorf("%s: nothing in the part at %#x has changed", path, part.Addr)
			}
		}
		for i := range here.layout.Patches {
			p, want := here.layout.Patches[i], there.layout.Patches[i]
			if p.Addr += delta; p != want {
				t.Fatalf("%s: patches differ: %+v, %+v", path, p, want)
			}
		}
		low, refused := layOutAt(t, path, 0, some), false
		for i := range low.layout.Parts {
			part := &low.layout.Parts[i]
			refused = refused || errors.Is(low.layout.Rebase(low.p.isa, part, bytes.Clone(part.Code), testBias), ErrFixed)
		}
		if !refused {
			t.Errorf("%s: short addresses became long ones", path)
		}
	}
}
