// Package ppc64 is all that is true of 64-bit Power only: the decoder of the
// Power ISA 3.1 in both byte orders, the text of instructions and the rules for
// probing them.
package ppc64

import "debug/elf"

// ISA is the instruction set architecture in one byte order. The zero value is
// the big-endian one.
type ISA struct {
	LittleEndian bool // of instructions and data
	CPU          CPU  // for which the Linux profiles answer; Decode knows every instruction
}

// CPU is a generation of processors.
type CPU uint8

// The CPUs that Linux treats differently when it handles probes.
const (
	POWER10 CPU = iota // Power ISA 3.1, and later CPUs
	POWER9             // Power ISA 3.0: without prefixed instructions
)

// Name returns "ppc64" or "ppc64le".
func (a ISA) Name() string {
	if a.LittleEndian {
		return "ppc64le"
	}
	return "ppc64"
}

// Aliases returns other names of the ISA.
func (a ISA) Aliases() []string {
	if a.LittleEndian {
		return []string{"ppc64el", "powerpc64le", "powerpc64el"}
	}
	return []string{"powerpc64", "ppc64be"}
}

// Machine returns the machine of ELF files.
func (ISA) Machine() elf.Machine { return elf.EM_PPC64 }

// Align returns the alignment of instructions in bytes.
func (ISA) Align() int { return 4 }
