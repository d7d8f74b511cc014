package amd64

import "xol/classify"

// The rules of the profile isa.
const (
	isaOutside = iota
	isaInvalid
	isaTooLong
	isaTruncated
	isaInside
	isaBranch66
	isaBreakpoint
)

var isaRules = [...]classify.Rule{
	isaOutside: {
		ID:     "amd64/outside",
		Reason: "the address does not belong to the function",
	},
	isaInvalid: {
		ID:     "amd64/not-instruction",
		Reason: "these bytes are no instruction in 64-bit mode",
		Remedy: "probe an instruction; the bytes may be data in the text",
	},
	isaTooLong: {
		ID:     "amd64/too-long",
		Reason: "prefixes and operands make this longer than the 15 bytes that a CPU executes",
	},
	isaTruncated: {
		ID:     "amd64/truncated",
		Reason: "the bytes end before the instruction does",
		Remedy: "give all bytes of the instruction",
	},
	isaInside: {
		ID:     "amd64/inside-instruction",
		Reason: "the address lies inside an instruction, whose operands a breakpoint would change",
		Remedy: "probe the start of the instruction",
	},
	isaBranch66: {
		ID:     "amd64/branch-66",
		Reason: "with a 66 prefix and no REX.W this near branch has two meanings: Intel's CPUs ignore the prefix, AMD's cut the target to 16 bits",
		Remedy: "probe the instruction before it or the target",
	},
	isaBreakpoint: {
		ID:     "amd64/int3",
		Reason: "a breakpoint instruction is already there: padding, another debugger's, or one that the program means to hit",
		Remedy: "probe an instruction that is executed; a debugger's breakpoint has to be removed first",
	},
}

// The hazards of the profile isa.
const (
	isaRight = iota
	isaShadow
)

var isaHazards = [...]classify.Hazard{
	isaShadow: {
		ID:   "amd64/interrupt-shadow",
		Text: "interrupts stay blocked for one instruction after this one; with a probe they are blocked for what ends the copy instead, a jump or a breakpoint, and may come before the program's next instruction",
	},
}

// The rules of the profile linux-6.12 that are x86's own.
const (
	kprobeAccepted = iota
	kprobeOutside
	kprobeInside
	kprobeUndecodable
	kprobeTrap
	kprobeINT3
	kprobeCFI
	kprobeForced
	kprobeStackSegment
	kprobeCopyRange
	kprobeNoRoom
	kprobeFarDirect
	kprobeFarIndirect
	kprobeIRET
	kprobeIndirectMemory
	kprobeIndirectSize
	kprobeVM
	kprobeClash
)

