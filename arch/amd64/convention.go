package amd64

import "xol/machine"

var convention = machine.Convention{
	Args:         []int{RDI, RSI, RDX, RCX, R8, R9},
	Result:       RAX,
	Link:         -1,
	Entry:        -1,
	TOC:          -1,
	Env:          -1,
	RedZone:      redZone,
	Misalignment: addressBytes, // the return address
}

// Convention returns how functions are called [System V ABI, AMD64 supplement,
// 3.2].
func (ISA) Convention() *machine.Convention { return &convention }
