package arm64

import (
	"xol/classify"
	"xol/machine"
)

// Watchpoints are those of DBGWVR<n>_EL1 and DBGWCR<n>_EL1: the bytes of one
// doubleword that the byte address select field names [Arm ARM, D2.10]. The
// exception comes before the access. Cortex-A cores have 4 of the up to 16
// that the architecture allows (ID_AA64DFR0_EL1.WRPs).
const (
	watchRegisters = 4
	watchSize      = 8 // bytes
)

var ruleWatchDoubleword = classify.Rule{ID: "arm64/watch-doubleword", Errno: classify.EINVAL,
	Reason: "a watchpoint selects bytes of one aligned doubleword",
	Remedy: "use a watchpoint for each doubleword"}

// WatchUnit returns what the watchpoint registers can do.
func (ISA) WatchUnit() machine.WatchUnit { return machine.WatchUnit{Slots: watchRegisters} }

// CheckWatch returns the rule that forbids w; nil where a watchpoint can do it.
func (ISA) CheckWatch(w machine.Watch) *classify.Rule {
	if w.Len < 1 || w.Addr%watchSize+uint64(w.Len) > watchSize {
		return &ruleWatchDoubleword
	}
	return nil
}
