package arm64

import (
	"math/bits"

	"xol/classify"
	"xol/decode"
	"xol/relocate"
)

// Rules that keep an instruction from being moved.
var (
	ruleMoveReservation = classify.Rule{
		ID:     "arm64/move-exclusive",
		Reason: "a breakpoint or a part of the sequence that stays in place, between the load-exclusive and the store-exclusive, makes the store fail every time",
		Remedy: "move the whole sequence, or an instruction before or after it",
	}
	ruleMoveScratch = classify.Rule{
		ID:     "arm64/move-scratch",
		Reason: "its moved form needs a general register, and none may be used",
		Remedy: "move it to a place within 1 MiB of its operand, name a dead register, or allow the stack for scratch",
	}
	ruleMoveFarJump = classify.Rule{
		ID:     "arm64/move-far-jump",
		Reason: "a jump beyond 128 MiB goes through a register, and none is known to be dead where it lands",
		Remedy: "move it to a place within 128 MiB, or name a dead register: x16 is one at a call that the linker is free to send through a veneer",
	}
	ruleMoveTrap = classify.Rule{
		ID:     "arm64/move-trap",
		Reason: "it raises an exception on purpose, whose handler looks at its address",
		Remedy: "let the probe mechanism raise the exception at the original address",
	}
	ruleMoveMOPS = classify.Rule{
		ID:     "arm64/move-memory-copy",
		Reason: "the three instructions of a memory copy or set must follow one another in memory",
		Remedy: "move all three, or an instruction before or after them",
	}
	ruleMoveSignature = classify.Rule{
		ID:     "arm64/move-signature",
		Reason: "the address of the signing instruction is part of the signature",
		Remedy: "move an instruction before or after it",
	}
	ruleMoveLink = classify.Rule{
		ID:     "arm64/move-link-operand",
		Reason: "it calls through the link register, which has to hold the return address before the jump",
		Remedy: "name a dead register",
	}
	ruleMoveAuthenticated = classify.Rule{
		ID:     "arm64/move-authenticated-call",
		Reason: "in a page guarded against indirect branches, a jump that authenticates reaches a function only by way of x16 or x17",
		Remedy: "name a dead register",
	}
	ruleMoveSimulated = classify.Rule{
		ID:     "arm64/move-simulated",
		Reason: "Linux makes no slot for an instruction that depends on its own address: it simulates it",
	}
)

// Notes on the forms.
var (
	noteBranch = relocate.Note{ID: "arm64/branch",
		Text: "the branch has a new displacement; out of reach, it goes over a longer branch, or over a return to a dead register"}
	noteLink = relocate.Note{ID: "arm64/link-register",
		Text: "x30 is loaded with the address after the original, then the target is jumped to; a guarded control stack would miss the call"}
	noteLinkInside = relocate.Note{ID: "arm64/link-register-inside",
		Text: "x30 is loaded with the address after the original, which is part of the region: the instructions there must stay what they are"}
	noteAddress = relocate.Note{ID: "arm64/pc-address",
		Text: "the address is computed from the new place, or loaded as a constant"}
	noteLiteral = relocate.Note{ID: "arm64/literal",
		Text: "the displacement is re-based; out of reach, the literal is loaded at run time by way of the destination, a dead register, or one that the stack keeps meanwhile"}
)

// moveForm says how a step is emitted.
type moveForm uint8

const (
	formKept     moveForm = iota
	formBranch            // b and, being always taken, b.al
	formCond              // conditional branches that have an opposite
	formOver              // conditional branches that have none
	formCall              // bl
	formCallReg           // blr
	formCallAuth          // blraa and its kin
	formAddress           // adr, adrp
	formLiteral           // ldr, ldrsw, prfm with a literal
)

// noRegister stands for a scratch register that a form does not need or have.
const noRegister = 0xff

