package amd64

import "xol/decode"

// branchKind is the shape of a direct branch.
type branchKind uint8

const (
	kindJump branchKind = iota
	kindCall
	kindCond
	kindLoop // loop, loope, loopne, jrcxz: no long form
	kindXbegin
)

func branchKindOf(inst *decode.Inst) branchKind {
	d := DetailOf(inst)
	op := d.Opcode()
	switch {
	case inst.Flow == decode.FlowCall:
		return kindCall
	case d.Map() == Map0F || op>>4 == 7:
		return kindCond
	case op>>2 == 0xe0>>2:
		return kindLoop
	case op == 0xc7:
		return kindXbegin
	}
	return kindJump
}

// addressSizeBytes is the number of address-size prefixes that matter: 0 or 1.
func (d Detail) addressSizeBytes() int {
	if d.Prefixes()&Prefix67 != 0 {
		return 1
	}
	return 0
}

// isPush and isPop recognise the forms with a ModRM operand.
func (d Detail) isPush() bool {
	return d.Map() == MapOneByte && d.Opcode() == 0xff && d.Reg() == 6
}

func (d Detail) isPop() bool {
	return d.Encoding() != EncXOP && d.Map() == MapOneByte && d.Opcode() == 0x8f && d.Reg() == 0
}

// opcodeRange is the opcodes lo to hi of a map.
type opcodeRange struct {
	opMap  Map
	lo, hi byte
}

// Opcodes whose ModRM.reg is a general register, beside an operand in memory;
// in the one-byte map, the arithmetic ones below 40 come to these.
var generalReg = [...]opcodeRange{
	{MapOneByte, 0x63, 0x63}, {MapOneByte, 0x69, 0x69}, {MapOneByte, 0x6b, 0x6b},
	{MapOneByte, 0x84, 0x8b}, {MapOneByte, 0x8d, 0x8d},
	{Map0F, 0x02, 0x03}, {Map0F, 0x2c, 0x2d}, {Map0F, 0x40, 0x4f}, {Map0F, 0x78, 0x79},
	{Map0F, 0xa3, 0xa5}, {Map0F, 0xab, 0xad}, {Map0F, 0xaf, 0xb1}, {Map0F, 0xb3, 0xb3},
	{Map0F, 0xb6, 0xb8}, {Map0F, 0xbb, 0xc1}, {Map0F, 0xc3, 0xc3},
	{Map0F38, 0xf0, 0xfc},
}

// The same behind VEX and EVEX: conversions to integers and the bit
// manipulation instructions, whose vvvv is a general register too.
var generalRegVEX = [...]opcodeRange{
	{Map0F, 0x2c, 0x2d}, {Map0F38, 0xf2, 0xf7}, {Map0F3A, 0xf0, 0xf0}, {Map5, 0x2c, 0x2d},
	{Map4, 0x00, 0xff}, {MapXOP9, 0x01, 0x12}, {MapXOPA, 0x10, 0x12},
}

func (d Detail) in(ranges []opcodeRange) bool {
	for _, r := range ranges {
		if d.Map() == r.opMap && r.lo <= d.Opcode() && d.Opcode() <= r.hi {
			return true
		}
	}
	return false
}

// usesStackPointer reports whether a register that the instruction names beside
// its operand in memory is rsp.
func (d Detail) usesStackPointer() bool {
	const rsp = 4
	named := d.Reg() == rsp && d.R() == 0 && d.R4() == 0
	switch d.Encoding() {
	case EncLegacy, EncREX2:
		general := d.Map() == MapOneByte && d.Opcode() < 0x40 && d.Opcode()&4 == 0
		return named && (general || d.in(generalReg[:])) && !d.highByte()
	}
	return (named || d.VVVV() == rsp) && d.in(generalRegVEX[:])
}

// highByte reports whether register number 4 means ah: in instructions on bytes
// without a REX prefix.
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

// baseIsStackPointer reports whether an operand in memory is at rsp plus
// something.
func (d Detail) baseIsStackPointer(inst *decode.Inst) bool {
	const rsp = 4
	if d.Mod() == 3 || d.RM() != rsp || inst.Fields.ModRM == 0 {
		return false
	}
	sib := inst.Raw[inst.Fields.ModRM+1]
	return sib&7 == rsp && d.B() == 0 && d.B4() == 0
}

// displacement returns the displacement of an operand in memory.
func displacement(inst *decode.Inst) int32 {
	raw := inst.Raw[inst.Fields.Disp:]
	switch inst.Fields.DispLen {
	case 1:
		return int32(int8(raw[0]))
	case 4:
		return int32(uint32(raw[0]) | uint32(raw[1])<<8 | uint32(raw[2])<<16 | uint32(raw[3])<<24)
	}
	return 0
}

// readsPushed reports whether an indirect call reads its target from where it
// pushes the return address.
func readsPushed(inst *decode.Inst) bool {
	d := DetailOf(inst)
	return d.baseIsStackPointer(inst) && displacement(inst) > -16 && displacement(inst) < 0 && !hasIndex(inst)
}

// callsStackPointer reports whether an indirect call goes to where rsp points.
func (d Detail) callsStackPointer() bool {
	return d.Mod() == 3 && d.RM() == RSP && d.B() == 0 && d.B4() == 0
}

// hasIndex reports whether an operand with a SIB byte has an index register.
func hasIndex(inst *decode.Inst) bool {
	d := DetailOf(inst)
	none := inst.Raw[inst.Fields.ModRM+1]>>3&7 == 4 && d.X() == 0 && d.X4() == 0
	return !none
}
