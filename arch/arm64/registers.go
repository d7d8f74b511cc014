package arm64

import (
	"fmt"

	"xol/decode"
	"xol/machine"
)

// Indices of registers in Registers. The general ones have their hardware
// numbers; X0 + 30 is the link register.
const (
	X0    = 0
	SP    = 31
	PC    = 32
	NZCV  = 33
	FPCR  = 34
	FPSR  = 35
	TPIDR = 36
	V0    = 37 // to V0 + 31
)

// conditionFlags are N, Z, C and V.
const conditionFlags = 0xf << 28

// Registers returns the register file that user code sees.
func Registers() *machine.File {
	var regs []machine.Register
	for i := range 31 {
		regs = append(regs, machine.Register{Name: fmt.Sprintf("x%d", i), Size: 8})
	}
	regs = append(regs,
		machine.Register{Name: "sp", Kind: machine.StackPointer, Size: 8},
		machine.Register{Name: "pc", Kind: machine.PC, Size: 8},
		machine.Register{Name: "nzcv", Kind: machine.Flags, Size: 8, Free: conditionFlags},
		machine.Register{Name: "fpcr", Kind: machine.Control, Size: 8},
		machine.Register{Name: "fpsr", Kind: machine.Control, Size: 8},
		machine.Register{Name: "tpidr_el0", Kind: machine.Control, Size: 8},
	)
	for i := range 32 {
		regs = append(regs, machine.Register{Name: fmt.Sprintf("v%d", i), Kind: machine.Vector, Size: 16})
	}
	return machine.NewFile(regs)
}

// Numbers of general registers with a role [AAPCS64, 6.1.1].
const (
	ip0          = 16
	ip1          = 17
	linkRegister = 30
	zeroOrSP     = 31
)

// Fields of an instruction that hold numbers of registers. The first is also
// called Rt; fieldRa also Rt2; fieldRm also Rs.
func fieldRd(inst *decode.Inst) uint32 { return WordOf(inst) & 31 }
func fieldRn(inst *decode.Inst) uint32 { return WordOf(inst) >> 5 & 31 }
func fieldRa(inst *decode.Inst) uint32 { return WordOf(inst) >> 10 & 31 }
func fieldRm(inst *decode.Inst) uint32 { return WordOf(inst) >> 16 & 31 }

// impliedRegisters are those that instructions use without a field: x15, x16
// and x17 by hints that sign and by chkfeat.
const impliedRegisters = 1<<15 | 1<<ip0 | 1<<ip1

// operandsOf returns a set of general registers that holds all that inst may
// read or write, by number.
func operandsOf(inst *decode.Inst) uint32 {
	fields := pairAt(fieldRd(inst)) | 1<<fieldRn(inst) | 1<<fieldRa(inst) | pairAt(fieldRm(inst))
	return fields | resultsOf(inst)
}

// resultsOf returns a set of general registers that holds all that inst may
// write, by number: the top-level groups of encodings tell which fields count
// [Arm ARM, C4.1].
func resultsOf(inst *decode.Inst) uint32 {
	w := WordOf(inst)
	switch {
	case inst.Flow == decode.FlowSyscall:
		return 1<<18 - 1 // those that a call may change
	case inst.Flow == decode.FlowJumpIf:
		return 0
	case OpOf(inst) == OpHint, OpOf(inst) == OpLandingPad, isSign171615(w):
		return impliedRegisters
	case OpOf(inst) == OpSystemRegister:
		return pairAt(fieldRd(inst)) // mrrs
	case isLoadStore(w) && inst.PCRel.Kind == decode.PCRelNone:
		return resultsOfLoadStore(inst)
	}
	return 1 << fieldRd(inst)
}

func pairAt(r uint32) uint32 { return 3 << r }

// isSign171615 recognises pacia171615 and its kin.
func isSign171615(w uint32) bool { return w&0xffff03ff == 0xdac103fe }

func isLoadStore(w uint32) bool { return w&0x0a000000 == 0x08000000 }

// resultsOfLoadStore leaves out the fields that hold immediates.
func resultsOfLoadStore(inst *decode.Inst) uint32 {
	const (
		unsignedOffset = 0x39000000
		unscaledOffset = 0x38000000 // and those with writeback
		block          = 0xf8208000 // ld64b and its kin, among the swaps
	)
	w := WordOf(inst)
	address, data := uint32(1)<<fieldRn(inst), uint32(1)<<fieldRd(inst)
	switch {
	case w&0x3b000000 == unsignedOffset:
		return data
	case w&0x3b200000 == unscaledOffset:
		return data | address
	case w&0xffe08c00 == block:
		return 0xff<<fieldRd(inst) | pairAt(fieldRm(inst))
	}
	return pairAt(fieldRd(inst)) | address | 1<<fieldRa(inst) | pairAt(fieldRm(inst))
}
