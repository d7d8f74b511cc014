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
	Rule    *classify.Rule // why not; nil where it may, and where no probe may be
	Culprit uint64         // address of what stands in the way; 0 where the rule speaks of the instruction itself
	// Region is the number of bytes that the jump replaces, whole instructions;
	// 0 where it may not.
	Region uint8
	// Moved is the number of bytes at the start of the region that run in the
	// detour buffer. The rest of it is never executed: it lies after a jump or
	// return.
	Moved uint8
	// Depends says that the answer is another one on another CPU, for which a
	// kernel writes other text while it boots, or with other jump labels.
	Depends bool
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
	// Landings are those in the function and its slack that its own direct
	// branches and calls do not tell, sorted by address.
	Landings place.Landings
	// Unresolved are the function's indirect jumps of which it is not known
	// where they go.
	Unresolved []Unresolved
	// Unread says that a part of the file that tells of landings could not be
	// read.
	Unread bool
	// Slack is the number of bytes after the function that are padding.
	Slack uint64
	// Armed are the addresses of other armed probes, sorted.
	Armed []uint64
}

// Optimizer judges by one profile. It is immutable and safe for concurrent
// use.
type Optimizer interface {
	// Func appends one verdict for each of f.Insts. It needs O(n). s is
	// memory that may be used again by the next call.
	Func(dst []Verdict, f *Function, s *Scratch) []Verdict
	// WholeProgram reports whether it needs the Landings, Unresolved and
	// Slack of a Function.
	WholeProgram() bool
}
