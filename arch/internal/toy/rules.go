package toy

import (
	"xol/classify"
	"xol/optcheck"
)

// The rules of the profile isa.
var (
	ruleOutside   = classify.Rule{ID: "toy/outside", Reason: "this address lies outside the function"}
	ruleInside    = classify.Rule{ID: "toy/misaligned", Reason: "no instruction starts here: they have 4 bytes"}
	ruleTruncated = classify.Rule{ID: "toy/truncated", Reason: "the bytes end before the instruction does"}
	ruleInvalid   = classify.Rule{ID: "toy/not-instruction", Reason: "these bytes are no instruction"}
)

// regionRules are the reasons that can occur where a jump has the length of
// every instruction.
var regionRules = optcheck.Rules{
	optcheck.KeepData:        {ID: "toy/region-data", Reason: "these bytes are data in the text"},
	optcheck.KeepProbe:       {ID: "toy/region-other-probe", Reason: "another probe is armed here"},
	optcheck.KeepFtrace:      {ID: "toy/region-ftrace-site", Reason: "the kernel rewrites this site"},
	optcheck.KeepJumpLabel:   {ID: "toy/region-jump-label", Reason: "the kernel rewrites this site"},
	optcheck.KeepAlternative: {ID: "toy/region-alternative", Reason: "the kernel rewrites this site"},
	optcheck.KeepBug:         {ID: "toy/region-bug", Reason: "the kernel finds this trap by its address"},
	optcheck.KeepException:   {ID: "toy/region-exception-entry", Reason: "the kernel handles faults here by the address"},
	optcheck.KeepLandingPad:  {ID: "toy/landing-pad", Reason: "indirect branches have to find this instruction"},
	optcheck.Undecodable:     {ID: "toy/region-undecodable", Reason: "these bytes are no instruction"},
}
