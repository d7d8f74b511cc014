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

func formOf(s *relocate.Step) moveForm { return moveForm(s.Form) }

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
	formSigned            // what signs with its own address, of which there is no moved form
)

// noRegister stands for a register that an operand or a form does not have.
const noRegister = relocate.NoRegister

// formFor is the form of each class of instruction. The others keep their bytes.
var formFor = [opCount]moveForm{
	OpB:                 formBranch,
	OpBCondAlways:       formBranch,
	OpBCond:             formCond,
	OpCompareBranch:     formCond,
	OpTestBranch:        formCond,
	OpCompareRegsBranch: formOver,
	OpBL:                formCall,
	OpBLR:               formCallReg,
	OpBLRAuth:           formCallAuth,
	OpADR:               formAddress,
	OpADRP:              formAddress,
	OpLoadLiteral:       formLiteral,
	OpLoadLiteralSigned: formLiteral,
	OpLoadLiteralSIMD:   formLiteral,
	OpPrefetchLiteral:   formLiteral,
	OpSignPC:            formSigned,
	OpSignPCLandingPad:  formSigned,
	OpAuthPC:            formSigned,
	OpReturnAuthPC:      formSigned,
}

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
func (ISA) Plan(p *relocate.Plan, insts []decode.Inst, opt relocate.Options) error {
	return relocate.Make(&mover, p, insts, opt)
}

// mover moves instructions; the slot's breakpoint is that of a kprobe's step.
var mover = relocate.Mover{Align: wordSize, Breakpoint: put(nil, insnBRK|brkKprobeStep<<5), LeaveLen: wordSize, Forms: movedForms{}}

// movedForms are the moved forms; see relocate.Forms.
type movedForms struct{ emitter }

// Check refuses instructions that must not be moved without others, which are
// not in p.
func (movedForms) Check(p *relocate.Plan) error {
	if p.From()%wordSize != 0 {
		return relocate.ErrMisaligned
	}
	if s, rule := torn(p); rule != nil {
		return relocate.Refuse(rule, s.Inst.Addr)
	}
	return nil
}

// torn finds a step that must not be moved without others, which are not in p: a
// part of a load-exclusive … store-exclusive sequence, in a slot that ends in a
// breakpoint or in a region, and a part of a memory copy.
func torn(p *relocate.Plan) (*relocate.Step, *classify.Rule) {
	if p.Options.Form == relocate.Region || p.Options.Back == relocate.BackBreakpoint {
		if s := p.Torn(uint16(OpCLREX)); s != nil {
			return s, &ruleMoveReservation
		}
	}
	if s := tornMemoryCopy(p.Steps); s != nil {
		return s, &ruleMoveMOPS
	}
	return nil, nil
}

// Jump returns the sizes of the way back.
func (movedForms) Jump(p *relocate.Plan) (near, far int, err error) {
	last := &p.Steps[len(p.Steps)-1]
	if !needsBack(&last.Inst) {
		return 0, 0, nil
	}
	dead := backRegister(p)
	if rule := p.Options.RefuseFar(&ruleMoveFarJump); rule != nil && dead == noRegister {
		return 0, 0, relocate.Refuse(rule, last.Inst.Addr)
	}
	jump := jumpSize(last.Inst.Next(), p.Options.Reach, dead)
	if jump.max > wordSize {
		last.Clobbers |= 1 << dead
	}
	return wordSize, jump.max, nil
}

// needsBack reports whether moved code that ends with inst needs a way back:
// what is called returns to the original.
func needsBack(inst *decode.Inst) bool {
	return inst.FallsThrough() || inst.Resumes() && !inst.IsCall()
}

// backRegister returns the register for a far way back. A register that is dead
// before the last instruction is not so after it if it is the result.
func backRegister(p *relocate.Plan) uint8 {
	return deadRegister(&p.Options, resultsOf(&p.Steps[len(p.Steps)-1].Inst))
}

// tornMemoryCopy finds a cpy* or set* without its two companions. The system
// goes back to the first of the three by its distance, when a thread comes to
// a processor that divides the work otherwise [Arm ARM, C3.2.13].
func tornMemoryCopy(steps []relocate.Step) *relocate.Step {
	for i := 0; i < len(steps); i++ {
		switch OpOf(&steps[i].Inst) {
		case OpMOPSPrologue:
			if len(steps)-i < 3 || OpOf(&steps[i+1].Inst) != OpMOPSMain || OpOf(&steps[i+2].Inst) != OpMOPSEpilogue {
				return &steps[i]
			}
			i += 2
		case OpMOPSMain, OpMOPSEpilogue:
			return &steps[i]
		}
	}
	return nil
}

// Choose gives s its form, or returns the rule that there is none.
func (movedForms) Choose(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	inst := &s.Inst
	switch {
	case p.Options.Linux:
		return refuseSimulated(inst)
	case inst.Flow == decode.FlowTrap:
		return &ruleMoveTrap
	case WordOf(inst) == hintPACM:
		return &ruleMoveSignature
	}
	form := formFor[OpOf(inst)%opCount]
	s.Form = uint8(form)
	switch form {
	case formBranch, formCond, formOver:
		return chooseBranch(s, p)
	case formCall:
		return chooseCall(s, p)
	case formCallReg:
		return chooseCallReg(s, p)
	case formCallAuth:
		return chooseCallAuth(s, p)
	case formAddress:
		chooseAddress(s, p)
	case formLiteral:
		return chooseLiteral(s, p)
	case formSigned:
		return &ruleMoveSignature
	}
	return nil
}

