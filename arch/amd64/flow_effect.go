package amd64

import "xol/decode"

// writes says which operands an instruction writes, as far as they are general
// registers or memory. What it does not write for sure counts too.
type writes uint32

const (
	wE     writes = 1 << iota // ModRM.rm, a register or memory
	wG                        // ModRM.reg
	wV                        // vvvv
	wZ                        // the register in the opcode
	wM                        // ModRM.rm, if it is memory
	wByte                     // those are bytes
	wA                        // rax
	wC                        // rcx
	wD                        // rdx
	wB                        // rbx
	wSP                       // rsp
	wBP                       // rbp
	wSI                       // rsi
	wDI                       // rdi
	wLong                     // whole registers, though there is a 66 prefix
	wStore                    // memory that is no operand
	wX                        // ModRM.reg tells; see groupWrites

	wEb = wE | wByte
	wGb = wG | wByte
	wAb = wA | wByte
	wZb = wZ | wByte
	wGl = wG | wLong
	wEl = wE | wLong
)

// implied are the registers that are no operands.
var implied = [...]struct {
	set writes
	reg byte
}{{wA, RAX}, {wC, RCX}, {wD, RDX}, {wB, RBX}, {wSP, RSP}, {wBP, RBP}, {wSI, RSI}, {wDI, RDI}}

var oneByteWrites = [256]writes{
	0x00: wEb, wE, wGb, wG, wAb, wA, 0, 0, wEb, wE, wGb, wG, wAb, wA, 0, 0,
	0x10: wEb, wE, wGb, wG, wAb, wA, 0, 0, wEb, wE, wGb, wG, wAb, wA, 0, 0,
	0x20: wEb, wE, wGb, wG, wAb, wA, 0, 0, wEb, wE, wGb, wG, wAb, wA, 0, 0,
	0x30: wEb, wE, wGb, wG, wAb, wA, 0, 0, // and cmp
	0x50: wSP, wSP, wSP, wSP, wSP, wSP, wSP, wSP,
	0x58: wSP | wZ, wSP | wZ, wSP | wZ, wSP | wZ, wSP | wZ, wSP | wZ, wSP | wZ, wSP | wZ,
	0x63: wG,
	0x68: wSP, wG, wSP, wG, wDI | wC, wDI | wC, wSI | wC, wSI | wC,
	0x80: wX, wX, 0, wX, 0, 0, wEb | wG, wE | wG, wEb, wE, wGb, wG, wE, wG, 0, wE | wSP,
	0x90: wZ | wA, wZ | wA, wZ | wA, wZ | wA, wZ | wA, wZ | wA, wZ | wA, wZ | wA, wA, wD,
	0x9c: wSP, wSP, 0, wAb,
	0xa0: wAb, wA, 0, 0, wSI | wDI | wC, wSI | wDI | wC, wSI | wDI | wC, wSI | wDI | wC,
	0xaa: wDI | wC, wDI | wC, wA | wSI | wC, wA | wSI | wC, wDI | wC, wDI | wC,
	0xb0: wZb, wZb, wZb, wZb, wZb, wZb, wZb, wZb, wZ, wZ, wZ, wZ, wZ, wZ, wZ, wZ,
	0xc0: wEb, wE, wSP, wSP, 0, 0, wEb, wE, wSP | wBP, wSP | wBP,
	0xd0: wEb, wE, wEb, wE, 0, 0, 0, wAb,
	0xd9: wM, 0, wM, 0, wM, 0, wM | wA, // x87; fnstsw %ax
	0xe0: wC, wC, wC, 0, wAb, wA,
	0xec: wAb, wA,
	0xf6: wX, wX,
	0xfe: wEb, wX,
}

var map0FWrites = [256]writes{
	0x00: wX, wX, wG, wG, 0, wA | wC,
	0x11: wM, 0, wM, 0, 0, 0, wM,
	0x1e: wX,
	0x20: wE, wE,
	0x29: wM, 0, wM, wGl, wGl,
	0x31: wA | wD, wA | wD, wA | wD,
	0x37: wA | wB | wC | wD,
	0x40: wG, wG, wG, wG, wG, wG, wG, wG, wG, wG, wG, wG, wG, wG, wG, wG,
	0x50: wGl,
	0x78: wE,
	0x7e: wX, wM,
	0x90: wEb, wEb, wEb, wEb, wEb, wEb, wEb, wEb, wEb, wEb, wEb, wEb, wEb, wEb, wEb, wEb,
	0xa0: wSP, wSP, wA | wB | wC | wD, 0, wE, wE, wA | wC | wSI | wDI, wA | wC | wSI | wDI, wSP, wSP, 0, wE, wE, wE, wX, wG,
	0xb0: wEb | wA, wE | wA, wG, wE, wG, wG, wG, wG, wG, 0, wX, wE, wG, wG, wG, wG,
	0xc0: wEb | wG, wE | wG, 0, wM, 0, wGl, 0, wX, wZ, wZ, wZ, wZ, wZ, wZ, wZ, wZ,
	0xd6: wM, wGl,
	0xe7: wM,
	0xf7: wStore,
}

