package amd64

// ReturnInst returns the bytes of the instruction that returns from a function.
func (ISA) ReturnInst() []byte { return []byte{0xc3} }

// TrampolinePrefix returns what stands before the return instruction that
// functions with return probes return to: it makes room for the address that
// their own return has taken from the stack.
func (ISA) TrampolinePrefix() []byte { return []byte{0x6a, 0x00} }

// TrampolineEntry returns a jump back to the prefix whose distance is an int3.
func (ISA) TrampolineEntry() (code []byte, offset uint64) {
	const jump, int3 = 0xeb, 0xcc
	return []byte{jump, int3}, 0x100 - int3 - 2
}
