package amd64

import (
	"encoding/binary"

	"xol/decode"
)

// addressIs32 reports whether addresses are cut to 32 bits.
func (d Detail) addressIs32() bool { return d.Prefixes()&Prefix67 != 0 }

// operandIs16 reports whether operands have 16 bits, where a prefix chooses.
func (d Detail) operandIs16() bool { return d.Prefixes()&Prefix66 != 0 && d.W() == 0 }

// ModRM.reg of instructions of opcode FF that moved forms consist of.
const (
	group5Jump = 4
	group5Push = 6
)

// isSoftwareInterrupt recognises int, but for the breakpoint's vector. It calls
// the system as syscall does, and its return address is not to be seen.
func isSoftwareInterrupt(inst *decode.Inst) bool {
	return OpOf(inst) == OpInterrupt && inst.Raw[inst.Fields.Imm] != 3
}

// opcodeRange is the opcodes lo to hi of a map.
type opcodeRange struct {
	opMap  Map
	lo, hi byte
}

func (d Detail) in(ranges []opcodeRange) bool {
	for _, r := range ranges {
		if d.Map() == r.opMap && r.lo <= d.Opcode() && d.Opcode() <= r.hi {
			return true
		}
	}
	return false
}

// Opcodes whose ModRM.reg is a general register beside an operand in memory.
// Not among them are the arithmetic ones below 40, which follow a pattern, and
// conversions to integers, where a mandatory prefix decides.
var generalReg = [...]opcodeRange{
	{MapOneByte, 0x63, 0x63}, {MapOneByte, 0x69, 0x69}, {MapOneByte, 0x6b, 0x6b},
	{MapOneByte, 0x84, 0x8b}, {MapOneByte, 0x8d, 0x8d},
	{Map0F, 0x02, 0x03}, {Map0F, 0x40, 0x4f}, {Map0F, 0x78, 0x79},
	{Map0F, 0xa3, 0xa5}, {Map0F, 0xab, 0xad}, {Map0F, 0xaf, 0xb8},
	{Map0F, 0xbb, 0xc1}, {Map0F, 0xc3, 0xc3},
	{Map0F38, 0x80, 0x82}, {Map0F38, 0xf0, 0xfc},
}

// The same after VEX, EVEX and XOP.
var generalRegVector = [...]opcodeRange{
	{Map0F38, 0xe0, 0xef}, {Map0F38, 0xf2, 0xf7}, {Map0F3A, 0xf0, 0xf0}, {MapXOPA, 0x10, 0x10},
	{Map4, 0x00, 0x7f}, {Map4, 0x84, 0x88}, {Map4, 0xa5, 0xaf}, {Map4, 0xf0, 0xfc},
}

// Opcodes whose vvvv is a general register; in map 4 it may be one.
var generalVVVV = [...]opcodeRange{
	{Map0F38, 0xe0, 0xef}, {Map0F38, 0xf2, 0xf7}, {Map4, 0x00, 0xff}, {MapXOP9, 0x01, 0x02}, {MapXOPA, 0x12, 0x12},
}

// convertsToInteger recognises the scalar conversions from floating point.
func (d Detail) convertsToInteger() bool {
	scalar := d.PP() >= 2
	if d.Encoding() == EncLegacy || d.Encoding() == EncREX2 {
		scalar = d.Prefixes()&(PrefixF2|PrefixF3) != 0
	}
	op := d.Opcode() &^ 1
	switch d.Map() {
	case Map0F:
		return scalar && (op == 0x2c || op == 0x78 && d.Encoding() == EncEVEX)
	case Map5:
		return scalar && (op == 0x2c || op == 0x78)
	}
	return false
}

