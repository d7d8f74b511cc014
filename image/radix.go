package image

import (
	"cmp"
	"math/bits"
	"slices"
)

// radixSorted returns s sorted by key, stably, in its own memory or in other. The keys
// of addresses differ in few bits, which makes this several times as fast as comparing
// them.
func radixSorted[T any](s []T, key func(*T) uint64) []T {
	if len(s) < 2 {
		return s
	}
	keys := room[uint64](len(s))
	for i := range s {
		keys[i] = key(&s[i])
	}
	r := rangeOf(keys)
	switch {
	case r.sorted:
		return s
	case bits.Len64(r.span)+bits.Len(uint(len(s)-1)) > 64:
		slices.SortStableFunc(s, func(a, b T) int { return cmp.Compare(key(&a), key(&b)) })
		return s
	}
	order := r.order(keys)
	sorted := room[T](len(s))[:0]
	for _, part := range [][]uint64{order[r.high:], order[:r.high]} { // order[r.high:] is the lower half of the numbers
		for _, k := range part {
			sorted = append(sorted, s[k&(1<<r.indexBits-1)])
		}
	}
	return sorted
}

// keyRange is where the keys lie.
type keyRange struct {
	lo, span  uint64 // all are in [lo, lo+span], modulo 1<<64
	high      int    // how many of these come first but are the larger numbers
	sorted    bool
	indexBits int
}

func rangeOf(keys []uint64) keyRange {
	lo, hi := keys[0], keys[0]
	slo, shi := int64(lo), int64(hi)
	last, sorted, negative := lo, true, 0
	for _, k := range keys {
		sorted = sorted && k >= last
		last = k
		lo, hi = min(lo, k), max(hi, k)
		slo, shi = min(slo, int64(k)), max(shi, int64(k))
		if int64(k) < 0 {
			negative++
		}
	}
	r := keyRange{lo: lo, span: hi - lo, sorted: sorted, indexBits: bits.Len(uint(len(keys) - 1))}
	if span := uint64(shi - slo); span < r.span {
		r.lo, r.span, r.high = uint64(slo), span, negative
	}
	return r
}

// order returns the indices of the keys in the order of the keys from lo on, each
// in the low bits of a word that it may overwrite.
func (r *keyRange) order(keys []uint64) []uint64 {
	const (
		digit = 11
		mask  = 1<<digit - 1
	)
	for i, k := range keys {
		keys[i] = (k-r.lo)<<r.indexBits | uint64(i)
	}
	from, to := keys, room[uint64](len(keys))
	for shift := r.indexBits; shift < 64 && r.span>>(shift-r.indexBits) != 0; shift += digit {
		var next [mask + 1]int
		for _, k := range from {
			next[k>>shift&mask]++
		}
		sum := 0
		for d, n := range next {
			next[d] = sum
			sum += n
		}
		for _, k := range from {
			d := k >> shift & mask
			to[next[d]] = k
			next[d]++
		}
		from, to = to, from
	}
	return from
}
