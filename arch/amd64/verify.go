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
}

// Volatile reports whether the result of inst varies from run to run or from
// CPU to CPU: clocks, random numbers, what the system has set up.
func Volatile(inst *decode.Inst) bool {
	return matchesAny(volatileOpcodes, inst) || waits(DetailOf(inst))
}

// waits recognises umonitor, umwait and tpause.
func waits(d Detail) bool {
	fence := opcodeOf{Map0F, 0xae, 6}
	return fence.matches(d) && d.Mod() == 3 && d.Prefixes()&(Prefix66|PrefixF2|PrefixF3) != 0
}

var segmentedOps = opsOf(OpMoveToSegment, OpLoadSegment, OpReturnFar, OpReturnInterrupt, OpCallFar, OpJumpFar, OpDescriptor)

// Segmented reports whether inst loads a segment register or looks into a
// descriptor table.
func Segmented(inst *decode.Inst) bool { return segmentedOps.has(inst) }

// LoadsSystemFlags recognises popf, which may switch on single-stepping and
// alignment checks.
func LoadsSystemFlags(inst *decode.Inst) bool { return OpOf(inst) == OpPopFlags }

// flagsOf are flags that instructions leave undefined, by their opcodes lo to hi
// and, where that matters, ModRM.reg.
type flagsOf struct {
	opcodeRange
	reg   int8 // -1: any
	flags uint64
}

const (
	flagsAF    = FlagAF
	flagsShift = FlagOF | FlagAF // a shift by more than one
	flagsMul   = FlagSF | FlagZF | FlagAF | FlagPF
	flagsScan  = FlagOF | FlagSF | FlagAF | FlagPF
)

// What the architecture leaves undefined [Intel SDM, volume 1, appendix A].
var undefinedFlags = [...]flagsOf{
	{opcodeRange{MapOneByte, 0x08, 0x0d}, -1, flagsAF}, // or
	{opcodeRange{MapOneByte, 0x20, 0x25}, -1, flagsAF}, // and
	{opcodeRange{MapOneByte, 0x30, 0x35}, -1, flagsAF}, // xor
	{opcodeRange{MapOneByte, 0x69, 0x69}, -1, flagsMul},
	{opcodeRange{MapOneByte, 0x6b, 0x6b}, -1, flagsMul},
	{opcodeRange{MapOneByte, 0x80, 0x83}, 1, flagsAF},
	{opcodeRange{MapOneByte, 0x80, 0x83}, 4, flagsAF},
	{opcodeRange{MapOneByte, 0x80, 0x83}, 6, flagsAF},
	{opcodeRange{MapOneByte, 0x84, 0x85}, -1, flagsAF}, // test
	{opcodeRange{MapOneByte, 0xa8, 0xa9}, -1, flagsAF},
	{opcodeRange{MapOneByte, 0xc0, 0xc1}, -1, flagsShift},
	{opcodeRange{MapOneByte, 0xd0, 0xd1}, -1, flagsAF},
	{opcodeRange{MapOneByte, 0xd2, 0xd3}, -1, flagsShift},
	{opcodeRange{MapOneByte, 0xf6, 0xf7}, 0, flagsAF},
	{opcodeRange{MapOneByte, 0xf6, 0xf7}, 1, flagsAF},
	{opcodeRange{MapOneByte, 0xf6, 0xf7}, 4, flagsMul},
	{opcodeRange{MapOneByte, 0xf6, 0xf7}, 5, flagsMul},
	{opcodeRange{MapOneByte, 0xf6, 0xf7}, 6, statusFlags}, // div
	{opcodeRange{MapOneByte, 0xf6, 0xf7}, 7, statusFlags},
	{opcodeRange{Map0F, 0xa3, 0xa3}, -1, flagsScan}, // bt
	{opcodeRange{Map0F, 0xa4, 0xa5}, -1, flagsShift},
	{opcodeRange{Map0F, 0xab, 0xab}, -1, flagsScan},
	{opcodeRange{Map0F, 0xac, 0xad}, -1, flagsShift},
	{opcodeRange{Map0F, 0xaf, 0xaf}, -1, flagsMul},
	{opcodeRange{Map0F, 0xb3, 0xb3}, -1, flagsScan},
	{opcodeRange{Map0F, 0xba, 0xbb}, -1, flagsScan},
	{opcodeRange{Map0F, 0xbc, 0xbd}, -1, flagsScan | FlagCF}, // bsf, bsr; tzcnt and lzcnt define CF
}

// The same after VEX, EVEX and XOP.
var undefinedFlagsVector = [...]flagsOf{
	{opcodeRange{Map0F38, 0xf2, 0xf3}, -1, FlagAF | FlagPF}, // andn, blsr …
	{opcodeRange{Map0F38, 0xf5, 0xf5}, -1, FlagAF | FlagPF}, // bzhi
	{opcodeRange{Map0F38, 0xf7, 0xf7}, -1, FlagAF | FlagPF | FlagSF},
	{opcodeRange{MapXOP9, 0x01, 0x02}, -1, FlagAF | FlagPF},
	{opcodeRange{MapXOPA, 0x10, 0x10}, -1, FlagAF | FlagPF | FlagSF},
}

// UndefinedFlags returns the bits of RFLAGS that the architecture leaves
// undefined after inst, for some of its operands at least.
func (ISA) UndefinedFlags(inst *decode.Inst) uint64 {
	d := DetailOf(inst)
	list := undefinedFlags[:]
	if d.Encoding() != EncLegacy && d.Encoding() != EncREX2 {
		if list = undefinedFlagsVector[:]; d.Map() == Map0F38 && d.PP() != 0 {
			return 0 // pdep, sarx and their kin leave the flags alone
		}
	}
	for i := range list {
		f := &list[i]
		if d.Map() == f.opMap && f.lo <= d.Opcode() && d.Opcode() <= f.hi && (f.reg < 0 || byte(f.reg) == d.Reg()) {
			return f.flags
		}
	}
	return 0
}

const (
	// maxRepetitions keeps repeated instructions short.
	maxRepetitions = 7
	// halfStack is the tag word of an x87 stack of four numbers, with room for
	// four more.
	halfStack = 0xff00
)

// lastCounts are those at which loops end, or jrcxz jumps, and those that only
// differ from them in the upper half.
var lastCounts = [4]uint64{0, 1, 1 << 32, 1<<32 | 1}

// Prepare changes a random state so that inst makes sense in it: few
// repetitions, counts at which loops end, a quotient that fits, numbers on the
// x87 stack and room there.
func (ISA) Prepare(inst *decode.Inst, f *machine.File, s machine.State) {
	d := DetailOf(inst)
	f.SetWord(s, FTW, halfStack)
	if d.Map() != MapOneByte {
		return
	}
	switch op := d.Opcode(); {
	case OpOf(inst) == OpLoop:
		if r := machine.Mix(f.Word(s, RCX)); r&1 != 0 {
			f.SetWord(s, RCX, lastCounts[r>>1%4])
		}
	case isRepeated(inst):
		f.SetWord(s, RCX, f.Word(s, RCX)&maxRepetitions)
	case op == 0xf6 && d.Reg() >= 6:
		f.SetWord(s, RAX, f.Word(s, RAX)&0x7f)
	case op == 0xf7 && d.Reg() >= 6:
		f.SetWord(s, RDX, 0)
	}
}
