package arm64

import "xol/classify"

// The branches of Linux of which something is known.
var (
	linux5_10 = classify.Linux(5, 10)
	linux6_1  = classify.Linux(6, 1)
	linux6_12 = classify.Linux(6, 12)
	linux7_3  = classify.Linux(7, 3)
)

// known are the versions of which it is known how they answer: the kernels were
// asked. 5.10 was at patch level 218 then; what its later levels do otherwise is
// read in their source.
var known = classify.Known{
	Kprobes: classify.Releases{linux5_10, linux6_1, linux6_12, linux7_3},
	Uprobes: classify.Releases{linux5_10, linux5_10.Patch(262), linux6_1, linux6_12, linux7_3},
}

// Profiles returns the names of the ISA's profiles. That of a version between
// two of them is answered by the older one.
func (ISA) Profiles() []string { return known.Names() }

// uprobeLiterals are the versions whose uprobes simulate the load of a literal.
var uprobeLiterals = until(linux5_10.Patch(262))

// exclusiveMask returns the bits by which the kernel tells exclusive loads and
// stores from others when it looks for a sequence around a probe. Before 7.3 it
// leaves out one, and takes acquire loads, release stores and compare-and-swap for
// exclusive.
func exclusiveMask(v classify.Version) uint32 {
	if since(linux7_3).Holds(v) {
		return 0x3fc00000
	}
	return 0x3f400000
}

func since(v classify.Version) classify.Span { return classify.Span{Since: v} }
func until(v classify.Version) classify.Span { return classify.Span{Until: v} }
