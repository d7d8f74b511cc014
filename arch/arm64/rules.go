package arm64

import (
	"xol/classify"
	"xol/decode"
)

// The rules of the profile isa.
const (
	isaAccepted = iota
	isaOutside
	isaTruncated
	isaMisaligned
	isaInvalid
	isaBreakpoint
	isaExclusive
	isaMemoryCopy
	isaModifier
)

var isaRules = [...]classify.Rule{
	isaOutside: {
		ID:     "arm64/outside",
		Reason: "the address does not belong to the function",
	},
	isaTruncated: {
		ID:     "arm64/truncated",
		Reason: "the bytes end before the instruction does",
		Remedy: "give all 4 bytes of the instruction",
	},
	isaMisaligned: {
		ID:     "arm64/misaligned",
		Reason: "instructions start at multiples of 4",
		Remedy: "probe the start of the instruction",
	},
	isaInvalid: {
		ID:     "arm64/not-instruction",
		Reason: "this word is no instruction of A64",
		Remedy: "probe an instruction; the word may be data in the text",
	},
	isaBreakpoint: {
		ID:     "arm64/brk",
		Reason: "this is a breakpoint already, whose owner finds it by its address",
		Remedy: "probe the instruction before or after it",
	},
	isaExclusive: {
		ID:     "arm64/exclusive",
		Reason: "a breakpoint between a load-exclusive and its store-exclusive clears the exclusive monitor, so that the sequence is repeated forever",
		Remedy: "probe the load-exclusive or an instruction after the sequence",
	},
	isaMemoryCopy: {
		ID:     "arm64/memory-copy",
		Reason: "the three instructions of a memory copy or set must follow one another in memory",
		Remedy: "probe the instruction before or after the three",
	},
	isaModifier: {
		ID:     "arm64/pc-modifier",
		Reason: "this signs or authenticates with an instruction's address as a modifier, and would do it differently elsewhere",
		Remedy: "probe the instruction before or after it",
	},
}

// What Linux rejects, by kprobes and uprobes alike
// [arch/arm64/kernel/probes/decode-insn.c].
const (
	steppable = iota
	rejectedMSR
	rejectedException
	rejectedExceptionReturn
	rejectedAuthBranch
	rejectedDAIF
	rejectedHint
	rejectedExclusive
	rejectedMemoryCopy
	rejectedPrefetch
	rejectedLiteral

	rejectRules // further rules follow
)

// Rules of kprobes and of uprobes that the other does not have.
const (
	kprobeOutside = rejectRules + iota
	kprobeMisaligned
	kprobeExTable
	kprobeAtomic

	kprobeRuleCount
)

const (
	uprobeOutside = rejectRules + iota
	uprobeMisaligned
	uprobeInstalled

	uprobeRuleCount
)

// probeMask is a set of words that the kernel treats alike: those with
// word&mask == value.
type probeMask struct {
	mask, value uint32
	rule        uint8  // steppable where it is simulated or runs in a slot
	simulator   string // in the kernel's terms; empty: a slot
	versions    classify.Span
}

