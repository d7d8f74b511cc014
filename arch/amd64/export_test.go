package amd64

import "xol/decode"

// Effect returns the general registers that an instruction is said to overwrite
// and those of which it is said to change the two lowest bytes, and whether it
// may write memory.
func Effect(inst *decode.Inst) (full, part uint32, memory bool) {
	e := effectOf(inst)
	return e.full, e.part, e.memory
}
