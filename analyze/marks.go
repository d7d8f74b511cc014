package analyze

import (
	"sort"

	"xol/place"
)

// markIndex finds the marks that touch a range. It is immutable and safe for
// concurrent use; the zero value holds no marks.
type markIndex struct {
	lists [2]place.Marks // all marks, sorted; of them, those of up to shortMark bytes count
	// long are the others, by length, so that the few that span whole sections do not
	// slow the search for the many of a few bytes.
	long [len(longMarks)]place.Marks
}

// shortMark is the most bytes that a short mark has, longMarks those of longer ones.
const shortMark = 16

var longMarks = [...]uint64{4096, 1<<64 - 1}

// newMarkIndex builds an index over two lists of marks, which it sorts.
func newMarkIndex(a, b place.Marks) *markIndex {
	x := &markIndex{lists: [2]place.Marks{a, b}}
	for _, marks := range x.lists {
		marks.Sort()
		for i := range marks {
			if m := &marks[i]; m.Len > shortMark {
				k := 0
				for m.Len > longMarks[k] {
					k++
				}
				x.long[k] = append(x.long[k], *m)
			}
		}
	}
	for _, marks := range x.long {
		marks.Sort()
	}
	return x
}

// touching appends to dst the marks that share a byte with [lo, hi), sorted by
// address, and returns it.
func (x *markIndex) touching(dst place.Marks, lo, hi uint64) place.Marks {
	base := len(dst)
	for _, marks := range x.lists {
		dst = appendTouching(dst, marks, lo, hi, shortMark)
	}
	for k, marks := range x.long {
		dst = appendTouching(dst, marks, lo, hi, longMarks[k])
	}
	dst[base:].Sort()
	return dst
}

// appendTouching appends those of marks that share a byte with [lo, hi) and have at
// most so many bytes.
func appendTouching(dst, marks place.Marks, lo, hi, most uint64) place.Marks {
	from := lo - min(lo, most)
	for _, m := range marks[sort.Search(len(marks), func(i int) bool { return marks[i].Addr >= from }):] {
		if m.Addr >= hi {
			break
		}
		if m.Len <= most && m.End() > lo {
			dst = append(dst, m)
		}
	}
	return dst
}
