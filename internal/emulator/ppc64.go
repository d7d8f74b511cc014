//go:build unicorn

package emulator

import (
	"xol/arch/ppc64"
	"xol/decode"
	"xol/internal/unicorn"
	"xol/machine"
)

// The engine's numbers of exceptions on ppc64.
const (
	ppc64Alignment   = 5
	ppc64Illegal     = 96
	ppc64Unavailable = 95
	ppc64SystemCall  = 8
)

func ppc64Model(f *machine.File, arch unicorn.Arch) Model {
	isa := ppc64.ISA{LittleEndian: arch == unicorn.PPC64LE}
	s := Model{
		Arch:      arch,
		Constants: []Constant{{unicorn.PPCMSR, isa.MachineState()}},
		Defect:    ppc64Defect,
		NewExecutor: func() Executor {
			return ppc64Executor{isa, ppc64.NewPower10(isa)}
		},
		skip: ppc64Skip,
		event: func(trap uint32) machine.Event {
			switch trap {
			case ppc64Illegal, ppc64Unavailable:
				return machine.Event{Kind: machine.EventUndefined}
			case ppc64SystemCall:
				return machine.Event{Kind: machine.EventSyscall}
			}
			return machine.Event{Kind: machine.EventException, Number: uint64(trap)}
		},
	}
	ids := map[int]int32{
		ppc64.PC: unicorn.PPCPC, ppc64.LR: unicorn.PPCLR, ppc64.CTR: unicorn.PPCCTR, ppc64.CR: unicorn.PPCCR,
	}
	for i := range 32 {
		ids[ppc64.R0+i] = unicorn.PPCR0 + int32(i)
	}
	s.Links = links(f, ids)
	return s
}

// ppc64Executor executes instructions of Power ISA 3.1.
type ppc64Executor struct {
	ppc64.ISA
	power10 *ppc64.Power10
}

func (x ppc64Executor) Knows(inst *decode.Inst) bool { return x.power10.Knows(inst) }

// Undefined takes back the length of an instruction, which the engine adds.
func (ppc64Executor) Undefined(pc uint64) uint64 { return pc - 4 }

func (x ppc64Executor) Execute(inst *decode.Inst, r machine.WideRegisters, m machine.Memory) error {
	err := x.power10.Execute(inst, r, m)
	if err == ppc64.ErrBoundary {
		return ExceptionError(ppc64Alignment)
	}
	return err
}

func ppc64Defect(inst *decode.Inst) string {
	switch word := ppc64.WordOf(inst); {
	case inst.Len == 8:
		return "prefixed instructions on accumulators, which the engine does not know"
	case crashes(word):
		return "dcbz and stores of several registers, on which the engine crashes"
	case readsFPSCR(word):
		return "reads of FPSCR, which the engine does not keep"
	}
	return ""
}

func ppc64Skip(inst *decode.Inst) string {
	switch {
	case inst.Has(decode.Privileged):
		return "privileged"
	case inst.Flow == decode.FlowSyscall:
		return "system calls"
	case inst.Len == 8 && inst.Addr%64 == 60:
		return "prefixed instructions across a 64-byte boundary, which no CPU executes"
	case ppc64.Volatile(inst):
		return "results that vary: clocks, random numbers, CPU identity"
	}
	return ""
}

// Instructions that the engine runs wrongly.
const (
	maskX     = 63<<26 | 0x3ff<<1
	insnDCBZ  = 31<<26 | 1014<<1 // dcbzl likewise
	insnSTSWX = 31<<26 | 661<<1
	insnSTSWI = 31<<26 | 725<<1
	opSTMW    = 47
	insnMCRFS = 63<<26 | 64<<1
	insnMFFS  = 63<<26 | 583<<1
)

// crashes reports whether the engine looks for the memory of an instruction at
// its physical address, and takes the virtual one for it.
func crashes(word uint32) bool {
	switch word & maskX {
	case insnDCBZ, insnSTSWX, insnSTSWI:
		return true
	}
	return word>>26 == opSTMW
}

// readsFPSCR reports whether an instruction reads FPSCR: mffs and its kin,
// mcrfs, and those that record in CR1. In the engine's library, what writes
// FPSCR was made for its 32-bit CPUs, and keeps it where a 64-bit one keeps
// something else: reads give 0. Rounding and status are among what writes, so
// that arithmetic is right.
func readsFPSCR(word uint32) bool {
	const quad = 4 // bits of the opcode of those whose last bit rounds to odd
	switch word >> 26 {
	case 59:
		return word&1 != 0
	case 63:
		return word&maskX == insnMFFS || word&maskX == insnMCRFS || word&1 != 0 && word>>1&31 != quad
	}
	return false
}
