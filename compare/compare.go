// Package compare says what is otherwise for probes in one analysis than in
// another: of two builds of a program or kernel, or of one file by two profiles.
// Functions are matched by name, instructions by what they say, not by where they
// stand.
package compare

import (
	"context"
	"fmt"
	"slices"

	"xol/analyze"
	"xol/decode"
	"xol/image"
)

// ArchError says that two files are of different instruction sets, so that none of
// their instructions can be matched.
type ArchError struct{ A, B string }

func (e *ArchError) Error() string {
	return fmt.Sprintf("one file is for %s, the other for %s", e.A, e.B)
}

// Status says what became of a function from A to B.
type Status uint8

// What may become of a function.
const (
	Same    Status = iota
	Moved          // the same instructions at another address
	Changed        // other instructions
	Added          // only in B
	Removed        // only in A
	statuses
)

var statusNames = [statuses]string{"same", "moved", "changed", "added", "removed"}

// String returns the status in one word.
func (s Status) String() string {
	if s < statuses {
		return statusNames[s]
	}
	return "invalid"
}

// Pair is an instruction of A and the one of B that it became, by their indices in
// the results. Where there is none on a side its index is -1.
type Pair struct {
	A, B int
	// Same reports whether both do the same, apart from where they stand and where
	// what they refer to stands.
	Same bool
}

// Function is what became of a function.
type Function struct {
	Status Status
	// A and B are the function as it was judged, nil where it is not. They are valid
	// during the call that gets them only.
	A, B *analyze.Result
	// Pairs are all instructions of both, in order.
	Pairs   []Pair
	Insts   Insts
	Changes []Change // of answers, in the order of Pairs; that on returns comes first
}

// Name returns the function's name in A or, where it is not there, in B.
func (f *Function) Name() string {
	if f.A != nil {
		return f.A.Function.Name
	}
	return f.B.Function.Name
}

// Insts counts instructions by what became of them.
type Insts struct {
	Same    int
	Altered int // another operand, for example
	Added   int
	Removed int
}

func (n *Insts) merge(o *Insts) {
	n.Same += o.Same
	n.Altered += o.Altered
	n.Added += o.Added
	n.Removed += o.Removed
}

// Comparison is ready to compare the functions of two analyses.
type Comparison struct {
	a, b  *analyze.Analysis
	fa    []image.Function
	fb    []image.Function
	match map[uint64]int // from the address of a function of A to an index in fb
	alone []image.Function
}

// New matches the functions of A with those of B. Functions that keep reports false
// of are left out; a nil keep keeps all. It returns an *ArchError where there is
// nothing to compare.
func New(a, b *analyze.Analysis, keep func(*image.Function) bool) (*Comparison, error) {
	if a.ISA.Name() != b.ISA.Name() {
		return nil, &ArchError{a.ISA.Name(), b.ISA.Name()}
	}
	c := &Comparison{a: a, b: b, fa: kept(a, keep), fb: kept(b, keep), match: map[uint64]int{}}
	partner, taken := matchFunctions(a, b, c.fa, c.fb)
	for i, j := range partner {
		if j >= 0 {
			c.match[c.fa[i].Addr] = j
		}
	}
	for j := range c.fb {
		if !taken[j] {
			c.alone = append(c.alone, c.fb[j])
		}
	}
	return c, nil
}

func kept(a *analyze.Analysis, keep func(*image.Function) bool) []image.Function {
	if keep == nil {
		return a.Functions()
	}
	return slices.DeleteFunc(slices.Clone(a.Functions()), func(f image.Function) bool { return !keep(&f) })
}

// Size returns the bytes of text that Gather will go over in A, and in B what is
// not in A.
func (c *Comparison) Size() (n uint64) {
	for i := range c.fa {
		n += c.fa[i].Size
	}
	for i := range c.alone {
		n += c.alone[i].Size
	}
	return n
}

// worker is what gathers functions, and the memory for doing so.
type worker[T any] struct {
	value T
	b     analyze.Result
	f     Function
	align aligner
}

// Gather compares all functions and gathers what they add up to, as analyze.Gather
// does: in the order of their addresses in A, and after them those that are only in
// B. add is called on several goroutines, for several T; emit on the caller's.
func Gather[T any](ctx context.Context, c *Comparison, add func(*T, *Function), emit func(*T) error) error {
	emitted := func(w *worker[T]) error { return emit(&w.value) }
	err := analyze.Gather(ctx, c.a, c.fa, func(w *worker[T], a *analyze.Result) {
		w.f.start(a, nil)
		if j, ok := c.match[a.Function.Addr]; ok {
			c.b.JudgeTo(ctx, &w.b, c.fb[j])
			w.f.B = &w.b
		}
		c.compare(&w.f, &w.align)
		add(&w.value, &w.f)
	}, emitted)
	if err != nil {
		return err
	}
	return analyze.Gather(ctx, c.b, c.alone, func(w *worker[T], b *analyze.Result) {
		w.f.start(nil, b)
		c.compare(&w.f, &w.align)
		add(&w.value, &w.f)
	}, emitted)
}

func (f *Function) start(a, b *analyze.Result) {
	*f = Function{A: a, B: b, Pairs: f.Pairs[:0], Changes: f.Changes[:0]}
}

// compare fills in what became of f.
func (c *Comparison) compare(f *Function, al *aligner) {
	switch {
	case f.B == nil:
		f.Status, f.Insts.Removed = Removed, len(f.A.Insts)
		for i := range f.A.Insts {
			f.Pairs = append(f.Pairs, Pair{i, -1, false})
		}
		return
	case f.A == nil:
		f.Status, f.Insts.Added = Added, len(f.B.Insts)
		for i := range f.B.Insts {
			f.Pairs = append(f.Pairs, Pair{-1, i, false})
		}
		return
	}
	al.start()
	al.a = keys(al.a, c.a, f.A)
	al.b = keys(al.b, c.b, f.B)
	f.Pairs = al.pairs(f.Pairs, f.A.Insts, f.B.Insts, func(inst *decode.Inst) uint64 { return weakKey(c.a, inst) })
	f.count()
	if r := returnChange(c, f); r.Before != r.After {
		f.Changes = append(f.Changes, r)
	}
	for k := range f.Pairs {
		if p := &f.Pairs[k]; p.A >= 0 && p.B >= 0 {
			f.Changes = appendChanges(f.Changes, f, k)
		}
	}
}

// count counts the pairs.
func (f *Function) count() {
	n := &f.Insts
	for _, p := range f.Pairs {
		switch {
		case p.B < 0:
			n.Removed++
		case p.A < 0:
			n.Added++
		case p.Same:
			n.Same++
		default:
			n.Altered++
		}
	}
	switch {
	case n.Same < len(f.Pairs):
		f.Status = Changed
	case f.A.Function.Addr != f.B.Function.Addr:
		f.Status = Moved
	}
}
