package ppc64

import (
	"strings"

	"xol/decode"
	"xol/optcheck/flow"
)

// What a call does not keep [OpenPOWER ELFv2 ABI, 2.2.3.4]. The TOC pointer is
// not among the registers, since the caller restores it.
const (
	callRegisters flow.Set = 0x1ff9 | 1<<LR | 1<<CTR
	callFields    uint8    = 0xff &^ (1<<2 | 1<<3 | 1<<4) // of the condition register
)

// Opcodes that the search for targets reads: primary ones, and extended ones
// of 31.
const (
	opTWI    = 3
	opCMPLI  = 10
	opCMPI   = 11
	opADDI   = 14
	opADDIS  = 15
	opRLWINM = 21
	opORI    = 24
	opORIS   = 25
	opANDI   = 28
	opRotate = 30 // rldicl, rldicr, rldic and their kin
	opX      = 31
	opLD     = 58
	opSTD    = 62

	xoCMP   = 0
	xoCMPL  = 32
	xoISEL  = 15 // the lower five bits
	xoSUBF  = 40
	xoADD   = 266
	xoOR    = 444
	xoEXTSW = 986
)

// Fields of an instruction word.
func fieldRA(word uint32) uint8   { return uint8(word >> 16 & 31) }
func fieldRB(word uint32) uint8   { return uint8(word >> 11 & 31) }
func fieldBF(word uint32) uint8   { return uint8(word >> 23 & 7) }
func extendedOp(w uint32) uint32  { return w >> 1 & 1023 }
func signedField(w uint32) uint64 { return uint64(int64(int16(w))) }

// formatOf returns how inst is written. In assembler syntax the result comes
// first, but for stores.
func formatOf(inst *decode.Inst) *format { return &formats[lookup(inst.Detail)] }

// isStore reports whether the first operand is what is stored.
func (f *format) isStore() bool {
	return strings.HasPrefix(f.name, "st") || strings.HasPrefix(f.name, "pst")
}

// updates reports whether a load or store also writes its base register.
func (f *format) updates() bool {
	return (f.name[0] == 'l' || f.isStore()) && strings.HasSuffix(strings.TrimSuffix(f.name, "x"), "u")
}

// mayName reports whether one of the fields of inst that results go by is r.
func mayName(inst *decode.Inst, r uint8) bool {
	word := WordOf(inst)
	switch word >> 26 {
	case 4, 46, 56, opX: // other fields and runs of registers
		return true
	}
	return targetOf(inst) == r || fieldRA(word) == r
}

// changedBy returns the registers, fields of the condition register and memory
// that inst may change, be it by what a called function does.
func changedBy(inst *decode.Inst) (set flow.Set) {
	set = flow.Set(writesFields(inst)) * flow.Flags
	switch OpOf(inst) {
	case OpBranch, OpBranchLR, OpBranchCTR, OpBranchTAR, OpBranchCond:
		set |= branchWrites(inst)
		if inst.Has(decode.Link) && !onlyGetsPC(inst) {
			set |= flow.MemoryWritten
		}
	case OpSyscall:
		set |= callRegisters | flow.MemoryWritten
	case OpMoveSPR:
		set |= moveWrites(WordOf(inst))
	default:
		if !keepsAll(WordOf(inst)) {
			set |= generalWrites(inst)
		}
		if formatOf(inst).isStore() {
			set |= flow.MemoryWritten
		}
	}
	return set
}

// keepsAll tells the no-ops that name a register: ori rx,rx,0 and or rx,rx,rx.
// Some of them mean something to the CPU.
func keepsAll(word uint32) bool {
	const same = 0x3ff_ffff
	rs := word >> 21 & 31
	return word>>26 == opORI && word&same == rs<<21|rs<<16 ||
		word>>26 == opX && word&same == rs<<21|rs<<16|rs<<11|xoOR<<1
}

// branchWrites returns the registers that a branch changes.
func branchWrites(inst *decode.Inst) (set flow.Set) {
	if OpOf(inst) != OpBranch && boField(WordOf(inst))&boIgnoreCTR == 0 {
		set = 1 << CTR
	}
	switch {
	case onlyGetsPC(inst):
		set |= 1 << LR
	case inst.Has(decode.Link):
		set |= callRegisters
	}
	return set
}

// moveWrites returns the register that mfspr or mtspr changes.
func moveWrites(word uint32) flow.Set {
	if word&moveTo == 0 {
		return 1 << (word >> 21 & 31)
	}
	switch sprOf(word) {
	case sprLR:
		return 1 << LR
	case sprCTR:
		return 1 << CTR
	case sprTAR:
		return 1 << TAR
	}
	return 0
}

// generalWrites returns the general registers that an instruction writes that
// is no branch.
func generalWrites(inst *decode.Inst) (set flow.Set) {
	f := formatOf(inst)
	if a := &args[f.args[0]]; a.kind == argGpr && !f.isStore() {
		v, _ := a.raw(inst.Detail)
		set = 1 << v
		switch f.name {
		case "lq", "plq", "lqarx":
			set |= set << 1
		case "lmw", "lswi", "lswx":
			set = 0xffffffff << v
		}
	}
	if f.updates() {
		set |= 1 << fieldRA(WordOf(inst))
	}
	return set & 0xffffffff
}

// writesFields returns the set of fields of the condition register that inst
// may change.
func writesFields(inst *decode.Inst) uint8 {
	switch OpOf(inst) {
	case OpBranch, OpBranchLR, OpBranchCTR, OpBranchTAR, OpBranchCond, OpSyscall:
		if inst.Flow == decode.FlowSyscall || inst.Has(decode.Link) && !onlyGetsPC(inst) {
			return callFields
		}
		return 0
	}
	f := formatOf(inst)
	first := &args[f.args[0]]
	v, _ := first.raw(inst.Detail)
	switch {
	case first.kind == argCrf:
		return 1 << v
	case first.kind == argCrb:
		return 1 << (v >> 2)
	case strings.HasSuffix(f.name, "."):
		return 1<<0 | 1<<1 | 1<<6 // of integer, floating-point and vector instructions
	case strings.HasPrefix(f.name, "mtcr"), strings.HasPrefix(f.name, "mtocr"):
		return 0xff
	}
	return 0
}