var kprobeRules = [...]classify.Rule{
	kprobeOutside: {
		ID:     "amd64/kprobe-outside",
		Errno:  classify.EINVAL,
		Reason: "the address does not belong to the function",
	},
	kprobeInside: {
		ID:     "amd64/kprobe-inside-instruction",
		Errno:  classify.EILSEQ,
		Reason: "the address lies inside an instruction, as the kernel counts them from the function's start",
		Remedy: "probe the start of the instruction",
	},
	kprobeUndecodable: {
		ID:     "amd64/kprobe-undecodable",
		Errno:  classify.EILSEQ,
		Reason: "the kernel's instruction decoder cannot read the function up to and including this address",
		Remedy: "probe an address before the bytes that it cannot read",
	},
	kprobeTrap: {
		ID:     "amd64/kprobe-trap",
		Errno:  classify.EILSEQ,
		Reason: "this is an instruction that traps on purpose (int3, int1, int n, ud0, ud1, ud2), which the kernel finds by its address",
		Remedy: "probe the instruction before it",
	},
	kprobeINT3: {
		ID:     "amd64/kprobe-int3",
		Errno:  classify.EINVAL,
		Reason: "the kernel takes this int3 for a breakpoint of its own and gives up copying what stands under it",
		Remedy: "probe the instruction before it",
	},
	kprobeCFI: {
		ID:     "amd64/kprobe-cfi-check",
		Errno:  classify.EILSEQ,
		Reason: "this instruction is part of a control-flow check, which the kernel reads back when the check fails",
		Remedy: "probe the call after the check",
	},
	kprobeForced: {
		ID:     "amd64/kprobe-forced-emulation",
		Errno:  classify.EINVAL,
		Reason: "this starts with a forced-emulation prefix of Xen or KVM, whose meaning depends on its place",
		Remedy: "probe the instruction before or after it",
	},
	kprobeStackSegment: {
		ID:     "amd64/kprobe-stack-segment",
		Errno:  classify.EINVAL,
		Reason: "loading ss blocks interrupts and debug exceptions over the next instruction, so it cannot run in a slot",
		Remedy: "probe the instruction before it",
	},
	kprobeCopyRange: {
		ID:     "amd64/kprobe-copy-range",
		Errno:  classify.EINVAL,
		Reason: "no slot of the kernel is within 2 GiB of what the RIP-relative operand refers to",
		Remedy: "probe the instruction before or after it",
	},
	kprobeNoRoom: {
		ID:     "amd64/kprobe-no-room",
		Errno:  classify.ENOSPC,
		Reason: "an instruction of 15 bytes leaves no room in its slot for the breakpoint after it",
		Remedy: "probe the instruction before or after it",
	},
	kprobeFarDirect: {
		ID:     "amd64/kprobe-far-direct",
		Errno:  classify.EOPNOTSUPP,
		Reason: "the kernel does not emulate far calls and jumps",
	},
	kprobeFarIndirect: {
		ID:     "amd64/kprobe-far-indirect",
		Errno:  classify.EOPNOTSUPP,
		Reason: "the kernel does not emulate far calls and jumps",
		Remedy: "probe the instruction before it or the target",
	},
	kprobeIRET: {
		ID:     "amd64/kprobe-iret",
		Errno:  classify.EOPNOTSUPP,
		Reason: "the kernel does not emulate iret",
		Remedy: "probe the instruction before it",
	},
	kprobeIndirectMemory: {
		ID:     "amd64/kprobe-indirect-memory",
		Errno:  classify.EOPNOTSUPP,
		Reason: "the kernel emulates indirect calls and jumps only through a register, not through memory",
		Remedy: "probe the instruction before it or the function that is called",
	},
	kprobeIndirectSize: {
		ID:     "amd64/kprobe-indirect-size",
		Errno:  classify.EOPNOTSUPP,
		Reason: "the kernel does not emulate indirect calls and jumps with an address-size prefix",
		Remedy: "probe the instruction before it or the function that is called",
	},
	kprobeVM: {
		ID:     "amd64/kprobe-vm",
		Errno:  classify.EOPNOTSUPP,
		Reason: "the kernel refuses the register forms of 0F 01 /0: vmcall, vmlaunch, vmresume, vmxoff and their neighbours",
		Remedy: "probe the instruction before or after it",
	},
	kprobeClash: {
		ID:     "amd64/kprobe-opcode-clash",
		Errno:  classify.EOPNOTSUPP,
		Reason: "the kernel looks up the opcode byte of this VEX, EVEX or REX2 instruction among the one-byte opcodes and takes it for a far branch or iret",
		Remedy: "probe the instruction before or after it",
	},
}

// The ways in which linux-6.12 executes wrongly what it accepts.
const (
	kprobeRight = iota
	kprobeLoop
	kprobeReturnImm
	kprobeFarReturn
	kprobeFlags16
	kprobeCallSP
	kprobeBorrowed
	kprobeREX2Register
	kprobeSlotRelative
	kprobeLeavesSlot
	kprobeWrongLength
	kprobeWrongAddress
	kprobeHalt
	kprobeTrapInSlot
)

