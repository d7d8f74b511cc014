package place

import (
	"cmp"
	"slices"
	"sort"
)

// LandingKind says how execution comes to an address other than from the
// instruction before it.
type LandingKind uint8

// The kinds of landings.
const (
	LandBranch     LandingKind = iota // a direct branch or call goes there
	LandSwitch                        // an entry of a jump table
	LandReturn                        // after a call: the called function returns there
	LandEntry                         // the file's entry point
	LandSymbol                        // a symbol names it
	LandLocalEntry                    // a ppc64 function's local entry point
	LandPointer                       // a data word or relocation holds the address
	LandTaken                         // an instruction forms the address
	LandExFixup                       // a fault of __ex_table continues there
	LandUnwind                        // a landing pad of .gcc_except_table
	LandJumpLabel                     // the target of a jump label of __jump_table
	LandIndirect                      // it is marked as a target of indirect branches (endbr64, bti)
	LandingKinds   = int(iota)
)

var landingNames = [...]string{
	"branch", "switch", "return", "entry", "symbol", "local-entry", "pointer", "address-taken",
	"exception-fixup", "unwind", "jump-label", "indirect",
}

// String returns the kind in one word.
func (k LandingKind) String() string {
	if int(k) < len(landingNames) {
		return landingNames[k]
	}
	return "invalid"
}

// Landing is an address where execution may come from elsewhere.
type Landing struct {
	Addr uint64
	From uint64 // the branch, data word or instruction that says so; 0 where none does
	Kind LandingKind
}

// Landings is a list sorted by Addr.
type Landings []Landing

// Sort puts the list in order.
func (ls Landings) Sort() {
	slices.SortStableFunc(ls, func(a, b Landing) int { return cmp.Compare(a.Addr, b.Addr) })
}

// Within returns the part of the list in [lo, hi).
func (ls Landings) Within(lo, hi uint64) Landings {
	i := sort.Search(len(ls), func(i int) bool { return ls[i].Addr >= lo })
	j := i + sort.Search(len(ls)-i, func(k int) bool { return ls[i+k].Addr >= hi })
	return ls[i:j]
}
