package amd64

import (
	"math"

	"xol/patch"
)

// breakpoint is int3.
const breakpoint = 0xcc

// Breakpoint returns int3, which may take the place of any first byte while
// other CPUs execute: they see the one or the other [Linux relies on it,
// arch/x86/kernel/alternative.c, text_poke_bp_batch].
func (ISA) Breakpoint(bool) []byte { return []byte{breakpoint} }

// PlanPatch returns how an operation is done; see patch.Patcher. The jump is
// longer than what CPUs are sure to read at once, so that a breakpoint stands
// while its tail is written.
func (a ISA) PlanPatch(op patch.Operation, s *patch.Site) (*patch.Plan, error) {
	return patch.Bytewise(a, op, s)
}

// Cave returns where in padding a jump may stand, and a jump of two bytes to it; see
// arch.Prober.
func (a ISA) Cave(padding []byte, end, at uint64) (cave uint64, jump []byte, ok bool) {
	const size = 2 // of a short jump
	for start := end - uint64(len(padding)); len(padding) > 0; {
		if far := int64(start - at - size); far >= math.MinInt8 && len(padding) >= jumpNear {
			cave, jump, ok = start, []byte{jumpAlways, byte(far)}, true
		}
		n, nop := a.nopAt(padding)
		if !nop {
			return 0, nil, false
		}
		padding, start = padding[n:], start+uint64(n)
	}
	return cave, jump, ok
}

// Traps returns int3 and the opcodes of one byte that are undefined in 64-bit mode
// [Intel SDM, volume 2, A.3, the entries marked i64]. Those that have become prefixes
// are left out: 0x62, 0xc4, 0xc5, and 0xd5 of APX.
func (ISA) Traps() []byte {
	return []byte{
		breakpoint,
		0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, // push and pop of segments, decimal arithmetic
		0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd6, 0xea, // pusha, popa, an alias of 0x80, far call, into, aam, salc, far jump
	}
}
