//go:build unicorn

package runtime_test

import (
	"testing"

	"xol/decode"
	"xol/image"
	"xol/internal/isatest"
)

// TestPower10Everywhere is TestEverywhere for programs with prefixed instructions.
func TestPower10Everywhere(t *testing.T) {
	const level, cpus = "2-power10", 4
	for _, isa := range []string{"ppc64", "ppc64le"} {
		t.Run(isa, func(t *testing.T) {
			t.Parallel()
			sum := totals{insts: instsOf(t, isa, level)}
			prefixed := prefixedOf(t, isa, level)
			for seed := range uint64(*seeds) {
				times := executed(t, isa, level, seed, cpus).times
				n := 0
				for _, addr := range prefixed {
					if times[addr] > 0 {
						n++
					}
				}
				if n < 10 {
					t.Errorf("seed %d: only %d of %d prefixed instructions are executed", seed, n, len(prefixed))
				}
				inEveryMode(t, isa, level, seed, cpus, &sum)
			}
			t.Logf("%d runs, %d probes, %d of them jumps when all was settled, %d hits", sum.runs, sum.probes, sum.jumps, sum.hits)
		})
	}
}

// prefixedOf returns where the prefixed instructions of a program are.
func prefixedOf(t *testing.T, isaName, level string) (addrs []uint64) {
	t.Helper()
	img, err := image.OpenFile(programPath(isaName, level), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	isa, err := isatest.Named(isaName)
	if err != nil {
		t.Fatal(err)
	}
	functions, err := img.Functions(image.ExtentSymbol)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range functions {
		code, err := img.Code(nil, f.Addr, f.Size)
		if err != nil {
			t.Fatal(err)
		}
		for _, inst := range decode.Sweep(isa, nil, code, f.Addr) {
			if inst.Len == 8 {
				addrs = append(addrs, inst.Addr)
			}
		}
	}
	return addrs
}
