package amd64

import (
	"math"

	"xol/classify"
	"xol/decode"
	"xol/relocate"
)

// Rules that keep an instruction from being moved.
var (
	ruleMoveBranch66 = classify.Rule{
		ID:     "amd64/move-branch-66",
		Reason: "processors disagree on a near branch with an operand-size prefix: Intel ignores the prefix, AMD cuts the target to 16 bits",
	}
	ruleMoveTrap = classify.Rule{
		ID:     "amd64/move-trap",
		Reason: "it raises an exception on purpose, whose handler looks at its address",
		Remedy: "let the probe mechanism raise the exception at the original address",
	}
	ruleMoveFarCall = classify.Rule{
		ID:     "amd64/move-far-call",
		Reason: "a far call saves the code segment with the return address, which no other instruction does",
	}
	ruleMoveFarJump = classify.Rule{
		ID:     "amd64/move-far-jump",
		Reason: "its operand is out of reach, and after a far jump nothing could restore a register that is used to get there",
		Remedy: "move it to a place within 2 GiB of its operand, or name a dead register",
	}
	ruleMoveInto = classify.Rule{
		ID:     "amd64/move-branch-into-instruction",
		Reason: "it branches into the middle of an instruction of the region",
	}
	ruleMoveScratch = classify.Rule{
		ID:     "amd64/move-scratch",
		Reason: "its operand is out of reach, and no register may be used to get there",
		Remedy: "move it to a place within 2 GiB of its operand, name a dead register, or allow the stack for scratch",
	}
	ruleMoveStackPointer = classify.Rule{
		ID:     "amd64/move-stack-pointer",
		Reason: "its operand is out of reach, and its encoding has no place for a register that stands for the stack pointer",
		Remedy: "move it to a place within 2 GiB of its operand, or name a dead register",
	}
)

// Notes on the forms.
var (
	noteRebase = relocate.Note{ID: "amd64/rip-relative",
		Text: "the displacement is re-based; out of reach, the address is built in a register: the destination of a load, a dead one, or one that the stack keeps meanwhile"}
	noteAddress = relocate.Note{ID: "amd64/rip-address",
		Text: "the displacement is re-based; out of reach, the address is loaded as a constant"}
	noteBranch = relocate.Note{ID: "amd64/branch",
		Text: "the branch has a 32-bit displacement; out of reach, it goes through an address in memory"}
	noteLoop = relocate.Note{ID: "amd64/loop",
		Text: "the branch, which has no long form, goes over a jump"}
	noteCall = relocate.Note{ID: "amd64/call",
		Text: "the address after the original is pushed, then the target is jumped to; a shadow stack would miss the call"}
	noteCallInside = relocate.Note{ID: "amd64/call-returns-inside",
		Text: "the address after the original is pushed, which is part of the region: the instructions there must stay what they are"}
	noteThrough = relocate.Note{ID: "amd64/indirect-through-return",
		Text: "the target is loaded first and reached by a return, which a shadow stack would refuse"}
	noteSyscall = relocate.Note{ID: "amd64/syscall",
		Text: "rcx is set to the address after the original afterwards"}
)

// moveForm says how a step is emitted.
type moveForm uint8

const (
	formKept        moveForm = iota
	formBranch               // jmp, jcc, loop, jrcxz, xbegin
	formCall                 // direct call
	formCallOperand          // indirect call: push, then jmp through the operand
	formCallThrough          // indirect call by way of a return
	formSyscall

	// These have a RIP-relative operand, which is re-based. Out of reach there is
	formRebase       // nothing to be done
	formConstant     // lea: a constant
	formBase         // a register for the operand's base, whose value is not needed
	formSavedBase    // one that is saved
	formStackPointer // likewise, and another one stands for rsp
	formPush
	formPop
	formJumpThrough // an indirect jump by way of a return
)

// noRegister stands for a register that an operand or a form does not have.
const noRegister = relocate.NoRegister

func formOf(s *relocate.Step) moveForm { return moveForm(s.Form) }

func setForm(s *relocate.Step, form moveForm, scratch byte, note *relocate.Note) {
	s.Form, s.Scratch.Reg, s.Note = uint8(form), scratch, note
}

