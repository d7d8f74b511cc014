// Package toy is an ISA of five instructions. It has what an ISA starts with,
// static analysis, and moves instructions one by one; tests add it to the ISAs
// that xol supports. It shows what README.md of package arch lists.
//
// An instruction has 4 bytes: a number, and operands in little-endian order.
//
//	add  r, i   1, the register, 16 bits
//	jz   r, to  2, the register, 16 bits: the distance in words
//	jump to     3, 24 bits: the distance in words
//	call to     4, likewise
//	ret         5, zero
package toy

import (
	"debug/elf"
	"encoding/binary"
)

// ISA is the instruction set architecture. The zero value is ready to use.
type ISA struct{}

// Machine is the number in ELF headers.
const Machine = elf.Machine(0xfee1)

// Name returns "toy".
func (ISA) Name() string { return "toy" }

// Aliases returns other names of the ISA.
func (ISA) Aliases() []string { return []string{"toy32"} }

// Machine returns the machine of ELF files.
func (ISA) Machine() elf.Machine { return Machine }

// ByteOrder returns the order of bytes in data.
func (ISA) ByteOrder() binary.ByteOrder { return binary.LittleEndian }

const wordSize = 4

// Align returns the alignment of instructions in bytes.
func (ISA) Align() int { return wordSize }
