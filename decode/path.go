package decode

import "sort"

// From returns the index of the first instruction at or behind addr, in
// instructions sorted by address; their number where there is none.
func From(insts []Inst, addr uint64) int {
	return sort.Search(len(insts), func(i int) bool { return insts[i].Addr >= addr })
}

// EndsPath reports whether execution cannot go from i to the next instruction
// without having been elsewhere.
func (i *Inst) EndsPath() bool {
	return i.Has(Invalid) || i.Flow != FlowNone && !i.Has(Conditional)
}

// Path returns the straight path that instruction i is part of, as the range
// of indices [from, to): execution goes from each to the next unless a branch
// is taken.
func Path(insts []Inst, i int) (from, to int) {
	from, to = i, i+1
	for from > 0 && !insts[from-1].EndsPath() {
		from--
	}
	for to < len(insts) && !insts[to-1].EndsPath() {
		to++
	}
	return from, to
}
