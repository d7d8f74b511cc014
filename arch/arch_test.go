package arch

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

func TestByMachine(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		order   binary.ByteOrder
		want    string // empty: not supported
	}{
		{elf.EM_X86_64, binary.LittleEndian, "amd64"},
		{elf.EM_AARCH64, binary.LittleEndian, "arm64"},
		{elf.EM_PPC64, binary.BigEndian, "ppc64"},
		{elf.EM_PPC64, binary.LittleEndian, "ppc64le"},
		{elf.EM_AARCH64, binary.BigEndian, ""},
		{elf.EM_386, binary.LittleEndian, ""},
		{elf.EM_RISCV, binary.LittleEndian, ""},
	} {
		isa, err := ByMachine(c.machine, c.order)
		var unknown *UnknownError
		switch {
		case c.want == "":
			if !errors.As(err, &unknown) {
				t.Errorf("%v %v: got %v, %v", c.machine, c.order, isa, err)
			}
		case err != nil || isa.Name() != c.want:
			t.Errorf("%v %v: got %v, %v", c.machine, c.order, isa, err)
		}
	}
}

func TestByName(t *testing.T) {
	for _, name := range Names() {
		if isa, err := ByName(name); err != nil || isa.Name() != name {
			t.Errorf("%s: got %v, %v", name, isa, err)
		}
	}
	_, err := ByName("mips")
	if err == nil || !strings.Contains(err.Error(), "mips") || !strings.Contains(err.Error(), "ppc64le") {
		t.Errorf("the error names neither what is wrong nor what would be right: %v", err)
	}
}

func TestOtherNames(t *testing.T) {
	for want, names := range map[string][]string{
		"amd64":   {"x86_64", "x86-64", "X86_64", "x64"},
		"arm64":   {"aarch64", "AArch64", "ARM64"},
		"ppc64":   {"powerpc64", "PPC64"},
		"ppc64le": {"ppc64el", "powerpc64le", "powerpc64el"},
	} {
		for _, name := range names {
			if isa, err := ByName(name); err != nil || isa.Name() != want {
				t.Errorf("%s: got %v, %v", name, isa, err)
			}
		}
	}
}

func TestInstructionsHaveTheAlignmentThatTheISASays(t *testing.T) {
	for _, name := range Names() {
		isa, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if a := isa.Align(); a != 1 && a != 4 || isa.JumpLen() < a {
			t.Errorf("%s: alignment %d, jump of %d bytes", name, a, isa.JumpLen())
		}
	}
}
