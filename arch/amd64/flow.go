package amd64

import (
	"encoding/binary"

	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// flowModel tells package flow what instructions do to registers.
type flowModel struct{}

var _ flow.Model = flowModel{}

// IndirectJump says where the indirect jump f.Insts[i] goes; see
// optcheck.Architecture.
func (ISA) IndirectJump(t *flow.Tracer, f *classify.Func, i int, mem flow.Memory) flow.Jump {
	t.Start(flowModel{}, f, mem)
	return t.Jump(i)
}

func (flowModel) ByteOrder() binary.ByteOrder { return binary.LittleEndian }
func (flowModel) Pieces() bool                { return false }

func (flowModel) IsEntry(*decode.Inst) bool              { return false }
func (flowModel) IsLabel(*decode.Inst) bool              { return false }
func (flowModel) IsTailCall(_ []decode.Inst, _ int) bool { return false }

func (flowModel) IsPadding(inst *decode.Inst) bool { return ISA{}.IsPadding(inst) }

// IsPadding recognises nops, of one byte or with operands.
func (ISA) IsPadding(inst *decode.Inst) bool {
	d := DetailOf(inst)
	return isPlainNop(d) || d.Map() == Map0F && d.Opcode() == 0x1f
}

func (flowModel) Facts(*classify.Func, flow.Memory) flow.Facts {
	return flow.Facts{Frame: 1<<RSP | 1<<RBP, Fixed: flow.NoReg}
}

// Changes returns the registers, flags and memory that inst writes.
func (flowModel) Changes(inst *decode.Inst) flow.Set {
	e := effectOf(inst)
	set := flow.Set(e.full | e.part)
	if !keepsFlags(inst) {
		set |= flow.Flags
	}
	if e.memory {
		set |= flow.MemoryWritten
	}
	return set
}

// flagKeepers are frequent instructions that leave the flags alone.
var flagKeepers = [...]opcodeRange{
	{MapOneByte, 0x50, 0x5f}, {MapOneByte, 0x63, 0x63}, {MapOneByte, 0x68, 0x68}, {MapOneByte, 0x6a, 0x6a},
	{MapOneByte, 0x70, 0x7f}, {MapOneByte, 0x88, 0x8b}, {MapOneByte, 0x8d, 0x8d}, {MapOneByte, 0x90, 0x99},
	{MapOneByte, 0xb0, 0xbf}, {MapOneByte, 0xc6, 0xc7}, {MapOneByte, 0xe9, 0xe9}, {MapOneByte, 0xeb, 0xeb},
	{Map0F, 0x10, 0x1f}, {Map0F, 0x28, 0x29}, {Map0F, 0x40, 0x4f}, {Map0F, 0x6e, 0x6f}, {Map0F, 0x7e, 0x9f},
	{Map0F, 0xb6, 0xb7}, {Map0F, 0xbe, 0xbf}, {Map0F, 0xc8, 0xcf}, {Map0F, 0xd6, 0xd6},
}

func keepsFlags(inst *decode.Inst) bool {
	d := DetailOf(inst)
	return d.Encoding() <= EncREX2 && d.in(flagKeepers[:])
}

// whatBranch66 is why the target of a jump with an operand-size prefix is not
// known.
const whatBranch66 = "its target is cut to 16 bits on some processors"

// Target returns where a jump goes. A place in memory that no index register
// points into holds a pointer, but for one on the stack.
func (flowModel) Target(inst *decode.Inst) (flow.Expr, string) {
	d := DetailOf(inst)
	switch {
	case inst.Flow != decode.FlowJumpIndirect:
		return flow.Expr{}, flow.WhatNoJump
	case Branch66(inst):
		return flow.Expr{}, whatBranch66
	case OpOf(inst) != OpJumpIndirect:
		return flow.Expr{Op: flow.OpWhole}, ""
	case d.Mod() == 3:
		return flow.Copy(d.rmRegister()), ""
	}
	m, ok := operandAddress(inst)
	if !ok || m.index == noRegister && m.base != RSP && m.base != RBP {
		return flow.Expr{Op: flow.OpWhole}, ""
	}
	return m.load(8, false), ""
}

// memoryOperand is the address of a ModRM operand.
type memoryOperand struct {
	base, index byte // noRegister for none
	shift       uint8
	disp        uint64 // with a RIP-relative operand, the address
}

// operandAddress returns the parts of the address, unless there is more to it.
func operandAddress(inst *decode.Inst) (m memoryOperand, ok bool) {
	d := DetailOf(inst)
	m = memoryOperand{base: noRegister, index: noRegister}
	switch {
	case inst.Fields.Operands == 0 || d.Mod() == 3 || d.Prefixes()&(PrefixFS|PrefixGS) != 0:
		return m, false
	case inst.PCRel.Kind != decode.PCRelNone:
		m.disp = inst.Target
		return m, true
	case d.addressIs32():
		return m, false
	}
	m.disp = uint64(int64(displacement(inst)))
	if d.RM() != RSP {
		m.base = d.rmRegister()
		return m, true
	}
	sib := inst.Raw[inst.Fields.Operands+1]
	if hasIndex(inst) {
		m.index, m.shift = d.X4()<<4|d.X()<<3|sib>>3&7, sib>>6
	}
	if sib&7 != RBP || d.Mod() != 0 {
		m.base = d.B4()<<4 | d.B()<<3 | sib&7
	}
	return m, true
}

// address returns the address as a value.
func (m *memoryOperand) address() flow.Expr {
	return flow.Expr{Op: flow.OpAdd, A: m.base, B: m.index, Shift: m.shift, K: m.disp}
}

// load returns what stands there.
func (m *memoryOperand) load(width uint8, signed bool) flow.Expr {
	x := m.address()
	x.Op, x.Width, x.Signed = flow.OpLoad, width, signed
	return x
}

// operandE returns ModRM.rm, a register or memory, extended from so many bits.
func operandE(inst *decode.Inst, bits uint8, signed bool) flow.Expr {
	d := DetailOf(inst)
	if d.Mod() == 3 {
		if bits == 64 {
			return flow.Copy(d.rmRegister())
		}
		return flow.Field(d.rmRegister(), bits, signed)
	}
	if m, ok := operandAddress(inst); ok {
		return m.load(bits/8, signed)
	}
	return flow.Expr{}
}

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

// Result returns what inst leaves in a register that it writes.
func (flowModel) Result(inst *decode.Inst, r flow.Reg) flow.Expr {
	d := DetailOf(inst)
	width := operandWidth(d)
	switch {
	case inst.IsCall() && r == RAX:
		return flow.Expr{Op: flow.OpWhole}
	case inst.IsCall():
		return flow.Expr{Op: flow.OpNone}
	case inst.Flow != decode.FlowNone || d.Encoding() > EncREX2 || width == 8 && d.highByte():
		return flow.Expr{}
	case r == RSP && writesOf(d)&wSP != 0:
		return stackPointer(d)
	}
	var x flow.Expr
	switch d.Map() {
	case MapOneByte:
		x = resultOneByte(inst, d, width)
	case Map0F:
		return result0F(inst, d, r)
	}
	if width < 32 {
		x.Part = width
		if x.Op == flow.OpAdd {
			x.Op = flow.OpOther
		}
	}
	return x
}

// stackPointer is Result for pushes and pops.
func stackPointer(d Detail) flow.Expr {
	moved := uint64(wordSize)
	switch op := d.Opcode(); {
	case d.operandIs16():
		return flow.Expr{}
	case op>>3 == 0x50>>3, op == 0x68, op == 0x6a, op == 0xff:
		moved = -moved
	case op>>3 != 0x58>>3 || d.opcodeRegister() == RSP:
		return flow.Expr{}
	}
	return flow.Add(RSP, moved)
}

// result0F is Result for the map 0F: movzx, movsx and cmov.
func result0F(inst *decode.Inst, d Detail, r flow.Reg) flow.Expr {
	switch op := d.Opcode(); {
	case op&^9 == 0xb6:
		bits := uint8(8) << (op & 1)
		if d.operandIs16() || bits == 8 && d.Mod() == 3 && !d.HasREX() && d.Encoding() == EncLegacy && d.RM() >= 4 {
			return flow.Expr{} // ah and its like
		}
		return operandE(inst, bits, op >= 0xbe)
	case op>>4 == 4 && d.W() != 0:
		x := flow.Expr{Op: flow.OpEither, A: r, B: flow.NoReg} // for what is in memory
		if d.Mod() == 3 {
			x.B = d.rmRegister()
		}
		return x
	}
	return flow.Expr{}
}

// resultOneByte is Result for the map of one byte.
func resultOneByte(inst *decode.Inst, d Detail, width uint8) flow.Expr {
	switch op := d.Opcode(); {
	case op < 0x40:
		return accumulation(inst, d)
	case op>>3 == 0x58>>3: // pop
		return flow.Expr{Op: flow.OpWhole}
	case op == 0x63: // movsxd
		return operandE(inst, 32, true)
	case op&^3 == 0x80:
		return arithmetic(d.Reg(), d.rmRegister(), immediate(inst))
	case op&^1 == 0x88 && width == 64:
		return flow.Copy(d.register())
	case op&^1 == 0x88: // mov
		return flow.Field(d.register(), width, false)
	case op&^1 == 0x8a:
		return operandE(inst, width, false)
	case op == 0x8d && width >= 32:
		if m, ok := operandAddress(inst); ok && inst.PCRel.Kind != decode.PCRelNone {
			return flow.Address(m.disp)
		} else if ok {
			return m.address()
		}
	case op == 0x98: // cltq and its like
		return flow.Field(RAX, width/2, true)
	case op&^7 == 0xb8, op == 0xc7: // mov
		return flow.Const(immediate(inst))
	case op&^1 == 0xc0, op&^1 == 0xd0:
		return shifted(inst, d, width)
	case op&^1 == 0xfe:
		return flow.Add(d.rmRegister(), 1-2*uint64(d.Reg()&1))
	}
	return flow.Expr{}
}

// The operations of the arithmetic opcodes, as they stand in opcodes below 40
// and in ModRM.reg of 80 to 83.
const (
	aluAdd = 0
	aluAnd = 4
	aluSub = 5
	aluXor = 6
	aluCmp = 7
)

// accumulation is an operation of the opcodes below 40.
func accumulation(inst *decode.Inst, d Detail) flow.Expr {
	op, reg := d.Opcode(), d.register()
	to, from := d.rmRegister(), reg
	if op&2 != 0 {
		to, from = reg, to
	}
	switch {
	case op == 0x33 && d.W() != 0 && d.Prefixes()&PrefixFS != 0:
		return flow.Copy(reg) // the pointer guard
	case op&4 != 0:
		return arithmetic(op>>3, RAX, immediate(inst))
	case d.Mod() != 3:
	case to == from && (op>>3 == aluXor || op>>3 == aluSub):
		return flow.Const(0)
	case op>>3 == aluAdd:
		return flow.Expr{Op: flow.OpAdd, A: to, B: from}
	}
	return flow.Expr{}
}

// arithmetic is an operation on a register and a number.
func arithmetic(op, reg byte, k uint64) flow.Expr {
	switch op {
	case aluAdd:
		return flow.Add(reg, k)
	case aluSub:
		return flow.Add(reg, -k)
	case aluAnd:
		return flow.Expr{Op: flow.OpMask, A: reg, B: flow.NoReg, K: k}
	}
	return flow.Expr{}
}

// guardRotation is by how many bits the GNU C library rotates pointers in
// memory that it also combines with a secret, the pointer guard: jmp_buf's and
// those of atexit. As far as it matters here, they are the pointers.
const guardRotation = 0x11

func shifted(inst *decode.Inst, d Detail, width uint8) flow.Expr {
	count := uint8(1)
	if d.Opcode() < 0xd0 {
		count = uint8(immediate(inst) & 63)
	}
	x := flow.Field(d.rmRegister(), width, false)
	switch {
	case (d.Reg() == 4 || d.Reg() == 6) && count < width: // shl
		x.Shift = count
	case d.Reg() == 5 && count < width: // shr
		x.From, x.Bits = count, width-count
	case d.Reg() == 1 && width == 64 && count == guardRotation: // ror
		return flow.Copy(d.rmRegister())
	default:
		return flow.Expr{}
	}
	return x
}

// maxStore is the largest number of bytes that an instruction stores.
const maxStore = 64

// Store returns where inst stores, and what if it is mov from a register.
func (flowModel) Store(inst *decode.Inst) (flow.Store, bool) {
	m, ok := operandAddress(inst)
	if !ok || m.index != noRegister || inst.Flow != decode.FlowNone || writesOf(DetailOf(inst))&wSP != 0 {
		return flow.Store{}, false
	}
	s := flow.Store{Base: m.base, Disp: m.disp, Size: maxStore, Regs: [2]flow.Reg{flow.NoReg, flow.NoReg}}
	d := DetailOf(inst)
	if d.Map() == MapOneByte && d.Opcode()&^1 == 0x88 && d.Encoding() <= EncREX2 {
		s.Width = operandWidth(d) / 8
		s.Size = s.Width
		if s.Width > 1 || !d.highByte() {
			s.Regs[0] = d.register()
		}
	}
	return s, true
}

// The opcodes of sub and cmp, without the bits that choose operands.
const (
	opcodeSub = 0x28
	opcodeCmp = 0x38
)

// Compare recognises cmp and sub.
func (flowModel) Compare(inst *decode.Inst) (c flow.Comparison, ok bool) {
	d := DetailOf(inst)
	if d.Map() != MapOneByte || d.Encoding() > EncREX2 || inst.Flow != decode.FlowNone {
		return c, false
	}
	c = flow.Comparison{Width: comparedWidth(d), B: flow.NoReg, Passed: flow.AnyRelation}
	e := operandE(inst, c.Width, false)
	other := flow.Reg(d.register())
	switch op := d.Opcode(); {
	case op&^3 == 0x80 && (d.Reg() == aluSub || d.Reg() == aluCmp):
		c.X, c.K = e, immediate(inst)
	case op&^7 != opcodeSub && op&^7 != opcodeCmp:
		return c, false
	case op&4 != 0:
		c.X, c.K = flow.Field(RAX, c.Width, false), immediate(inst)
	case op&2 == 0:
		c.X, c.B = e, other
	case d.Mod() == 3:
		c.X, c.B = flow.Field(other, c.Width, false), d.rmRegister()
	default:
		return c, false
	}
	return c, c.X.Op != flow.OpOther && (c.Width > 8 || !usesHighByte(d))
}

// comparedWidth is operandWidth of instructions that write nothing.
func comparedWidth(d Detail) uint8 {
	if d.Opcode()&1 == 0 {
		return 8
	}
	return max(operandWidth(d), 16)
}

// usesHighByte reports whether an arithmetic instruction on bytes names ah or
// its like.
func usesHighByte(d Detail) bool {
	if d.HasREX() || d.Encoding() != EncLegacy || d.Opcode()&4 != 0 && d.Opcode() < 0x40 {
		return false
	}
	return d.Mod() == 3 && d.RM() >= 4 || d.Opcode() < 0x40 && d.Reg() >= 4
}

// conditions are what branches say by the low bits of their opcodes, but the
// lowest, which turns them around.
var conditions = [8]flow.Condition{
	1: {Holds: flow.Less}, 2: {Holds: flow.Equal}, 3: {Holds: flow.Less | flow.Equal},
	6: {Holds: flow.Less, Signed: true}, 7: {Holds: flow.Less | flow.Equal, Signed: true},
}

// Condition recognises the conditional jumps after comparisons.
func (flowModel) Condition(inst *decode.Inst, taken bool) (c flow.Condition, ok bool) {
	if OpOf(inst) != OpJumpIf {
		return c, false
	}
	cond := DetailOf(inst).Opcode() & 15
	c = conditions[cond>>1]
	if ok = c.Holds != 0; taken != (cond&1 == 0) {
		c.Holds ^= flow.AnyRelation
	}
	return c, ok
}
