package amd64

import (
	"math/bits"
	"strconv"

	"xol/decode"
)

// operands writes the operands, the destination last.
func (t *writer) operands(b []byte, lookup decode.SymLookup) []byte {
	ops := &t.form.ops
	skipImm := t.namesPredicate()
	start := len(b)
	for i := len(ops) - 1; i >= 0; i-- {
		o := operandSpecs[ops[i]]
		if o.kind == opNone || skipImm && o.kind == opImm {
			continue
		}
		if (o.kind == opRounding || o.kind == opSAE) && !t.rounds() {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = t.operand(b, o, lookup)
		if i == 0 && t.masked() {
			b = t.mask(b)
		}
	}
	return b
}

// mask writes the opmask after the destination.
func (t *writer) mask(b []byte) []byte {
	if k := t.d.EVEXaaa(); k != 0 {
		b = append(b, "{%k"...)
		b = append(b, '0'+k, '}')
	}
	if t.d.EVEXz() {
		b = append(b, "{z}"...)
	}
	return b
}

func (t *writer) operand(b []byte, o operandSpec, lookup decode.SymLookup) []byte {
	switch o.kind {
	case opStarRM:
		b = append(b, '*')
		fallthrough
	case opRM:
		if t.isMem() {
			return t.memory(b, t.unit(o.elem), 0)
		}
		return t.general(b, t.bytes(o.size), t.rm())
	case opRMReg:
		return t.general(b, t.bytes(o.size), t.rm())
	case opReg:
		return t.general(b, t.bytes(o.size), t.reg())
	case opV:
		return t.general(b, t.bytes(o.size), int(t.d.VVVV()))
	case opOpcode:
		t.rexUsed |= rexB
		return t.general(b, t.bytes(o.size), int(t.d.B4()<<4|t.d.B()<<3|t.d.Opcode()&7))
	case opAcc:
		return t.general(b, t.bytes(o.size), 0)
	case opFixed:
		return append(b, fixedNames[o.size]...)
	case opVecRM, opVecReg, opVecV, opVecImm, opVSIB:
		return t.vectorOperand(b, o)
	case opTarget:
		return appendAddress(b, t.inst.Target, lookup)
	case opImm, opImm2, opImm4, opOne, opMoffs:
		return t.constant(b, o)
	case opSource, opDest, opXlat:
		return t.stringOperand(b, o.kind)
	case opRounding:
		return append(b, roundingNames[t.d.VectorLength()]...)
	case opSAE:
		return append(b, "{sae}"...)
	}
	return t.specialRegister(b, o.kind)
}

// general writes a general register of n bytes.
func (t *writer) general(b []byte, n, number int) []byte {
	b = append(b, '%')
	if n == 1 && number&^3 == 4 {
		t.rexUsed |= rexPresence
		if t.d.Encoding() == EncLegacy && !t.d.HasREX() {
			return append(b, highByteNames[number&3]...)
		}
	}
	return append(b, regNames[(bits.Len(uint(n))-1)&3][number&31]...)
}

// specialRegister writes a register that is neither general nor a vector.
func (t *writer) specialRegister(b []byte, k operandKind) []byte {
	switch k {
	case opMaskRM, opMMXRM, opBndRM:
		if t.isMem() {
			return t.memory(b, 1, 0)
		}
	}
	switch k {
	case opMaskRM:
		return appendNumbered(b, "%k", int(t.d.RM()))
	case opMaskReg:
		return appendNumbered(b, "%k", int(t.d.Reg()))
	case opMaskV:
		return appendNumbered(b, "%k", int(t.d.VVVV()&7))
	case opTileRM:
		return appendNumbered(b, "%tmm", int(t.d.RM()))
	case opTileReg:
		return appendNumbered(b, "%tmm", int(t.d.Reg()))
	case opTileV:
		return appendNumbered(b, "%tmm", int(t.d.VVVV()&7))
	case opMMXRM:
		return appendNumbered(b, "%mm", int(t.d.RM()))
	case opMMXReg:
		return appendNumbered(b, "%mm", int(t.d.Reg()))
	case opBndRM:
		return appendNumbered(b, "%bnd", t.rm()&3)
	case opBndReg:
		return appendNumbered(b, "%bnd", t.reg()&3)
	case opSegReg:
		return append(append(b, '%'), segNames[t.d.Reg()]...)
	case opCtrlReg:
		return appendNumbered(b, "%cr", t.reg())
	case opDebugReg:
		return appendNumbered(b, "%db", t.reg())
	case opST:
		return append(appendNumbered(b, "%st(", int(t.d.RM())), ')')
	}
	return b
}

func appendNumbered(b []byte, prefix string, n int) []byte {
	return strconv.AppendInt(append(b, prefix...), int64(n), 10)
}

func (t *writer) vectorOperand(b []byte, o operandSpec) []byte {
	n := t.width(o.size)
	switch o.kind {
	case opVSIB:
		return t.memory(b, t.unit(o.elem), max(n, 16))
	case opVecRM:
		if t.isMem() {
			return t.vectorMemory(b, o, n)
		}
		return appendVector(b, n, t.vecRM())
	case opVecReg:
		return appendVector(b, n, t.reg())
	case opVecV:
		return appendVector(b, n, int(t.d.VVVV()))
	default:
		return appendVector(b, n, int(t.immByte()>>4))
	}
}

// vectorMemory writes a vector operand of n bytes in memory, or the element of
// it that is broadcast.
func (t *writer) vectorMemory(b []byte, o operandSpec, n int) []byte {
	elem := t.unit(o.elem &^ elemOnly)
	switch {
	case t.d.Encoding() != EncEVEX:
		return t.memory(b, 1, 0)
	case o.elem&elemOnly != 0:
		return t.memory(b, elem, 0)
	case t.d.EVEXb() && o.elem != 0:
		b = t.memory(b, elem, 0)
		b = append(b, "{1to"...)
		b = strconv.AppendInt(b, int64(n/elem), 10)
		return append(b, '}')
	}
	return t.memory(b, n, 0)
}

func appendVector(b []byte, width, number int) []byte {
	letter := byte('x')
	switch {
	case width >= 64:
		letter = 'z'
	case width == 32:
		letter = 'y'
	}
	return strconv.AppendInt(append(b, '%', letter, 'm', 'm'), int64(number), 10)
}

// constant writes an operand that stands in the instruction's last bytes.
func (t *writer) constant(b []byte, o operandSpec) []byte {
	f := t.inst.Fields
	var v uint64
	switch o.kind {
	case opOne:
		return append(b, "$1"...)
	case opMoffs:
		at, n := f.Imm, f.ImmLen
		if n == 0 {
			at, n = f.Disp, f.DispLen
		}
		v = uint64(t.field(at, n))
		if n == 4 {
			v = uint64(uint32(v))
		}
		return appendHex(t.segment(b), v)
	case opImm2:
		v = uint64(t.inst.Raw[(f.Imm+f.ImmLen-1)&15])
	case opImm4:
		v = uint64(t.immByte() & 15)
	default:
		size := uint8(t.bytes(o.size))
		v = uint64(t.field(f.Imm, f.ImmLen))
		if o.size == sizeB {
			v = uint64(t.immByte())
		} else if size < 8 {
			v &= 1<<(8*size) - 1
		}
	}
	return appendHex(append(b, '$'), v)
}

// field returns n bytes of the instruction from a field's place on, with their
// sign.
func (t *writer) field(at, n uint8) int64 {
	v := uint64(0)
	n = min(n, 8)
	for i := range n {
		v |= uint64(t.inst.Raw[(at+i)&15]) << (8 * i)
	}
	shift := 64 - 8*n
	return int64(v<<shift) >> shift
}

func (t *writer) immByte() byte { return t.inst.Raw[t.inst.Fields.Imm&15] }

func appendHex(b []byte, v uint64) []byte {
	return strconv.AppendUint(append(b, "0x"...), v, 16)
}

// stringOperand writes what a string instruction reads or writes.
func (t *writer) stringOperand(b []byte, k operandKind) []byte {
	reg := 6
	switch {
	case k == opDest:
		b = append(b, "%es:"...)
		reg = 7
	case t.d.Prefixes()&basedSegments != 0:
		b = t.segment(b)
	default:
		t.shown |= flatSegments
		b = append(b, "%ds:"...)
	}
	if k == opXlat {
		reg = 3
	}
	b = append(b, '(')
	b = t.general(b, t.bytes(sizeA), reg)
	return append(b, ')')
}

// memory writes the operand in ModRM.rm, SIB and displacement. A disp8 counts
// units; vsib is the size of the vector of indices, 0 for a general index.
func (t *writer) memory(b []byte, unit, vsib int) []byte {
	f := t.inst.Fields
	b = t.segment(b)
	disp := t.field(f.Disp, f.DispLen)
	if f.DispLen == 1 {
		disp *= int64(unit)
	}
	addr := t.bytes(sizeA)
	t.rexUsed |= rexB
	switch {
	case t.d.RM() == 4:
		return t.sibMemory(b, disp, addr, vsib)
	case t.d.Mod() == 0 && t.d.RM() == 5:
		t.ripRelative = true
		b = appendDisp(b, disp)
		if addr == 4 {
			return append(b, "(%eip)"...)
		}
		return append(b, "(%rip)"...)
	case t.d.Mod() != 0:
		b = appendDisp(b, disp)
	}
	b = t.general(append(b, '('), addr, t.rm())
	return append(b, ')')
}

// sibMemory writes a memory operand with SIB. Where it has no index, riz or eiz
// shows what needs no SIB otherwise.
func (t *writer) sibMemory(b []byte, disp int64, addr, vsib int) []byte {
	t.rexUsed |= rexX
	sib := t.inst.Raw[(t.inst.Fields.Operands+1)&15]
	scale := sib >> 6
	hasBase := t.d.Mod() != 0 || sib&7 != 5
	index := t.d.X()<<3 | sib>>3&7
	hasIndex := vsib != 0 || index|t.d.X4()<<4 != 4
	if !hasBase && !hasIndex && scale == 0 && addr == 8 {
		return appendHex(b, uint64(disp))
	}
	if t.d.Mod() != 0 || !hasBase {
		b = appendDisp(b, disp)
	}
	b = append(b, '(')
	if hasBase {
		b = t.general(b, addr, int(t.d.B4()<<4|t.d.B()<<3|sib&7))
	}
	switch {
	case vsib != 0:
		if t.d.Encoding() == EncEVEX {
			index |= t.d.VVVV() & 16 // V'
		}
		b = appendVector(append(b, ','), vsib, int(index))
	case hasIndex:
		b = t.general(append(b, ','), addr, int(t.d.X4()<<4|index))
	case hasBase && sib&7 == 4 && scale == 0:
		return append(b, ')') // rsp and r12 need SIB
	case addr == 8:
		b = append(b, ",%riz"...)
	default:
		b = append(b, ",%eiz"...)
	}
	return append(b, ',', '0'+1<<scale, ')')
}

func appendDisp(b []byte, disp int64) []byte {
	if disp < 0 {
		b = append(b, '-')
		disp = -disp
	}
	return appendHex(b, uint64(disp))
}

// segment writes the segment that a prefix names, where it has a base in 64-bit
// mode.
func (t *writer) segment(b []byte) []byte {
	if t.d.Prefixes()&basedSegments == 0 {
		return b
	}
	t.shown |= basedSegments
	if lastPrefix(t.inst, basedSegments) == PrefixFS {
		return append(b, "%fs:"...)
	}
	return append(b, "%gs:"...)
}

// appendAddress writes an address and the symbol that holds it.
func appendAddress(b []byte, addr uint64, lookup decode.SymLookup) []byte {
	b = appendHex(b, addr)
	if lookup == nil {
		return b
	}
	name, base := lookup(addr)
	if name == "" {
		return b
	}
	b = append(append(b, " <"...), name...)
	if addr != base {
		b = appendHex(append(b, '+'), addr-base)
	}
	return append(b, '>')
}

// operandBytes returns the size of a v operand.
func (d Detail) operandBytes() int {
	switch {
	case d.W() != 0:
		return 8
	case d.Encoding() == EncEVEX && d.PP() == 1, d.Encoding() != EncEVEX && d.Prefixes()&Prefix66 != 0:
		return 2
	}
	return 4
}

// bytes returns the size of a general operand, and notes what it depends on.
func (t *writer) bytes(s operandSize) int {
	switch s {
	case sizeB:
		return 1
	case sizeW:
		return 2
	case sizeD:
		return 4
	case sizeV:
		if t.d.W() != 0 {
			t.rexUsed |= rexW
		} else {
			t.shown |= Prefix66
		}
		return t.d.operandBytes()
	case sizeZ:
		if t.d.W() == 0 {
			t.shown |= Prefix66
			return t.d.operandBytes()
		}
		return 4
	case sizeR:
		t.rexUsed |= rexW
		return 4 << t.d.W()
	case sizeS:
		if t.d.W() == 0 {
			t.shown |= Prefix66
			if t.d.Prefixes()&Prefix66 != 0 {
				return 2
			}
		}
		return 8
	case sizeA:
		t.shown |= Prefix67
		if t.d.Prefixes()&Prefix67 != 0 {
			return 4
		}
	}
	return 8
}

// vectorBytes returns the vector length, which rounding and {sae} imply.
func (t *writer) vectorBytes() int {
	if t.rounds() {
		return 64
	}
	return 16 << t.d.VectorLength()
}

// rounds reports whether EVEX.b means rounding or {sae}.
func (t *writer) rounds() bool {
	return t.d.Encoding() == EncEVEX && t.d.EVEXb() && t.d.Mod() == 3
}

// width returns the size of a vector operand in memory; its register has at
// least 16 bytes.
func (t *writer) width(s operandSize) int {
	n := t.vectorBytes()
	switch s {
	case sizeO:
		return 16
	case sizeY:
		return 32
	case sizeX:
		return n
	case sizeH:
		return n / 2
	case sizeF:
		return n / 4
	case sizeE:
		return n / 8
	case sizeM:
		if n == 16 {
			return 8
		}
		return n
	}
	return 1 << s
}

// unit returns what disp8 counts.
func (t *writer) unit(e elemSize) int {
	switch {
	case t.d.Encoding() != EncEVEX || e == 0:
		return 1
	case e == elemByW:
		return 4 << t.d.W()
	}
	return int(e)
}

// reg returns the number of the register in ModRM.reg.
func (t *writer) reg() int {
	t.rexUsed |= rexR
	return int(t.d.R4()<<4 | t.d.R()<<3 | t.d.Reg())
}

// rm returns the number of the general register in ModRM.rm.
func (t *writer) rm() int {
	t.rexUsed |= rexB
	return int(t.d.B4()<<4 | t.d.B()<<3 | t.d.RM())
}

// vecRM returns the number of the vector register in ModRM.rm, whose bit 4 is X
// in EVEX.
func (t *writer) vecRM() int {
	t.rexUsed |= rexB
	n := t.d.B()<<3 | t.d.RM()
	if t.d.Encoding() == EncEVEX {
		n |= t.d.X() << 4
	}
	return int(n)
}

// isMem reports whether ModRM.rm is memory.
func (t *writer) isMem() bool { return t.inst.Fields.Operands != 0 && t.d.Mod() != 3 }

// masked reports whether the opmask bits name a mask register.
func (t *writer) masked() bool {
	return t.d.Encoding() == EncEVEX && t.form.attr&scalar == 0
}
