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

// markCursor is where a markIndex has looked before: what is asked for next is most often
// close by.
type markCursor struct {
	lists [2]int
	long  [len(longMarks)]int
}

// touching appends to dst the marks that share a byte with [lo, hi), sorted by
// address, and returns it.
func (x *markIndex) touching(dst place.Marks, lo, hi uint64) place.Marks {
	return x.touchingNear(dst, lo, hi, new(markCursor))
}

// touchingNear does what touching does, and moves the cursor.
func (x *markIndex) touchingNear(dst place.Marks, lo, hi uint64, c *markCursor) place.Marks {
	base := len(dst)
	for k, marks := range x.lists {
		dst = appendTouching(dst, marks, lo, hi, shortMark, &c.lists[k])
	}
	for k, marks := range x.long {
		dst = appendTouching(dst, marks, lo, hi, longMarks[k], &c.long[k])
	}
	dst[base:].Sort()
	return dst
}

// appendTouching appends those of marks that share a byte with [lo, hi) and have at
// most so many bytes.
func appendTouching(dst, marks place.Marks, lo, hi, most uint64, at *int) place.Marks {
	*at = firstNear(marks, *at, lo-min(lo, most))
	for _, m := range marks[*at:] {
		if m.Addr >= hi {
			break
		}
		if m.Len <= most && m.End() > lo {
			dst = append(dst, m)
		}
	}
	return dst
}

// firstNear returns the index of the first mark at addr or after it. It looks around the
// index at first, in steps that become larger.
func firstNear(marks place.Marks, at int, addr uint64) int {
	lo, hi := min(at, len(marks)), len(marks)
	if lo > 0 && marks[lo-1].Addr >= addr {
		lo, hi = 0, lo-1
	}
	for step := 1; lo+step < hi; step *= 2 {
		if marks[lo+step].Addr >= addr {
			hi = lo + step
			break
		}
		lo += step
	}
	return lo + sort.Search(hi-lo, func(i int) bool { return marks[lo+i].Addr >= addr })
}
