package amd64

import (
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
	ruleMoveFar = classify.Rule{
		ID:     "amd64/move-far-transfer",
		Reason: "a far call saves the code segment with the return address, which no other instruction does",
	}
	ruleMoveInto = classify.Rule{
		ID:     "amd64/move-branch-into-instruction",
		Reason: "it branches into the middle of an instruction of the region",
	}
	ruleMoveScratch = classify.Rule{
		ID:     "amd64/move-scratch",
		Reason: "its operand is out of reach, and no register may be used to get there",
		Remedy: "move it to a place within 2 GiB of its operand, or allow the stack for scratch",
	}
	ruleMoveStackPointer = classify.Rule{
		ID:     "amd64/move-stack-pointer",
		Reason: "its operand is out of reach, and it uses the stack pointer in a way that its far form cannot keep",
		Remedy: "move it to a place within 2 GiB of its operand",
	}
)

// Notes on the forms.
var (
	noteRebase = relocate.Note{ID: "amd64/rip-relative",
		Text: "the displacement is re-based; out of reach, the address is built in a register that the instruction does not use"}
	noteAddress = relocate.Note{ID: "amd64/rip-address",
		Text: "the displacement is re-based; out of reach, the address is loaded as a constant"}
	noteBranch = relocate.Note{ID: "amd64/branch",
		Text: "the branch has a 32-bit displacement; out of reach, it goes through an address in memory"}
	noteLoop = relocate.Note{ID: "amd64/loop",
		Text: "the branch, which has no long form, goes over a jump"}
	noteCall = relocate.Note{ID: "amd64/call",
		Text: "the address behind the original is pushed, then the target is jumped to; a shadow stack would miss the call"}
	noteIndirect = relocate.Note{ID: "amd64/indirect-through-return",
		Text: "the target is loaded first and reached by a return, which a shadow stack would refuse"}
	noteSyscall = relocate.Note{ID: "amd64/syscall",
		Text: "rcx is set to the address behind the original afterwards"}
)

// moveForm says how a step is emitted.
type moveForm uint8

const (
	formKept    moveForm = iota
	formRebase           // RIP-relative operand
	formAddress          // lea
	formPush             // push of a RIP-relative operand
	formPop              // pop to one
	formBranch           // jmp, jcc, loop, jrcxz, xbegin
	formCall             // direct call
	formCallReg          // indirect calls: push, then jmp
	formThrough          // indirect transfers by way of a return
	formSyscall
)

// noRegister stands for a scratch register that a form does not need.
const noRegister = 0xff

// choice is the form of a step with all that Plan has to know of it.
type choice struct {
	form     moveForm
	scratch  uint8 // register number
	action   relocate.Action
	note     *relocate.Note
	min, max int // bytes
}

// Step.Detail holds the form in its low byte and the scratch register above.
func (c choice) apply(s *relocate.Step) {
	s.Detail = uint32(c.form) | uint32(c.scratch)<<8
	s.Note, s.Action = c.note, c.action
	s.Min, s.Max = uint8(c.min), uint8(c.max)
}

func formOf(s *relocate.Step) moveForm { return moveForm(s.Detail) }

func scratchOf(s *relocate.Step) byte { return byte(s.Detail >> 8) }

// Sizes of parts of moved forms in bytes.
const (
	jumpNear    = 5
	jumpFar     = 14 // jmp *0(%rip) and the address
	jccNear     = 6
	overShort   = 4 // a short branch over a short jump
	pushMax     = 13
	movabsSize  = 10
	xbeginSize  = 6
	redZoneDown = 5 // lea -128(%rsp),%rsp
	redZoneUp   = 8
)

// JumpLen returns the length in bytes of the jump that may take a breakpoint's
// place.
func (ISA) JumpLen() int { return jumpNear }

