package ppc64

import (
	"slices"

	"xol/decode"
	"xol/machine"
)

// redZone is the number of bytes below the stack pointer that a function may
// use and signal handlers keep: 512 in the ELFv2 ABI, which covers the 288 of
// ELFv1 [OpenPOWER ELFv2 ABI, 2.2.3.4].
const redZone = 512

// DeadRegisters returns 0: far jumps go through TAR, and other registers can be saved.
func (ISA) DeadRegisters(*decode.Inst) uint32 { return 0 }

// StackScratch returns the addresses below the stack pointer sp that moved
// code may overwrite.
func (ISA) StackScratch(sp uint64) (lo, hi uint64) { return sp - redZone - frameBytes, sp - redZone }

// Registers returns the register file that user code sees.
func (ISA) Registers() *machine.File { return Registers() }

// UndefinedFlags returns 0: the condition register's fields that an
// instruction writes are defined.
func (ISA) UndefinedFlags(*decode.Inst) uint64 { return 0 }

// Prepare does nothing: no instruction repeats itself, and none traps on an
// operand unless it is a trap.
func (ISA) Prepare(*decode.Inst, *machine.File, machine.State) {}

const (
	opXMask = 63<<26 | 1023<<1
	opMFSPR = 31<<26 | 339<<1
	opMFTB  = 31<<26 | 371<<1
	opDARN  = 31<<26 | 755<<1
	opWAIT  = 31<<26 | 30<<1
)

// steadySPRs are the special-purpose registers whose values are a program's
// own.
var steadySPRs = [...]uint32{sprXER, sprLR, sprCTR, sprVRSAVE, sprTAR}

// Numbers of special-purpose registers.
const (
	sprXER    = 1
	sprLR     = 8
	sprCTR    = 9
	sprVRSAVE = 256
	sprTAR    = 815
)

// sprOf returns the number of the special-purpose register in an instruction,
// whose halves stand the other way round, and sprField the field with it.
func sprOf(word uint32) uint32 { return word>>16&31 | word>>11&31<<5 }
func sprField(n uint32) uint32 { return n&31<<16 | n>>5<<11 }

// Volatile reports whether the result of inst varies from run to run or from
// CPU to CPU: clocks, random numbers, identification.
func Volatile(inst *decode.Inst) bool {
	if inst.Len != wordSize {
		return false
	}
	word := WordOf(inst)
	switch word & opXMask {
	case opMFTB, opDARN, opWAIT:
		return true
	case opMFSPR:
		return !slices.Contains(steadySPRs[:], sprOf(word))
	}
	return false
}
