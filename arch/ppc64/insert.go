package ppc64

import (
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
	size := int(insertFrame(in))
	return size, size
}

// insertFrame returns the size of an insertion's frame and the red zone in bytes.
func insertFrame(in *detour.Insertion) uint32 {
	return frameOf(&relocate.Options{NoRedZone: in.NoRedZone, Kernel: in.Kernel})
}

// Instructions of an insertion: stdcx. r4, 0, r3 and bne .-12.
const (
	insnCount      = 0x7c8019ad
	insnCountAgain = 0x4082fff4
)

// AppendInsertion appends the increment; see detour.Inserter. It changes two registers
// and the condition field that stdcx. sets, which are kept on the stack. LR, CTR and
// XER are not in use.
func (a ISA) AppendInsertion(code []byte, at uint64, in *detour.Insertion) ([]byte, error) {
	const (
		address = firstArg
		value   = secondArg

		insnMFOCRF = insnMFCR | 1<<20 | 0x80<<12 // field 0
		insnMTOCRF = 31<<26 | 144<<1 | 1<<20 | 0x80<<12

		savedAddress, savedValue, savedField = frameSaved, frameSecond, frameSecond + slotSize
	)
	switch {
	case in.Action == detour.StartTimer, in.Action == detour.StopTimer, in.Action == detour.StopTimerAtJump:
		return code, detour.ErrNoTimer
	case in.Action != detour.Count:
		return code, detour.ErrInsertion
	case at%wordSize != 0:
		return code, relocate.ErrMisaligned
	}
	e, size := emitter{a.LittleEndian}, insertFrame(in)
	code = e.inFrame(code, insnSTDU, stackPointer, -size&0xffff)
	code = e.inFrame(code, insnSTD, address, savedAddress)
	code = e.inFrame(code, insnSTD, value, savedValue)
	code = e.inFrame(e.put(code, insnMFOCRF|value<<21), insnSTD, value, savedField)
	code = e.constant(code, address, in.Counter)
	for _, word := range [...]uint32{
		0x7c8018a8, // ldarx r4, 0, r3
		0x38840001, // addi r4, r4, 1
		insnCount,
		insnCountAgain,
	} {
		code = e.put(code, word)
	}
	code = e.put(e.inFrame(code, insnLD, value, savedField), insnMTOCRF|value<<21)
	code = e.inFrame(code, insnLD, value, savedValue)
	code = e.inFrame(code, insnLD, address, savedAddress)
	return e.inFrame(code, insnADDI, stackPointer, size), nil
}

// Committed reports whether an insertion has counted; see detour.Inserter. Right after
// the store, the condition field tells.
func (a ISA) Committed(code []byte, r machine.Registers) bool {
	const equal = 1 << 29 // CR0.EQ
	for ; len(code) >= wordSize; code = code[wordSize:] {
		if a.word(code) == insnCount {
			return len(code) > wordSize || r.Reg(CR)&equal != 0
		}
	}
	return false
}

// DeadFlags answers 0: condition fields are kept in any case.
func (ISA) DeadFlags([]decode.Inst, int, detour.LivenessOptions) uint64 { return 0 }

// SavesFlags answers false: DeadFlags does not need it.
func (ISA) SavesFlags([]decode.Inst) bool { return false }
