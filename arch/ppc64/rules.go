package ppc64

import "xol/classify"

// The rules of the profile isa.
const (
	isaAccepted = iota
	isaOutside
	isaTruncated
	isaMisaligned
	isaSuffix
	isaInvalid
	isaBoundary
	isaReservation
	isaSaveRestore
)

var isaRules = [...]classify.Rule{
	isaOutside: {
		ID:     "ppc64/outside",
		Reason: "the address does not belong to the function",
	},
	isaTruncated: {
		ID:     "ppc64/truncated",
		Reason: "the bytes end before the instruction does",
		Remedy: "give all 4 bytes of the instruction, or all 8 of a prefixed one",
	},
	isaMisaligned: {
		ID:     "ppc64/misaligned",
		Reason: "instructions start at multiples of 4",
		Remedy: "probe the start of the instruction",
	},
	isaSuffix: {
		ID:     "ppc64/suffix",
		Reason: "this is the second word of a prefixed instruction, whose operands a breakpoint would change",
		Remedy: "probe the first word",
	},
	isaInvalid: {
		ID:     "ppc64/not-instruction",
		Reason: "this word is no instruction of the Power ISA 3.1",
		Remedy: "probe an instruction; the word may be data in the text",
	},
	isaBoundary: {
		ID:     "ppc64/prefixed-boundary",
		Reason: "this prefixed instruction crosses a 64-byte boundary, and no CPU executes it there",
		Remedy: "probe an instruction that is reached",
	},
	isaReservation: {
		ID:     "ppc64/reservation",
		Reason: "a breakpoint between a load-and-reserve and its store-conditional loses the reservation, so that the sequence is repeated forever",
		Remedy: "probe the load-and-reserve instruction or one after the sequence",
	},
	isaSaveRestore: {
		ID:     "ppc64/save-restore",
		Reason: "a breakpoint's own interrupt overwrites SRR0 and SRR1, which are in use here",
		Remedy: "probe an instruction before they are written or after they are read",
	},
}

// What Linux refuses to single-step, by kprobes and uprobes alike
// [arch/powerpc/include/asm/probes.h, can_single_step].
const (
	steppable = iota
	noStepTrap
	noStepSyscall
	noStepMSR
	noStepReturn
	noStepPowerSaving

	stepRules // further rules follow
)

// The rules of the profile linux-6.12 that are powerpc's own start with those
// above.
const (
	kprobeOutside = stepRules + iota
	kprobeMisaligned
	kprobeSuffix
)

var kprobeRules = [...]classify.Rule{
	noStepTrap: {
		ID:     "ppc64/kprobe-trap",
		Errno:  classify.EINVAL,
		Reason: "this is a trap instruction (tw, td, twi, tdi), which the kernel finds by its address",
		Remedy: "probe the instruction before it",
	},
	noStepSyscall: {
		ID:     "ppc64/kprobe-syscall",
		Errno:  classify.EINVAL,
		Reason: "the kernel cannot single-step system calls (sc, scv)",
		Remedy: "probe the instruction before or after it",
	},
	noStepMSR: {
		ID:     "ppc64/kprobe-mtmsr",
		Errno:  classify.EINVAL,
		Reason: "writing the MSR could switch off single-stepping or the handling of interrupts",
		Remedy: "probe the instruction before or after it",
	},
	noStepReturn: {
		ID:     "ppc64/kprobe-return-from-interrupt",
		Errno:  classify.EINVAL,
		Reason: "a return from an interrupt (rfid, hrfid, rfscv and their kin) replaces the MSR, single-stepping included",
		Remedy: "probe an instruction before it",
	},
	noStepPowerSaving: {
		ID:     "ppc64/kprobe-power-saving",
		Errno:  classify.EINVAL,
		Reason: "a CPU wakes from power saving (stop, nap and their kin) by an interrupt and not at the next instruction",
		Remedy: "probe the instruction before it",
	},
	kprobeOutside: {
		ID:     "ppc64/kprobe-outside",
		Errno:  classify.EINVAL,
		Reason: "the address does not belong to the function, or its instruction is cut off",
	},
	kprobeMisaligned: {
		ID:     "ppc64/kprobe-misaligned",
		Errno:  classify.EINVAL,
		Reason: "instructions start at multiples of 4",
		Remedy: "probe the start of the instruction",
	},
	kprobeSuffix: {
		ID:     "ppc64/kprobe-suffix",
		Errno:  classify.EINVAL,
		Reason: "the word before is the prefix of a prefixed instruction",
		Remedy: "probe the first word",
	},
}

