package image

import (
	"cmp"
	"slices"
	"sort"
)

// Range is a range of addresses in one section.
type Range struct {
	Addr, Size uint64
	Section    string
}

// End returns the address after the range.
func (r Range) End() uint64 { return r.Addr + r.Size }

// extent is the range of addresses [lo, hi).
type extent struct{ lo, hi uint64 }

// union sorts ranges, and joins those that touch.
func union(ranges []extent) []extent {
	slices.SortFunc(ranges, func(a, b extent) int { return cmp.Compare(a.lo, b.lo) })
	joined := ranges[:0]
	for _, e := range ranges {
		if n := len(joined); n > 0 && e.lo <= joined[n-1].hi {
			joined[n-1].hi = max(joined[n-1].hi, e.hi)
		} else {
			joined = append(joined, e)
		}
	}
	return joined
}

// holds reports whether one of the sorted, disjoint ranges holds addr.
func holds(ranges []extent, addr uint64) bool {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].lo > addr }) - 1
	return i >= 0 && addr < ranges[i].hi
}

// evenSample returns at most n of list, evenly.
func evenSample(list []uint64, n int) []uint64 {
	if len(list) <= n {
		return list
	}
	some := make([]uint64, n)
	for i := range some {
		some[i] = list[i*len(list)/n]
	}
	return some
}
