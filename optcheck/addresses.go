package optcheck

import "sort"

// Addresses is a set of addresses in ranges of text: one bit for each byte.
type Addresses struct {
	ranges []addressRange
}

type addressRange struct {
	lo, hi uint64
	bits   []uint64
}

// AddRange makes room for the addresses in [lo, hi). Ranges come in order and
// do not overlap.
func (a *Addresses) AddRange(lo, hi uint64) {
	if lo < hi {
		a.ranges = append(a.ranges, addressRange{lo, hi, make([]uint64, (hi-lo+63)/64)})
	}
}

// Add adds an address, which is ignored where no range holds it.
func (a *Addresses) Add(addr uint64) {
	if r := a.holding(addr); r != nil {
		r.bits[(addr-r.lo)/64] |= 1 << ((addr - r.lo) % 64)
	}
}

// inside reports whether a range holds addr and the set does not.
func (a *Addresses) inside(addr uint64) bool {
	r := a.holding(addr)
	return r != nil && r.bits[(addr-r.lo)/64]&(1<<((addr-r.lo)%64)) == 0
}

// covers reports whether a range holds addr.
func (a *Addresses) covers(addr uint64) bool { return a.holding(addr) != nil }

func (a *Addresses) holding(addr uint64) *addressRange {
	i := sort.Search(len(a.ranges), func(i int) bool { return addr < a.ranges[i].hi })
	if i == len(a.ranges) || addr < a.ranges[i].lo {
		return nil
	}
	return &a.ranges[i]
}
