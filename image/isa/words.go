package isa

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// words are the patterns of an ISA whose instructions have 4 bytes.
type words struct {
	padding  []uint32
	flowEnds []maskedWord // after which execution does not go on
	// little says that instructions are little-endian in any file.
	little bool
}

// maskedWord is an instruction word, of which only some bits count.
type maskedWord struct{ mask, value uint32 }

const wordSize = 4

// word returns the instruction that code starts with.
func (w *words) word(code []byte, big bool) uint32 {
	v := binary.LittleEndian.Uint32(code)
	if big && !w.little {
		v = bits.ReverseBytes32(v)
	}
	return v
}

func (w *words) paddingLen(code []byte, big bool) uint64 {
	n := 0
	for n+wordSize <= len(code) && slices.Contains(w.padding, w.word(code[n:], big)) {
		n += wordSize
	}
	return uint64(n)
}

func (w *words) endsFlow(code []byte, big bool) bool {
	word := w.word(code[len(code)-wordSize:], big)
	return slices.Contains(w.padding, word) ||
		slices.ContainsFunc(w.flowEnds, func(e maskedWord) bool { return word&e.mask == e.value })
}
