package toy

import (
	"xol/classify"
	"xol/decode"
	"xol/optcheck"
)

// RegionRules returns the rules for breakpoints that become jumps.
func (ISA) RegionRules() *optcheck.Rules { return &regionRules }

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

// Immovable returns the rule that keeps inst from being moved.
func (ISA) Immovable(inst *decode.Inst) *classify.Rule {
	if inst.Len == 0 || inst.Has(decode.Invalid) {
		return &regionRules[optcheck.Undecodable]
	}
	return nil
}

// FormsAddress finds none: an immediate is too short.
func (ISA) FormsAddress(*decode.Inst) (addr uint64, ok bool) { return 0, false }

// TablesInText reports that there are no jump tables in text.
func (ISA) TablesInText() bool { return false }