// choice is the form of a step with all that Plan has to know of it.
type choice struct {
	form    moveForm
	scratch uint8 // register number
	saved   bool  // on the stack
	action  relocate.Action
	note    *relocate.Note
	size
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

func isSaved(s *relocate.Step) bool { return s.Detail&savedBit != 0 }

// JumpLen returns the length in bytes of the jump that may take a breakpoint's
// place.
func (ISA) JumpLen() int { return wordSize }

// Plan fills p; see relocate.Relocator. Instructions at an address that is not
// a multiple of 4 are relocate.ErrMisaligned.
//
// Registers, flags, memory and return addresses that moved code leaves are
// those of the original, and at every moment all that it needs lies at or above
// the stack pointer, so that signals may come. No register is taken to be dead
// unless Options.Registers names it: x16 and x17 are not, even at a call, for
// hand-written functions pass operands in them to local ones. A jump beyond the
// reach of b is a ret, which lands anywhere in pages that are guarded against
// indirect branches; br would need a landing pad. So a moved blr is not held to
// one, either. What still tells that an instruction was moved: the address in
// an exception's frame, with registers that may be those of a point between;
// the stack pointer, which a form that saves a register takes to be aligned;
// and a guarded control stack, which misses moved calls and refuses the ret of
// a far jump.
func (a ISA) Plan(p *relocate.Plan, insts []decode.Inst, opt relocate.Options) error {
	if err := p.Start(insts, opt, wordSize); err != nil {
		return err
	}
	if p.From()%wordSize != 0 {
		return relocate.ErrMisaligned
	}
	if i, rule := torn(insts, &opt); rule != nil {
		return relocate.Refuse(rule, insts[i].Addr)
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		c, rule := choose(&s.Inst, p)
		if rule != nil {
			return relocate.Refuse(rule, s.Inst.Addr)
		}
		c.apply(s)
	}
	return planBack(p)
}

// planBack adds the way back.
func planBack(p *relocate.Plan) error {
	last := &p.Steps[len(p.Steps)-1]
	switch {
	case p.Options.Back == relocate.BackBreakpoint:
		p.Finish(wordSize, wordSize)
		return nil
	case p.Options.Back == relocate.BackNone, !needsBack(&last.Inst):
		p.Finish(0, 0)
		return nil
	}
	dead := backRegister(p)
	if dead == noRegister && p.Options.Reach == relocate.Far {
		return relocate.Refuse(&ruleMoveFarJump, last.Inst.Addr)
	}
	jump := jumpSize(last.Inst.Next(), p.Options.Reach, dead)
	if jump.max > wordSize {
		last.Clobbers |= 1 << dead
	}
	p.Finish(wordSize, jump.max)
	return nil
}

// needsBack reports whether moved code that ends with inst needs a way back:
// what is called returns to the original.
func needsBack(inst *decode.Inst) bool {
	return inst.FallsThrough() || inst.Resumes() && !inst.IsCall()
}

// backRegister returns the register for a far way back. A register that is dead
// in front of the last instruction is not so behind it if it is the result.
func backRegister(p *relocate.Plan) uint8 {
	return deadRegister(&p.Options, resultsOf(&p.Steps[len(p.Steps)-1].Inst))
}

// torn finds an instruction that must not be moved without others, which are
// not among insts.
func torn(insts []decode.Inst, opt *relocate.Options) (index int, rule *classify.Rule) {
	if i, found := partOfReservation(insts, opt); found {
		return i, &ruleMoveReservation
	}
	if i, found := partOfMemoryCopy(insts); found {
		return i, &ruleMoveMOPS
	}
	return 0, nil
}

// partOfReservation finds a part of a load-exclusive … store-exclusive
// sequence: in a slot that ends in a breakpoint, and in a region that does not
// hold both ends.
func partOfReservation(insts []decode.Inst, opt *relocate.Options) (index int, found bool) {
	if opt.Form == relocate.Slot && opt.Back != relocate.BackBreakpoint {
		return 0, false
	}
	open := -1
	for i := range insts {
		switch {
		case insts[i].Has(decode.LoadExclusive):
			open = i
		case insts[i].Has(decode.StoreExclusive) && open < 0:
			return i, true
		case insts[i].Has(decode.StoreExclusive), OpOf(&insts[i]) == OpCLREX:
			open = -1
		}
	}
	return open, open >= 0
}

// partOfMemoryCopy finds a cpy* or set* without its two companions. The system
// goes back to the first of the three by its distance, when a thread comes to
// a processor that divides the work otherwise [Arm ARM, C3.2.13].
func partOfMemoryCopy(insts []decode.Inst) (index int, found bool) {
	for i := 0; i < len(insts); i++ {
		switch OpOf(&insts[i]) {
		case OpMOPSPrologue:
			if len(insts)-i < 3 || OpOf(&insts[i+1]) != OpMOPSMain || OpOf(&insts[i+2]) != OpMOPSEpilogue {
				return i, true
			}
			i += 2
		case OpMOPSMain, OpMOPSEpilogue:
			return i, true
		}
	}
	return 0, false
}

// choose returns the form of one instruction, or the rule that there is none.
func choose(inst *decode.Inst, p *relocate.Plan) (choice, *classify.Rule) {
	c := choice{scratch: noRegister, size: always(wordSize)}
	opt := &p.Options
	switch {
	case opt.Linux:
		return chooseLinux(c, inst)
	case inst.Flow == decode.FlowTrap:
		return c, &ruleMoveTrap
	case isSignature(inst):
		return c, &ruleMoveSignature
	}
	switch OpOf(inst) {
	case OpB, OpBCondAlways, OpBCond, OpCompareBranch, OpTestBranch, OpCompareRegsBranch:
		return chooseBranch(c, inst, p)
	case OpBL:
		return chooseCall(c, inst, p)
	case OpBLR:
		return chooseCallReg(c, inst, p)
	case OpBLRAuth:
		return chooseCallAuth(c, inst, p)
	case OpADR, OpADRP:
		return chooseAddress(c, inst, opt), nil
	case OpLoadLiteral, OpLoadLiteralSigned, OpLoadLiteralSIMD, OpPrefetchLiteral:
		return chooseLiteral(c, inst, opt)
	}
	return c, nil
}

// chooseLinux keeps the bytes of what gets a slot
// [arch/arm64/kernel/probes/decode-insn.c].
func chooseLinux(c choice, inst *decode.Inst) (choice, *classify.Rule) {
	switch {
	case inst.PCRel.Kind != decode.PCRelNone, inst.Has(decode.Link), inst.Flow == decode.FlowJumpIndirect, inst.Flow == decode.FlowReturn:
		return c, &ruleMoveSimulated
	}
	return c, nil
}

// hintPACM makes the instruction behind it sign with its address.
const hintPACM = 0xd50324ff

// isSignature recognises what makes or checks a signature with the address of
// an instruction in it [Arm ARM, D8.10].
func isSignature(inst *decode.Inst) bool {
	switch OpOf(inst) {
	case OpSignPC, OpSignPCLandingPad, OpAuthPC, OpReturnAuthPC:
		return true
	}
	return WordOf(inst) == hintPACM
}

func chooseBranch(c choice, inst *decode.Inst, p *relocate.Plan) (choice, *classify.Rule) {
	opt, inside := &p.Options, p.Inside(inst.Target)
	c.note, c.action = &noteBranch, relocate.Rebased
	over := 0
	switch OpOf(inst) {
	case OpB, OpBCondAlways:
		c.form = formBranch
	case OpCompareRegsBranch:
		c.form, over = formOver, 2*wordSize
	default:
		c.form, over = formCond, wordSize
	}
	if opt.Reach == relocate.Near {
		return c, nil
	}
	reach := opt.Reach
	if inside {
		reach = relocate.Near
	} else if c.scratch = deadRegister(opt, 0); c.scratch == noRegister && reach == relocate.Far {
		return c, &ruleMoveFarJump
	}
	jump := jumpSize(inst.Target, reach, c.scratch)
	if jump.max > wordSize {
		c.clobbers = 1 << c.scratch
	}
	c.size = jump.plus(over)
	if reach != relocate.Far {
		c.min = wordSize
	} else {
		c.action = relocate.Expanded
	}
	return c, nil
}

func chooseCall(c choice, inst *decode.Inst, p *relocate.Plan) (choice, *classify.Rule) {
	opt := &p.Options
	c.form, c.note, c.action = formCall, linkNote(inst, p), relocate.Expanded
	reach := opt.Reach
	if p.Inside(inst.Target) {
		reach = relocate.Near
	} else if c.scratch = deadRegister(opt, 0); c.scratch == noRegister && reach == relocate.Far {
		return c, &ruleMoveFarJump
	}
	jump := jumpSize(inst.Target, reach, c.scratch)
	if jump.max > wordSize {
		c.clobbers = 1 << c.scratch
	}
	link := constantSize(inst.Next(), opt.Reach)
	c.min, c.max = link.min+jump.min, link.max+jump.max
	return c, nil
}

// linkNote warns of a call that returns to what a detour takes the place of.
func linkNote(inst *decode.Inst, p *relocate.Plan) *relocate.Note {
	if p.Inside(inst.Next()) {
		return &noteLinkInside
	}
	return &noteLink
}

func chooseCallReg(c choice, inst *decode.Inst, p *relocate.Plan) (choice, *classify.Rule) {
	c.form, c.note, c.action = formCallReg, linkNote(inst, p), relocate.Expanded
	c.size = constantSize(inst.Next(), p.Options.Reach).plus(wordSize)
	if fieldRn(inst) != linkRegister {
		return c, nil
	}
	if c.scratch = deadRegister(&p.Options, 0); c.scratch == noRegister {
		return c, &ruleMoveLink
	}
	c.clobbers = 1 << c.scratch
	c.size = c.plus(wordSize)
	return c, nil
}

// chooseCallAuth is for blraa and its kin: without link where that may land,
// else the pointer is authenticated in a dead register.
func chooseCallAuth(c choice, inst *decode.Inst, p *relocate.Plan) (choice, *classify.Rule) {
	c.form, c.note, c.action = formCallAuth, linkNote(inst, p), relocate.Expanded
	c.size = constantSize(inst.Next(), p.Options.Reach).plus(wordSize)
	rn := fieldRn(inst)
	usesLink := rn == linkRegister || fieldRd(inst) == linkRegister
	if !usesLink && (rn == ip0 || rn == ip1) {
		return c, nil
	}
	if c.scratch = deadRegister(&p.Options, 1<<rn|1<<fieldRd(inst)); c.scratch == noRegister {
		if usesLink {
			return c, &ruleMoveLink
		}
		return c, &ruleMoveAuthenticated
	}
	c.clobbers = 1 << c.scratch
	c.size = c.plus(2 * wordSize)
	return c, nil
}

func chooseAddress(c choice, inst *decode.Inst, opt *relocate.Options) choice {
	if fieldRd(inst) == zeroOrSP {
		return c // xzr takes the address, so that it has no effect
	}
	c.form, c.note, c.action = formAddress, &noteAddress, relocate.Rebased
	switch constant := constantSize(inst.Target, opt.Reach); opt.Reach {
	case relocate.Near:
	case relocate.Far:
		c.action, c.size = relocate.Expanded, constant
	default:
		c.max = constant.max
	}
	return c
}

func chooseLiteral(c choice, inst *decode.Inst, opt *relocate.Options) (choice, *classify.Rule) {
	c.form, c.note, c.action = formLiteral, &noteLiteral, relocate.Rebased
	if opt.Reach == relocate.Near {
		return c, nil
	}
	far := constantSize(inst.Target, opt.Reach).plus(wordSize)
	switch {
	case loadsGeneral(inst) && fieldRd(inst) != zeroOrSP:
		c.scratch = uint8(fieldRd(inst))
	case deadRegister(opt, 0) != noRegister:
		c.scratch = deadRegister(opt, 0)
		c.clobbers = 1 << c.scratch
	case opt.Scratch == relocate.ScratchStack:
		c.scratch, c.saved = ip0, true
		far = far.plus(2 * wordSize)
	case opt.Reach == relocate.Far:
		return c, &ruleMoveScratch
	default:
		return c, nil
	}
	c.max = far.max
	if opt.Reach == relocate.Far {
		c.action, c.min = relocate.Expanded, far.min
	}
	return c, nil
}

// loadsGeneral recognises the literal loads of a general register.
func loadsGeneral(inst *decode.Inst) bool {
	return OpOf(inst) == OpLoadLiteral || OpOf(inst) == OpLoadLiteralSigned
}

// size is the bounds of the bytes of a form.
type size struct{ min, max int }

func always(n int) size { return size{n, n} }

func (s size) plus(n int) size { return size{s.min + n, s.max + n} }

// wordSize is the length of an instruction in bytes.
const wordSize = 4

// constantSize is the size of what loads a register with v: adrp and add where
// they reach and may be used, else a constant.
func constantSize(v uint64, reach relocate.Reach) size {
	constant := halves(v) * wordSize
	if reach == relocate.Far {
		return always(constant)
	}
	page := wordSize
	if v&pageMask != 0 {
		page += wordSize
	}
	return size{min(page, constant), max(page, constant)}
}

// jumpSize is the size of a jump: one word, or, with a dead register, a return.
func jumpSize(target uint64, reach relocate.Reach, dead uint8) size {
	s := constantSize(target, reach).plus(wordSize)
	switch {
	case reach == relocate.Near, dead == noRegister:
		return always(wordSize)
	case reach == relocate.Anywhere:
		s.min = wordSize
	}
	return s
}

// deadRegister returns one of the registers that may be changed, but none of
// those in avoid; x30 and the stack pointer's number are never taken.
func deadRegister(opt *relocate.Options, avoid uint32) uint8 {
	const never = 1<<linkRegister | 1<<zeroOrSP
	dead := opt.Dead() &^ (avoid | never)
	if dead == 0 {
		return noRegister
	}
	return uint8(bits.TrailingZeros32(dead))
}
