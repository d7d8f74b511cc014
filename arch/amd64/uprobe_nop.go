package amd64

import "encoding/binary"

// What uprobes take for a NOP, which they emulate by doing nothing.

// kernelNOPs are the NOPs that the kernel itself writes, of those that uprobes
// accept, by length [arch/x86/include/asm/nops.h].
var kernelNOPs = [...]string{
	1: "\x90",
	2: "\x66\x90",
	3: "\x0f\x1f\x00",
	4: "\x0f\x1f\x40\x00",
	5: "\x0f\x1f\x44\x00\x00",
	6: "\x66\x0f\x1f\x44\x00\x00",
	7: "\x0f\x1f\x80\x00\x00\x00\x00",
	8: "\x0f\x1f\x84\x00\x00\x00\x00\x00",
}

const (
	nop5Len  = 5
	nop10Len = 10
)

// isNOP10 reports whether b starts with the NOP of ten bytes that becomes a
// call; its SIB byte and displacement may be any.
func isNOP10(b *[kernelWindow]byte) bool { return string(b[:5]) == "\x66\x2e\x0f\x1f\x84" }

// takesForNOP reports whether the kernel takes k, whose bytes are b, for a NOP.
func (p *uprobeJudge) takesForNOP(k *kernelInsn, b *[kernelWindow]byte) bool {
	switch {
	case p.does&uprobeAllNOPs != 0:
		return k.doesNothing(b)
	case p.does&uprobeNOP90 != 0 && k.op[0] == nop:
		return true
	}
	n := int(k.len)
	return p.does&uprobeOwnNOPs != 0 && n < len(kernelNOPs) && string(b[:n]) == kernelNOPs[n]
}

// becomesCall reports whether the kernel turns k into a call of 5 bytes at the
// first hit.
func (p *uprobeJudge) becomesCall(k *kernelInsn, isNOP bool) bool {
	switch {
	case p.does&uprobeCallNOP5 == 0 || k.len != nop5Len:
		return false
	case p.does&uprobeAllNOPs != 0:
		return isNOP
	}
	return k.nop == 1 && k.op[0] == nop || k.nop == 2 && k.op[1] == 0x1F && k.reg() == 0
}

// doesNothing reports whether k, whose bytes are b, is one of the forms that the
// kernel knows to do nothing [arch/x86/lib/insn-eval.c, insn_is_nop].
func (k *kernelInsn) doesNothing(b *[kernelWindow]byte) bool {
	if k.nvex != 0 {
		return false
	}
	reg, rm := k.registers(b)
	switch k.mapped() {
	case 0x89: // mov
		return k.modrm>>6 == 3 && k.operandSize() == 8 && reg == rm
	case 0x8D: // lea
		return k.prefixes == 0 && k.operandSize() == 8 && reg == rm && k.addsNothing(b)
	case nop:
		return rm == 0 && k.prefixes&PrefixF3 == 0
	case 0xE9: // jmp
		return binary.LittleEndian.Uint32(b[k.len-4:]) == 0
	case 0xEB:
		return b[k.len-1] == 0
	case 0x0F1F:
		return reg == 0
	}
	return false
}

// mapped returns k's opcode, with 0F before that of the two-byte map; three-byte
// opcodes are returned as their first two.
func (k *kernelInsn) mapped() uint16 {
	op := uint16(k.op[0])
	switch {
	case k.nrex == 2 && k.payload[0]&0x80 != 0:
		return 0x0F00 | op
	case k.nop > 1:
		return op<<8 | uint16(k.op[1])
	}
	return op
}

// registers returns the numbers in ModRM.reg and in ModRM.rm or SIB.base; of an
// opcode that holds a register, rm is the extension of its number.
func (k *kernelInsn) registers(b *[kernelWindow]byte) (reg, rm byte) {
	r, bit := k.rex>>2&1, k.rex&1
	if k.nrex == 2 {
		p := k.payload[0]
		r, bit = p>>2&1|p>>5&2, p&1|p>>3&2
	}
	reg, rm = r<<3, bit<<3
	if k.hasModRM {
		reg |= k.reg()
		rm |= k.modrm & 7
		if k.hasSIB() {
			rm = bit<<3 | b[k.modrmAt()+1]&7
		}
	}
	return reg, rm
}

// addsNothing reports whether k has a displacement, which is 0, and no index.
func (k *kernelInsn) addsNothing(b *[kernelWindow]byte) bool {
	i := k.modrmAt() + 1
	if k.hasSIB() {
		extended := k.rex&2 != 0
		if k.nrex == 2 {
			extended = k.payload[0]&0x22 != 0
		}
		if b[i]&0xF8 != 4<<3 || extended {
			return false
		}
		i++
	}
	switch k.modrm >> 6 {
	case 1:
		return b[i] == 0
	case 2:
		return binary.LittleEndian.Uint32(b[i:]) == 0
	}
	return false
}

// hasSIB reports whether a SIB byte follows ModRM.
func (k *kernelInsn) hasSIB() bool { return k.hasModRM && k.modrm>>6 != 3 && k.modrm&7 == 4 }

// modrmAt returns the offset of ModRM.
func (k *kernelInsn) modrmAt() int {
	n := int(k.nprefix + k.nrex + k.nvex + k.nop)
	if k.forced {
		n += 5
	}
	return n
}

// takeMap puts 0F before the opcode of a REX2 instruction of the two-byte map, as
// the kernel does each time that it looks for a NOP: from then on it finds no
// one-byte opcode there. The number of opcode bytes stays one.
func (k *kernelInsn) takeMap() {
	if k.nrex == 2 && k.payload[0]&0x80 != 0 {
		k.op[1], k.op[0] = k.op[0], 0x0F
	}
}