var kprobeHazards = [...]classify.Hazard{
	kprobeLoop: {
		ID:   "amd64/kprobe-loop",
		Text: "the kernel compares rcx before it decrements it, so that the loop jumps once too often; with a 67 prefix it also keeps the upper half of rcx",
	},
	kprobeReturnImm: {
		ID:   "amd64/kprobe-return-immediate",
		Text: "the kernel ignores the immediate of this return, so that the caller's arguments stay on the stack",
	},
	kprobeFarReturn: {
		ID:   "amd64/kprobe-far-return",
		Text: "the kernel executes this far return as a near one: cs is not loaded and stays on the stack",
	},
	kprobeFlags16: {
		ID:   "amd64/kprobe-flags-16",
		Text: "the kernel moves 8 bytes where this instruction moves 2, so that the stack pointer is wrong by 6",
	},
	kprobeCallSP: {
		ID:   "amd64/kprobe-call-rsp",
		Text: "the kernel pushes the return address before it reads rsp, and so calls an address that is 8 too low",
	},
	kprobeBorrowed: {
		ID:   "amd64/kprobe-opcode-clash-emulated",
		Text: "the kernel takes this VEX, EVEX or REX2 instruction for the one-byte instruction of the same opcode and executes that one instead",
	},
	kprobeREX2Register: {
		ID:   "amd64/kprobe-rex2-register",
		Text: "the kernel reads the register's upper bit from the REX2 prefix's first byte and so branches through another register",
	},
	kprobeSlotRelative: {
		ID:   "amd64/kprobe-slot-relative",
		Text: "the kernel runs this branch in the slot without correcting its displacement, so that it jumps to a wrong address",
	},
	kprobeLeavesSlot: {
		ID:   "amd64/kprobe-leaves-slot",
		Text: "this instruction leaves the slot and never reaches the breakpoint after it, so that the CPU counts as handling a probe for good",
	},
	kprobeWrongLength: {
		ID:   "amd64/kprobe-wrong-length",
		Text: "the kernel takes this instruction to be shorter or longer than it is and puts the breakpoint of the slot in the wrong place",
	},
	kprobeWrongAddress: {
		ID:   "amd64/kprobe-wrong-address",
		Text: "the kernel does not correct the RIP-relative operand of this instruction, which then reads or writes a wrong address",
	},
	kprobeHalt: {
		ID:   "amd64/kprobe-halt",
		Text: "the kernel runs the slot with interrupts disabled, so that the CPU halts and is not woken",
	},
	kprobeTrapInSlot: {
		ID:   "amd64/kprobe-trap-in-slot",
		Text: "this traps on purpose, and its handler looks at the address, which is that of the slot: a warning becomes an oops",
		Span: until(linux6_12),
	},
}

// The rules of uprobes.
const (
	uprobeAccepted = iota
	uprobeOutside
	uprobeNotInstruction
	uprobeUnknown
	uprobeLock
	uprobeSegment
	uprobeStackSegment
	uprobeNot64
	uprobePort
	uprobeTrap
	uprobeIRET
	uprobePrivileged
	uprobeClash
	uprobeBranch66
)

var uprobeRules = [...]classify.Rule{
	uprobeOutside: {
		ID:     "amd64/uprobe-outside",
		Errno:  classify.EINVAL,
		Reason: "the address does not belong to the function",
	},
	uprobeNotInstruction: {
		ID:     "amd64/uprobe-not-instruction",
		Errno:  classify.ENOEXEC,
		Reason: "these bytes are no instruction, and the kernel cannot decode them",
		Remedy: "probe an instruction; the bytes may be data in the text",
	},
	uprobeUnknown: {
		ID:     "amd64/uprobe-undecodable",
		Errno:  classify.ENOEXEC,
		Reason: "the kernel's instruction decoder does not know this instruction",
		Remedy: "probe the instruction before or after it",
	},
	uprobeLock: {
		ID:     "amd64/uprobe-lock",
		Errno:  classify.ENOTSUPP,
		Reason: "uprobes refuse every instruction with a LOCK prefix",
		Remedy: "probe the instruction before or after it",
	},
	uprobeSegment: {
		ID:     "amd64/uprobe-segment",
		Errno:  classify.ENOTSUPP,
		Reason: "uprobes refuse every instruction with a CS, DS, ES or SS prefix (2E, 3E, 26, 36), also where it has no effect as in long NOPs and notrack jumps",
		Remedy: "probe the instruction before or after it",
	},
	uprobeStackSegment: {
		ID:     "amd64/uprobe-stack-segment",
		Errno:  classify.ENOTSUPP,
		Reason: "loading ss blocks debug exceptions over the next instruction, so it cannot be single-stepped",
		Remedy: "probe the instruction before or after it",
	},
	uprobeNot64: {
		ID:     "amd64/uprobe-not-64-bit",
		Errno:  classify.ENOTSUPP,
		Reason: "this opcode does not exist in 64-bit mode",
		Remedy: "probe an instruction; the bytes may be data in the text",
	},
	uprobePort: {
		ID:     "amd64/uprobe-port",
		Errno:  classify.ENOTSUPP,
		Reason: "uprobes refuse port input and output",
		Remedy: "probe the instruction before or after it",
	},
	uprobeTrap: {
		ID:     "amd64/uprobe-trap",
		Errno:  classify.ENOTSUPP,
		Reason: "uprobes refuse instructions that trap on purpose (int3, int1, int n)",
		Remedy: "probe the instruction before it",
	},
	uprobeIRET: {
		ID:     "amd64/uprobe-iret",
		Errno:  classify.ENOTSUPP,
		Reason: "uprobes refuse iret",
		Remedy: "probe the instruction before it",
	},
	uprobePrivileged: {
		ID:     "amd64/uprobe-privileged",
		Errno:  classify.ENOTSUPP,
		Reason: "uprobes refuse hlt, cli and sti, which fault in a program",
		Remedy: "probe the instruction before it",
	},
	uprobeClash: {
		ID:     "amd64/uprobe-opcode-clash",
		Errno:  classify.ENOTSUPP,
		Reason: "the kernel looks up the opcode byte of this VEX, EVEX or REX2 instruction among the one-byte opcodes and takes it for one that it refuses",
		Remedy: "probe the instruction before or after it",
	},
	uprobeBranch66: {
		ID:     "amd64/uprobe-branch-66",
		Errno:  classify.ENOTSUPP,
		Reason: "uprobes refuse direct branches with a 66 prefix, on which Intel's and AMD's CPUs differ, and VEX, EVEX or REX2 instructions that share their opcode byte",
		Remedy: "probe the instruction before it or the target",
	},
}

