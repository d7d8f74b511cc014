package amd64

import (
	"encoding/binary"

	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

var regionRules = optcheck.Rules{
	optcheck.KeepLandingPad: {
		ID:     "amd64/landing-pad",
		Reason: "this is endbr64, on which an indirect branch to the entry has to land",
		Remedy: "probe the instruction after it",
	},
	optcheck.KeepFtrace: {
		ID:     "amd64/region-ftrace-site",
		Reason: "the jump would replace an ftrace site, which ftrace rewrites",
		Remedy: "probe an instruction after the ftrace site",
	},
	optcheck.KeepJumpLabel: {
		ID:     "amd64/region-jump-label",
		Reason: "the jump would replace a jump label, which the kernel rewrites when a static key changes",
		Remedy: "probe an instruction after the jump label",
	},
	optcheck.KeepStaticCall: {
		ID:     "amd64/region-static-call",
		Reason: "the jump would replace a static call, which the kernel rewrites when its target changes",
		Remedy: "probe an instruction after the static call",
	},
	optcheck.KeepAlternative: {
		ID:     "amd64/region-alternative",
		Reason: "the jump would replace an alternative, which the kernel rewrites for the CPU that it runs on",
		Remedy: "probe an instruction after the alternative",
	},
	optcheck.KeepBug: {
		ID:     "amd64/region-bug",
		Reason: "the jump would replace the ud2 of a BUG or WARN, which the kernel finds by its address",
	},
	optcheck.KeepException: {
		ID:     "amd64/region-exception-entry",
		Reason: "the jump would replace an instruction that may fault, whose fixup the kernel finds by its address",
		Remedy: "probe an instruction after the one that may fault",
	},
	optcheck.KeepCFITrap: {
		ID:     "amd64/region-cfi-trap",
		Reason: "the jump would replace the trap of a control-flow check, which the kernel finds by its address",
		Remedy: "probe the call after the check",
	},
	optcheck.KeepData: {
		ID:     "amd64/region-data",
		Reason: "the jump would replace data in the text",
	},
	optcheck.KeepProbe: {
		ID:     "amd64/region-other-probe",
		Reason: "the jump would replace an instruction that has a probe of its own",
		Remedy: "remove the other probe, or let this one stay a breakpoint",
	},

	optcheck.LandedBranch: {
		ID:     "amd64/region-jump-target",
		Reason: "a branch goes to an instruction after the first one that the jump would replace",
		Remedy: "probe the target of the branch",
	},
	optcheck.LandedSwitch: {
		ID:     "amd64/region-switch-target",
		Reason: "a jump table leads to an instruction after the first one that the jump would replace",
		Remedy: "probe the target of the jump table",
	},
	optcheck.LandedReturn: {
		ID:     "amd64/region-return-address",
		Reason: "a call returns to an instruction after the first one that the jump would replace",
		Remedy: "probe an instruction after the call",
	},
	optcheck.LandedEntry: {
		ID:     "amd64/region-entry-point",
		Reason: "the program's entry point is after the first instruction that the jump would replace",
		Remedy: "probe the entry point",
	},
	optcheck.LandedSymbol: {
		ID:     "amd64/region-symbol",
		Reason: "a symbol names an instruction after the first one that the jump would replace",
		Remedy: "probe the address of the symbol",
	},
	optcheck.LandedPointer: {
		ID:     "amd64/region-code-pointer",
		Reason: "a pointer in data holds the address of an instruction after the first one that the jump would replace",
		Remedy: "probe the address that the pointer holds",
	},
	optcheck.LandedTaken: {
		ID:     "amd64/region-address-taken",
		Reason: "an instruction takes the address of one after the first one that the jump would replace",
		Remedy: "probe the instruction whose address is taken",
	},
	optcheck.LandedExFixup: {
		ID:     "amd64/region-exception-fixup",
		Reason: "the kernel goes on after the first instruction that the jump would replace when another one faults",
		Remedy: "probe the instruction where the kernel goes on",
	},
	optcheck.LandedUnwind: {
		ID:     "amd64/region-unwind-landing-pad",
		Reason: "an exception is caught after the first instruction that the jump would replace",
		Remedy: "probe the landing pad",
	},
	optcheck.LandedJumpLabel: {
		ID:     "amd64/region-jump-label-target",
		Reason: "a jump label may become a jump to an instruction after the first one that the jump would replace",
		Remedy: "probe the target of the jump label",
	},
	optcheck.LandedIndirect: {
		ID:     "amd64/region-landing-pad",
		Reason: "an endbr64 after the first instruction that the jump would replace marks a target of indirect branches",
		Remedy: "probe the instruction after the endbr64",
	},

	optcheck.UnreadTables: {
		ID:     "amd64/region-unread-tables",
		Reason: "tables of the file that tell where execution may land are damaged, so that it might land after the first instruction that the jump would replace",
	},
	optcheck.UnresolvedJump: {
		ID:     "amd64/region-indirect-jump",
		Reason: "it is not known where an indirect jump of the function goes, which might be after the first instruction that the jump would replace",
	},
	optcheck.Undecodable: {
		ID:     "amd64/region-undecodable",
		Reason: "bytes of the function are no instruction in 64-bit mode, so that it is not known what is executed and what lands where",
	},
	optcheck.BeyondFunction: {
		ID:     "amd64/region-beyond-function",
		Reason: "fewer than the 5 bytes of the jump remain before the end of the function",
		Remedy: "probe an earlier instruction",
	},
}

// RegionRules returns the rules of amd64, by reason. There is none for local
// entry points, which only ppc64 has.
func (ISA) RegionRules() *optcheck.Rules { return &regionRules }

// ByteOrder returns little endian.
func (ISA) ByteOrder() binary.ByteOrder { return binary.LittleEndian }

// Immovable returns the rule that keeps inst from being moved into a detour
// buffer in reach of the original; nil where it can be. Plan says the same of
// inst alone in form relocate.Region.
func (ISA) Immovable(inst *decode.Inst) *classify.Rule {
	if inst.Len == 0 || inst.Has(decode.Invalid) {
		return &isaRules[isaInvalid]
	}
	if target, direct := inst.BranchTarget(); direct && target != inst.Addr && target-inst.Addr < uint64(inst.Len) {
		return &ruleMoveInto
	}
	return immovable(inst)
}

// Operations whose immediate operand may be the address of code: it is moved,
// pushed, added to or compared with.
var addressOpcodes = []opcodeOf{
	{MapOneByte, 0xc7, 0}, {MapOneByte, 0x68, -1}, // mov, push
	{MapOneByte, 0x05, -1}, {MapOneByte, 0x81, 0}, // add
	{MapOneByte, 0x3d, -1}, {MapOneByte, 0x81, 7}, // cmp
}

// FormsAddress returns the immediate operand of 32 or 64 bits of an instruction
// that moves, pushes, adds or compares it, and the displacement of a lea,
// whatever the value. Operands of 64 bits are sign-extended.
func (ISA) FormsAddress(inst *decode.Inst) (addr uint64, ok bool) {
	f := &inst.Fields
	switch {
	case f.ImmLen == 8 && OpOf(inst) == OpMoveImmediate:
		return immediate(inst), true
	case f.ImmLen == 4 && inst.PCRel.Kind != decode.PCRelBranch && (OpOf(inst) == OpMoveImmediate || matchesAny(addressOpcodes, inst)):
		return immediate(inst), true
	case f.DispLen == 4 && inst.PCRel.Kind == decode.PCRelNone && OpOf(inst) == OpLea:
		return uint64(int64(displacement(inst))), true
	}
	return 0, false
}

// immediate returns the immediate operand as the instruction uses it: a byte is
// extended with its sign, and 4 bytes are where the operation has 64 bits or is
// a push.
func immediate(inst *decode.Inst) uint64 {
	d, raw := DetailOf(inst), inst.Raw[inst.Fields.Imm&15:]
	switch inst.Fields.ImmLen {
	case 1:
		return uint64(int8(raw[0]))
	case 2:
		return uint64(binary.LittleEndian.Uint16(raw))
	case 4:
		imm := binary.LittleEndian.Uint32(raw)
		if d.W() == 0 && d.Opcode() != 0x68 {
			return uint64(imm)
		}
		return uint64(int32(imm))
	case 8:
		return binary.LittleEndian.Uint64(inst.Raw[inst.Fields.Imm&7:])
	}
	return 0
}

// TablesInText reports whether compilers put jump tables into text:
// on amd64 they are in .rodata.
func (ISA) TablesInText() bool { return false }
