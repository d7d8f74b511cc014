package place

import "sort"

// Index finds the marks that touch a range. It is immutable and safe for
// concurrent use; the zero value holds no marks.
type Index struct {
	buckets [len(bucketLimits)]Marks
}

// Marks are kept by length, so that the few that span whole sections do not
// slow the search for the many of a few bytes.
var bucketLimits = [...]uint64{16, 4096, 1<<64 - 1}

// NewIndex builds an index over marks in any order.
func NewIndex(marks Marks) *Index {
	x := new(Index)
	var counts [len(bucketLimits)]int
	for i := range marks {
		counts[bucketOf(marks[i].Len)]++
	}
	for b, n := range counts {
		x.buckets[b] = make(Marks, 0, n)
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

// Touching appends to dst the marks that share a byte with [lo, hi), sorted by
// address, and returns it.
func (x *Index) Touching(dst Marks, lo, hi uint64) Marks {
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
