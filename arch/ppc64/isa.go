package ppc64

import "xol/classify"

// ISA is the instruction set architecture in one byte order. The zero value is
// the big-endian one.
type ISA struct {
	LittleEndian bool // of instructions and data
}

// Name returns "ppc64" or "ppc64le".
func (a ISA) Name() string {
	if a.LittleEndian {
		return "ppc64le"
	}
	return "ppc64"
}

// Align returns the alignment of instructions in bytes.
func (ISA) Align() int { return 4 }

// Profile returns the ISA's rules under one of the names of package classify.
func (ISA) Profile(name string, opt classify.KernelOptions) (classify.Profile, bool) {
	return nil, false
}
