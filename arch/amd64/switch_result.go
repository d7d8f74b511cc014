package amd64

import "xol/decode"

// operandWidth returns the bits of an instruction's general operands. Of moves
// with extension they are those of the result.
func operandWidth(d Detail) uint8 {
	switch {
	case writesOf(d)&wByte != 0:
		return 8
	case d.W() != 0:
		return 64
	case d.Prefixes()&Prefix66 != 0:
		return 16
	}
	return 32
}

// operation is an instruction that writes a register.
type operation struct {
	inst  *decode.Inst
	d     Detail
	step  int
	reg   byte  // that is asked for
	width uint8 // of the operands
	want  uint8 // bits that are asked for
}

// defined returns what step s leaves in a register that it writes.
func (e *evaluation) defined(reg byte, want uint8, s int) value {
	inst := e.inst(s)
	if inst.Flow == decode.FlowCall || inst.Flow == decode.FlowCallIndirect {
		if reg == RAX {
			return e.leaf(node{op: nodeResult, reg: reg, step: int16(s)})
		}
		return e.made(reg, s)
	}
	d := DetailOf(inst)
	o := operation{inst: inst, d: d, step: s, reg: reg, width: operandWidth(d), want: want}
	if d.Encoding() <= EncREX2 && inst.Flow == decode.FlowNone && (o.width > 8 || !d.highByte()) {
		if v, ok := e.result(&o); ok {
			return v
		}
	}
	return e.made(reg, s)
}

// result computes what an operation leaves in its register, if it is one of
// those that addresses are computed with.
func (e *evaluation) result(o *operation) (value, bool) {
	op := o.d.Opcode()
	switch o.d.Map() {
	case MapOneByte:
	case Map0F:
		switch {
		case op&^9 == 0xb6: // movzx, movsx
			return e.extension(o)
		case op>>4 == 4: // cmov
			return e.leaf(node{op: nodeChoice, reg: o.reg, step: int16(o.step)}), true
		}
		return value{}, false
	default:
		return value{}, false
	}
	switch {
	case o.reg == RSP && writesOf(o.d)&wSP != 0:
		return e.stackPointer(o)
	case op < 0x40:
		return e.accumulation(o)
	case op>>4 == 5: // pop
		return e.load(64, e.register(RSP, 64, o.step), o.step), true
	case op == 0x63: // movsxd
		return e.extension(o)
	case op == 0x69, op == 0x6b: // imul
		return e.scaled(e.operandE(o), immediate(o.inst)), true
	case op&^3 == 0x80:
		return e.arithmetic(o, o.d.Reg(), e.operandE(o), constant(immediate(o.inst)))
	case op&^1 == 0x88: // mov
		return e.moved(o, e.read(o, o.d.register())), true
	case op&^1 == 0x8a:
		return e.moved(o, e.operandE(o)), true
	case op == 0x8d:
		return e.lea(o)
	case op == 0x98: // cltq and its like
		return e.extended(e.register(RAX, o.width/2, o.step), o.width/2, true), true
	case op&^7 == 0xb8, op == 0xc7: // mov
		return value{k: immediate(o.inst), at: int16(o.step)}, true
	case op&^1 == 0xc0, op&^1 == 0xd0:
		return e.shifted(o)
	case op&^1 == 0xfe:
		return e.offset(e.operandE(o), 1-2*uint64(o.d.Reg()&1), o.width), true
	}
	return value{}, false
}

// read returns what o reads of a register.
func (e *evaluation) read(o *operation, reg byte) value {
	return e.register(reg, min(o.width, o.want), o.step)
}

// operandE returns ModRM.rm, a register or memory.
func (e *evaluation) operandE(o *operation) value {
	if o.d.Mod() == 3 {
		return e.read(o, o.d.rmRegister())
	}
	return e.load(o.width, e.address(o.step), o.step)
}

// moved returns what is left of a value in a register.
func (e *evaluation) moved(o *operation, v value) value {
	if o.width == 32 {
		return e.extended(v, 32, false)
	}
	return v
}

func (e *evaluation) lea(o *operation) (value, bool) {
	m, ok := operandAddress(o.inst)
	if !ok || o.width < 32 {
		return value{}, false
	}
	if m.base == noRegister || m.index != noRegister {
		return e.address(o.step), true
	}
	return e.offset(e.read(o, m.base), m.disp, o.width), true
}

// extension is movzx, movsx or movsxd.
func (e *evaluation) extension(o *operation) (value, bool) {
	from, signed := uint8(32), true
	if o.d.Map() == Map0F {
		from, signed = 8<<(o.d.Opcode()&1), o.d.Opcode() >= 0xbe
	}
	var v value
	switch {
	case o.d.Mod() != 3:
		v = e.load(from, e.address(o.step), o.step)
	case from == 8 && !o.d.HasREX() && o.d.Encoding() == EncLegacy && o.d.RM() >= 4:
		return v, false // ah and its like
	default:
		v = e.register(o.d.rmRegister(), from, o.step)
	}
	return e.extended(v, from, signed), true
}

