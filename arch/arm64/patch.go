package arm64

import (
	"encoding/binary"

	"xol/patch"
)

// The immediates of Linux's breakpoints [arch/arm64/include/asm/brk-imm.h].
const (
	brkKprobe = 4
	brkUprobe = 5
)

// Breakpoint returns the brk of a kprobe or of a uprobe.
func (ISA) Breakpoint(kernel bool) []byte {
	if kernel {
		return put(nil, insnBRK|brkKprobe<<5)
	}
	return put(nil, insnBRK|brkUprobe<<5)
}

// PlanPatch returns how an operation is done; see patch.Patcher.
func (a ISA) PlanPatch(op patch.Operation, s *patch.Site) (*patch.Plan, error) {
	return patch.Wordwise(a, op, s, func(old, new []byte) bool { return isConcurrent(old) && isConcurrent(new) })
}

// concurrent are the instructions that CPUs may execute while one of them
// becomes another: each does the one or the other [Arm ARM, B2.2.5].
var concurrent = [...]struct{ mask, value uint32 }{
	{0xfc000000, insnB},
	{0xfc000000, insnBL},
	{0xffe0001f, insnBRK},
	{0xffe0001f, 0xd4000001}, // svc
	{0xffe0001f, 0xd4000002}, // hvc
	{0xffe0001f, 0xd4000003}, // smc
	{0xfffff0ff, 0xd50330df}, // isb
	{0xffffffff, 0xd503201f}, // nop
}

func isConcurrent(text []byte) bool {
	w := binary.LittleEndian.Uint32(text)
	for _, c := range concurrent {
		if w&c.mask == c.value {
			return true
		}
	}
	return false
}

// Cave returns none: every instruction has room for a jump.
func (ISA) Cave([]byte, uint64, uint64) (uint64, []byte, bool) { return 0, nil, false }

// Traps returns none: a jump is a word and takes the place of one, and no other
// instruction starts inside.
func (ISA) Traps() []byte { return nil }
