package amd64

import "xol/decode"

// Decode decodes the instruction at code[0].
func (ISA) Decode(inst *decode.Inst, code []byte, addr uint64) error { return decode.ErrInvalid }
