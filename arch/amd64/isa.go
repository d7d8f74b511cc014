// Package amd64 is all that is true of amd64 only: the decoder of its 64-bit
// mode, the text of instructions and the rules for probing them.
package amd64

import "debug/elf"

// ISA is the instruction set architecture. The zero value is ready to use.
type ISA struct{}

// Name returns "amd64".
func (ISA) Name() string { return "amd64" }

// Aliases returns other names of the ISA.
func (ISA) Aliases() []string { return []string{"x86_64", "x86-64", "x64"} }

// Machine returns the machine of ELF files.
func (ISA) Machine() elf.Machine { return elf.EM_X86_64 }

// Align returns the alignment of instructions in bytes.
func (ISA) Align() int { return 1 }
