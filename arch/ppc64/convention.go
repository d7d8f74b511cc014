package ppc64

import "xol/machine"

// envRegister holds the environment of a called function, which C does not use.
const envRegister = 11

var argumentRegisters = []int{R0 + 3, R0 + 4, R0 + 5, R0 + 6, R0 + 7, R0 + 8, R0 + 9, R0 + 10}

// elfV1 has function descriptors. Some big-endian programs follow ELFv2 instead,
// for which the entry is held as well.
var elfV1 = machine.Convention{
	Args:    argumentRegisters,
	Result:  R0 + 3,
	Link:    LR,
	Entry:   R0 + entryReg,
	TOC:     R0 + tocRegister,
	Env:     R0 + envRegister,
	RedZone: redZone,
	Frame:   callerArea,
}

// elfV2 has functions that make their TOC pointer of their own address.
var elfV2 = machine.Convention{
	Args:    argumentRegisters,
	Result:  R0 + 3,
	Link:    LR,
	Entry:   R0 + entryReg,
	TOC:     -1,
	Env:     -1,
	RedZone: redZone,
	Frame:   32 + 64, // the header, and room for the arguments in registers
}

// Convention returns how functions are called: by the OpenPOWER ELFv2 ABI in
// little-endian byte order, by the 64-bit PowerPC ELF ABI (ELFv1) in the other.
func (a ISA) Convention() *machine.Convention {
	if a.LittleEndian {
		return &elfV2
	}
	return &elfV1
}
