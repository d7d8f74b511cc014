package image

import (
	"cmp"
	"slices"
)

// Memory returns the ranges of addresses that the file takes in memory, sorted: of its
// text and its data, also of those that are zero at the start.
func (im *Image) Memory() []Range {
	var ranges []Range
	for i := range im.sections {
		if s := &im.sections[i]; s.alloc() && s.size > 0 {
			ranges = append(ranges, Range{Addr: s.addr, Size: s.size, Section: s.name})
		}
	}
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Compare(a.Addr, b.Addr) })
	return ranges
}
