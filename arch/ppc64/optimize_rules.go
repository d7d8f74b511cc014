package ppc64

import "xol/classify"

// The rules by which linux-6.12 leaves a probe a breakpoint. The kernel does not
// say which, so that they have no error number.
const (
	optimizeAllowed = iota
	optimizeModule
	optimizeConditional
	optimizeUnknown
	optimizeMemory
	optimizeState
	optimizeReach
	optimizeReturnReach
)

var optimizeRules = [...]classify.Rule{
	optimizeModule: {
		ID:     "ppc64/optimize-module",
		Reason: "the kernel optimizes probes only in its own text, not in modules",
	},
	optimizeConditional: {
		ID:     "ppc64/optimize-conditional-branch",
		Reason: "this branch has a form with a condition (bc, bclr, bcctr, bctar), and the kernel must know beforehand where the detour buffer goes back to",
		Remedy: "probe the instruction before it or the target",
	},
	optimizeUnknown: {
		ID:     "ppc64/optimize-not-emulated",
		Reason: "the kernel cannot emulate this instruction, which it would have to from the detour buffer",
		Remedy: "probe the instruction before or after it",
	},
	optimizeMemory: {
		ID:     "ppc64/optimize-memory",
		Reason: "this instruction accesses memory, and the kernel optimizes only what it can emulate on registers alone",
		Remedy: "probe an instruction near by that computes in registers",
	},
	optimizeState: {
		ID:     "ppc64/optimize-machine-state",
		Reason: "this instruction reads the machine state, and the kernel optimizes only what it can emulate on the registers of a program",
		Remedy: "probe the instruction before or after it",
	},
	optimizeReach: {
		ID:     "ppc64/optimize-slot-range",
		Reason: "the kernel's detour buffers (optinsn_slot) are out of a branch's reach",
	},
	optimizeReturnReach: {
		ID:     "ppc64/optimize-return-range",
		Reason: "the place where execution goes on is out of reach of a branch in the kernel's detour buffers (optinsn_slot)",
	},
}

// emulatedRules says what becomes of the operations of the emulator: those
// that need neither memory nor the machine state are done by registers alone.
var emulatedRules = [operations + 1]uint8{
	emuUnknown: optimizeUnknown,
	emuCompute: optimizeAllowed, emuBranch: optimizeAllowed, emuBarrier: optimizeAllowed,
	emuMFSPR: optimizeAllowed, emuMTSPR: optimizeAllowed, emuMFMSR: optimizeState,
	emuLoad: optimizeMemory, emuLoadMulti: optimizeMemory, emuLoadFP: optimizeMemory,
	emuLoadVMX: optimizeMemory, emuLoadVSX: optimizeMemory,
	emuStore: optimizeMemory, emuStoreMulti: optimizeMemory, emuStoreFP: optimizeMemory,
	emuStoreVMX: optimizeMemory, emuStoreVSX: optimizeMemory,
	emuLARX: optimizeMemory, emuSTCX: optimizeMemory, emuCache: optimizeMemory,
}
