package ppc64

import (
	"xol/classify"
	"xol/machine"
)

// Watchpoints are those of DAWR0 and DAWR1: 1 to 64 aligned doublewords, of which
// DAWRX says how many and which accesses count [Power ISA 3.1, Book III, 11.4].
// The exception comes before the access. The registers know no bytes: what hits
// other bytes of the doublewords only is extraneous, and not reported, as Linux
// has it [arch/powerpc/kernel/hw_breakpoint.c].
const (
	dawrs    = 2 // of POWER10; earlier CPUs have one
	dawrSize = 512
)

var ruleWatchLength = classify.Rule{ID: "ppc64/watch-length", Errno: classify.EINVAL,
	Reason: "a DAWR watches at most 64 doublewords",
	Remedy: "use several watchpoints"}

// WatchUnit returns what the DAWRs can do.
func (ISA) WatchUnit() machine.WatchUnit { return machine.WatchUnit{Slots: dawrs} }

// CheckWatch returns the rule that forbids w; nil where a DAWR can do it.
func (ISA) CheckWatch(w machine.Watch) *classify.Rule {
	const doubleword = 8
	if w.Len < 1 || w.Addr%doubleword+uint64(w.Len) > dawrSize {
		return &ruleWatchLength
	}
	return nil
}
