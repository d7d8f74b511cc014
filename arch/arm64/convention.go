package arm64

import "xol/machine"

var convention = machine.Convention{
	Args:   []int{X0, X0 + 1, X0 + 2, X0 + 3, X0 + 4, X0 + 5, X0 + 6, X0 + 7},
	Result: X0,
	Link:   X0 + linkRegister,
	Entry:  -1,
	TOC:    -1,
	Env:    -1,
}

// Convention returns how functions are called [AAPCS64, 6].
func (ISA) Convention() *machine.Convention { return &convention }
