package optcheck

import (
	"slices"

	"xol/classify"
)

// RefuseAll returns an Optimizer that refuses by r wherever a probe may be.
func RefuseAll(r *classify.Rule) Optimizer { return refuser{r} }

type refuser struct{ rule *classify.Rule }

func (refuser) WholeProgram() bool { return false }

// Func appends the verdicts; see Optimizer.
func (r refuser) Func(dst []Verdict, f *Function, _ *Scratch) []Verdict {
	dst = slices.Grow(dst, len(f.Verdicts))
	for i := range f.Verdicts {
		v := Verdict{}
		if f.Verdicts[i].OK() {
			v.Rule = r.rule
		}
		dst = append(dst, v)
	}
	return dst
}

// What Linux refuses on every architecture.
var (
	linuxFtrace = classify.Rule{
		ID:     "linux/optimize-ftrace",
		Reason: "ftrace calls the probe's handlers from its site, and leaves nothing for a jump to replace",
		Remedy: "probe the instruction after the site",
	}
	linuxUprobe = classify.Rule{
		ID:     "linux/uprobe-no-jump",
		Reason: "uprobes stay breakpoints, but for a few NOPs that become calls since 6.18",
		Remedy: "the profile isa shows where a jump would be possible",
	}
)

// LinuxUprobes returns the Optimizer of uprobes, which Linux has none for.
func LinuxUprobes() Optimizer { return RefuseAll(&linuxUprobe) }

// LinuxKprobe judges by what is the same on every architecture that optimizes
// kprobes, and reports whether that decides: an address that takes no probe, which
// no rule speaks of, or one that ftrace calls [kernel/kprobes.c,
// try_to_optimize_kprobe].
func LinuxKprobe(v *classify.Verdict) (rule *classify.Rule, decided bool) {
	switch {
	case !v.OK():
		return nil, true
	case v.Exec == classify.ExecFtrace:
		return &linuxFtrace, true
	}
	return nil, false
}