// Sizes in bytes.
const (
	jumpNear   = 5
	jumpFar    = 14 // jmp *0(%rip) and the address
	jccNear    = 6
	jccShort   = 2
	jumpShort  = 2
	xbeginSize = 6
	farMax     = 96 // more than any form of an operand out of reach has
)

// JumpLen returns the length in bytes of the jump that may take a breakpoint's
// place.
func (ISA) JumpLen() int { return jumpNear }

// Plan fills p; see relocate.Relocator.
//
// Registers, flags, memory, the red zone and the return addresses that moved
// code leaves are those of the original, and at every moment all that it needs
// lies above the stack pointer, so that signals may come. What still tells that
// an instruction was moved: the address in an exception's frame, with registers
// that may be those of a point between; the instruction pointers that the x87
// unit and the branch records keep; and shadow stacks, see the notes of calls.
// Hints of branches and the BND prefix are dropped where a branch takes another
// form. A call through memory pushes before it reads, so that its operand must
// not be in the 8 bytes below the stack pointer, unless rsp is what it is named
// by.
func (ISA) Plan(p *relocate.Plan, insts []decode.Inst, opt relocate.Options) error {
	if opt.Linux {
		opt.Reach = relocate.Near
	}
	return relocate.Make(&mover, p, insts, opt)
}

// mover moves instructions; the slot's breakpoint is int3.
var mover = relocate.Mover{Align: 1, Breakpoint: []byte{0xcc}, LeaveLen: jumpNear, Forms: movedForms{}}

// movedForms are the moved forms; see relocate.Forms.
type movedForms struct{}

// Check refuses branches into instructions.
func (movedForms) Check(p *relocate.Plan) error {
	if addr, found := p.BranchInto(); found && !p.Options.Linux {
		return relocate.Refuse(&ruleMoveInto, addr)
	}
	return nil
}

// Jump returns the sizes of the way back.
func (movedForms) Jump(*relocate.Plan) (near, far int, err error) { return jumpNear, jumpFar, nil }

// Choose gives s its form, or returns the rule that there is none.
func (movedForms) Choose(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	if p.Options.Linux {
		chooseLinux(s)
		return nil
	}
	if rule := immovable(&s.Inst); rule != nil {
		return rule
	}
	switch baseForm(&s.Inst, p) {
	case formBranch, formCall:
		chooseBranch(s, p)
	case formCallOperand:
		return chooseCallIndirect(s, p)
	case formConstant:
		chooseAddress(s, &p.Options)
	case formRebase:
		return chooseMemory(s, &p.Options)
	case formSyscall:
		setForm(s, formSyscall, noRegister, &noteSyscall)
		setOneSize(s, int(s.Inst.Len)+movabsSize)
	}
	return nil
}

// baseForm returns the form of a class of instructions. What they are exactly and
// where their operand is may ask for another one.
func baseForm(inst *decode.Inst, p *relocate.Plan) moveForm {
	kind := inst.PCRel.Kind
	switch {
	case inst.Flow == decode.FlowCallIndirect:
		return formCallOperand
	case kind == decode.PCRelBranch, inst.Flow == decode.FlowJump && p.Inside(inst.Target): // jmpabs
		return formBranch
	case kind == decode.PCRelAddress && OpOf(inst) == OpLea:
		return formConstant
	case kind != decode.PCRelNone:
		return formRebase
	case OpOf(inst) == OpSyscall:
		return formSyscall
	}
	return formKept
}

// immovable returns the rule that keeps an instruction from being moved even
// to a place where its operand is in reach.
func immovable(inst *decode.Inst) *classify.Rule {
	switch {
	case Branch66(inst):
		return &ruleMoveBranch66
	case inst.Flow == decode.FlowTrap && !isSoftwareInterrupt(inst):
		return &ruleMoveTrap
	case inst.Flow == decode.FlowCallIndirect && OpOf(inst) != OpCallIndirect:
		return &ruleMoveFarCall
	}
	return nil
}