// systemMasks are for branches and system instructions, which the kernel
// takes from others by bits 26 to 28; the first that fits counts.
var systemMasks = [...]probeMask{
	{0xff000010, 0x54000000, steppable, "b_cond", until(linux6_12)},
	{0xff000000, 0x54000000, steppable, "b_cond", since(linux6_12)}, // bc.cond as well
	{0x7e000000, 0x34000000, steppable, "cbz_cbnz", everyVersion},
	{0x7e000000, 0x36000000, steppable, "tbz_tbnz", everyVersion},
	{0x7c000000, 0x14000000, steppable, "b_bl", everyVersion},
	{0xfffffc1f, 0xd61f0000, steppable, "br_blr_ret", until(linux7_3)},
	{0xfffffc1f, 0xd63f0000, steppable, "br_blr_ret", until(linux7_3)},
	{0xfffffc1f, 0xd65f0000, steppable, "br_blr_ret", until(linux7_3)},
	{0xfffffc1f, 0xd61f0000, steppable, "br_blr", since(linux7_3)},
	{0xfffffc1f, 0xd63f0000, steppable, "br_blr", since(linux7_3)},
	{0xfffffc1f, 0xd65f0000, steppable, "ret", since(linux7_3)},
	{0xfefff800, 0xd61f0800, rejectedAuthBranch, "", everyVersion}, // braa brab braaz brabz
	{0xfefff800, 0xd63f0800, rejectedAuthBranch, "", everyVersion}, // blraa blrab blraaz blrabz
	{0xfffffbff, 0xd65f0bff, rejectedAuthBranch, "", everyVersion}, // retaa retab
	{0xffffffff, 0xd69f03e0, rejectedExceptionReturn, "", everyVersion},
	{0xfffffbff, 0xd69f0bff, rejectedExceptionReturn, "", everyVersion}, // eretaa eretab
	{0xff000000, 0xd4000000, rejectedException, "", everyVersion},
	{0xfff8f01f, 0xd500401f, rejectedMSR, "", everyVersion},
	{0xfff00000, 0xd5100000, rejectedMSR, "", everyVersion},
	{0xffffffe0, 0xd53b4220, rejectedDAIF, "", everyVersion},
	{0xffffffff, 0xd503201f, steppable, "", until(linux7_3)}, // nop
	{0xffffffff, 0xd503201f, steppable, "nop", since(linux7_3)},
	{0xffffffff, 0xd50320ff, steppable, "", everyVersion}, // xpaclri
	{0xffffffbf, 0xd503211f, steppable, "", everyVersion}, // pacia1716 pacib1716
	{0xffffff9f, 0xd503231f, steppable, "", everyVersion}, // paciaz paciasp pacibz pacibsp
	{0xffffff3f, 0xd503241f, steppable, "", everyVersion}, // bti
	{0xfffff01f, 0xd503201f, rejectedHint, "", everyVersion},
}

// otherMasks are for all other instructions.
var otherMasks = [...]probeMask{
	{0x1f000000, 0x10000000, steppable, "adr_adrp", everyVersion},
	{0xbf000000, 0x18000000, rejectedLiteral, "", everyVersion},
	{0xff000000, 0x98000000, rejectedLiteral, "", everyVersion},
	{0xff000000, 0xd8000000, rejectedPrefetch, "", everyVersion},
	{0x3f800000, 0x08000000, rejectedExclusive, "", everyVersion}, // casp as well
	{0x3b200c00, 0x19000400, rejectedMemoryCopy, "", since(linux6_12)},
}

// everyVersion is for what never changed.
var everyVersion classify.Span

// wordRules are the masks of one version.
type wordRules struct{ system, other []probeMask }

func newWordRules(v classify.Version) wordRules {
	return wordRules{masksOf(v, systemMasks[:]), masksOf(v, otherMasks[:])}
}

// masksOf returns those of the masks that hold in version v.
func masksOf(v classify.Version, all []probeMask) (masks []probeMask) {
	for _, m := range all {
		if m.versions.Holds(v) {
			masks = append(masks, m)
		}
	}
	return masks
}

// judge returns the rule by which the kernel rejects the word w, or steppable
// and what simulates it, empty where it runs in a slot.
func (r *wordRules) judge(w uint32) (rule uint8, simulator string) {
	masks := r.other
	if w>>26&7 == 5 {
		masks = r.system
	}
	for i := range masks {
		if m := &masks[i]; w&m.mask == m.value {
			return m.rule, m.simulator
		}
	}
	return steppable, ""
}

// literalSimulator returns what simulates a literal load for kprobes.
func literalSimulator(w uint32) string {
	if w>>31 != 0 {
		return "ldrsw_literal"
	}
	return "ldr_literal"
}

// answer fills in v by what wordRules found.
func answer(v *classify.Verdict, rules []classify.Rule, rule uint8, simulator string, inst *decode.Inst) {
	switch {
	case rule != steppable:
		v.Rule = &rules[rule]
	case simulator != "":
		v.Exec, v.Emulator = classify.ExecEmulate, simulator
	default:
		v.Exec = classify.ExecSlot
		if op := OpOf(inst); op != OpOther {
			v.Hazard = slotHazard(op)
			if v.Hazard == nil && inst.PCRel.Kind == decode.PCRelBranch {
				v.Hazard = &hazards[hazardLeavesSlot]
			}
		}
	}
}

