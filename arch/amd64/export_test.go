package amd64

import "xol/decode"

// Effect returns the general registers that an instruction is said to overwrite
// and those of which it is said to change the two lowest bytes, and whether it
// may write memory.
func Effect(inst *decode.Inst) (full, part uint32, memory bool) {
	e := effectOf(inst)
	return e.full, e.part, e.memory
}

// FlagUse returns the status flags that an instruction is said to read, and those that
// it is said to set. ok is false where nothing is known of it.
func FlagUse(inst *decode.Inst) (read, set uint64, ok bool) {
	u := flagUseOf(inst)
	read, set = u.uses()
	return read, set, u != 0
}