// chooseLinux re-bases what Linux re-bases: RIP-relative operands
// [arch/x86/kernel/kprobes/core.c, __copy_instruction].
func chooseLinux(s *relocate.Step) {
	if kind := s.Inst.PCRel.Kind; kind == decode.PCRelMemory || kind == decode.PCRelAddress {
		setForm(s, formRebase, noRegister, &noteRebase)
		s.Action = relocate.Rebased
	}
}

// branchForms are the sizes of branches in bytes: of the near form, and of what
// the far form has before its jump.
var branchForms = [opCount]struct{ near, beforeJump int }{
	OpJump:         {near: jumpNear},
	OpJumpAbsolute: {near: jumpNear},
	OpCall:         {near: jumpNear},
	OpJumpIf:       {near: jccNear, beforeJump: jccShort},
	OpLoop:         {near: jumpShort + jumpNear, beforeJump: jumpShort}, // besides the instruction itself
	OpXBegin:       {near: xbeginSize, beforeJump: xbeginSize + jumpShort},
}

func chooseBranch(s *relocate.Step, p *relocate.Plan) {
	inst := &s.Inst
	form, note, op := formBranch, &noteBranch, OpOf(inst)
	sizes := &branchForms[op%opCount]
	near, far := sizes.near, sizes.beforeJump+jumpFar
	before := 0
	switch op {
	case OpCall:
		form, note = formCall, callNote(inst, p)
		before = pushSize(inst.Next())
	case OpLoop:
		note, before = &noteLoop, int(inst.Len)
	}
	setForm(s, form, noRegister, note)
	reach := p.Options.Reach
	if p.Inside(inst.Target) {
		reach = relocate.Near
	}
	s.SetForms(reach, before+near, before+far)
}

// callNote warns of a call that returns to what a detour takes the place of.
func callNote(inst *decode.Inst, p *relocate.Plan) *relocate.Note {
	if p.Options.Form == relocate.Region && p.Inside(inst.Next()) {
		return &noteCallInside
	}
	return &noteCall
}

func chooseAddress(s *relocate.Step, opt *relocate.Options) {
	setForm(s, formConstant, noRegister, &noteAddress)
	setOperandSize(s, opt, int(s.Inst.Len))
}

// setOneSize sets the size of a form that stands for another instruction wherever
// it is moved to.
func setOneSize(s *relocate.Step, size int) { s.SetForms(relocate.Far, size, size) }

// setOperandSize sets the bounds of an instruction with a RIP-relative operand.
// near is the size of the form with a displacement.
func setOperandSize(s *relocate.Step, opt *relocate.Options, near int) {
	if alwaysReaches(&s.Inst) || formOf(s) == formRebase || opt.Reach == relocate.Near {
		s.SetForms(relocate.Near, near, near)
		return
	}
	var code [farMax]byte
	s.SetForms(opt.Reach, near, len(appendFarOperand(code[:0], s, opt)))
}

// alwaysReaches reports whether a displacement of 32 bits reaches the operand
// from everywhere: the sum with the instruction pointer is cut to 32 bits.
func alwaysReaches(inst *decode.Inst) bool { return DetailOf(inst).addressIs32() }

func chooseMemory(s *relocate.Step, opt *relocate.Options) *classify.Rule {
	form, scratch, rule := formRebase, byte(noRegister), (*classify.Rule)(nil)
	if opt.Reach != relocate.Near && !alwaysReaches(&s.Inst) {
		form, scratch, rule = farForm(&s.Inst, opt)
	}
	if rule != nil {
		if rule := opt.RefuseFar(rule); rule != nil {
			return rule
		}
		form, scratch = formRebase, noRegister
	}
	setForm(s, form, scratch, &noteRebase)
	if form == formBase {
		s.Clobbers = clobbered(&s.Inst, scratch)
	}
	setOperandSize(s, opt, int(s.Inst.Len))
	return nil
}

// clobbered is the set of registers that a form changes though the instruction
// does not.
func clobbered(inst *decode.Inst, scratch byte) uint64 {
	if DetailOf(inst).loadsAll() && DetailOf(inst).register() == scratch {
		return 0
	}
	return 1 << scratch
}

