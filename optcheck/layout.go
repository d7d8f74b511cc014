package optcheck

import (
	"math"
	"math/bits"
	"slices"
)

// Offsets is a set of byte offsets in a function. reset comes first; offsets
// that it makes no room for are ignored, and never in the set.
type Offsets struct{ words []uint64 }

// reset empties the set and makes room for the offsets below n.
func (o *Offsets) reset(n uint64) {
	o.words = resize(o.words, int(n/64)+2) // one more than they need, for Window
}

// Add adds off.
func (o *Offsets) Add(off uint64) {
	if i := off / 64; i < uint64(len(o.words)) {
		o.words[i] |= 1 << (off % 64)
	}
}

// Has reports whether off is in the set.
func (o *Offsets) Has(off uint64) bool { return o.Window(off)&1 != 0 }

// Window returns which of the offsets from off on are in the set: bit k says it
// of off + k.
func (o *Offsets) Window(off uint64) uint64 {
	i := off / 64
	if i+1 >= uint64(len(o.words)) {
		return 0
	}
	// A shift by 64 gives 0.
	return o.words[i]>>(off%64) | o.words[i+1]<<(64-off%64)
}

// Within returns the lowest offset in [off, off+n); n is at most 64.
func (o *Offsets) Within(off, n uint64) (first uint64, ok bool) {
	w := o.Window(off) & (1<<n - 1)
	return off + uint64(bits.TrailingZeros64(w)), w != 0
}

// Layout is what an Optimizer that counts a function's instructions itself
// notes of them, by their offsets.
type Layout struct {
	Starts  Offsets  // of instructions, and the function's end as they give it
	Fixed   Offsets  // instructions that must not be moved
	Targets Offsets  // of direct branches, the function's end among them
	from    []uint32 // by target: offset of the first branch that goes there
}

// Layout returns an empty layout for a function of n bytes, in the memory of s.
func (s *Scratch) Layout(n uint64) *Layout {
	l := &s.layout
	size := n + 64 // the last instruction may reach beyond the end
	l.Starts.reset(size)
	l.Fixed.reset(size)
	l.Targets.reset(size)
	l.from = slices.Grow(l.from[:0], int(size))[:size]
	return l
}

// Branch notes that the direct branch at from, an offset, goes to target.
// Branches come in order.
func (l *Layout) Branch(from, target uint64) {
	if target >= uint64(len(l.from)) || l.Targets.Has(target) {
		return
	}
	l.Targets.Add(target)
	l.from[target] = uint32(from)
}

// BranchInto returns the offset of the first branch that goes to
// [off, off+n); n is at most 64.
func (l *Layout) BranchInto(off, n uint64) (from uint64, ok bool) {
	w := l.Targets.Window(off) & (1<<n - 1)
	if w == 0 {
		return 0, false
	}
	return l.firstBranch(off, w), true
}

// firstBranch returns the offset of the first branch that goes to one of the offsets
// off + k for which bit k of targets is set.
func (l *Layout) firstBranch(off, targets uint64) uint64 {
	first := uint32(math.MaxUint32)
	for w := targets; w != 0; w &= w - 1 {
		first = min(first, l.from[off+uint64(bits.TrailingZeros64(w))])
	}
	return uint64(first)
}
