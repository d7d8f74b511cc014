// Package amd64 is all that is true of amd64 only: the decoder of its 64-bit
// mode, the text of instructions and the rules for probing them.
package amd64

// ISA is the instruction set architecture. The zero value is ready to use.
type ISA struct{}

// Name returns "amd64".
func (ISA) Name() string { return "amd64" }

// Align returns the alignment of instructions in bytes.
func (ISA) Align() int { return 1 }
