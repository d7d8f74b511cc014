package ppc64

import "xol/decode"

// Alternative returns what a kernel writes over size bytes at to: code, which
// is written for the address from, and nops [arch/powerpc/lib/feature-fixups.c,
// patch_feature_section].
func (a ISA) Alternative(code []byte, from, to uint64, size int, _ bool) []byte {
	buf := make([]byte, 0, size)
	for i := 0; i+wordSize <= min(len(code), size); i += wordSize {
		buf = append(buf, a.words(a.rebase(code[i:i+wordSize], from+uint64(i), to+uint64(i), i, len(code)))...)
	}
	for len(buf)+wordSize <= size {
		buf = append(buf, a.words(insnNop)...)
	}
	return buf
}

// rebase returns the word of b, the one at offset at of size bytes, which is
// written for the address from, as it does the same at to. Relative branches
// that stay within the bytes are kept.
func (a ISA) rebase(b []byte, from, to uint64, at, size int) uint32 {
	w := a.word(b)
	var inst decode.Inst
	if a.Decode(&inst, b, from) != nil || inst.PCRel.Kind != decode.PCRelBranch ||
		inst.Target-(from-uint64(at)) < uint64(size) {
		return w
	}
	disp := uint32(inst.Target - to)
	switch w >> 26 {
	case 16:
		return w&^0xfffc | disp&0xfffc
	case 18:
		return w&^0x3fffffc | disp&0x3fffffc
	}
	return w
}
