package arm64

import (
	"encoding/binary"

	"xol/decode"
)

// Alternative returns what a kernel writes over size bytes at to: code, which
// is written for the address from, and NOPs [arch/arm64/kernel/alternative.c,
// patch_alternative].
func (a ISA) Alternative(code []byte, from, to uint64, size int, _ bool) []byte {
	buf := make([]byte, 0, size)
	for i := 0; i+wordSize <= min(len(code), size); i += wordSize {
		buf = put(buf, a.rebase(code[i:i+wordSize], from+uint64(i), to+uint64(i), i, len(code)))
	}
	for len(buf)+wordSize <= size {
		buf = put(buf, wordNOP)
	}
	return buf
}

// rebase returns the instruction of b, the one at offset at of size bytes, which
// is written for the address from, as it does the same at to. Branches that stay
// within the bytes are kept.
func (a ISA) rebase(b []byte, from, to uint64, at, size int) uint32 {
	const jump, jumpMask, page, pageMask, pageSize = 0x14000000, 0x7c000000, 0x90000000, 0x9f000000, 1 << 12
	w := binary.LittleEndian.Uint32(b)
	var inst decode.Inst
	if a.Decode(&inst, b, from) != nil || !inst.Has(decode.HasTarget) {
		return w
	}
	disp := int64(inst.Target - to)
	switch {
	case w&pageMask == page:
		pages := uint32((int64(inst.Target) - int64(to&^(pageSize-1))) >> 12)
		return w&^0x60ffffe0 | pages&3<<29 | pages>>2&0x7ffff<<5
	case inst.PCRel.Kind != decode.PCRelBranch, inst.Target-(from-uint64(at)) < uint64(size):
		return w
	case w&jumpMask == jump:
		return w&^0x3ffffff | uint32(disp>>2)&0x3ffffff
	}
	return displacementOf(&inst).set(w, disp)
}
