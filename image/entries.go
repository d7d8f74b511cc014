package image

import (
	"slices"
)

// EntrySites returns where functions have a call or NOP at their entry for
// others to patch: what compilers leave for -pg -mfentry, -mprofile-kernel and
// -fpatchable-function-entry, as far as a table says so (__mcount_loc,
// __patchable_function_entries). The address is that of the instruction that
// becomes a call, as Linux has it. The list is sorted.
func (im *program) EntrySites() ([]uint64, error) {
	syms, err := im.symbols()
	if err != nil {
		return nil, err
	}
	m := im.newMarker(syms)
	for i := range linuxTables {
		t := &linuxTables[i]
		if t.section != mcountSection && t.section != patchableSection {
			continue
		}
		parts, err := m.locate(t)
		if err != nil {
			return nil, err
		}
		for i := range parts {
			m.ftraceSites(&parts[i])
		}
	}
	sites := make([]uint64, len(m.marks))
	for i, mark := range m.marks {
		sites[i] = mark.Addr
	}
	slices.Sort(sites)
	return slices.Compact(sites), nil
}
