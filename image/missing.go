package image

import "strings"

// Missing is what a kernel's file does not tell of the kernel, and what
// verdicts on probes in it would need.
type Missing uint8

// What may be missing.
const (
	// MissingFunctions: where functions start and end, as no names are known.
	MissingFunctions Missing = 1 << iota
	// MissingBlacklist: which functions the kernel's own list forbids to
	// probe.
	MissingBlacklist
	// MissingTables: the sites of jump labels, static calls and ftrace, and
	// other tables that have no section of their own.
	MissingTables
)

var missingNames = [...]string{"function ends", "the blacklist", "tables (jump labels, static calls, ftrace sites)"}

// String returns what is missing as part of a sentence; empty where nothing
// is.
func (m Missing) String() string {
	var names []string
	for i, name := range missingNames {
		if m&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
