package amd64

import (
	"xol/classify"
	"xol/machine"
)

// Data breakpoints are those of the debug registers DR0 to DR3, enabled and
// described by DR7 [Intel SDM, volume 3, 18.2]. An exception follows the access:
// it is a trap, and a handler finds the next instruction in RIP.
const debugRegisters = 4

var (
	ruleWatchRead = classify.Rule{ID: "amd64/watch-read", Errno: classify.EINVAL,
		Reason: "DR7 has a condition for writes and one for reads and writes, but none for reads only",
		Remedy: "watch reads and writes, and look at which it was"}
	ruleWatchLength = classify.Rule{ID: "amd64/watch-length", Errno: classify.EINVAL,
		Reason: "a debug register watches 1, 2, 4 or 8 bytes",
		Remedy: "use several watchpoints"}
	ruleWatchAlignment = classify.Rule{ID: "amd64/watch-alignment", Errno: classify.EINVAL,
		Reason: "the address has to be a multiple of the length: the CPU ignores its low bits",
		Remedy: "use several watchpoints"}
)

// WatchUnit returns what the debug registers can do.
func (ISA) WatchUnit() machine.WatchUnit {
	return machine.WatchUnit{Slots: debugRegisters, After: true}
}

// CheckWatch returns the rule that forbids w; nil where a debug register can do
// it.
func (ISA) CheckWatch(w machine.Watch) *classify.Rule {
	switch {
	case w.Kind == machine.WatchRead:
		return &ruleWatchRead
	case w.Len != 1 && w.Len != 2 && w.Len != 4 && w.Len != 8:
		return &ruleWatchLength
	case w.Addr%uint64(w.Len) != 0:
		return &ruleWatchAlignment
	}
	return nil
}
