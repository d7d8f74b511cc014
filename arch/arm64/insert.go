package arm64

import (
	"encoding/binary"

	"xol/decode"
	"xol/detour"
	"xol/machine"
	"xol/relocate"
)

// InsertSize returns the size of an insertion; see detour.Inserter. There is none that
// takes the time.
func (a ISA) InsertSize(in *detour.Insertion) (least, most int, err error) {
	code, err := a.AppendInsertion(nil, 0, in)
	return len(code), len(code), err
}

// InsertStack returns the stack that an insertion uses; see detour.Inserter.
func (ISA) InsertStack(in *detour.Insertion) (least, most int) {
	if in.Action != detour.Count {
		return 0, 0
	}
	return countFrame, countFrame
}

const countFrame = 32 // bytes

// AppendInsertion appends the increment, which changes no flags; see detour.Inserter.
// The stack pointer must be a multiple of 16.
func (ISA) AppendInsertion(code []byte, at uint64, in *detour.Insertion) ([]byte, error) {
	switch {
	case in.Action == detour.StartTimer, in.Action == detour.StopTimer, in.Action == detour.StopTimerAtJump:
		return code, detour.ErrNoTimer
	case in.Action != detour.Count:
		return code, detour.ErrInsertion
	case at%wordSize != 0:
		return code, relocate.ErrMisaligned
	}
	code = put(code, 0xa9be07e0) // stp x0, x1, [sp, #-32]!
	code = put(code, 0xf9000be2) // str x2, [sp, #16]
	code = number(code, 0, in.Counter)
	for _, word := range [...]uint32{
		0xc85f7c01, // ldxr x1, [x0]
		0x91000421, // add x1, x1, #1
		insnCount,
		0x35ffffa2, // cbnz w2, .-12
		0xf9400be2, // ldr x2, [sp, #16]
		0xa8c207e0, // ldp x0, x1, [sp], #32
	} {
		code = put(code, word)
	}
	return code, nil
}

const insnCount = 0xc8027c01 // stxr w2, x1, [x0]

// Committed reports whether an insertion has counted; see detour.Inserter. Right after
// the store, w2 tells.
func (ISA) Committed(code []byte, r machine.Registers) bool {
	for ; len(code) >= wordSize; code = code[wordSize:] {
		if binary.LittleEndian.Uint32(code) == insnCount {
			return len(code) > wordSize || uint32(r.Reg(X0+2)) == 0
		}
	}
	return false
}

// DeadFlags answers 0: the increment changes no flags.
func (ISA) DeadFlags([]decode.Inst, int, detour.LivenessOptions) uint64 { return 0 }

// SavesFlags answers false: DeadFlags does not need it.
func (ISA) SavesFlags([]decode.Inst) bool { return false }