// The operations of the arithmetic opcodes, as they stand in opcodes below 40
// and in ModRM.reg of 80 to 83.
const (
	aluAdd = 0
	aluAnd = 4
	aluSub = 5
	aluXor = 6
)

// accumulation is an operation of the opcodes below 40.
func (e *evaluation) accumulation(o *operation) (value, bool) {
	op := o.d.Opcode()
	if op == 0x33 && o.width == 64 && o.d.Prefixes()&PrefixFS != 0 {
		return e.read(o, o.d.register()), true // the pointer guard
	}
	if op&4 != 0 {
		return e.arithmetic(o, op>>3, e.read(o, RAX), constant(immediate(o.inst)))
	}
	reg := o.d.register()
	if clears := op>>3 == aluXor || op>>3 == aluSub; clears && o.d.Mod() == 3 && o.d.rmRegister() == reg {
		return constant(0), true
	}
	if op&2 != 0 {
		return e.arithmetic(o, op>>3, e.read(o, reg), e.operandE(o))
	}
	return e.arithmetic(o, op>>3, e.operandE(o), e.read(o, reg))
}

func (e *evaluation) arithmetic(o *operation, op byte, v, w value) (value, bool) {
	k, known := w.isConstant()
	switch op {
	case aluAdd:
		if known && !w.address {
			return e.offset(v, k, o.width), true
		}
		return v.plus(w)
	case aluSub:
		if known {
			return e.offset(v, -k, o.width), true
		}
		return v.plus(w.negative())
	case aluAnd:
		if !known {
			v, w = w, v
			k, known = w.isConstant()
		}
		if known {
			return e.leaf(node{op: nodeAnd, width: o.width, reg: o.reg, step: int16(o.step), k: k, of: v}), true
		}
	}
	return value{}, false
}

// guardRotation is by how many bits the GNU C library rotates pointers in
// memory that it also combines with a secret, the pointer guard: jmp_buf's and
// those of atexit. As far as it matters here, they are the pointers.
const guardRotation = 0x11

func (e *evaluation) shifted(o *operation) (value, bool) {
	count := uint64(1)
	if o.d.Opcode() < 0xd0 {
		count = immediate(o.inst) & 63
	}
	switch o.d.Reg() {
	case 4, 6: // shl
		return e.scaled(e.operandE(o), 1<<count), true
	case 1: // ror
		return e.operandE(o), o.width == 64 && count == guardRotation
	case 5: // shr
		return e.leaf(node{op: nodeShift, width: o.width, k: count, of: e.operandE(o)}), true
	}
	return value{}, false
}

// stackPointer is a push or pop, as far as it moves the stack pointer.
func (e *evaluation) stackPointer(o *operation) (value, bool) {
	moved := uint64(wordSize)
	switch op := o.d.Opcode(); {
	case op>>3 == 0x50>>3, op == 0x68, op == 0x6a, op == 0xff:
		moved = -moved
	case op>>3 != 0x58>>3 || o.d.opcodeRegister() == RSP:
		return value{}, false
	}
	return e.offset(e.register(RSP, 64, o.step), moved, 64), !o.d.operandIs16()
}

// maxOffset is what numbers that are added to an index stay below. Others are
// addresses.
const maxOffset = 1 << 12

// offset returns the sum of a value and a number. If neither is an address, it
// is a node of its own: a table is found at the index that is made so.
func (e *evaluation) offset(v value, k uint64, width uint8) value {
	if _, known := v.isConstant(); known || e.onStack(value{terms: v.terms}) ||
		width == 64 && k+maxOffset > 2*maxOffset {
		v.k += k
		return v
	}
	if id, single := v.single(); single && e.nodes[id].op == nodeOffset {
		k, v = k+e.nodes[id].k, e.nodes[id].of
	}
	if k == 0 {
		return v
	}
	return e.leaf(node{op: nodeOffset, k: k, of: v})
}

// extended returns the low bits of a value, extended. Extensions from 32 bits
// matter only to what was loaded.
func (e *evaluation) extended(v value, width uint8, signed bool) value {
	id, single := v.single()
	n := &e.nodes[id]
	switch {
	case width == 32 && single && n.op == nodeSign && n.width == 32 && !signed:
		return n.of
	case width == 32 && !(single && n.op == nodeLoad && n.width == 32 && signed):
		return v
	case single && !signed && e.bits(id) <= width:
		return v
	case signed:
		return e.leaf(node{op: nodeSign, width: width, of: v})
	}
	return e.leaf(node{op: nodeZero, width: width, of: v})
}

// bits returns how many bits of a node may be set.
func (e *evaluation) bits(id nodeID) uint8 {
	switch n := &e.nodes[id]; n.op {
	case nodeLoad, nodeZero:
		return n.width
	}
	return 64
}
