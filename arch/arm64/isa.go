// Package arm64 is all that is true of arm64 only: the decoder of A64, the text
// of instructions and the rules for probing them.
package arm64

import "debug/elf"

// ISA is the instruction set architecture. The zero value is ready to use.
type ISA struct{}

// Name returns "arm64".
func (ISA) Name() string { return "arm64" }

// Aliases returns other names of the ISA.
func (ISA) Aliases() []string { return []string{"aarch64"} }

// Machine returns the machine of ELF files.
func (ISA) Machine() elf.Machine { return elf.EM_AARCH64 }

// Align returns the alignment of instructions in bytes.
func (ISA) Align() int { return 4 }
