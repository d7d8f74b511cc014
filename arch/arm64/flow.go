package arm64

import (
	"encoding/binary"

	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// flowModel tells package flow what instructions do to registers. Number 31 is
// the stack pointer; the zero register is none.
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
func (flowModel) IsEntry(*decode.Inst) bool   { return true }

// frameRegister is x29.
const frameRegister = 29

func (flowModel) Facts(*classify.Func, flow.Memory) flow.Facts {
	return flow.Facts{Frame: 1<<zeroOrSP | 1<<frameRegister, Fixed: flow.NoReg}
}

func (flowModel) IsPadding(inst *decode.Inst) bool { return ISA{}.IsPadding(inst) }

// IsPadding recognises nop.
func (ISA) IsPadding(inst *decode.Inst) bool {
	const nop = 0xd503201f
	return WordOf(inst) == nop
}

// IsLabel recognises bti j and bti jc, which indirect jumps go to.
func (flowModel) IsLabel(inst *decode.Inst) bool {
	const mask, btiJ = 0xffffffbf, 0xd503249f
	return WordOf(inst)&mask == btiJ
}

// IsTailCall reports whether the link register is restored before the jump.
func (flowModel) IsTailCall(insts []decode.Inst, i int) bool {
	const nearby = 24
	for j := i - 1; j >= max(0, i-nearby) && insts[j].Continues(); j-- {
		if inst := &insts[j]; inst.Flow == decode.FlowNone && changedBy(inst)>>linkRegister&1 != 0 {
			return !signsLink(inst)
		}
	}
	return false
}

// signsLink recognises paciasp, pacibsp and their forms without sp: a function
// starts, rather than ends.
func signsLink(inst *decode.Inst) bool {
	const mask, paciaz = 0xffffff9f, 0xd503231f
	return WordOf(inst)&mask == paciaz
}

// Changes returns the registers, flags and memory that inst may change.
func (flowModel) Changes(inst *decode.Inst) flow.Set {
	set := flow.Set(changedBy(inst))
	if setsFlags(inst) {
		set |= flow.Flags
	}
	if storesSomewhere(inst) {
		set |= flow.MemoryWritten
	}
	return set
}

// storesSomewhere reports whether inst, or what it calls, may change memory.
func storesSomewhere(inst *decode.Inst) bool {
	switch {
	case inst.IsCall(), inst.Flow == decode.FlowSyscall:
		return true
	case !isLoadStore(WordOf(inst)) || inst.PCRel.Kind == decode.PCRelMemory:
		return false
	}
	a, ok := transferOf(inst)
	return !ok || a.store
}

// Target returns the register of br and ret.
func (flowModel) Target(inst *decode.Inst) (flow.Expr, string) {
	switch OpOf(inst) {
	case OpBR, OpBRAuth, OpRET:
		return flow.Copy(register(fieldRn(inst))), ""
	}
	return flow.Expr{}, flow.WhatNoJump
}

// register returns a register where number 31 is the zero register.
func register(r uint32) flow.Reg {
	if r == zeroOrSP {
		return flow.NoReg
	}
	return flow.Reg(r)
}

// Result returns what inst leaves in a register that it may change.
func (flowModel) Result(inst *decode.Inst, r flow.Reg) flow.Expr {
	word := WordOf(inst)
	rn, rm := fieldRn(inst), register(fieldRm(inst))
	switch {
	case inst.Has(decode.Invalid):
		return flow.Expr{}
	case inst.Flow != decode.FlowNone && r == 0:
		return flow.Expr{Op: flow.OpWhole}
	case inst.Flow != decode.FlowNone:
		return flow.Expr{Op: flow.OpNone}
	case OpOf(inst) == OpADR, OpOf(inst) == OpADRP:
		return flow.Address(inst.Target)
	case OpOf(inst) == OpHint, OpOf(inst) == OpLandingPad:
		return flow.Copy(r)
	case isLoadStore(word):
		return loaded(inst, r)
	}
	switch shapeOf(word) {
	case shapeAddImmediate:
		return flow.Add(flow.Reg(rn), uint64(addImmediate(word)))
	case shapeMoveWide:
		return wide(inst)
	case shapeLogicalImmediate:
		switch op := logicOp(word); {
		case op == logicOrr && rn == zeroOrSP:
			return flow.Const(logicalImmediate(word))
		case op == logicAnd || op == logicAnds:
			return flow.Expr{Op: flow.OpMask, A: register(rn), B: flow.NoReg, K: logicalImmediate(word)}
		}
	case shapeLogicalShifted:
		return logical(inst)
	case shapeBitfield:
		return bitfieldResult(word, register(rn))
	case shapeAddShifted:
		if word>>22&3 == 0 && is64(word) && !isSub(word) {
			return flow.Expr{Op: flow.OpAdd, A: register(rn), B: rm, Shift: uint8(word >> 10 & 63)}
		}
	case shapeAddExtended:
		if is64(word) && !isSub(word) && rn != zeroOrSP {
			return flow.Expr{
				Op: flow.OpAdd, A: flow.Reg(rn), B: rm, Shift: uint8(word >> 10 & 7),
				Bits: 8 << (word >> 13 & 3), Signed: word>>15&1 != 0,
			}
		}
	case shapeSelect: // those that change the second operand are not for addresses
		if word&0x40000c00 == 0 && is64(word) {
			return flow.Expr{Op: flow.OpEither, A: register(rn), B: rm}
		}
	case shapeAuthenticate:
		return flow.Copy(r)
	}
	if word>>25&7 == 7 { // from a vector register
		return flow.Expr{Op: flow.OpWhole}
	}
	return flow.Expr{}
}

// wide is Result for movz, movn and movk.
func wide(inst *decode.Inst) flow.Expr {
	const keeps = 3 // opc of movk
	word := WordOf(inst)
	if logicOp(word) != keeps {
		return flow.Const(wideImmediate(word))
	}
	shift := uint8(word >> 21 & 3 * 16)
	return flow.Expr{
		Op: flow.OpInsert, A: register(fieldRd(inst)), B: flow.NoReg,
		From: shift, Bits: 16, K: uint64(word>>5&0xffff) << shift,
	}
}

// logical is Result for mov and eor. What eor makes may be a pointer that the C
// library keeps in memory, as in a jmp_buf, combined with a secret value.
func logical(inst *decode.Inst) flow.Expr {
	const (
		movMask, mov = 0x7fe0ffe0, 0x2a0003e0
		eorMask, eor = 0xff200000, 0xca000000
	)
	word := WordOf(inst)
	switch {
	case word&movMask == mov && is64(word):
		return flow.Copy(register(fieldRm(inst)))
	case word&movMask == mov:
		return flow.Field(register(fieldRm(inst)), 32, false)
	case word&eorMask == eor:
		return flow.Expr{Op: flow.OpGuard, A: register(fieldRn(inst)), B: register(fieldRm(inst))}
	}
	return flow.Expr{}
}

// bitfieldResult is Result for sbfm and ubfm.
func bitfieldResult(word uint32, rn flow.Reg) flow.Expr {
	f, ok := bitfieldOf(word)
	if !ok || f.signed && !is64(word) && f.bits < 32 {
		return flow.Expr{}
	}
	x := flow.Field(rn, uint8(f.bits), f.signed)
	if f.left < 0 {
		x.From = uint8(-f.left)
		return x
	}
	if x.Shift = uint8(f.left); f.bits+uint32(f.left) == registerBits(word) { // only a shift
		x.Bits, x.Signed = uint8(registerBits(word)), false
	}
	return x
}

// The extensions of an index register, without the sign.
const extendWord = 2

// loaded is Result for loads, and for the base registers that they move.
func loaded(inst *decode.Inst, r flow.Reg) flow.Expr {
	a, ok := transferOf(inst)
	switch {
	case inst.PCRel.Kind == decode.PCRelMemory:
		return fromMemory(literalWidth(inst))
	case !ok: // exclusive, acquiring, atomic
		return fromMemory(1 << (WordOf(inst) >> 30))
	case a.writeback && uint32(r) == a.base && (a.store || a.vector || uint32(r) != a.registers[0] && uint32(r) != a.registers[1]):
		return flow.Add(r, uint64(a.moved))
	}
	x := flow.Expr{
		Op: flow.OpLoad, A: flow.Reg(a.base), B: flow.NoReg, K: uint64(a.offset),
		Width: a.width, Signed: a.signed, Bits: a.bits,
	}
	switch {
	case a.index != noRegister:
		x.B, x.Shift = register(a.index), uint8(a.shift)
		if a.option&3 == extendWord {
			x.IndexBits = 32
		}
	case uint32(r) == a.registers[1]:
		x.K += uint64(a.width)
	}
	return x
}

// fromMemory returns what so many bytes are that are loaded from anywhere.
func fromMemory(width uint8) flow.Expr {
	if width == 8 {
		return flow.Expr{Op: flow.OpWhole}
	}
	return flow.Expr{}
}

// literalWidth returns how many bytes the load of a literal reads.
func literalWidth(inst *decode.Inst) uint8 {
	if OpOf(inst) == OpLoadLiteral && WordOf(inst)>>30 == 1 {
		return 8
	}
	return 4
}

// Store returns where inst stores, and what.
func (flowModel) Store(inst *decode.Inst) (s flow.Store, ok bool) {
	if !isLoadStore(WordOf(inst)) || inst.PCRel.Kind == decode.PCRelMemory {
		return s, false
	}
	a, ok := transferOf(inst)
	if !ok || !a.store || a.writeback || a.index != noRegister {
		return s, false
	}
	s = flow.Store{Base: flow.Reg(a.base), Disp: uint64(a.offset), Width: a.width, Size: a.width, Regs: [2]flow.Reg{flow.NoReg, flow.NoReg}}
	if shapeOf(WordOf(inst)) == shapePair {
		s.Size *= 2
	}
	for n, r := range a.registers {
		if r != noRegister && !a.vector {
			s.Regs[n] = register(r)
		}
	}
	return s, true
}

// Compare recognises cmp and subs with a number or a register.
func (flowModel) Compare(inst *decode.Inst) (c flow.Comparison, ok bool) {
	word := WordOf(inst)
	if inst.Flow != decode.FlowNone || isLoadStore(word) || !isSub(word) || !setsS(word) || fieldRn(inst) == zeroOrSP {
		return c, false
	}
	c = flow.Comparison{X: flow.Copy(flow.Reg(fieldRn(inst))), Width: uint8(registerBits(word)), B: flow.NoReg, Passed: flow.AnyRelation}
	switch shapeOf(word) {
	case shapeAddImmediate:
		c.K = uint64(-addImmediate(word))
		return c, true
	case shapeAddShifted:
		c.B = register(fieldRm(inst))
		return c, word>>10&63 == 0
	}
	return c, false
}

// branchConditions are what b.cond says, by half of its condition's number; the lowest
// bit turns it around.
var branchConditions = [8]flow.Condition{
	0: {Holds: flow.Equal}, 1: {Holds: flow.Greater | flow.Equal}, 4: {Holds: flow.Greater},
	5: {Holds: flow.Greater | flow.Equal, Signed: true}, 6: {Holds: flow.Greater, Signed: true},
}

// Condition recognises the conditional branches on flags.
func (flowModel) Condition(inst *decode.Inst, taken bool) (c flow.Condition, ok bool) {
	if OpOf(inst) != OpBCond {
		return c, false
	}
	cond := WordOf(inst) & 15
	c = branchConditions[cond>>1]
	if ok = c.Holds != 0; taken != (cond&1 == 0) {
		c.Holds ^= flow.AnyRelation
	}
	return c, ok
}
