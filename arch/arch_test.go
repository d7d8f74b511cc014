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
		"ppc64":   {"powerpc64", "PPC64", "ppc64be"},
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

// TestMissing asks an ISA that can be analyzed only for more than that.
func TestMissing(t *testing.T) {
	known, err := ByName("arm64")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		use string
		ask func(isa ISA) error
	}{
		{"move its instructions", func(isa ISA) error { _, err := Relocation(isa); return err }},
		{"run its code", func(isa ISA) error { _, err := Execution(isa); return err }},
		{"put probes into running code", func(isa ISA) error { _, err := Probing(isa); return err }},
		{"read the operands of static markers", func(isa ISA) error { _, err := Markers(isa); return err }},
	} {
		var missing *MissingError
		if err := c.ask(struct{ ISA }{known}); !errors.As(err, &missing) || err.Error() != "xol can analyze arm64 code but cannot "+c.use {
			t.Errorf("%s: got %v", c.use, err)
		}
		if err := c.ask(known); err != nil {
			t.Errorf("%s: arm64 itself: %v", c.use, err)
		}
	}
}

// TestSupportedCannotBeChanged changes a list that was handed out.
func TestSupportedCannotBeChanged(t *testing.T) {
	Supported()[0] = nil
	if Supported()[0] == nil {
		t.Error("it is the one that is handed out next")
	}
}