// Plan fills p; see relocate.Relocator.
func (a ISA) Plan(p *relocate.Plan, insts []decode.Inst, opt relocate.Options) error {
	if err := p.Start(insts, opt, 1); err != nil {
		return err
	}
	if opt.Form == relocate.Region && !opt.Linux {
		if addr, found := p.BranchInto(); found {
			return relocate.Refuse(&ruleMoveInto, addr)
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		c, err := choose(&s.Inst, &p.Options)
		if err != nil {
			return err
		}
		c.apply(s)
	}
	switch opt.Back {
	case relocate.BackNone:
		p.Finish(0, 0)
	case relocate.BackBreakpoint:
		p.Finish(1, 1)
	default:
		p.Finish(jumpNear, jumpFar)
	}
	return nil
}

// choose returns the form of one instruction.
func choose(inst *decode.Inst, opt *relocate.Options) (choice, error) {
	kept := choice{scratch: noRegister, min: int(inst.Len), max: int(inst.Len)}
	if opt.Linux {
		return chooseLinux(kept, inst), nil
	}
	switch {
	case Branch66(inst):
		return kept, relocate.Refuse(&ruleMoveBranch66, inst.Addr)
	case inst.Flow == decode.FlowTrap:
		return kept, relocate.Refuse(&ruleMoveTrap, inst.Addr)
	case inst.Flow == decode.FlowCallIndirect:
		return chooseIndirect(kept, inst, opt)
	case inst.PCRel.Kind == decode.PCRelBranch:
		return chooseBranch(kept, inst, opt), nil
	case inst.PCRel.Kind == decode.PCRelAddress:
		return chooseAddress(kept, inst, opt), nil
	case inst.PCRel.Kind == decode.PCRelMemory:
		return chooseMemory(kept, inst, opt)
	case isSyscall(inst):
		kept.form, kept.action, kept.note = formSyscall, relocate.Expanded, &noteSyscall
		kept.min += movabsSize
		kept.max += movabsSize
	}
	return kept, nil
}

// chooseLinux re-bases what Linux re-bases: RIP-relative operands
// [arch/x86/kernel/kprobes/core.c, __copy_instruction].
func chooseLinux(c choice, inst *decode.Inst) choice {
	if inst.PCRel.Kind == decode.PCRelMemory || inst.PCRel.Kind == decode.PCRelAddress {
		c.form, c.action, c.note = formRebase, relocate.Rebased, &noteRebase
	}
	return c
}

func isSyscall(inst *decode.Inst) bool {
	d := DetailOf(inst)
	return d.Map() == Map0F && d.Opcode() == 0x05
}

func chooseBranch(c choice, inst *decode.Inst, opt *relocate.Options) choice {
	c.form, c.note, c.action = formBranch, &noteBranch, relocate.Rebased
	near, far := jumpNear, jumpFar
	switch branchKindOf(inst) {
	case kindCall:
		c.form, c.note = formCall, &noteCall
		near, far = pushSize(inst.Next())+near, pushSize(inst.Next())+far
	case kindCond:
		near, far = jccNear, 2+far
	case kindLoop:
		over := overShort + DetailOf(inst).addressSizeBytes()
		c.note = &noteLoop
		near, far = over+near, over+far
	case kindXbegin:
		near, far = xbeginSize, xbeginSize+2+far
	}
	if near > int(inst.Len) || opt.Reach == relocate.Far {
		c.action = relocate.Expanded
	}
	c.min, c.max = byReach(opt, near, far)
	return c
}

// byReach returns the bounds of a form's size.
func byReach(opt *relocate.Options, near, far int) (least, most int) {
	switch opt.Reach {
	case relocate.Near:
		return near, near
	case relocate.Far:
		// A branch to within the region stays near.
		return min(near, far), max(near, far)
	}
	return min(near, far), max(near, far)
}

// chooseAddress returns the form of lea.
func chooseAddress(c choice, inst *decode.Inst, opt *relocate.Options) choice {
	c.form, c.note, c.action = formAddress, &noteAddress, relocate.Rebased
	if opt.Reach == relocate.Far {
		c.action = relocate.Expanded
	}
	c.min, c.max = byReach(opt, int(inst.Len), constantSize(inst))
	return c
}

func chooseMemory(c choice, inst *decode.Inst, opt *relocate.Options) (choice, error) {
	d := DetailOf(inst)
	c.form, c.note, c.action = formRebase, &noteRebase, relocate.Rebased
	if opt.Reach == relocate.Near || d.Prefixes()&Prefix67 != 0 {
		return c, nil // under 67 every displacement reaches: the sum is cut to 32 bits
	}
	if opt.Reach == relocate.Far {
		c.action = relocate.Expanded
	}
	far, rule := farMemory(&c, inst, opt)
	if rule != nil {
		if opt.Reach == relocate.Far {
			return c, relocate.Refuse(rule, inst.Addr)
		}
		c.form, c.scratch = formRebase, noRegister
		return c, nil
	}
	c.min, c.max = byReach(opt, c.min, far)
	return c, nil
}

// farMemory fills in the far form of an instruction with a RIP-relative
// operand and returns its size, or the rule that there is none.
func farMemory(c *choice, inst *decode.Inst, opt *relocate.Options) (size int, rule *classify.Rule) {
	d := DetailOf(inst)
	if opt.Scratch == relocate.ScratchNone {
		return 0, &ruleMoveScratch
	}
	switch {
	case d.isPush(), d.isPop():
		if d.Prefixes()&Prefix66 != 0 || opt.Scratch != relocate.ScratchStack {
			return 0, &ruleMoveStackPointer
		}
		c.form, c.scratch = formPush, RSI
		if d.isPop() {
			c.form = formPop
			return popFarSize(opt), nil
		}
		return pushFarSize, nil
	case inst.Flow == decode.FlowJumpIndirect:
		if opt.Scratch != relocate.ScratchStack {
			return 0, &ruleMoveScratch
		}
		c.form, c.scratch = formThrough, RSI
		return throughSize(opt), nil
	}
	c.scratch = scratchFor(opt, d)
	switch {
	case c.scratch == noRegister:
		return 0, &ruleMoveScratch
	case d.usesStackPointer():
		if d.Encoding() != EncLegacy || c.scratch != RSI || opt.Scratch != relocate.ScratchStack {
			return 0, &ruleMoveStackPointer
		}
		return stackOperandSize(inst, opt), nil
	}
	size = int(inst.Len) + movabsSize
	if opt.Scratch == relocate.ScratchStack {
		size += 2 + redZoneSize(opt)
	}
	return size, nil
}

// chooseIndirect returns the form of an indirect call.
func chooseIndirect(c choice, inst *decode.Inst, opt *relocate.Options) (choice, error) {
	d := DetailOf(inst)
	if d.Opcode() != 0xff || d.Map() != MapOneByte || d.Reg() != 2 {
		return c, relocate.Refuse(&ruleMoveFar, inst.Addr)
	}
	c.form, c.note, c.action = formCallReg, &noteCall, relocate.Expanded
	push := pushSize(inst.Next())
	c.min, c.max = push+int(inst.Len), push+int(inst.Len)
	switch {
	case inst.PCRel.Kind != decode.PCRelNone:
		if opt.Reach == relocate.Near || d.Prefixes()&Prefix67 != 0 {
			return c, nil
		}
		if opt.Scratch == relocate.ScratchStack {
			c.scratch = RSI
			c.min, c.max = byReach(opt, c.max, push+throughSize(opt))
		} else if opt.Reach == relocate.Far {
			return c, relocate.Refuse(&ruleMoveScratch, inst.Addr)
		}
	case readsPushed(inst) || d.callsStackPointer():
		if opt.Scratch != relocate.ScratchStack {
			return c, relocate.Refuse(&ruleMoveScratch, inst.Addr)
		}
		c.form, c.note, c.scratch = formThrough, &noteIndirect, RSI
		c.min = throughCallSize(inst, opt)
		c.max = c.min
	case d.baseIsStackPointer(inst):
		c.max += 5 // a longer displacement, with a SIB byte
	}
	return c, nil
}

// redZoneSize is the size of what steps over the red zone and back.
func redZoneSize(opt *relocate.Options) int {
	if keepsRedZone(opt) {
		return redZoneDown + redZoneUp
	}
	return 0
}

func keepsRedZone(opt *relocate.Options) bool { return !opt.NoRedZone && !opt.Kernel }

// scratchFor returns a register that can be the base of the operand. On the
// stack it is rsi, rdi or rbp, which no instruction with a memory operand uses
// without naming them; at most two registers are named beside the operand.
// Given registers are dead, so that no instruction uses them without naming
// them either.
func scratchFor(opt *relocate.Options, d Detail) uint8 {
	candidates := uint32(1<<RSI | 1<<RDI | 1<<RBP)
	if opt.Scratch == relocate.ScratchGiven {
		candidates = opt.Registers
	}
	// Register numbers that a base without a SIB byte cannot have, or that
	// need a bit which the encoding lacks.
	candidates &^= 1<<RSP | 1<<R12
	if d.Encoding() == EncVEX2 || d.Encoding() == EncLegacy && !d.HasREX() {
		candidates &= 0xff
	}
	for _, r := range scratchOrder {
		if candidates>>r&1 != 0 && r&7 != d.Reg() && r&7 != d.VVVV()&7 {
			return r
		}
	}
	return noRegister
}

var scratchOrder = [...]uint8{RSI, RDI, RBP, RAX, RCX, RDX, RBX, R8, R9, R10, R11, R13, R14, R15}
