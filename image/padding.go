package image

import (
	"debug/elf"
	"slices"
)

// maxPadding is the length of the longest piece of padding.
const maxPadding = 16

// Words that fill the room between functions.
var paddingWords = map[elf.Machine][]uint32{
	elf.EM_AARCH64: {0, 0xd503201f /* nop */, 0xd4200000 /* brk #0 */},
	elf.EM_PPC64:   {0, 0x60000000 /* nop */, 0x60210000, 0x60420000 /* nops that end a group */, 0x7fe00008 /* trap */},
}

// shortestInsn returns how many bytes an instruction has at least.
func shortestInsn(m elf.Machine) uint64 {
	if m == elf.EM_X86_64 {
		return 1
	}
	return 4
}

// paddingLen returns how many bytes at the start of code only fill up.
func paddingLen(m elf.Machine, order byteOrder, code []byte) uint64 {
	n := 0
	if m == elf.EM_X86_64 {
		for {
			k := paddingX86(code[n:])
			if k == 0 {
				return uint64(n)
			}
			n += k
		}
	}
	words := paddingWords[m]
	if m == elf.EM_AARCH64 {
		order = littleEndian // instructions always are
	}
	for n+4 <= len(code) && slices.Contains(words, order.u32(code[n:])) {
		n += 4
	}
	return uint64(n)
}

// paddingX86 returns the length of the NOP, INT3 or zero byte that code starts
// with; 0 where it starts with something else.
func paddingX86(code []byte) int {
	for i, c := range code {
		switch c {
		case 0x66, 0x2e:
			continue
		case 0x90:
			return i + 1
		case 0xcc, 0:
			if i == 0 {
				return 1
			}
		case 0x0f:
			if n := i + longNop(code[i:]); n > i && n <= len(code) {
				return n
			}
		}
		return 0
	}
	return 0
}

// longNop returns the length of a NOP 0F 1F /0 with its operand, or 0.
func longNop(code []byte) int {
	if len(code) < 3 || code[1] != 0x1f {
		return 0
	}
	mod, rm := code[2]>>6, code[2]&7
	n := 3
	if mod != 3 && rm == 4 {
		n++
	}
	switch {
	case mod == 1:
		n++
	case mod == 2 || mod == 0 && rm == 5:
		n += 4
	}
	return n
}

// endsFlow reports whether 8 bytes of code seem to end in padding, or in an
// instruction after which execution does not go on. Calls of what does not
// return are not told from others.
func endsFlow(m elf.Machine, order byteOrder, code []byte) bool {
	n := len(code)
	if m == elf.EM_X86_64 {
		switch code[n-1] {
		case 0xcc, 0x90, 0xc3, 0: // int3, nop, ret, the end of a long nop
			return true
		}
		return code[n-2] == 0xeb || code[n-5] == 0xe9 || code[n-2] == 0x0f && code[n-1] == 0x0b // jmp, jmp, ud2
	}
	if m == elf.EM_AARCH64 {
		order = littleEndian // instructions always are
	}
	word := order.u32(code[n-4:])
	return slices.Contains(paddingWords[m], word) ||
		slices.ContainsFunc(flowEnds[m], func(e maskedWord) bool { return word&e.mask == e.value })
}

// maskedWord is an instruction word, of which only some bits count.
type maskedWord struct{ mask, value uint32 }

// flowEnds are the instructions after which execution does not go on.
var flowEnds = map[elf.Machine][]maskedWord{
	elf.EM_AARCH64: {
		{0xfffffc1f, 0xd65f0000}, {0xfffffbff, 0xd65f0bff}, // ret, retaa and retab
		{0xfffffc1f, 0xd61f0000}, {0xfc000000, 0x14000000}, // br, b
		{0xffe0001f, 0xd4200000}, // brk
	},
	elf.EM_PPC64: {
		{0xffffffff, 0x4e800020}, {0xffffffff, 0x4e800420}, // blr, bctr
		{0xfc000001, 0x48000000}, {0xffe00000, 0x0fe00000}, // b, trap
	},
}