// rangeWrites are writes of opcodes in other maps and encodings.
type rangeWrites struct {
	opcodeRange
	writes writes
}

var longWrites = [...]rangeWrites{
	{opcodeRange{Map0F38, 0xf0, 0xfc}, wGl | wE},
	{opcodeRange{Map0F3A, 0x14, 0x17}, wEl},
	{opcodeRange{Map0F3A, 0x60, 0x63}, wC},
}

var vectorWrites = [...]rangeWrites{
	{opcodeRange{Map0F, 0x11, 0x17}, wM},
	{opcodeRange{Map0F, 0x29, 0x2b}, wM},
	{opcodeRange{Map0F, 0x2c, 0x2d}, wG},
	{opcodeRange{Map0F, 0x50, 0x50}, wG},
	{opcodeRange{Map0F, 0x78, 0x79}, wG},
	{opcodeRange{Map0F, 0x7e, 0x7e}, wX},
	{opcodeRange{Map0F, 0x7f, 0x7f}, wM},
	{opcodeRange{Map0F, 0x91, 0x91}, wM},
	{opcodeRange{Map0F, 0x93, 0x93}, wG},
	{opcodeRange{Map0F, 0xc5, 0xc5}, wG},
	{opcodeRange{Map0F, 0xd6, 0xd6}, wM},
	{opcodeRange{Map0F, 0xd7, 0xd7}, wG},
	{opcodeRange{Map0F, 0xe7, 0xe7}, wM},
	{opcodeRange{Map0F, 0xf7, 0xf7}, wStore},
	{opcodeRange{Map0F38, 0x10, 0x15}, wM},
	{opcodeRange{Map0F38, 0x20, 0x25}, wM},
	{opcodeRange{Map0F38, 0x30, 0x35}, wM},
	{opcodeRange{Map0F38, 0x63, 0x63}, wM},
	{opcodeRange{Map0F38, 0x8a, 0x8b}, wM},
	{opcodeRange{Map0F38, 0x2e, 0x2f}, wM},
	{opcodeRange{Map0F38, 0x8e, 0x8f}, wM},
	{opcodeRange{Map0F38, 0xa0, 0xa3}, wM},
	{opcodeRange{Map0F38, 0xe0, 0xef}, wG | wE},
	{opcodeRange{Map0F38, 0xf2, 0xf7}, wG | wV},
	{opcodeRange{Map0F3A, 0x14, 0x17}, wE},
	{opcodeRange{Map0F3A, 0x19, 0x1d}, wM},
	{opcodeRange{Map0F3A, 0x39, 0x3b}, wM},
	{opcodeRange{Map0F3A, 0xf0, 0xf0}, wG},
	{opcodeRange{Map4, 0x00, 0xff}, wG | wE | wV | wA | wD},
	{opcodeRange{Map5, 0x11, 0x11}, wM},
	{opcodeRange{Map5, 0x2c, 0x79}, wG},
	{opcodeRange{Map5, 0x7e, 0x7e}, wE},
	{opcodeRange{Map7, 0x00, 0xff}, wG | wE},
	{opcodeRange{MapXOP9, 0x00, 0xff}, wG | wE | wV},
	{opcodeRange{MapXOPA, 0x00, 0xff}, wG | wE | wV},
}

// writesOf returns what an instruction writes, but for what a function does
// that it calls.
func writesOf(d Detail) writes {
	w := writes(0)
	switch legacy := d.Encoding() == EncLegacy || d.Encoding() == EncREX2; {
	case legacy && d.Map() == MapOneByte:
		w = oneByteWrites[d.Opcode()]
	case legacy && d.Map() == Map0F:
		w = map0FWrites[d.Opcode()]
	case legacy:
		w = inRange(longWrites[:], d)
	default:
		w = inRange(vectorWrites[:], d)
	}
	if w&wX != 0 {
		w = groupWrites(d)
	}
	return w
}

func inRange(list []rangeWrites, d Detail) writes {
	for i := range list {
		r := &list[i]
		if r.opMap == d.Map() && r.lo <= d.Opcode() && d.Opcode() <= r.hi {
			return r.writes
		}
	}
	return 0
}

