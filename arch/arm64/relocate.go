package arm64

import (
	"xol/classify"
	"xol/decode"
	"xol/relocate"
)

// Rules that keep an instruction from being moved.
var (
	ruleMoveReservation = classify.Rule{
		ID:     "arm64/move-exclusive",
		Reason: "a breakpoint or a part of the sequence left behind, between the load-exclusive and the store-exclusive, makes the store fail every time",
		Remedy: "move the whole sequence, or an instruction in front of or behind it",
	}
	ruleMoveInto = classify.Rule{
		ID:     "arm64/move-branch-into-instruction",
		Reason: "it branches into the middle of an instruction of the region",
	}
	ruleMoveScratch = classify.Rule{
		ID:     "arm64/move-scratch",
		Reason: "its moved form needs a general register, and none may be used",
		Remedy: "allow the stack for scratch, or name a dead register",
	}
	ruleMoveDead = classify.Rule{
		ID:     "arm64/move-far-jump",
		Reason: "a jump beyond 128 MiB goes through a register, and none is known to be dead where it lands",
		Remedy: "move it to a place within 128 MiB, or name a dead register",
	}
	ruleMoveTrap = classify.Rule{
		ID:     "arm64/move-trap",
		Reason: "it raises an exception on purpose, whose handler looks at its address",
		Remedy: "let the probe mechanism raise the exception at the original address",
	}
	ruleMoveMOPS = classify.Rule{
		ID:     "arm64/move-memory-copy",
		Reason: "the three instructions of a memory copy or set must follow one another in memory",
		Remedy: "move an instruction in front of or behind the three",
	}
	ruleMoveLink = classify.Rule{
		ID:     "arm64/move-link-operand",
		Reason: "it calls through the link register, which has to hold the return address before the jump",
		Remedy: "name a dead register",
	}
)

// Notes on the forms.
var (
	noteBranch = relocate.Note{ID: "arm64/branch",
		Text: "the branch has a new displacement; out of reach, the opposite one goes over a longer branch, or a dead register is returned to"}
	noteLink = relocate.Note{ID: "arm64/link-register",
		Text: "x30 is loaded with the address behind the original, then the branch is taken without link"}
	noteAddress = relocate.Note{ID: "arm64/pc-address",
		Text: "the address is computed from the new place, or loaded as a constant"}
	noteLiteral = relocate.Note{ID: "arm64/literal",
		Text: "the displacement is re-based; out of reach, the literal is loaded at run time by way of the destination, or of a register that is saved"}
)

// moveForm says how a step is emitted.
type moveForm uint8

const (
	formKept    moveForm = iota
	formBranch           // b
	formCond             // b.cond, cbz, cbnz, tbz, tbnz
	formCall             // bl
	formCallReg          // blr and its authenticating kin
	formAddress          // adr, adrp
	formLiteral          // ldr, ldrsw, prfm with a literal
)

// noRegister stands for a scratch register that a form does not need or have.
const noRegister = 0xff

// choice is the form of a step with all that Plan has to know of it.
type choice struct {
	form     moveForm
	scratch  uint8 // register number
	saved    bool  // on the stack
	action   relocate.Action
	note     *relocate.Note
	min, max int // bytes
	clobbers uint64
}

// Step.Detail holds the form in its low byte, the scratch register above, and
// then whether that is saved.
func (c choice) apply(s *relocate.Step) {
	s.Detail = uint32(c.form) | uint32(c.scratch)<<8
	if c.saved {
		s.Detail |= savedBit
	}
	s.Note, s.Action, s.Clobbers = c.note, c.action, c.clobbers
	s.Min, s.Max = uint8(c.min), uint8(c.max)
}

const savedBit = 1 << 16

func formOf(s *relocate.Step) moveForm { return moveForm(s.Detail) }

func scratchOf(s *relocate.Step) uint32 { return s.Detail >> 8 & 0xff }