// refuseSimulated refuses what gets no slot of Linux
// [arch/arm64/kernel/probes/decode-insn.c]. The other instructions keep their
// bytes.
func refuseSimulated(inst *decode.Inst) *classify.Rule {
	switch {
	case inst.PCRel.Kind != decode.PCRelNone, inst.Has(decode.Link), inst.Flow == decode.FlowJumpIndirect, inst.Flow == decode.FlowReturn:
		return &ruleMoveSimulated
	}
	return nil
}

// hintPACM makes the instruction after it sign with its address [Arm ARM, D8.10].
const hintPACM = 0xd50324ff

func chooseBranch(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	opt, target := &p.Options, s.Inst.Target
	s.Note, s.Action = &noteBranch, relocate.Rebased
	over := 0
	switch formOf(s) {
	case formCond:
		over = wordSize
	case formOver:
		over = 2 * wordSize
	}
	switch {
	case opt.Reach == relocate.Near:
		return nil
	case p.Inside(target):
		s.AddFar(relocate.Anywhere, over+wordSize, over+wordSize)
		return nil
	}
	jump, rule := chooseJump(s, opt, target)
	s.AddFar(opt.Reach, over+jump.min, over+jump.max)
	return rule
}

// chooseJump gives s a register for a jump to target that leaves the moved code,
// and returns the size of the jump; or the rule that there is no register.
func chooseJump(s *relocate.Step, opt *relocate.Options, target uint64) (size, *classify.Rule) {
	s.Scratch.Reg = deadRegister(opt, 0)
	if s.Scratch.None() && opt.Reach == relocate.Far {
		return size{}, &ruleMoveFarJump
	}
	jump := jumpSize(target, opt.Reach, s.Scratch.Reg)
	if jump.max > wordSize {
		s.Clobbers = s.Scratch.Changed()
	}
	return jump, nil
}

func chooseCall(s *relocate.Step, p *relocate.Plan) (rule *classify.Rule) {
	jump := always(wordSize)
	if !p.Inside(s.Inst.Target) {
		if jump, rule = chooseJump(s, &p.Options, s.Inst.Target); rule != nil {
			return rule
		}
	}
	setLinkForm(s, p, jump)
	return nil
}

// setLinkForm sets what Step tells of a form that loads the link register, and
// has as many bytes besides.
func setLinkForm(s *relocate.Step, p *relocate.Plan, besides size) {
	s.Note, s.Action = linkNote(&s.Inst, p), relocate.Expanded
	link := constantSize(s.Inst.Next(), p.Options.Reach)
	s.Min, s.Max = uint8(link.min+besides.min), uint8(link.max+besides.max)
}

// linkNote warns of a call that returns to what a detour takes the place of.
func linkNote(inst *decode.Inst, p *relocate.Plan) *relocate.Note {
	if p.Inside(inst.Next()) {
		return &noteLinkInside
	}
	return &noteLink
}

func chooseCallReg(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	besides := wordSize
	if fieldRn(&s.Inst) == linkRegister {
		if s.Scratch.Reg = deadRegister(&p.Options, 0); s.Scratch.None() {
			return &ruleMoveLink
		}
		s.Clobbers = s.Scratch.Changed()
		besides += wordSize
	}
	setLinkForm(s, p, always(besides))
	return nil
}

// chooseCallAuth is for blraa and its kin: without link where that may land,
// else the pointer is authenticated in a dead register.
func chooseCallAuth(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	rn, rd := fieldRn(&s.Inst), fieldRd(&s.Inst)
	usesLink := rn == linkRegister || rd == linkRegister
	besides := wordSize
	if usesLink || rn != ip0 && rn != ip1 {
		s.Scratch.Reg = deadRegister(&p.Options, 1<<rn|1<<rd)
		switch {
		case s.Scratch.None() && usesLink:
			return &ruleMoveLink
		case s.Scratch.None():
			return &ruleMoveAuthenticated
		}
		s.Clobbers = s.Scratch.Changed()
		besides += 2 * wordSize
	}
	setLinkForm(s, p, always(besides))
	return nil
}

func chooseAddress(s *relocate.Step, p *relocate.Plan) {
	if fieldRd(&s.Inst) == zeroOrSP {
		s.Form = uint8(formKept) // xzr takes the address, so that it has no effect
		return
	}
	s.Note, s.Action = &noteAddress, relocate.Rebased
	constant := constantSize(s.Inst.Target, p.Options.Reach)
	s.AddFar(p.Options.Reach, constant.min, constant.max)
}

func chooseLiteral(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	inst, opt := &s.Inst, &p.Options
	s.Note, s.Action = &noteLiteral, relocate.Rebased
	if opt.Reach == relocate.Near {
		return nil
	}
	far := constantSize(inst.Target, opt.Reach).plus(wordSize)
	dead := deadRegister(opt, 0)
	switch {
	case loadsGeneral(inst) && fieldRd(inst) != zeroOrSP:
		s.Scratch.Reg = uint8(fieldRd(inst)) // which the load overwrites
	case dead != noRegister:
		s.Scratch.Reg = dead
		s.Clobbers = s.Scratch.Changed()
	case opt.Scratch == relocate.ScratchStack:
		s.Scratch = relocate.Scratch{Reg: ip0, Saved: true}
		far = far.plus(2 * wordSize)
	default:
		return opt.RefuseFar(&ruleMoveScratch)
	}
	s.AddFar(opt.Reach, far.min, far.max)
	return nil
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