// usesStackPointer reports whether a register that the instruction names beside
// its operand in memory is rsp.
func (d Detail) usesStackPointer() bool {
	named := d.register() == RSP
	switch d.Encoding() {
	case EncLegacy, EncREX2:
		arithmetic := d.Map() == MapOneByte && d.Opcode() < 0x40 && d.Opcode()&4 == 0
		return named && (arithmetic || d.in(generalReg[:]) || d.convertsToInteger()) && !d.highByte()
	}
	return named && (d.in(generalRegVector[:]) || d.convertsToInteger()) ||
		d.VVVV() == RSP && d.in(generalVVVV[:])
}

// register returns the number in ModRM.reg with its extensions.
func (d Detail) register() byte { return d.R4()<<4 | d.R()<<3 | d.Reg() }

// highByte reports whether register numbers 4 to 7 mean ah, ch, dh and bh: in
// instructions on bytes without a REX prefix.
func (d Detail) highByte() bool {
	if d.HasREX() || d.Encoding() != EncLegacy {
		return false
	}
	switch op := d.Opcode(); d.Map() {
	case MapOneByte:
		return op < 0x40 && op&1 == 0 || op >= 0x84 && op <= 0x8a && op&1 == 0
	case Map0F:
		return op == 0xb0 || op == 0xc0
	}
	return false
}

// Loads: opcodes that overwrite ModRM.reg with what they make of an operand in
// memory, and do not read it.
var loads = [...]opcodeRange{
	{MapOneByte, 0x63, 0x63}, {MapOneByte, 0x69, 0x69}, {MapOneByte, 0x6b, 0x6b}, {MapOneByte, 0x8b, 0x8b},
	{Map0F, 0xb6, 0xb7}, {Map0F, 0xbe, 0xbf},
}

// loadsAll reports whether the instruction overwrites all of a general
// register: 16-bit operations keep the rest of it.
func (d Detail) loadsAll() bool {
	legacy := d.Encoding() == EncLegacy || d.Encoding() == EncREX2
	return legacy && !d.operandIs16() && d.in(loads[:])
}

// names reports whether the register is one that the instruction names beside
// its operand in memory. Numbers of other than general registers count too.
func (d Detail) names(reg byte) bool {
	named := d.register()
	if d.highByte() {
		named &= 3
	}
	return reg == named || reg == d.VVVV() && d.Encoding() >= EncVEX2
}

// opcodeLen returns the number of opcode bytes, escapes included, before
// ModRM. After VEX and its kin it is one.
func opcodeLen(inst *decode.Inst) int {
	if DetailOf(inst).Encoding() != EncLegacy {
		return 1
	}
	switch DetailOf(inst).Map() {
	case Map0F, Map3DNow: // the second 0F of 3DNow! stands where the opcode would
		return 2
	case Map0F38, Map0F3A:
		return 3
	}
	return 1
}

// hasBaseBit reports whether some prefix of the instruction has the bit that
// extends the register of a base.
func (d Detail) hasBaseBit() bool {
	switch d.Encoding() {
	case EncLegacy:
		return d.HasREX()
	case EncVEX2:
		return false
	}
	return true
}

// baseIsStackPointer reports whether an operand in memory is at rsp plus
// something.
func baseIsStackPointer(inst *decode.Inst) bool {
	d := DetailOf(inst)
	if d.Mod() == 3 || d.RM() != RSP || inst.Fields.Operands == 0 {
		return false
	}
	sib := inst.Raw[inst.Fields.Operands+1]
	return sib&7 == RSP && d.B() == 0 && d.B4() == 0
}

// displacement returns the displacement of an operand in memory.
func displacement(inst *decode.Inst) int32 {
	raw := inst.Raw[inst.Fields.Disp:]
	switch inst.Fields.DispLen {
	case 1:
		return int32(int8(raw[0]))
	case 4:
		return int32(binary.LittleEndian.Uint32(raw))
	}
	return 0
}

// hasIndex reports whether an operand with a SIB byte has an index register.
func hasIndex(inst *decode.Inst) bool {
	d := DetailOf(inst)
	none := inst.Raw[inst.Fields.Operands+1]>>3&7 == RSP && d.X()|d.X4() == 0
	return !none
}