// slotHazard returns what goes wrong when an instruction runs in a slot with a
// breakpoint after it; nil where nothing does.
func slotHazard(op Op) *classify.Hazard {
	switch op {
	case OpLoadLiteralSIMD:
		return &hazards[hazardLiteral]
	case OpSignPC, OpSignPCLandingPad, OpAuthPC, OpReturnAuthPC:
		return &hazards[hazardModifier]
	case OpCompareRegsBranch, OpRETAuth, OpERET, OpTriggerExit:
		return &hazards[hazardLeavesSlot]
	case OpLoadExclusive, OpStoreExclusive:
		return &hazards[hazardExclusive]
	case OpMOPSPrologue, OpMOPSMain, OpMOPSEpilogue:
		return &hazards[hazardMemoryCopy]
	}
	return nil
}

var kprobeRules = [kprobeRuleCount]classify.Rule{
	rejectedMSR: {
		ID:     "arm64/kprobe-msr",
		Errno:  classify.EINVAL,
		Reason: "writing PSTATE or a system register could switch off the handling of breakpoints",
		Remedy: "probe the instruction before or after it",
	},
	rejectedException: {
		ID:     "arm64/kprobe-exception",
		Errno:  classify.EINVAL,
		Reason: "this raises an exception on purpose (svc, hvc, smc, brk, hlt, dcps), whose handler looks at the address",
		Remedy: "probe the instruction before it",
	},
	rejectedExceptionReturn: {
		ID:     "arm64/kprobe-exception-return",
		Errno:  classify.EINVAL,
		Reason: "the kernel cannot simulate the return from an exception",
		Remedy: "probe an instruction before it",
	},
	rejectedAuthBranch: {
		ID:     "arm64/kprobe-authenticating-branch",
		Errno:  classify.EINVAL,
		Reason: "the kernel cannot simulate a branch that authenticates its target (braa, blraa, retaa and their kin)",
		Remedy: "probe the instruction before it",
	},
	rejectedDAIF: {
		ID:     "arm64/kprobe-mrs-daif",
		Errno:  classify.EINVAL,
		Reason: "out of line, interrupts are masked, so that reading DAIF gives another value",
		Remedy: "probe the instruction before or after it",
	},
	rejectedHint: {
		ID:     "arm64/kprobe-hint",
		Errno:  classify.EINVAL,
		Reason: "the kernel steps only the hints that it knows to be harmless: nop, bti, xpaclri and those that sign addresses",
		Remedy: "probe the instruction before or after it",
	},
	rejectedExclusive: {
		ID:     "arm64/kprobe-exclusive",
		Errno:  classify.EINVAL,
		Reason: "an exclusive load or store cannot work when a breakpoint stands between the two; casp counts as one, too",
		Remedy: "probe an instruction before or after the sequence",
	},
	rejectedMemoryCopy: {
		ID:     "arm64/kprobe-memory-copy",
		Errno:  classify.EINVAL,
		Reason: "the three instructions of a memory copy or set must follow one another in memory",
		Remedy: "probe the instruction before or after the three",
	},
	rejectedPrefetch: {
		ID:     "arm64/kprobe-prefetch-literal",
		Errno:  classify.EINVAL,
		Reason: "the kernel does not simulate a prefetch of a literal",
		Remedy: "probe the instruction before or after it",
	},
	kprobeOutside: {
		ID:     "arm64/kprobe-outside",
		Errno:  classify.EINVAL,
		Reason: "the address does not belong to the function, or its instruction is cut off",
	},
	kprobeMisaligned: {
		ID:     "arm64/kprobe-misaligned",
		Errno:  classify.EINVAL,
		Reason: "instructions start at multiples of 4",
		Remedy: "probe the start of the instruction",
	},
	kprobeExTable: {
		ID:     "arm64/kprobe-exception-table",
		Errno:  classify.EINVAL,
		Reason: "the kernel handles faults of this instruction by its address, which would not be that of the copy",
		Remedy: "probe the instruction before or after it",
	},
	kprobeAtomic: {
		ID:     "arm64/kprobe-atomic-sequence",
		Errno:  classify.EINVAL,
		Reason: "among the 32 instructions before it, what looks like a load-exclusive has no store-exclusive after it, so the kernel takes this for a part of the sequence",
		Remedy: "probe an instruction before the sequence or further after it",
	},
}

