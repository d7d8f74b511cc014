package ppc64

const wordBLR = 0x4e800020

// ReturnInst returns the bytes of the instruction that returns from a function.
func (a ISA) ReturnInst() []byte { return a.words(wordBLR) }

func (a ISA) words(words ...uint32) []byte {
	var code []byte
	for _, w := range words {
		code = emitter{littleEndian: a.LittleEndian}.put(code, w)
	}
	return code
}

// TrampolinePrefix returns what stands before the return instruction that
// functions with return probes return to: nothing, since the return address is in
// a register.
func (ISA) TrampolinePrefix() []byte { return nil }

// TrampolineEntry returns nothing: the return instruction is one word.
func (ISA) TrampolineEntry() (code []byte, offset uint64) { return nil, 0 }
