package arm64

import (
	"encoding/binary"

	"xol/classify"
	"xol/decode"
	"xol/optcheck"
	"xol/relocate"
)

// regionRules are few, since the jump is one word and so is every instruction:
// a region is one instruction, and there is no inside to land in.
var regionRules = optcheck.Rules{
	optcheck.KeepLandingPad: {
		ID:     "arm64/landing-pad",
		Reason: "an indirect branch to this bti or paciasp raises an exception in a guarded page if a jump stands there",
		Remedy: "probe the instruction after it",
	},
	optcheck.KeepFtrace: {
		ID:     "arm64/region-ftrace-site",
		Reason: "this is an ftrace site, which the kernel rewrites while it runs and would overwrite the jump",
		Remedy: "probe the instruction after the site",
	},
	optcheck.KeepJumpLabel: {
		ID:     "arm64/region-jump-label",
		Reason: "this is a jump-label site, which the kernel rewrites while it runs and would overwrite the jump",
		Remedy: "probe the instruction after the site",
	},
	optcheck.KeepAlternative: {
		ID:     "arm64/region-alternative",
		Reason: "the kernel replaces this instruction by an alternative for the CPU that it runs on, when it boots or loads a module",
		Remedy: "probe the instruction before or after the alternative",
	},
	optcheck.KeepBug: {
		ID:     "arm64/region-bug",
		Reason: "this is the brk of a BUG or WARN, which the kernel finds by its address",
		Remedy: "probe the instruction before it",
	},
	optcheck.KeepException: {
		ID:     "arm64/region-exception-entry",
		Reason: "the kernel handles faults of this instruction by its address, which would not be that of the copy",
		Remedy: "probe the instruction before or after it",
	},
	optcheck.KeepData: {
		ID:     "arm64/region-data",
		Reason: "these bytes are data in the text: nothing executes them, and the code that reads them would read the jump",
		Remedy: "probe the code that reads them",
	},
	optcheck.KeepProbe: {
		ID:     "arm64/region-other-probe",
		Reason: "another probe is armed here",
		Remedy: "remove the other probe, or leave both as breakpoints",
	},
	optcheck.Undecodable: {
		ID:     "arm64/region-undecodable",
		Reason: "this word is no instruction of A64, so that it is not known how to run it elsewhere",
		Remedy: "probe an instruction; the word may be data in the text",
	},
}

// ByteOrder returns the order of bytes in data. The big-endian order, which
// the architecture has as well, is not supported.
func (ISA) ByteOrder() binary.ByteOrder { return binary.LittleEndian }

// RegionRules returns the rules for breakpoints that become jumps.
func (ISA) RegionRules() *optcheck.Rules { return &regionRules }

// movesInReach are the classes that Plan accepts whatever the operands: those
// that are kept, and those that keep their field where it reaches.
var movesInReach = [opCount]bool{
	OpOther: true, OpLandingPad: true, OpWait: true, OpState: true, OpStatePrivileged: true,
	OpSystemRegister: true, OpSystem: true, OpPrivileged: true, OpSVC: true, OpHVC: true, OpSMC: true,
	OpBR: true, OpRET: true, OpBRAuth: true, OpRETAuth: true, OpERET: true, OpERETAuth: true,
	OpB: true, OpBL: true, OpBCond: true, OpBCondAlways: true,
	OpCompareBranch: true, OpTestBranch: true, OpCompareRegsBranch: true,
	OpADR: true, OpADRP: true,
	OpLoadLiteral: true, OpLoadLiteralSigned: true, OpLoadLiteralSIMD: true, OpPrefetchLiteral: true,
}

// Immovable returns the rule that keeps inst, by itself, from being moved into
// a detour buffer in reach of the original, with no register known to be dead;
// nil where Plan accepts it.
func (ISA) Immovable(inst *decode.Inst) *classify.Rule {
	switch {
	case inst.Len == 0, inst.Has(decode.Invalid):
		return &regionRules[optcheck.Undecodable]
	case inst.Addr%wordSize != 0:
		return &isaRules[isaMisaligned]
	case inst.Op < uint16(opCount) && movesInReach[inst.Op]:
		return nil
	}
	return immovable(inst)
}

// immovable asks what Plan asks of one instruction.
func immovable(inst *decode.Inst) *classify.Rule {
	steps := [1]relocate.Step{{Inst: *inst}}
	p := relocate.Plan{Steps: steps[:], Options: relocate.Options{Form: relocate.Region}}
	if _, rule := torn(&p); rule != nil {
		return rule
	}
	return movedForms{}.Choose(&steps[0], &p)
}

// FormsAddress finds none: an address of code is a PC-relative operand or
// comes from memory.
func (ISA) FormsAddress(*decode.Inst) (addr uint64, ok bool) { return 0, false }

// TablesInText reports whether compilers put jump tables into text:
// on arm64 they are in .rodata.
func (ISA) TablesInText() bool { return false }
