package analyze

import (
	"sort"

	"xol/place"
)

// markIndex finds the marks that touch a range. It is immutable and safe for
// concurrent use; the zero value holds no marks.
type markIndex struct {
	buckets [len(bucketLimits)]place.Marks
}

// Marks are kept by length, so that the few that span whole sections do not
// slow the search for the many of a few bytes.
var bucketLimits = [...]uint64{16, 4096, 1<<64 - 1}

// newMarkIndex builds an index over marks in any order.
func newMarkIndex(marks place.Marks) *markIndex {
	x := new(markIndex)
	var counts [len(bucketLimits)]int
	for i := range marks {
		counts[bucketOf(marks[i].Len)]++
	}
	for b, n := range counts {
		x.buckets[b] = make(place.Marks, 0, n)
	}
	for _, m := range marks {
		b := bucketOf(m.Len)
		x.buckets[b] = append(x.buckets[b], m)
	}
	for _, b := range x.buckets {
		b.Sort()
	}
	return x
}

func bucketOf(size uint64) (b int) {
	for size > bucketLimits[b] {
		b++
	}
	return b
}

// touching appends to dst the marks that share a byte with [lo, hi), sorted by
// address, and returns it.
func (x *markIndex) touching(dst place.Marks, lo, hi uint64) place.Marks {
	base := len(dst)
	for i, b := range x.buckets {
		from := lo - min(lo, bucketLimits[i])
		for _, m := range b[sort.Search(len(b), func(i int) bool { return b[i].Addr >= from }):] {
			if m.Addr >= hi {
				break
			}
			if m.End() > lo {
				dst = append(dst, m)
			}
		}
	}
	dst[base:].Sort()
	return dst
}

// mergeMarks returns what is in either of two lists.
func mergeMarks(a, b place.Marks) place.Marks {
	all := make(place.Marks, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if b[0].Addr < a[0].Addr {
			all, b = append(all, b[0]), b[1:]
		} else {
			all, a = append(all, a[0]), a[1:]
		}
	}
	return append(append(all, a...), b...)
}
