package ppc64

import (
	"encoding/binary"

	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

// A jump is one word, so a region is one instruction: that of the probe. Only
// a prefixed instruction has a place inside where execution could land: its
// suffix.

// regionRules have no rule for a return address, since the prefix is no call;
// for landing pads, kCFI traps and short functions, which Power does not have
// or which one word cannot overrun; nor for what is not known of jumps, which
// go to instructions and not inside of one.
var regionRules = optcheck.Rules{
	optcheck.KeepFtrace: {
		ID:     "ppc64/region-ftrace-site",
		Reason: "ftrace patches this instruction",
		Remedy: "probe the instruction after the site",
	},
	optcheck.KeepJumpLabel: {
		ID:     "ppc64/region-jump-label",
		Reason: "the kernel patches this instruction when a static key changes",
		Remedy: "probe the instruction before or after it",
	},
	optcheck.KeepStaticCall: {
		ID:     "ppc64/region-static-call",
		Reason: "the kernel patches this instruction when a static call changes its target",
		Remedy: "probe the instruction before or after it",
	},
	optcheck.KeepAlternative: {
		ID:     "ppc64/region-alternative",
		Reason: "the kernel may replace this instruction to suit the CPU or its firmware (feature fixups)",
		Remedy: "probe an instruction before or after the replaced range",
	},
	optcheck.KeepBug: {
		ID:     "ppc64/region-bug",
		Reason: "this is the trap of a BUG or WARN, which the kernel finds by its address",
		Remedy: "probe the instruction before it",
	},
	optcheck.KeepException: {
		ID:     "ppc64/region-exception-entry",
		Reason: "the kernel handles a fault of this instruction by its address, which would be another in the detour buffer",
		Remedy: "leave the breakpoint, whose fault is reported at the original address",
	},
	optcheck.KeepData: {
		ID:     "ppc64/region-data",
		Reason: "the jump would replace data that stands in the text",
		Remedy: "probe an instruction",
	},
	optcheck.KeepProbe: {
		ID:     "ppc64/region-other-probe",
		Reason: "another probe is armed inside the instruction that the jump would replace",
		Remedy: "remove the other probe",
	},
	optcheck.LandedBranch: {
		ID:     "ppc64/region-jump-target",
		Reason: "a branch goes to the second word of this prefixed instruction",
	},
	optcheck.LandedSwitch: {
		ID:     "ppc64/region-switch-target",
		Reason: "a jump table holds the address of the second word of this prefixed instruction",
	},
	optcheck.LandedEntry: {
		ID:     "ppc64/region-entry-point",
		Reason: "the program starts at the second word of this prefixed instruction",
	},
	optcheck.LandedSymbol: {
		ID:     "ppc64/region-symbol",
		Reason: "a symbol names the second word of this prefixed instruction",
	},
	optcheck.LandedLocal: {
		ID:     "ppc64/region-local-entry",
		Reason: "the function's local entry point is the second word of this prefixed instruction",
	},
	optcheck.LandedPointer: {
		ID:     "ppc64/region-code-pointer",
		Reason: "a data word holds the address of the second word of this prefixed instruction",
	},
	optcheck.LandedTaken: {
		ID:     "ppc64/region-address-taken",
		Reason: "an instruction forms the address of the second word of this prefixed instruction",
	},
	optcheck.LandedExFixup: {
		ID:     "ppc64/region-exception-fixup",
		Reason: "a fault that the kernel handles continues at the second word of this prefixed instruction",
	},
	optcheck.LandedUnwind: {
		ID:     "ppc64/region-unwind-landing-pad",
		Reason: "a C++ exception handler starts at the second word of this prefixed instruction",
	},
	optcheck.LandedJumpLabel: {
		ID:     "ppc64/region-jump-label-target",
		Reason: "the kernel may patch in a branch to the second word of this prefixed instruction",
	},
	optcheck.Undecodable: {
		ID:     "ppc64/region-undecodable",
		Reason: "the bytes that the jump would replace are no instruction of the Power ISA 3.1",
		Remedy: "probe an instruction; the bytes may be data in the text",
	},
}

// ByteOrder returns the order of bytes in data, which is that of instructions.
func (a ISA) ByteOrder() binary.ByteOrder {
	if a.LittleEndian {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

// RegionRules returns the rules on what a jump may replace, by reason.
func (ISA) RegionRules() *optcheck.Rules { return &regionRules }

// Immovable returns the rule that keeps inst from being moved into a detour
// buffer in reach of the original, by itself; nil where it can be. A branch
// that needs TAR for a far form is no obstacle: near forms do without.
func (ISA) Immovable(inst *decode.Inst) *classify.Rule {
	switch {
	case inst.Has(decode.Invalid):
		return &regionRules[optcheck.Undecodable]
	case inst.Props&(decode.LoadExclusive|decode.StoreExclusive) != 0:
		return &ruleMoveReservation
	case OpOf(inst) == OpTrap:
		return &ruleMoveTrap
	}
	return nil
}

// FormsAddress returns nothing: code addresses come from the table of contents
// or from the instruction's own address.
func (ISA) FormsAddress(*decode.Inst) (addr uint64, ok bool) { return 0, false }

// TablesInText reports whether compilers put jump tables into text:
// GCC does for ELFv1 (rs6000.h, JUMP_TABLES_IN_TEXT_SECTION).
func (ISA) TablesInText() bool { return true }
