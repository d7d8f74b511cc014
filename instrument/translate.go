package instrument

import (
	"sort"
)

// step returns the index of the point that an offset in the copy belongs to.
func (c *Copy) step(offset uint32) int {
	return sort.Search(len(c.Points), func(i int) bool { return c.Points[i].Offset > offset }) - 1
}

// At returns the index of the point of the instruction that starts at an original
// address; ok is false where none does that has moved.
func (c *Copy) At(orig uint64) (step int, ok bool) {
	off := orig - c.Orig
	if off > 1<<32-1 {
		return 0, false
	}
	step = sort.Search(len(c.Points), func(i int) bool { return c.Points[i].Orig >= uint32(off) })
	return step, step < len(c.Points) && c.Points[step].Orig == uint32(off) && !c.Points[step].Left
}

// Covers reports whether an original address is between the first and the last
// instruction of the copy.
func (c *Copy) Covers(orig uint64) bool { return orig-c.Orig < uint64(c.Span()) }

// Span is how many bytes of the original the copy stands for, from its first instruction.
func (c *Copy) Span() uint32 {
	last := &c.Points[len(c.Points)-1]
	return last.Orig + uint32(last.Len)
}

// ItemsUntil returns how many items are before a step, or at it.
func (c *Copy) ItemsUntil(step int) int {
	return sort.Search(len(c.Items), func(i int) bool { return c.Items[i].Step > uint32(step) })
}

// Correction is what counts of a copy are wrong by: N has to be added to the counts of
// the steps from First to Last of a run.
type Correction struct {
	Counter     uint64 // address of the run's counter
	First, Last int
	N           int64
}

// runOf returns the run that a step is in.
func (c *Copy) runOf(step int) (i int, ok bool) {
	i = sort.Search(len(c.Runs), func(i int) bool { return c.Runs[i].Last >= step })
	return i, i < len(c.Runs) && c.Runs[i].First <= step
}

func (c *Copy) correction(step int, n int64) (Correction, bool) {
	i, ok := c.runOf(step)
	if !ok {
		return Correction{}, false
	}
	return Correction{Counter: c.Counters + counterSize*uint64(i), First: step, Last: c.Runs[i].Last, N: n}, true
}

// Enter returns where in the copy a thread goes on that is at an original address, and
// what the counts are then to be corrected by: in the middle of a run, nothing counts
// what is left of it.
func (c *Copy) Enter(step int) (pc uint64, fix Correction, fixed bool) {
	p := &c.Points[step]
	if i, ok := c.runOf(step); ok && c.Runs[i].First != step {
		fix, fixed = c.correction(step, 1)
	}
	return c.Addr + uint64(p.Offset), fix, fixed
}

// Where says where in a copy a thread is.
type Where struct {
	Step int
	// Item is the one that it is in, by its index; -1 where it is at the instruction
	// itself, or in it.
	Item int
	// Start is where that starts, in the copy.
	Start uint32
}

// Locate returns where a program counter in the copy is; ok is false at the jump back.
func (c *Copy) Locate(pc uint64) (w Where, ok bool) {
	off := uint32(pc - c.Addr)
	if off >= c.Back {
		return w, false
	}
	step := c.step(off)
	p := &c.Points[step]
	if off >= p.Body {
		return Where{step, -1, p.Body}, true
	}
	i := sort.Search(len(c.Items), func(i int) bool { return c.Items[i].Offset > off }) - 1
	return Where{step, i, c.Items[i].Offset}, true
}

// Leave returns what the counts are to be corrected by when a thread leaves the copy
// before a step that its run has counted already.
func (c *Copy) Leave(step int, counted bool) (Correction, bool) {
	i, ok := c.runOf(step)
	if !ok || c.Runs[i].First == step && !counted {
		return Correction{}, false
	}
	return c.correction(step, -1)
}