// farForm returns the form of an instruction whose operand is out of reach, or
// the rule that there is none.
func farForm(inst *decode.Inst, opt *relocate.Options) (moveForm, byte, *classify.Rule) {
	if r := freeRegister(inst, opt); r != noRegister {
		return formBase, r, nil
	}
	if opt.Scratch != relocate.ScratchStack {
		return 0, noRegister, &ruleMoveScratch
	}
	switch d, op := DetailOf(inst), OpOf(inst); {
	case op == OpPushMemory:
		return formPush, RSI, nil
	case op == OpPopMemory:
		return formPop, RSI, nil
	case op == OpJumpIndirect:
		return formJumpThrough, RSI, nil
	case op == OpJumpFar:
		return 0, noRegister, &ruleMoveFarJump
	case !d.usesStackPointer():
		return formSavedBase, baseRegister(inst, savedRegisters), nil
	case d.Encoding() == EncLegacy || d.Encoding() == EncREX2:
		return formStackPointer, RSI, nil
	}
	return 0, noRegister, &ruleMoveStackPointer
}

func chooseCallIndirect(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	inst, opt := &s.Inst, &p.Options
	switch d := DetailOf(inst); {
	case inst.PCRel.Kind != decode.PCRelNone:
		return chooseCallMemory(s, p)
	case d.Mod() == 3 && d.RM() == RSP && d.B()|d.B4() == 0, baseIsStackPointer(inst) && !movesWithStack(inst):
		setForm(s, formCallThrough, noRegister, &noteThrough)
	default:
		setForm(s, formCallOperand, noRegister, callNote(inst, p))
	}
	var code [farMax]byte
	size := len(appendCallIndirect(code[:0], s, opt))
	setOneSize(s, size)
	return nil
}

// chooseCallMemory is chooseCallIndirect for a RIP-relative operand.
func chooseCallMemory(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	inst, opt := &s.Inst, &p.Options
	form, scratch := formRebase, byte(noRegister)
	if opt.Reach != relocate.Near && !alwaysReaches(inst) {
		scratch = freeRegister(inst, opt)
		switch {
		case scratch != noRegister:
			form, s.Clobbers = formCallOperand, 1<<scratch
		case opt.Scratch == relocate.ScratchStack:
			form, scratch = formCallThrough, RSI
		case opt.Reach == relocate.Far:
			return &ruleMoveScratch
		}
	}
	setForm(s, form, scratch, callNote(inst, p))
	setOperandSize(s, opt, pushSize(inst.Next())+int(inst.Len))
	return nil
}

// movesWithStack reports whether an operand based on rsp can be found again
// after a push of 8 bytes, which must not overwrite it. With an index it might.
func movesWithStack(inst *decode.Inst) bool {
	disp := displacement(inst)
	return disp <= math.MaxInt32-wordSize && (disp <= -2*wordSize || disp >= 0) && !hasIndex(inst)
}

// The registers that are saved to be used. No instruction with an operand in
// memory uses them without naming them, and it names at most two.
const savedRegisters = 1<<RSI | 1<<RDI | 1<<RBP

// freeRegister returns a base register that need not be saved: one that a load
// overwrites anyway, or one that the caller knows to be dead.
func freeRegister(inst *decode.Inst, opt *relocate.Options) byte {
	d := DetailOf(inst)
	if r := d.register(); d.loadsAll() && r < 16 && r&7 != RSP {
		return r
	}
	if dead := opt.Dead(); dead != 0 {
		return baseRegister(inst, dead)
	}
	return noRegister
}

// Base registers, those last that instructions use without naming them. rsp and
// r12 cannot be a base without a SIB byte.
var baseOrder = [...]byte{RSI, RDI, RBP, R8, R9, R10, R11, R13, R14, R15, RBX, RAX, RCX, RDX}

// baseRegister returns one of a set of registers that can be the base of the
// operand. The upper ones may need a byte more for a prefix.
func baseRegister(inst *decode.Inst, set uint32) byte {
	d := DetailOf(inst)
	for _, r := range baseOrder {
		if set>>r&1 == 0 || d.names(r) {
			continue
		}
		if r < R8 || d.hasBaseBit() || inst.Len < maxLen && !d.highByte() {
			return r
		}
	}
	return noRegister
}
