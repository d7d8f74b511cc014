package amd64

import "xol/decode"

func (ISA) Text(inst *decode.Inst, lookup decode.SymLookup) string { return "" }
