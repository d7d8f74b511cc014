//go:build unicorn

package guest

import (
	"testing"

	"xol/arch"
)

func open(t *testing.T, opt Options, isa string) *Machine {
	t.Helper()
	var err error
	if opt.ISA, err = arch.ByName(isa); err != nil {
		t.Fatal(err)
	}
	m, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestOpen(t *testing.T) {
	for _, isa := range arch.Names() {
		for _, exact := range []bool{false, true} {
			open(t, Options{CPUs: 2, Exact: exact}, isa)
		}
	}
}
