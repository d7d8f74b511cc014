package amd64

import (
	"xol/classify"
	"xol/place"
)

// The rules by which linux-6.12 leaves a probe a breakpoint. The kernel does not
// say which, so that they have no error number.
const (
	optimizeBeyond = iota
	optimizeUndecodable
	optimizeException
	optimizeIndirect
	optimizeTarget
	optimizeReach
	optimizeFixed
	optimizeProbe
)

var optimizeRules = [...]classify.Rule{
	optimizeBeyond: {
		ID:     "amd64/optimize-beyond-function",
		Reason: "fewer than the 5 bytes of a jump remain before the next symbol",
		Remedy: "probe an instruction before it",
	},
	optimizeUndecodable: {
		ID:     "amd64/optimize-undecodable",
		Reason: "the kernel optimizes nothing in a function that its instruction decoder cannot read to the end",
	},
	optimizeException: {
		ID:     "amd64/optimize-exception-table",
		Reason: "the kernel optimizes nothing in a function that has an instruction in the exception table, since the fixup may jump to anywhere in it",
		Remedy: "probe a caller, or a function that this one calls",
	},
	optimizeIndirect: {
		ID:     "amd64/optimize-indirect-jump",
		Reason: "the kernel optimizes nothing in a function with an indirect jump or, before 6.12, with one through a retpoline; from 6.12 on so only without retpolines and IBT",
		Remedy: "probe a caller, or a function that this one calls",
	},
	optimizeTarget: {
		ID:     "amd64/optimize-jump-target",
		Reason: "a direct branch of the function goes to one of the 5 bytes that follow the first byte of the jump",
		Remedy: "probe the target of the branch",
	},
	optimizeReach: {
		ID:     "amd64/optimize-slot-range",
		Reason: "no detour buffer of the kernel is within 2 GiB",
	},
	optimizeFixed: {
		ID:     "amd64/optimize-not-boostable",
		Reason: "the jump would replace an instruction that the kernel does not move into a detour buffer: its test of what may be followed by a jump refuses it, or it cannot be copied",
		Remedy: "probe another instruction of the function",
	},
	optimizeProbe: {
		ID:     "amd64/optimize-other-probe",
		Reason: "another enabled probe lies inside the bytes that the jump would replace",
		Remedy: "remove or disable the other probe",
	},
}

// reservedRules are about text that the kernel patches
// [ftrace_text_reserved, jump_label_text_reserved, static_call_text_reserved].
var reservedRules = [...]struct {
	kind place.Kind
	rule classify.Rule
}{
	{place.Ftrace, classify.Rule{
		ID:     "amd64/optimize-ftrace-site",
		Reason: "the jump would replace a part of an ftrace site, which the kernel patches while it runs",
		Remedy: "probe the instruction after the site",
	}},
	{place.JumpLabel, classify.Rule{
		ID:     "amd64/optimize-jump-label",
		Reason: "the jump would replace a part of a jump-label site, which the kernel patches while it runs",
		Remedy: "probe the instruction after the site",
	}},
	{place.StaticCall, classify.Rule{
		ID:     "amd64/optimize-static-call",
		Reason: "the jump would replace a part of a static-call site, which the kernel patches while it runs",
		Remedy: "probe the instruction after the site",
	}},
}