var uprobeRules = [uprobeRuleCount]classify.Rule{
	rejectedMSR: {
		ID:     "arm64/uprobe-msr",
		Errno:  classify.EINVAL,
		Reason: "the kernel does not step a write to PSTATE or to a system register",
		Remedy: "probe the instruction before or after it",
	},
	rejectedException: {
		ID:     "arm64/uprobe-exception",
		Errno:  classify.EINVAL,
		Reason: "this raises an exception on purpose (svc, brk, hlt and their kin), which uprobes cannot step",
		Remedy: "probe the instruction before it, or trace the system call",
	},
	rejectedExceptionReturn: {
		ID:     "arm64/uprobe-exception-return",
		Errno:  classify.EINVAL,
		Reason: "this returns from an exception, which is undefined in a program",
	},
	rejectedAuthBranch: {
		ID:     "arm64/uprobe-authenticating-branch",
		Errno:  classify.EINVAL,
		Reason: "the kernel cannot simulate a branch that authenticates its target (braa, blraa, retaa and their kin)",
		Remedy: "probe the instruction before it",
	},
	rejectedDAIF: {
		ID:     "arm64/uprobe-mrs-daif",
		Errno:  classify.EINVAL,
		Reason: "the kernel does not step a read of DAIF",
		Remedy: "probe the instruction before or after it",
	},
	rejectedHint: {
		ID:     "arm64/uprobe-hint",
		Errno:  classify.EINVAL,
		Reason: "the kernel steps only the hints that it knows to be harmless: nop, bti, xpaclri and those that sign addresses",
		Remedy: "probe the instruction before or after it",
	},
	rejectedExclusive: {
		ID:     "arm64/uprobe-exclusive",
		Errno:  classify.EINVAL,
		Reason: "an exclusive load or store cannot work when a breakpoint stands between the two; casp counts as one, too",
		Remedy: "probe an instruction before or after the sequence",
	},
	rejectedMemoryCopy: {
		ID:     "arm64/uprobe-memory-copy",
		Errno:  classify.EINVAL,
		Reason: "the three instructions of a memory copy or set must follow one another in memory",
		Remedy: "probe the instruction before or after the three",
	},
	rejectedPrefetch: {
		ID:     "arm64/uprobe-prefetch-literal",
		Errno:  classify.EINVAL,
		Reason: "uprobes do not simulate a prefetch of a literal",
		Remedy: "probe the instruction before or after it",
	},
	rejectedLiteral: {
		ID:     "arm64/uprobe-literal",
		Errno:  classify.EINVAL,
		Reason: "uprobes do not simulate the load of a literal",
		Remedy: "probe the instruction before or after it",
	},
	uprobeOutside: {
		ID:     "arm64/uprobe-outside",
		Errno:  classify.EINVAL,
		Reason: "the address does not belong to the function, or its instruction is cut off",
	},
	uprobeMisaligned: {
		ID:     "arm64/uprobe-misaligned",
		Errno:  classify.EINVAL,
		Reason: "instructions start at multiples of 4",
		Remedy: "probe the start of the instruction",
	},
	uprobeInstalled: {
		ID:     "arm64/uprobe-breakpoint",
		Errno:  classify.ENOTSUPP,
		Reason: "this is the breakpoint of uprobes already (brk #5)",
		Remedy: "probe the instruction before or after it",
	},
}

// The ways in which Linux executes wrongly what it accepts.
const (
	hazardNone = iota
	hazardLiteral
	hazardModifier
	hazardExclusive
	hazardLeavesSlot
	hazardMemoryCopy
	hazardKernelLoad
)

var hazards = [...]classify.Hazard{
	hazardLiteral: {
		ID:   "arm64/simd-literal",
		Text: "the kernel does not recognise the load of a literal into a vector register and runs it in the slot, where it reads a wrong address",
	},
	hazardModifier: {
		ID:   "arm64/pc-modifier",
		Text: "the kernel runs this in the slot, where it signs or authenticates with the slot's address, so that the program fails",
	},
	hazardExclusive: {
		ID:   "arm64/exclusive-lost",
		Text: "the exceptions of the breakpoint and of the step clear the exclusive monitor, so that the store-exclusive fails and the sequence is repeated forever",
	},
	hazardLeavesSlot: {
		ID:   "arm64/leaves-slot",
		Text: "the kernel does not know this branch and runs it in the slot, which it leaves without reaching the breakpoint there; a relative target is counted from the slot",
	},
	hazardMemoryCopy: {
		ID:   "arm64/memory-copy-split",
		Text: "the kernel does not know this part of a memory copy or set and runs it in the slot, where an exception cannot start the three parts over",
	},
	hazardKernelLoad: {
		ID:   "arm64/uprobe-literal-load",
		Text: "the kernel simulates this load of a literal with a load of its own, which is kept from the program's memory",
		Span: until(linux5_10.Patch(262)),
	},
}