// groupOneByte are writes by opcode and ModRM.reg, groupMap0F those of the map
// 0F. A group that stands for all opcodes of a row is there once.
var (
	groupImmediate = [8]writes{wE, wE, wE, wE, wE, wE, wE, 0}                                                       // 80, 81, 83
	groupUnary     = [8]writes{0, 0, wE, wE, wA | wD, wA | wD, wA | wD, wA | wD}                                    // F6, F7
	groupIndirect  = [8]writes{wE, wE, 0, 0, 0, 0, wSP, 0}                                                          // FF
	groupSystem    = [8]writes{wE | wA | wC | wD, wA | wC | wD, wA | wC | wD, 0, wE, wA | wC | wD, 0, wA | wC | wD} // 0F 00, 0F 01
	groupBit       = [8]writes{0, 0, 0, 0, 0, wE, wE, wE}                                                           // 0F BA
	groupExchange  = [8]writes{0, wA | wD | wM, 0, wM, wM, wM, wE, wE}                                              // 0F C7
	groupState     = [8]writes{wE, wE, 0, wM, wM, 0, wM, 0}                                                         // 0F AE
)

func groupWrites(d Detail) writes {
	r := d.Reg()
	switch op := d.Opcode(); {
	case d.Map() == MapOneByte && op < 0x90:
		return groupImmediate[r] | byteIf(op == 0x80)
	case d.Map() == MapOneByte && op == 0xff:
		return groupIndirect[r]
	case d.Map() == MapOneByte:
		return groupUnary[r] | byteIf(op == 0xf6)
	case op == 0x7e: // movd, but movq between vector registers
		if d.PP() == 2 || d.Prefixes()&PrefixF3 != 0 {
			return 0
		}
		return wEl
	case op == 0x1e: // rdssp, but endbr64
		if r == 1 && d.Mod() == 3 {
			return wE
		}
		return 0
	case op <= 0x01:
		return groupSystem[r]
	case op == 0xba:
		return groupBit[r]
	case op == 0xae:
		return groupState[r]
	}
	return groupExchange[r]
}

func byteIf(b bool) writes {
	if b {
		return wByte
	}
	return 0
}

// called are the registers that a function may change [System V ABI, AMD64
// supplement, 3.2.1]; a system call changes fewer.
const (
	called     = 1<<RAX | 1<<RCX | 1<<RDX | 1<<RSI | 1<<RDI | 1<<R8 | 1<<R9 | 1<<R10 | 1<<R11
	systemCall = 1<<RAX | 1<<RCX | 1<<R11
)

// effect is what an instruction does to general registers and memory.
type effect struct {
	full   uint32 // registers that are overwritten
	part   uint32 // those of which a byte or two are
	memory bool   // an operand in memory is written, or a function may write any
}

func effectOf(inst *decode.Inst) effect {
	switch inst.Flow {
	case decode.FlowCall, decode.FlowCallIndirect:
		return effect{full: called, memory: true}
	case decode.FlowSyscall:
		return effect{full: systemCall, memory: true}
	}
	d := DetailOf(inst)
	w := writesOf(d)
	if w == 0 || isPlainNop(d) {
		return effect{}
	}
	var e effect
	operands := uint32(0)
	if w&wG != 0 {
		operands |= 1 << d.operand(d.register(), w)
	}
	if w&wV != 0 {
		operands |= 1 << d.VVVV()
	}
	if w&wZ != 0 {
		operands |= 1 << d.operand(d.opcodeRegister(), w)
	}
	if w&wE != 0 && d.Mod() == 3 {
		operands |= 1 << d.operand(d.rmRegister(), w)
	}
	for _, i := range implied {
		if w&i.set != 0 {
			e.full |= 1 << i.reg
		}
	}
	if w&wByte != 0 || d.operandIs16() && w&wLong == 0 {
		e.part = operands | e.full&(1<<RAX)
		e.full &^= 1 << RAX
	} else {
		e.full |= operands
	}
	e.memory = w&(wE|wM) != 0 && inst.Fields.Operands != 0 && d.Mod() != 3 || w&(wSP|wDI|wStore) != 0
	return e
}

// isPlainNop recognises the nop among the exchanges with rax.
func isPlainNop(d Detail) bool {
	return d.Map() == MapOneByte && d.Opcode() == 0x90 && d.opcodeRegister() == RAX
}

// operand returns the register that a number means: in instructions on bytes,
// some mean the second byte of another.
func (d Detail) operand(reg byte, w writes) byte {
	if w&wByte != 0 && d.Encoding() == EncLegacy && !d.HasREX() {
		return reg & 3
	}
	return reg
}

// rmRegister returns the number in ModRM.rm with its extensions.
func (d Detail) rmRegister() byte { return d.B4()<<4 | d.B()<<3 | d.RM() }

// opcodeRegister returns the number in the opcode with its extensions.
func (d Detail) opcodeRegister() byte { return d.B4()<<4 | d.B()<<3 | d.Opcode()&7 }
