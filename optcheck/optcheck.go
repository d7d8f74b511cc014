// Package optcheck decides whether a breakpoint may become a jump. It looks at
// a function as a whole: which instructions the jump would replace, who can
// land inside, what must stay in place, and whether the rest can run in a
// detour buffer. What is true of one ISA only is in arch/<isa>.
package optcheck

import (
	"xol/classify"
	"xol/place"
)

// Verdict says whether the breakpoint on one instruction may become a jump.
// The zero value is the verdict on an instruction that cannot be probed.
type Verdict struct {
	Rule    *classify.Rule // why not; nil where it may, or where Region is 0
	Culprit uint64         // address of what stands in the way; 0 where the rule speaks of the instruction itself
	Region  uint8          // bytes of the whole instructions that the jump replaces; 0 where it may not
}

// OK reports whether the breakpoint may become a jump.
func (v *Verdict) OK() bool { return v.Region != 0 }

// Refuse returns the verdict that rule r forbids the jump.
func Refuse(r *classify.Rule, culprit uint64) Verdict { return Verdict{Rule: r, Culprit: culprit} }

// Function is what an Optimizer is asked about.
type Function struct {
	*classify.Func
	// Verdicts are those of the same profile on each of Insts.
	Verdicts []classify.Verdict
	// Landings are those in the function that do not come from its own
	// instructions, sorted by address. Kernel profiles do not ask for them.
	Landings place.Landings
	// Armed are the addresses of other armed probes, sorted.
	Armed []uint64
	// Memory holds the jump tables; nil where there is none.
	Memory Memory
}

// Optimizer judges by one profile. It is immutable and safe for concurrent
// use.
type Optimizer interface {
	// Func appends one verdict for each of f.Insts. It needs O(n). s is
	// memory that may be used again by the next call.
	Func(dst []Verdict, f *Function, s *Scratch) []Verdict
}

// WholeProgram is implemented by an Optimizer that needs Function.Landings and
// Memory.
type WholeProgram interface{ NeedsLandings() bool }

// Scratch is the working memory of an Optimizer, for one call at a time. The
// zero value is ready.
type Scratch struct {
	landings place.Landings
	who      []uint32
}