// Sizes in bytes.
const (
	wordSize    = 4
	constantMax = 4 * wordSize
	farJumpMax  = constantMax + wordSize
)

// JumpLen returns the length in bytes of the jump that may take a breakpoint's
// place.
func (ISA) JumpLen() int { return wordSize }

// Plan fills p; see relocate.Relocator.
func (a ISA) Plan(p *relocate.Plan, insts []decode.Inst, opt relocate.Options) error {
	if err := p.Start(insts, opt, wordSize); err != nil {
		return err
	}
	if err := checkReservation(insts, opt); err != nil {
		return err
	}
	if addr, found := p.BranchInto(); found {
		return relocate.Refuse(&ruleMoveInto, addr)
	}
	for i := range p.Steps {
		if opt.Linux {
			break // a kernel's slot holds the instruction as it is
		}
		c, err := choose(&p.Steps[i].Inst, &p.Options)
		if err != nil {
			return err
		}
		c.apply(&p.Steps[i])
	}
	return finishPlan(p)
}

// finishPlan adds the way back.
func finishPlan(p *relocate.Plan) error {
	switch p.Options.Back {
	case relocate.BackNone:
		p.Finish(0, 0)
	case relocate.BackBreakpoint:
		p.Finish(wordSize, wordSize)
	default:
		dead := deadRegister(&p.Options, 0)
		if p.Options.Reach == relocate.Far && dead == noRegister {
			return relocate.Refuse(&ruleMoveDead, p.From())
		}
		if dead != noRegister {
			p.Steps[len(p.Steps)-1].Clobbers |= 1 << dead
		}
		p.Finish(wordSize, farJumpMax)
	}
	return nil
}

// checkReservation refuses a part of a load-exclusive … store-exclusive
// sequence: a slot that ends in a breakpoint, and a region that does not hold
// both ends.
func checkReservation(insts []decode.Inst, opt relocate.Options) error {
	open := -1
	for i := range insts {
		switch {
		case insts[i].Has(decode.LoadExclusive):
			open = i
		case insts[i].Has(decode.StoreExclusive) && open < 0 && opt.Form == relocate.Region:
			return relocate.Refuse(&ruleMoveReservation, insts[i].Addr)
		case insts[i].Has(decode.StoreExclusive):
			open = -1
		}
	}
	if open >= 0 && (opt.Form == relocate.Region || opt.Back == relocate.BackBreakpoint) {
		return relocate.Refuse(&ruleMoveReservation, insts[open].Addr)
	}
	return nil
}

// choose returns the form of one instruction.
func choose(inst *decode.Inst, opt *relocate.Options) (choice, error) {
	c := choice{scratch: noRegister, min: wordSize, max: wordSize}
	switch {
	case inst.Flow == decode.FlowTrap:
		return c, relocate.Refuse(&ruleMoveTrap, inst.Addr)
	case isMemoryCopy(word(inst)):
		return c, relocate.Refuse(&ruleMoveMOPS, inst.Addr)
	case inst.Flow == decode.FlowCallIndirect:
		return chooseCallReg(c, inst, opt)
	case inst.PCRel.Kind == decode.PCRelBranch:
		return chooseBranch(c, inst, opt)
	case inst.PCRel.Kind == decode.PCRelAddress:
		c.form, c.note, c.action = formAddress, &noteAddress, relocate.Rebased
		c.max = constantMax
	case inst.PCRel.Kind == decode.PCRelMemory:
		return chooseLiteral(c, inst, opt)
	}
	return c, nil
}

// word returns the instruction word.
func word(inst *decode.Inst) uint32 { return uint32(inst.Detail) }

// isMemoryCopy recognises cpy* and set* [Arm ARM, C4.1, memory copy and set].
func isMemoryCopy(w uint32) bool { return w&0x3b200c00 == 0x19000400 }

