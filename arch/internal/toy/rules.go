package toy

import (
	"xol/classify"
)

// The rules of the profile isa.
var (
	ruleOutside   = classify.Rule{ID: "toy/outside", Reason: "this address lies outside the function"}
	ruleInside    = classify.Rule{ID: "toy/misaligned", Reason: "no instruction starts here: they have 4 bytes"}
	ruleTruncated = classify.Rule{ID: "toy/truncated", Reason: "the bytes end before the instruction does"}
	ruleInvalid   = classify.Rule{ID: "toy/not-instruction", Reason: "these bytes are no instruction"}
)
