package amd64

import (
	"encoding/binary"

	"xol/decode"
)

// x86NOPs are those that kernels fill gaps with, by length; that of 1 byte is
// among them [arch/x86/include/asm/nops.h].
var x86NOPs = [...]string{
	1: "\x90", 2: "\x66\x90", 3: "\x0f\x1f\x00", 4: "\x0f\x1f\x40\x00", 5: "\x0f\x1f\x44\x00\x00",
	6: "\x66\x0f\x1f\x44\x00\x00", 7: "\x0f\x1f\x80\x00\x00\x00\x00", 8: "\x0f\x1f\x84\x00\x00\x00\x00\x00",
	9: "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00", 10: "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00",
	11: "\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00",
}

// Alternative returns what a kernel writes over size bytes at to: code, which
// is written for the address from, and NOPs [arch/x86/kernel/alternative.c,
// apply_alternatives]. Jumps become short where that suffices, with traps after them
// from Linux 6.3 on, and NOPs that follow each other one.
func (a ISA) Alternative(code []byte, from, to uint64, size int, traps bool) []byte {
	buf := make([]byte, size)
	for i := copy(buf, code); i < size; i++ {
		buf[i] = x86NOPs[1][0]
	}
	insts := decode.Sweep(a, nil, buf[:min(len(code), size)], from)
	for i := range insts {
		if inst := &insts[i]; inst.Has(decode.HasTarget) && inst.PCRel.Kind != decode.PCRelNone && inst.PCRel.Width == 32 &&
			inst.Target-from > uint64(len(code)) {
			a.rebase(buf[inst.Addr-from:][:inst.Len], inst, inst.Addr-from+to, traps)
		}
	}
	a.joinNOPs(buf)
	return buf
}

// rebase changes the displacement of b, which holds inst, for its new address.
func (ISA) rebase(b []byte, inst *decode.Inst, addr uint64, traps bool) {
	const jumpRel32, jumpRel8, int3 = 0xe9, 0xeb, 0xcc
	fill := x86NOPs[1][0]
	if traps {
		fill = int3
	}
	if short := inst.Target - (addr + 2); b[0] == jumpRel32 && int64(short) == int64(int8(short)) {
		b[0], b[1] = jumpRel8, byte(short)
		for i := range b[2:] {
			b[2+i] = fill
		}
		return
	}
	binary.LittleEndian.PutUint32(b[inst.PCRel.Offset:], uint32(inst.Target-(addr+uint64(inst.Len))))
}

// joinNOPs replaces runs of NOPs by the fewest that are as long. A last one
// that stands by itself stays.
func (a ISA) joinNOPs(buf []byte) {
	for i := 0; i < len(buf); {
		n, nop := a.nopAt(buf[i:])
		if n == 0 {
			return
		}
		if !nop || i+n == len(buf) {
			i += n
			continue
		}
		end := i + n
		for end < len(buf) {
			n, nop := a.nopAt(buf[end:])
			if !nop {
				break
			}
			end += n
		}
		for i < end {
			i += copy(buf[i:end], x86NOPs[min(end-i, len(x86NOPs)-1)])
		}
	}
}

// nopAt returns the length of the instruction that b starts with, 0 where there
// is none, and whether the kernel takes it for a NOP [insn_is_nop].
func (a ISA) nopAt(b []byte) (n int, nop bool) {
	var inst decode.Inst
	if a.Decode(&inst, b, 0) != nil {
		return 0, false
	}
	switch OpOf(&inst) {
	case OpNop:
		return int(inst.Len), DetailOf(&inst).Prefixes()&PrefixF3 == 0
	case OpLongNop:
		return int(inst.Len), true
	}
	return int(inst.Len), false
}
