package ppc64

import (
	"encoding/binary"

	"xol/patch"
)

// Breakpoint returns trap.
func (a ISA) Breakpoint(bool) []byte { return emitter{a.LittleEndian}.put(nil, insnTrap) }

// PlanPatch returns how an operation is done; see patch.Patcher. Of a prefixed
// instruction the prefix is replaced. Since a trap is not of the patch class,
// the Power ISA leaves it open what CPUs do that execute it while it is written
// or replaced; processors are known to execute the old or the new word, which
// Linux relies on.
func (a ISA) PlanPatch(op patch.Operation, s *patch.Site) (*patch.Plan, error) {
	return patch.Wordwise(a, op, s, func(old, new []byte) bool { return a.isPatchClass(old) && a.isPatchClass(new) })
}

// isPatchClass recognises the instructions that CPUs may execute while one of
// them becomes another: b in its four forms and the preferred nop [Power ISA
// 3.1, Book II, 1.8.1].
func (a ISA) isPatchClass(text []byte) bool {
	order := binary.ByteOrder(binary.BigEndian)
	if a.LittleEndian {
		order = binary.LittleEndian
	}
	const opcode = 63 << 26
	w := order.Uint32(text)
	return w&opcode == insnB || w == insnNop
}

// Cave returns none: every instruction has room for a jump.
func (ISA) Cave([]byte, uint64, uint64) (uint64, []byte, bool) { return 0, nil, false }

// Traps returns none: a jump is a word and takes the place of one, or of a prefix, and no other
// instruction starts inside.
func (ISA) Traps() []byte { return nil }
