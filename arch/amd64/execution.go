package amd64

import (
	"xol/decode"
	"xol/machine"
)

// redZone is the number of bytes below the stack pointer that a function may
// use and signal handlers keep [System V ABI, AMD64 supplement, 3.2.2].
const redZone = 128

// scratchBytes bounds what moved code saves below the red zone.
const scratchBytes = 64

// DeadRegisters returns 0: a far jump goes through memory.
func (ISA) DeadRegisters(*decode.Inst) uint32 { return 0 }

// StackScratch returns the addresses below the stack pointer sp that moved
// code may overwrite.
func (ISA) StackScratch(sp uint64) (lo, hi uint64) {
	return sp - redZone - scratchBytes, sp - redZone
}

// Registers returns the register file that user code sees.
func (ISA) Registers() *machine.File { return Registers() }

// opcodeOf names an opcode by its map, its byte and, where that matters,
// ModRM.reg.
type opcodeOf struct {
	opMap  Map
	opcode byte
	reg    int8 // -1: any
}

func (o opcodeOf) matches(d Detail) bool {
	return d.Map() == o.opMap && d.Opcode() == o.opcode && (o.reg < 0 || int8(d.Reg()) == o.reg)
}

func matchesAny(list []opcodeOf, inst *decode.Inst) bool {
	d := DetailOf(inst)
	if d.Encoding() != EncLegacy && d.Encoding() != EncREX2 {
		return false
	}
	for _, o := range list {
		if o.matches(d) {
			return true
		}
	}
	return false
}

var volatileOpcodes = []opcodeOf{
	{Map0F, 0x31, -1}, // rdtsc
	{Map0F, 0x33, -1}, // rdpmc
	{Map0F, 0xa2, -1}, // cpuid
	{Map0F, 0x00, 0},  // sldt
	{Map0F, 0x00, 1},  // str
	{Map0F, 0x01, 0},  // sgdt, and enclv and its kin
	{Map0F, 0x01, 1},  // sidt, and monitor, mwait
	{Map0F, 0x01, 2},  // xgetbv, xtest and their kin
	{Map0F, 0x01, 4},  // smsw
	{Map0F, 0x01, 5},  // rdpkru, serialize and their kin
	{Map0F, 0x01, 7},  // rdtscp, swapgs, rdpru and their kin
	{Map0F, 0xc7, 6},  // rdrand, senduipi, vmptrld
	{Map0F, 0xc7, 7},  // rdseed, rdpid
	{Map0F, 0xae, 6},  // tpause, umonitor, umwait, clwb, xsaveopt
}

// Volatile reports whether the result of inst varies from run to run or from
// CPU to CPU: clocks, random numbers, what the system has set up.
func Volatile(inst *decode.Inst) bool {
	if DetailOf(inst).Map() == Map0F && DetailOf(inst).Opcode() == 0xae && inst.Fields.ModRM != 0 && DetailOf(inst).Mod() != 3 {
		return false
	}
	return matchesAny(volatileOpcodes, inst)
}

var segmentedOpcodes = []opcodeOf{
	{MapOneByte, 0x8e, -1}, // mov to a segment register
	{MapOneByte, 0xca, -1}, // far returns
	{MapOneByte, 0xcb, -1},
	{MapOneByte, 0xcf, -1}, // iret
	{MapOneByte, 0xff, 3},  // far call
	{MapOneByte, 0xff, 5},  // far jump
	{Map0F, 0xa1, -1},      // pop %fs
	{Map0F, 0xa9, -1},      // pop %gs
	{Map0F, 0xb2, -1},      // lss
	{Map0F, 0xb4, -1},      // lfs
	{Map0F, 0xb5, -1},      // lgs
	{Map0F, 0x02, -1},      // lar
	{Map0F, 0x03, -1},      // lsl
	{Map0F, 0x00, 4},       // verr
	{Map0F, 0x00, 5},       // verw
}

// Segmented reports whether inst loads a segment register or looks into a
// descriptor table.
func Segmented(inst *decode.Inst) bool { return matchesAny(segmentedOpcodes, inst) }

// LoadsSystemFlags recognises popf, which may switch on single-stepping and
// alignment checks.
func LoadsSystemFlags(inst *decode.Inst) bool {
	return opcodeOf{MapOneByte, 0x9d, -1}.matches(DetailOf(inst))
}

