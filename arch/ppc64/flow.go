package ppc64

import (
	"encoding/binary"
	"slices"
	"strings"

	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// flowModel tells package flow what instructions do to registers.
type flowModel struct{ isa ISA }

var _ flow.Model = flowModel{}

// IndirectJump says where the indirect jump f.Insts[i] goes; see
// optcheck.Architecture. mem may be a TOCMemory.
func (a ISA) IndirectJump(t *flow.Tracer, f *classify.Func, i int, mem flow.Memory) flow.Jump {
	t.Start(flowModel{a}, f, mem)
	return t.Jump(i)
}

func (m flowModel) ByteOrder() binary.ByteOrder      { return m.isa.ByteOrder() }
func (flowModel) Pieces() bool                       { return true }
func (flowModel) IsEntry(*decode.Inst) bool          { return false }
func (flowModel) IsLabel(*decode.Inst) bool          { return false }
func (flowModel) IsTailCall([]decode.Inst, int) bool { return false }
func (m flowModel) IsPadding(inst *decode.Inst) bool { return m.isa.IsPadding(inst) }
func (flowModel) Changes(inst *decode.Inst) flow.Set { return changedBy(inst) }

// IsPadding recognises nop.
func (ISA) IsPadding(inst *decode.Inst) bool { return WordOf(inst) == insnNop }

// Target returns the register that a branch goes by.
func (flowModel) Target(inst *decode.Inst) (flow.Expr, string) {
	if !inst.Has(decode.Invalid) {
		switch OpOf(inst) {
		case OpBranchLR:
			return flow.Copy(LR), ""
		case OpBranchCTR:
			return flow.Copy(CTR), ""
		case OpBranchTAR:
			return flow.Copy(TAR), ""
		}
	}
	return flow.Expr{}, flow.WhatNoJump
}

// base returns the register RA as a base: r0 stands for 0.
func base(word uint32) flow.Reg {
	if r := fieldRA(word); r != 0 {
		return r
	}
	return flow.NoReg
}

// Result returns what inst leaves in a register that it may change.
func (flowModel) Result(inst *decode.Inst, r flow.Reg) flow.Expr {
	word := WordOf(inst)
	switch OpOf(inst) {
	case OpAddPCIS, OpPCAddress:
		return flow.Address(inst.Target)
	case OpBranch, OpBranchLR, OpBranchCTR, OpBranchTAR, OpBranchCond, OpSyscall:
		return afterBranch(inst, r)
	case OpMoveSPR:
		return moved(inst)
	}
	if l, ok := transferOf(inst); ok {
		return l.result(inst, r)
	}
	source := flow.Reg(targetOf(inst))
	switch word >> 26 {
	case opADDI:
		if inst.Len == prefixedSize {
			return flow.Add(base(word), displacement34(inst.Detail))
		}
		return flow.Add(base(word), signedField(word))
	case opADDIS:
		return flow.Add(base(word), signedField(word)<<16)
	case opORI:
		return flow.Expr{Op: flow.OpInsert, A: source, B: flow.NoReg, K: uint64(word & 0xffff)}
	case opORIS:
		return flow.Expr{Op: flow.OpInsert, A: source, B: flow.NoReg, K: uint64(word&0xffff) << 16}
	case opRLWINM, opRotate:
		return rotated(inst)
	case opX:
		switch {
		case extendedOp(word) == xoADD:
			return flow.Expr{Op: flow.OpAdd, A: fieldRA(word), B: fieldRB(word)}
		case extendedOp(word) == xoOR && source == fieldRB(word):
			return flow.Copy(source)
		case extendedOp(word) == xoEXTSW:
			return flow.Field(source, 32, true)
		case extendedOp(word)&31 == xoISEL:
			return flow.Expr{Op: flow.OpEither, A: base(word), B: fieldRB(word)}
		}
	}
	return flow.Expr{}
}

// afterBranch is Result for branches and system calls.
func afterBranch(inst *decode.Inst, r flow.Reg) flow.Expr {
	switch {
	case onlyGetsPC(inst) && r == LR:
		return flow.Address(inst.Next())
	case r == 3:
		return flow.Expr{Op: flow.OpWhole}
	case inst.Has(decode.Link), inst.Flow == decode.FlowSyscall:
		return flow.Expr{Op: flow.OpNone}
	}
	return flow.Expr{}
}

// moved is Result for mfspr and mtspr.
func moved(inst *decode.Inst) flow.Expr {
	word := WordOf(inst)
	if word&moveTo != 0 {
		return flow.Copy(targetOf(inst))
	}
	switch sprOf(word) {
	case sprLR:
		return flow.Copy(LR)
	case sprCTR:
		return flow.Copy(CTR)
	case sprTAR:
		return flow.Copy(TAR)
	}
	return flow.Expr{}
}

// transfer is a load or store of one register at a plain address.
type transfer struct {
	width   uint8 // bytes
	store   bool
	signed  bool
	indexed bool // the address is the sum of two registers
	update  bool // and becomes the base register
	vector  bool // no general register is stored
}

// transfers are the mnemonics, without the letters for prefixed, indexed and
// updating ones.
var transfers = map[string]transfer{
	"ld": {width: 8}, "lwz": {width: 4}, "lwa": {width: 4, signed: true},
	"lhz": {width: 2}, "lha": {width: 2, signed: true}, "lbz": {width: 1},
	"std": {width: 8, store: true}, "stw": {width: 4, store: true},
	"sth": {width: 2, store: true}, "stb": {width: 1, store: true},
	"stfd": {width: 8, store: true, vector: true}, "stfs": {width: 4, store: true, vector: true},
}

func transferOf(inst *decode.Inst) (l transfer, ok bool) {
	if !mayTransfer(inst) {
		return l, false
	}
	name := strings.TrimPrefix(formatOf(inst).name, "p")
	name, indexed := strings.CutSuffix(name, "x")
	name, update := strings.CutSuffix(name, "u")
	l, ok = transfers[name]
	l.indexed, l.update = indexed, update
	return l, ok
}

// mayTransfer tells most other instructions by the opcode alone.
func mayTransfer(inst *decode.Inst) bool {
	op := WordOf(inst) >> 26
	return inst.Len == prefixedSize || op >= 32 && op <= 55 || op == opX || op == opLD || op == opSTD
}

// address returns the address that l is at, as a value.
func (l *transfer) address(inst *decode.Inst) flow.Expr {
	word := WordOf(inst)
	x := flow.Expr{Op: flow.OpAdd, A: base(word), B: flow.NoReg}
	switch {
	case OpOf(inst) == OpPCMemory:
		x.A, x.K = flow.NoReg, inst.Target
	case l.indexed:
		x.B = fieldRB(word)
	default:
		x.K = displacementOf(inst)
	}
	return x
}

// result is Result for loads and stores.
func (l *transfer) result(inst *decode.Inst, r flow.Reg) flow.Expr {
	x := l.address(inst)
	switch {
	case l.update && r == fieldRA(WordOf(inst)):
		return x
	case l.store:
		return flow.Expr{}
	}
	x.Op, x.Width, x.Signed = flow.OpLoad, l.width, l.signed
	return x
}

// displacementOf returns the displacement of a load or store that is not
// indexed.
func displacementOf(inst *decode.Inst) uint64 {
	return uint64(args[formatOf(inst).args[1]].signed(inst.Detail))
}

// maxStore is more than the common instructions store, in bytes.
const maxStore = 16

// Store returns where inst stores, and what.
func (flowModel) Store(inst *decode.Inst) (s flow.Store, ok bool) {
	word := WordOf(inst)
	f := formatOf(inst)
	if !f.isStore() || args[f.args[1]].kind != argDisp {
		return s, false
	}
	s = flow.Store{Base: base(word), Disp: displacementOf(inst), Size: maxStore, Regs: [2]flow.Reg{flow.NoReg, flow.NoReg}}
	if l, ok := transferOf(inst); ok {
		s.Size, s.Width = l.width, l.width
		if !l.vector && inst.Len == wordSize {
			s.Regs[0] = targetOf(inst)
		}
	}
	return s, true
}

// rotated is Result for rlwinm, rldicl, rldicr and rldic whose mask does not wrap
// and cuts no bits off that the rotation has brought round.
func rotated(inst *decode.Inst) flow.Expr {
	word := WordOf(inst)
	sh, m := int(word>>11&31|word>>1&1<<5), int(word>>6&31|word&0x20)
	switch op := word >> 2 & 7; {
	case word>>26 == opRLWINM:
		return rotation(targetOf(inst), int(fieldRB(word)), 31-int(word>>1&31), 31-int(word>>6&31), 32)
	case op == 0: // rldicl
		return rotation(targetOf(inst), sh, 0, 63-m, 64)
	case op == 1: // rldicr
		return rotation(targetOf(inst), sh, 63-m, 63, 64)
	case op == 2: // rldic
		return rotation(targetOf(inst), sh, sh, 63-m, 64)
	}
	return flow.Expr{}
}

// rotation returns the rotation left by sh of a number of size bits that keeps
// the bits low to high of the result. Where nothing of an int is masked, it is
// taken for a shift.
func rotation(r flow.Reg, sh, low, high, size int) flow.Expr {
	from, bits := low-sh, high-low+1
	if from < 0 {
		from += size
	}
	if high < low || from+bits > size { // it is made of both ends of the source
		return flow.Expr{}
	}
	x := flow.Field(r, uint8(bits), false)
	x.From, x.Shift = uint8(from), uint8(low)
	if from == 0 && high >= 31 {
		x.Bits = 32
		if high == 63 {
			x.Bits = 64
		}
	}
	return x
}

// Compare recognises comparisons, and traps on them. Compilers compare with sign
// where they know that a number has none.
func (flowModel) Compare(inst *decode.Inst) (c flow.Comparison, ok bool) {
	word := WordOf(inst)
	if inst.Len != wordSize {
		return c, false
	}
	c = flow.Comparison{
		X: flow.Copy(fieldRA(word)), Width: 64, Field: fieldBF(word), B: flow.NoReg, Passed: flow.AnyRelation,
	}
	switch op := word >> 26; {
	case op == opTWI:
		c.Passed, c.K = passedTrap(boField(word)), signedField(word)
	case op == opCMPLI:
		c.K = uint64(word & 0xffff)
	case op == opCMPI:
		c.K = signedField(word)
	case op == opX && (extendedOp(word) == xoCMP || extendedOp(word) == xoCMPL):
		c.B = fieldRB(word)
	default:
		return c, false
	}
	return c, true
}

// passedTrap returns what holds after a trap with the conditions to that did
// not trap. The last two are the unsigned ones.
func passedTrap(to uint32) flow.Relation {
	const greater, equal, unsignedGreater = 8, 4, 1
	holds := flow.AnyRelation
	if to&(greater|unsignedGreater) != 0 {
		holds &^= flow.Greater
	}
	if to&equal != 0 {
		holds &^= flow.Equal
	}
	return holds
}

// Condition recognises the branches on a bit of the condition register.
func (flowModel) Condition(inst *decode.Inst, taken bool) (c flow.Condition, ok bool) {
	relations := [4]flow.Relation{flow.Less, flow.Greater, flow.Equal}
	word := WordOf(inst)
	bo, bi := boField(word), fieldRA(word)
	switch OpOf(inst) {
	case OpBranchCond, OpBranchLR, OpBranchCTR, OpBranchTAR:
	default:
		return c, false
	}
	c = flow.Condition{Holds: relations[bi&3], Field: bi >> 2}
	if c.Holds == 0 || bo&boIgnoreCR != 0 || bo&boIgnoreCTR == 0 && !taken {
		return c, false
	}
	if (bo&boTrue != 0) != taken {
		c.Holds ^= flow.AnyRelation
	}
	return c, true
}

// TOCMemory is implemented by a flow.Memory that knows the TOC pointer, the
// value of r2, of functions that do not set it themselves: those of ELFv1, and
// those of ELFv2 with a local entry point only.
type TOCMemory interface {
	TOC() (addr uint64, ok bool)
}

// Facts returns whether r31 points at the frame, and the TOC pointer in r2 where
// no instruction makes that something else: it is only set at entries and
// loaded, be it for a call. Code that addresses by the program counter may use
// r2 for anything.
func (flowModel) Facts(f *classify.Func, mem flow.Memory) flow.Facts {
	const (
		framePointer = 31
		prologue     = 64 // instructions
		setsFrame    = insnMR | stackPointer<<21 | framePointer<<16 | stackPointer<<11
	)
	facts := flow.Facts{Frame: 1 << stackPointer, Fixed: flow.NoReg}
	first := f.Insts[:min(len(f.Insts), prologue)]
	if slices.ContainsFunc(first, func(inst decode.Inst) bool { return inst.Detail == setsFrame }) {
		facts.Frame |= 1 << framePointer
	}
	if toc, ok := tocOf(f, mem); ok && !slices.ContainsFunc(f.Insts, usesTOC) {
		facts.Fixed, facts.Value = tocPointer, toc
	}
	return facts
}

// tocPointer is the number of r2.
const tocPointer = 2

// What sets r2 at a global entry: addis r2,r12,… or lis r2,…, then addi r2,r2,….
const (
	addisTOC = opADDIS<<26 | tocPointer<<21 | 12<<16
	lisTOC   = opADDIS<<26 | tocPointer<<21
	addiTOC  = opADDI<<26 | tocPointer<<21 | tocPointer<<16
)

// tocOf returns the TOC pointer. The global entry of an ELFv2 function computes
// it from its own address, or in a program that is not position-independent
// loads it as a constant [OpenPOWER ELFv2 ABI, 2.3.2.1].
func tocOf(f *classify.Func, mem flow.Memory) (addr uint64, ok bool) {
	if len(f.Insts) >= 2 {
		first, second := &f.Insts[0], &f.Insts[1]
		n := signedField(WordOf(first))<<16 + signedField(WordOf(second))
		if second.Detail&^0xffff == addiTOC {
			switch first.Detail &^ 0xffff {
			case addisTOC:
				return first.Addr + n, true
			case lisTOC:
				return n, true
			}
		}
	}
	if m, ok := mem.(TOCMemory); ok {
		return m.TOC()
	}
	return 0, false
}

// usesTOC reports whether inst makes r2 something else than the TOC pointer.
func usesTOC(inst decode.Inst) bool {
	if inst.Flow != decode.FlowNone || inst.Has(decode.Invalid) || !mayName(&inst, tocPointer) {
		return false
	}
	switch inst.Detail &^ 0xffff {
	case addisTOC, lisTOC, addiTOC:
		return false
	}
	if changedBy(&inst)>>tocPointer&1 == 0 {
		return false
	}
	l, ok := transferOf(&inst)
	return !ok || l.store
}
