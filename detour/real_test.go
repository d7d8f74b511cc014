package detour_test

import (
	"os"
	"testing"

	"xol/arch"
	"xol/decode"
	"xol/image"
	"xol/internal/skip"
)

// libraries are C libraries of the ISAs, where cross compilers put them.
var libraries = map[string]string{
	"amd64":   "/lib/x86_64-linux-gnu/libm.so.6",
	"arm64":   "/usr/aarch64-linux-gnu/lib/libm.so.6",
	"ppc64":   "/usr/powerpc64-linux-gnu/lib/libm.so.6",
	"ppc64le": "/usr/powerpc64le-linux-gnu/lib/libm.so.6",
}

// testLibrary runs buffers for regions of real code, where there is any.
func testLibrary(t *testing.T, name string, open opener) {
	const regions = 400
	t.Run(name, func(t *testing.T) {
		isa := isaOf(t, name)
		r := verifyRegions(t, newTarget(t, isa, false), open, windows(t, isa, regions)...)
		t.Logf("%d of %d regions in %d states, skipped %v", r.Executed, r.Distinct, r.States, r.Skipped)
		if r.Executed < regions/2 {
			t.Error("too few")
		}
		for _, d := range r.Examples {
			t.Errorf("% x and %d more: %q", d.Inst.Bytes(), len(d.Rest), d.What)
		}
	})
}

// windows returns n runs of instructions from all over the ISA's library, each
// long enough for the jump. Loops to their own start are left out: a buffer
// leaves them after one round.
func windows(t *testing.T, isa arch.Prober, n int) (runs [][]decode.Inst) {
	t.Helper()
	im, err := image.OpenFile(libraries[isa.Name()], image.Options{})
	if os.IsNotExist(err) {
		skip.Missing(t, "libraries of the ISA", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := im.Close(); err != nil {
			t.Error(err)
		}
	})
	functions, err := im.Functions(image.ExtentSymbol)
	if err != nil {
		t.Fatal(err)
	}
	var insts []decode.Inst
	for i := range functions {
		code, err := im.Code(nil, functions[i].Addr, functions[i].Size)
		if err != nil {
			t.Fatal(err)
		}
		insts = decode.Sweep(isa, insts, code, functions[i].Addr)
	}
	for i, step := 0, max(1, len(insts)/n); i < len(insts) && len(runs) < n; i += step {
		if run := window(insts[i:], isa.JumpLen()); run != nil {
			runs = append(runs, run)
		}
	}
	return runs
}

// window returns the first instructions that have size bytes, nil where they
// are not a region.
func window(insts []decode.Inst, size int) []decode.Inst {
	from := insts[0].Addr
	for i := range insts {
		target, direct := insts[i].BranchTarget()
		if insts[i].Has(decode.Invalid) || direct && target == from || i > 0 && insts[i-1].Next() != insts[i].Addr {
			return nil
		}
		if insts[i].Next()-from >= uint64(size) {
			return insts[:i+1]
		}
	}
	return nil
}
