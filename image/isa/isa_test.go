package isa

import (
	"debug/elf"
	"testing"
)

// TestFind asks for machines that are known, that are not, and that are known
// otherwise.
func TestFind(t *testing.T) {
	other := &Record{Name: "other", Machine: elf.EM_AARCH64}
	for _, c := range []struct {
		name    string
		set     Set
		machine elf.Machine
		want    string
	}{
		{"known", Known(), elf.EM_PPC64, "ppc64"},
		{"not known", Known(), elf.EM_RISCV, "EM_RISCV"},
		{"known otherwise", append(Set{other}, Known()...), elf.EM_AARCH64, "other"},
		{"none", nil, elf.EM_X86_64, "EM_X86_64"},
	} {
		if r := c.set.Find(c.machine); r.Name != c.want || r.Machine != c.machine {
			t.Errorf("%s: got %s for %v, want %s for %v", c.name, r.Name, r.Machine, c.want, c.machine)
		}
	}
}

// TestRecordsAreWhole looks for what a record must not lack: a relocation that
// fills something has a field, and the sizes that tables of kernels count by
// are given.
func TestRecordsAreWhole(t *testing.T) {
	for _, r := range Known() {
		if r.Name == "" || r.MinInsn == 0 || r.Padding == nil || r.EndsFlow == nil || r.Loader.Relative == 0 {
			t.Errorf("%v: name %q, shortest instruction %d, padding, flow or loader missing", r.Machine, r.Name, r.MinInsn)
		}
		if k := &r.Kernel; len(k.ExEntries) == 0 || k.CallSize == 0 || k.TrapSize == 0 || len(k.Symbols) == 0 {
			t.Errorf("%s: sizes of kernel tables: %+v", r.Name, k)
		}
		for typ, h := range r.Relocations {
			if (h.Field == nil) != (h.Value == Nothing) {
				t.Errorf("%s: relocation type %d computes %d and has the field %v", r.Name, typ, h.Value, h.Field)
			}
		}
	}
}
