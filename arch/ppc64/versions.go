package ppc64

import "xol/classify"

// The branches of Linux of which something is known.
var (
	linux6_1  = classify.Linux(6, 1)
	linux6_12 = classify.Linux(6, 12)
	linux7_3  = classify.Linux(7, 3)
)

// known are the versions of which it is known how they answer: the kernels were
// asked. They answered alike, about every instruction.
var known = classify.Known{
	Kprobes: classify.Releases{linux6_1, linux6_12, linux7_3},
	Uprobes: classify.Releases{linux6_1, linux6_12, linux7_3},
}

// Profiles returns the names of the ISA's profiles. That of a version between
// two of them is answered by the older one.
func (ISA) Profiles() []string { return known.Names() }