// The rules of the profile uprobe-linux-6.12 start with those of
// can_single_step.
const (
	uprobeOutside = stepRules + iota
	uprobeMisaligned
	uprobeBoundary
)

var uprobeRules = [...]classify.Rule{
	noStepTrap: {
		ID:     "ppc64/uprobe-trap",
		Errno:  classify.ENOTSUPP,
		Reason: "this is a trap instruction (tw, td, twi, tdi), which a debugger or signal handler finds by its address",
		Remedy: "probe the instruction before it",
	},
	noStepSyscall: {
		ID:     "ppc64/uprobe-syscall",
		Errno:  classify.ENOTSUPP,
		Reason: "uprobes cannot single-step system calls (sc, scv)",
		Remedy: "probe the instruction before or after it, or trace the system call",
	},
	noStepMSR: {
		ID:     "ppc64/uprobe-mtmsr",
		Errno:  classify.ENOTSUPP,
		Reason: "this instruction writes the MSR, which faults in a program",
	},
	noStepReturn: {
		ID:     "ppc64/uprobe-return-from-interrupt",
		Errno:  classify.ENOTSUPP,
		Reason: "this is a return from an interrupt, which faults in a program",
	},
	noStepPowerSaving: {
		ID:     "ppc64/uprobe-power-saving",
		Errno:  classify.ENOTSUPP,
		Reason: "this is a power-saving instruction, which faults in a program",
	},
	uprobeOutside: {
		ID:     "ppc64/uprobe-outside",
		Errno:  classify.EINVAL,
		Reason: "the address does not belong to the function, or its instruction is cut off",
	},
	uprobeMisaligned: {
		ID:     "ppc64/uprobe-misaligned",
		Errno:  classify.EINVAL,
		Reason: "instructions start at multiples of 4",
		Remedy: "probe the start of the instruction",
	},
	uprobeBoundary: {
		ID:     "ppc64/uprobe-prefixed-boundary",
		Errno:  classify.EINVAL,
		Reason: "this prefixed instruction would cross a 64-byte boundary, which the CPU does not execute",
		Remedy: "probe an instruction that is reached",
	},
}

// The ways in which Linux executes wrongly what it accepts.
const (
	hazardNone = iota
	hazardReservation
	hazardSaveRestore
	hazardLostBranch
	hazardWrongAddress
	hazardSuffix
)

var hazards = [...]classify.Hazard{
	hazardReservation: {
		ID:   "ppc64/reservation-lost",
		Text: "the interrupts of the breakpoint and of the single step lose the reservation, so that the store-conditional fails and the sequence is repeated forever",
	},
	hazardSaveRestore: {
		ID:   "ppc64/save-restore-lost",
		Text: "the breakpoint's own interrupt overwrites SRR0 and SRR1, which are in use here: the kernel crashes or returns to a wrong place",
	},
	hazardLostBranch: {
		ID:   "ppc64/lost-branch",
		Text: "the kernel does not emulate this branch and, after it has run in the slot, goes on at the next instruction, so that it is never taken",
	},
	hazardWrongAddress: {
		ID:   "ppc64/wrong-address",
		Text: "the kernel does not correct the PC-relative operand of this instruction, which then reads or writes a wrong address",
	},
	hazardSuffix: {
		ID:   "ppc64/uprobe-suffix",
		Text: "the breakpoint overwrites the second word of a prefixed instruction, which then runs with other operands or faults, and is never hit itself",
	},
}