func chooseBranch(c choice, inst *decode.Inst, opt *relocate.Options) (choice, error) {
	c.form, c.note, c.action = formBranch, &noteBranch, relocate.Rebased
	// A call may pass through a veneer, which is free to use x16 and x17
	// [AAPCS64, 6.1.1], so that no callee expects anything in them.
	c.scratch = deadRegister(opt, 0)
	extra := 0
	switch {
	case inst.Has(decode.Link):
		c.form, c.note, c.action = formCall, &noteLink, relocate.Expanded
		if c.scratch == noRegister && opt.Scratch != relocate.ScratchNone {
			c.scratch = veneerRegister
		}
		c.min = wordSize + wordSize
		extra = constantMax
	case inst.Has(decode.Conditional) || !isB(word(inst)):
		c.form = formCond
		extra = wordSize
	}
	c.max = extra + wordSize
	if opt.Reach == relocate.Near {
		return c, nil
	}
	if c.scratch == noRegister {
		if opt.Reach == relocate.Far {
			return c, relocate.Refuse(&ruleMoveDead, inst.Addr)
		}
		return c, nil
	}
	c.max = extra + farJumpMax
	c.clobbers = 1 << c.scratch
	return c, nil
}

// veneerRegister is x16, IP0.
const veneerRegister = 16

// isB recognises b.
func isB(w uint32) bool { return w>>26 == 0x05 }

func chooseCallReg(c choice, inst *decode.Inst, opt *relocate.Options) (choice, error) {
	c.form, c.note, c.action = formCallReg, &noteLink, relocate.Expanded
	c.min, c.max = 2*wordSize, constantMax+wordSize
	const lr = 30
	rn, rm := word(inst)>>5&31, word(inst)&31
	if rn != lr && (rm != lr || !authenticatesWithRegister(word(inst))) {
		return c, nil
	}
	c.scratch = deadRegister(opt, 1<<rn|1<<rm)
	if c.scratch == noRegister || authenticates(word(inst)) {
		return c, relocate.Refuse(&ruleMoveLink, inst.Addr)
	}
	c.clobbers = 1 << c.scratch
	c.min += wordSize
	c.max += wordSize
	return c, nil
}

// authenticates recognises blraa, blrab, blraaz and blrabz; the first two take
// a modifier from a register.
func authenticates(w uint32) bool { return w&0x0800 != 0 }

func authenticatesWithRegister(w uint32) bool { return w&0x01000800 == 0x01000800 }

func chooseLiteral(c choice, inst *decode.Inst, opt *relocate.Options) (choice, error) {
	c.form, c.note, c.action = formLiteral, &noteLiteral, relocate.Rebased
	c.max = constantMax + wordSize
	if opt.Reach == relocate.Near {
		c.max = wordSize
		return c, nil
	}
	if rt := word(inst) & 31; rt != 31 && isGeneralLiteral(word(inst)) {
		c.scratch = uint8(rt)
		return c, nil
	}
	if c.scratch = deadRegister(opt, 0); c.scratch != noRegister {
		c.clobbers = 1 << c.scratch
		return c, nil
	}
	if opt.Scratch != relocate.ScratchStack {
		if opt.Reach == relocate.Far {
			return c, relocate.Refuse(&ruleMoveScratch, inst.Addr)
		}
		c.max = wordSize
		return c, nil
	}
	c.scratch, c.saved = veneerRegister, true
	c.max += 2 * wordSize
	return c, nil
}

// isGeneralLiteral recognises the literal loads of a general register: ldr w,
// ldr x and ldrsw.
func isGeneralLiteral(w uint32) bool { return w>>26&1 == 0 && w>>30 != 3 }

// deadRegister returns one of the registers that may be changed, but none of
// those in avoid; x30 and the stack pointer's number are never taken.
func deadRegister(opt *relocate.Options, avoid uint32) uint8 {
	candidates := opt.Dead() &^ avoid &^ (1<<30 | 1<<31)
	for r := uint8(0); candidates != 0; r++ {
		if candidates&1 != 0 {
			return r
		}
		candidates >>= 1
	}
	return noRegister
}
