package arm64

import (
	"xol/classify"
	"xol/optcheck"
)

// noOptprobes is the answer of every Linux on arm64.
var noOptprobes = classify.Rule{
	ID:     "arm64/linux-no-optprobes",
	Reason: "Linux has no jump optimization on arm64",
	Remedy: "the profile isa shows where it would be possible",
}

// Optimizer returns the rules for turning breakpoints into jumps under one of
// the names of package classify.
func (a ISA) Optimizer(profile string, _ classify.KernelOptions) (optcheck.Optimizer, bool) {
	mechanism, _, ok := known.Find(profile)
	if !ok {
		return nil, false
	}
	switch mechanism {
	case classify.Architecture:
		return optcheck.New(a), true
	case classify.Uprobes:
		return optcheck.LinuxUprobes(), true
	}
	return optcheck.RefuseAll(&noOptprobes), true
}
