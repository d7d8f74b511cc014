package arm64

import (
	"xol/classify"
	"xol/decode"
)

// ISA is the instruction set architecture. The zero value is ready to use.
type ISA struct{}

// Name returns "arm64".
func (ISA) Name() string { return "arm64" }

// Align returns the alignment of instructions in bytes.
func (ISA) Align() int { return 4 }

// Profile returns the ISA's rules under one of the names of package classify.
func (ISA) Profile(name string, opt classify.KernelOptions) (classify.Profile, bool) {
	return nil, false
}

func (ISA) Decode(inst *decode.Inst, code []byte, addr uint64) error { return decode.ErrInvalid }

func (ISA) Text(inst *decode.Inst, lookup decode.SymLookup) string { return "" }
