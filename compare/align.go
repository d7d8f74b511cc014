package compare

import (
	"hash/maphash"
	"slices"

	"xol/decode"
)

// aligner finds which instructions became which.
type aligner struct {
	a, b    []uint64
	weak    [2][]uint64
	matched [][2]int // indices with equal keys, both ascending
	kinds   [][2]int
}

func (al *aligner) start() {
	al.a, al.b = al.a[:0], al.b[:0]
	al.matched, al.kinds = al.matched[:0], al.kinds[:0]
}

// pairs appends the pairs of all instructions: those with equal keys and, between
// them, those of the same kind, which weak gives a number.
func (al *aligner) pairs(dst []Pair, a, b []decode.Inst, weak func(*decode.Inst) uint64) []Pair {
	al.matched = align(al.matched, al.a, al.b, 0, 0)
	ia, ib := 0, 0
	for _, m := range append(al.matched, [2]int{len(a), len(b)}) {
		dst = al.between(dst, a[ia:m[0]], b[ib:m[1]], weak, ia, ib)
		if m[0] < len(a) {
			dst = append(dst, Pair{m[0], m[1], true})
		}
		ia, ib = m[0]+1, m[1]+1
	}
	return dst
}

// between appends the pairs of instructions that stand between two equal ones. The
// first of a has the index ia, that of b ib.
func (al *aligner) between(dst []Pair, a, b []decode.Inst, weak func(*decode.Inst) uint64, ia, ib int) []Pair {
	if len(a) > 0 && len(b) > 0 {
		al.weak[0], al.weak[1] = keysBy(al.weak[0][:0], a, weak), keysBy(al.weak[1][:0], b, weak)
		al.kinds = align(al.kinds[:0], al.weak[0], al.weak[1], 0, 0)
	} else {
		al.kinds = al.kinds[:0]
	}
	x, y := 0, 0
	for _, m := range append(al.kinds, [2]int{len(a), len(b)}) {
		for ; x < m[0]; x++ {
			dst = append(dst, Pair{ia + x, -1, false})
		}
		for ; y < m[1]; y++ {
			dst = append(dst, Pair{-1, ib + y, false})
		}
		if m[0] < len(a) {
			dst = append(dst, Pair{ia + m[0], ib + m[1], false})
		}
		x, y = m[0]+1, m[1]+1
	}
	return dst
}

func keysBy(dst []uint64, insts []decode.Inst, key func(*decode.Inst) uint64) []uint64 {
	for i := range insts {
		dst = append(dst, key(&insts[i]))
	}
	return dst
}

// align appends the indices of equal elements of a and b, ascending in both, as many
// as it finds at once: what both start and end with, what there is once in each, and
// between these, where little is left, as many as there can be. The first of a counts
// as ia, that of b as ib.
func align(dst [][2]int, a, b []uint64, ia, ib int) [][2]int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		dst = append(dst, [2]int{ia, ib})
		a, b, ia, ib = a[1:], b[1:], ia+1, ib+1
	}
	tail := 0
	for tail < len(a) && tail < len(b) && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	endA, endB := ia+len(a)-tail, ib+len(b)-tail
	dst = alignMiddle(dst, a[:len(a)-tail], b[:len(b)-tail], ia, ib)
	for i := range tail {
		dst = append(dst, [2]int{endA + i, endB + i})
	}
	return dst
}

// Bounds on the table for the longest common subsequence: where it is used at once,
// and where it is used if nothing tells how to cut the lists.
const (
	smallTable = 1 << 14
	maxTable   = 1 << 20
)

// anchorRuns are how many elements in a row have to be the only such in each list for
// the lists to be cut there: the longer the surer.
var anchorRuns = [...]int{5, 3, 1}

func alignMiddle(dst [][2]int, a, b []uint64, ia, ib int) [][2]int {
	switch {
	case len(a) == 0 || len(b) == 0:
		return dst
	case len(a)*len(b) <= smallTable:
		return longest(dst, a, b, ia, ib)
	}
	var anchors [][2]int
	for _, n := range anchorRuns {
		if anchors = increasing(unique(runs(a, n), runs(b, n))); len(anchors) > 0 {
			break
		}
	}
	if len(anchors) == 0 {
		if len(a)*len(b) <= maxTable {
			return longest(dst, a, b, ia, ib)
		}
		half := func(s []uint64) int { return len(s) / 2 }
		dst = align(dst, a[:half(a)], b[:half(b)], ia, ib)
		return align(dst, a[half(a):], b[half(b):], ia+half(a), ib+half(b))
	}
	x, y := 0, 0
	for _, m := range anchors {
		dst = align(dst, a[x:m[0]], b[y:m[1]], ia+x, ib+y)
		dst = append(dst, [2]int{ia + m[0], ib + m[1]})
		x, y = m[0]+1, m[1]+1
	}
	return align(dst, a[x:], b[y:], ia+x, ib+y)
}

// runs returns a number for each n elements in a row.
func runs(list []uint64, n int) []uint64 {
	if n == 1 || len(list) < n {
		return list[:max(len(list)-n+1, 0)]
	}
	out := make([]uint64, len(list)-n+1)
	for i := range out {
		for _, v := range list[i : i+n] {
			out[i] = maphash.Comparable(seed, [2]uint64{out[i], v})
		}
	}
	return out
}

// unique returns where the elements are that a and b have once each, in the order
// of a.
func unique(a, b []uint64) (both [][2]int) {
	const several = -1
	in := make(map[uint64]int, len(b))
	for i, v := range b {
		if _, ok := in[v]; ok {
			in[v] = several
		} else {
			in[v] = i
		}
	}
	count := make(map[uint64]int, len(a))
	for _, v := range a {
		count[v]++
	}
	for i, v := range a {
		if j, ok := in[v]; ok && j != several && count[v] == 1 {
			both = append(both, [2]int{i, j})
		}
	}
	return both
}

// increasing returns the longest run of pairs, ascending on their left, that
// ascends on their right as well.
func increasing(pairs [][2]int) [][2]int {
	var ends []int // by length-1: the pair that the run ends with
	before := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(ends, p[1], func(k, right int) int { return pairs[k][1] - right })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	run := make([][2]int, len(ends))
	for k, i := len(ends)-1, last(ends); i >= 0; k, i = k-1, before[i] {
		run[k] = pairs[i]
	}
	return run
}

func last(list []int) int {
	if len(list) == 0 {
		return -1
	}
	return list[len(list)-1]
}

// longest appends a longest common subsequence.
func longest(dst [][2]int, a, b []uint64, ia, ib int) [][2]int {
	width := len(b) + 1
	length := make([]int32, (len(a)+1)*width) // of that of a[i:] and b[j:]
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			dst = append(dst, [2]int{ia + i, ib + j})
			i, j = i+1, j+1
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return dst
}