// Flags that the architecture leaves undefined [Intel SDM, volume 1,
// appendix A], by opcode.
var undefinedFlags = []struct {
	opcodeOf
	flags uint64
}{
	{opcodeOf{MapOneByte, 0xf6, 6}, statusFlags}, // div
	{opcodeOf{MapOneByte, 0xf7, 6}, statusFlags},
	{opcodeOf{MapOneByte, 0xf6, 7}, statusFlags}, // idiv
	{opcodeOf{MapOneByte, 0xf7, 7}, statusFlags},
	{opcodeOf{MapOneByte, 0xf6, 4}, FlagSF | FlagZF | FlagAF | FlagPF}, // mul
	{opcodeOf{MapOneByte, 0xf7, 4}, FlagSF | FlagZF | FlagAF | FlagPF},
	{opcodeOf{MapOneByte, 0xf6, 5}, FlagSF | FlagZF | FlagAF | FlagPF}, // imul
	{opcodeOf{MapOneByte, 0xf7, 5}, FlagSF | FlagZF | FlagAF | FlagPF},
	{opcodeOf{MapOneByte, 0x69, -1}, FlagSF | FlagZF | FlagAF | FlagPF},
	{opcodeOf{MapOneByte, 0x6b, -1}, FlagSF | FlagZF | FlagAF | FlagPF},
	{opcodeOf{Map0F, 0xaf, -1}, FlagSF | FlagZF | FlagAF | FlagPF},
	{opcodeOf{Map0F, 0xbc, -1}, FlagCF | FlagOF | FlagSF | FlagAF | FlagPF}, // bsf, tzcnt
	{opcodeOf{Map0F, 0xbd, -1}, FlagCF | FlagOF | FlagSF | FlagAF | FlagPF}, // bsr, lzcnt
	{opcodeOf{MapOneByte, 0xc0, -1}, FlagOF | FlagAF},                       // shifts and rotates by more than one
	{opcodeOf{MapOneByte, 0xc1, -1}, FlagOF | FlagAF},
	{opcodeOf{MapOneByte, 0xd2, -1}, FlagOF | FlagAF},
	{opcodeOf{MapOneByte, 0xd3, -1}, FlagOF | FlagAF},
	{opcodeOf{Map0F, 0xa4, -1}, FlagOF | FlagAF}, // shld
	{opcodeOf{Map0F, 0xa5, -1}, FlagOF | FlagAF},
	{opcodeOf{Map0F, 0xac, -1}, FlagOF | FlagAF}, // shrd
	{opcodeOf{Map0F, 0xad, -1}, FlagOF | FlagAF},
	{opcodeOf{Map0F, 0xa3, -1}, FlagOF | FlagSF | FlagAF | FlagPF}, // bt and its kin
	{opcodeOf{Map0F, 0xab, -1}, FlagOF | FlagSF | FlagAF | FlagPF},
	{opcodeOf{Map0F, 0xb3, -1}, FlagOF | FlagSF | FlagAF | FlagPF},
	{opcodeOf{Map0F, 0xbb, -1}, FlagOF | FlagSF | FlagAF | FlagPF},
	{opcodeOf{Map0F, 0xba, -1}, FlagOF | FlagSF | FlagAF | FlagPF},
}

// UndefinedFlags returns the bits of RFLAGS that the architecture leaves
// undefined after inst.
func (ISA) UndefinedFlags(inst *decode.Inst) uint64 {
	d := DetailOf(inst)
	if d.Encoding() != EncLegacy && d.Encoding() != EncREX2 {
		return 0
	}
	for i := range undefinedFlags {
		if undefinedFlags[i].matches(d) {
			return undefinedFlags[i].flags
		}
	}
	return 0
}

// maxRepetitions keeps repeated instructions short.
const maxRepetitions = 7

// Prepare changes a random state so that inst makes sense in it: few
// repetitions, a quotient that fits, an empty x87 stack.
func (ISA) Prepare(inst *decode.Inst, f *machine.File, s machine.State) {
	d := DetailOf(inst)
	f.SetWord(s, FTW, 0xffff)
	if d.Map() != MapOneByte {
		return
	}
	switch op := d.Opcode(); {
	case d.Prefixes()&(PrefixF2|PrefixF3) != 0 && (op&^3 == 0xa4 || op >= 0xaa && op <= 0xaf):
		f.SetWord(s, RCX, f.Word(s, RCX)&maxRepetitions)
	case op == 0xf6 && d.Reg() >= 6:
		f.SetWord(s, RAX, f.Word(s, RAX)&0x7f)
	case op == 0xf7 && d.Reg() >= 6:
		f.SetWord(s, RDX, 0)
	}
}