// The ways in which uprobes execute wrongly what they accept.
const (
	uprobeRight = iota
	uprobeInside
	uprobeAsJump
	uprobeAsCall
	uprobeAsNOP
	uprobeXCHG
	uprobeREX2NOP
	uprobeREX2Broken
	uprobeWrongAddress
	uprobeAsReturn
	uprobeMovedTarget
	uprobeFarBranch
	uprobeBranchAMD
	uprobeSlotReturn
	uprobeFarCall
	uprobeCallAMD
	uprobeTrapFlag
	uprobePopFlags
	uprobePushFlags
	uprobeStackDelay
	uprobeSyscall
	uprobeUMIP
	uprobeRedZone
)

// executedOn are the branches on which some of the instructions ran with and
// without a uprobe; most hazards were looked for on a CPU, under 6.18, only.
var (
	executedOn = []classify.Version{
		linux5_10, linux6_1, linux6_12, linux6_16, linux6_17, linux6_18, linux6_19, linux7_0, linux7_1, linux7_2, linux7_3,
	}
	executedBefore6_19 = executedOn[:6]
	executed6_18       = []classify.Version{linux6_18}
)

var uprobeHazards = [...]classify.Hazard{
	uprobeInside: {
		ID:   "amd64/uprobe-inside-instruction",
		Text: "the address lies inside an instruction, whose operands the breakpoint changes; the kernel does not notice",
	},
	uprobeAsJump: {
		ID:   "amd64/uprobe-vex-as-jump",
		Text: "the kernel takes this VEX, EVEX or REX2 instruction for the jump of the same opcode byte: it is not executed, and the program may continue elsewhere",
		Seen: executedOn,
	},
	uprobeAsCall: {
		ID:   "amd64/uprobe-vex-as-call",
		Text: "the kernel takes this VEX, EVEX or REX2 instruction for the call of the same opcode byte: it is not executed, and a return address is pushed",
		Seen: executedOn,
	},
	uprobeAsNOP: {
		ID:   "amd64/uprobe-vex-as-nop",
		Text: "the kernel takes this VEX, EVEX, XOP or REX2 instruction for the NOP of the same opcode byte: it is not executed",
		Seen: executed6_18,
		Span: until(linux6_19),
	},
	uprobeXCHG: {
		ID:   "amd64/uprobe-xchg-as-nop",
		Text: "the kernel takes this exchange of rax with an extended register for a NOP: it is not executed",
		Seen: executedBefore6_19,
		Span: until(linux6_19),
	},
	uprobeREX2NOP: {
		ID:   "amd64/uprobe-rex2-nop",
		Text: "the kernel skips this NOP with a REX2 prefix on every CPU, also on those without APX, where the program dies of an illegal instruction",
		Seen: executed6_18,
		Span: since(linux6_12),
	},
	uprobeREX2Broken: {
		ID:   "amd64/uprobe-rex2-broken",
		Text: "the kernel clears a bit of the REX2 prefix as if it were REX.B (d5 becomes d4), so that the program dies of an illegal instruction",
		Span: since(linux6_12),
	},
	uprobeWrongAddress: {
		ID:   "amd64/uprobe-wrong-address",
		Text: "the kernel mistakes the addressing of this instruction, which then reads or writes a wrong address",
		Seen: executed6_18,
	},
	uprobeAsReturn: {
		ID:   "amd64/uprobe-vex-as-return",
		Text: "the kernel takes this instruction for the return of the same opcode byte and does not set the instruction pointer back, so that the program runs on in the slot",
		Seen: executed6_18,
	},
	uprobeMovedTarget: {
		ID:   "amd64/uprobe-moved-target",
		Text: "the kernel corrects the instruction pointer as if the target were relative, so that the program continues at a wrong address",
		Seen: executed6_18,
	},
	uprobeFarBranch: {
		ID:   "amd64/uprobe-far-branch",
		Text: "the kernel does not know this branch for one and runs it in the slot, at the end of the address space: a target beyond that end kills the program with SIGSEGV",
		Seen: executed6_18,
	},
	uprobeBranchAMD: {
		ID:   "amd64/uprobe-cut-target",
		Text: "AMD's CPUs cut the target of a branch with a 66 prefix to 16 bits, which the kernel then takes to be relative to the slot, so that the program continues at a wrong address; Intel's ignore the prefix",
		Seen: executed6_18,
	},
	uprobeSlotReturn: {
		ID:   "amd64/uprobe-slot-return-address",
		Text: "the kernel does not correct the return address that this call pushes, which then points into the slot",
		Seen: executed6_18,
	},
	uprobeFarCall: {
		ID:   "amd64/uprobe-far-call",
		Text: "the kernel writes 8 bytes of return address, which destroys the saved cs where this far call pushes 4, as without REX.W or into 32-bit code",
		Seen: executed6_18,
	},
	uprobeCallAMD: {
		ID:   "amd64/uprobe-call-66",
		Text: "on AMD's CPUs this call with a 66 prefix pushes 2 bytes, over which the kernel writes a return address of 8; Intel's ignore the prefix",
		Seen: executed6_18,
	},
	uprobeTrapFlag: {
		ID:   "amd64/uprobe-trap-flag",
		Text: "the kernel takes this instruction for the popf of the same opcode byte and leaves the trap flag set, so that the program dies of SIGTRAP",
		Seen: executed6_18,
	},
	uprobePopFlags: {
		ID:   "amd64/uprobe-popf",
		Text: "the kernel does not know this for a popf and clears the trap flag after it, also where that was popped",
		Seen: executed6_18,
	},
	uprobePushFlags: {
		ID:   "amd64/uprobe-pushf",
		Text: "the kernel single-steps this with the trap flag set and leaves it in the flags that are pushed, so that a later popf kills the program with SIGTRAP",
		Seen: executed6_18,
	},
	uprobeStackDelay: {
		ID:   "amd64/uprobe-stack-segment-step",
		Text: "loading ss delays the single step by an instruction: the one after it runs in the slot as well, from a wrong address",
		Seen: executed6_18,
	},
	uprobeSyscall: {
		ID:   "amd64/uprobe-syscall",
		Text: "the single step over syscall ends one instruction late: the one after it runs in the slot too, so that a return, call or relative address there goes wrong and a probe there is not hit; rcx and r11 tell of the slot and the trap flag, and a child of fork dies of SIGSEGV",
		Seen: executed6_18,
	},
	uprobeUMIP: {
		ID:   "amd64/uprobe-umip",
		Text: "where the CPU has UMIP the kernel emulates this instruction, and the single step ends one instruction late: the one after it runs in the slot too, so that a return, call or relative address there goes wrong",
		Seen: executed6_18,
	},
	uprobeRedZone: {
		ID:   "amd64/uprobe-nop-as-call",
		Text: "at the first hit the kernel turns this NOP of 5 bytes into a call, which writes to the 32 bytes below the stack pointer: a leaf function loses what it keeps there, in its red zone",
		Seen: executed6_18,
		Span: classify.Span{Since: linux6_18, Until: linux7_2},
	},
}
