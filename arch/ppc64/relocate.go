package ppc64

import (
	"math/bits"
	"slices"

	"xol/classify"
	"xol/decode"
	"xol/relocate"
)

// Rules that keep an instruction from being moved.
var (
	ruleMoveReservation = classify.Rule{
		ID:     "ppc64/move-reservation",
		Reason: "a breakpoint or a part of the sequence that stays in place, between the load that reserves and the store that depends on it, makes the store fail every time",
		Remedy: "move the whole sequence, or an instruction before or after it",
	}
	ruleMoveInto = classify.Rule{
		ID:     "ppc64/move-branch-into-instruction",
		Reason: "it branches into the middle of an instruction of the region",
	}
	ruleMoveScratch = classify.Rule{
		ID:     "ppc64/move-scratch",
		Reason: "its moved form needs a general register, and none may be used",
		Remedy: "allow the stack for scratch, or name a dead register",
	}
	ruleMoveTAR = classify.Rule{
		ID:     "ppc64/move-target-register",
		Reason: "a far jump goes through TAR, which the code uses itself, or which in kernel mode still holds the interrupted program's value",
		Remedy: "move it to a place within 32 MiB of where it goes",
	}
	ruleMoveStackPointer = classify.Rule{
		ID:     "ppc64/move-stack-pointer",
		Reason: "it loads or stores r0 and r1 as a pair, and its far form would need the stack meanwhile",
		Remedy: "move it to a place within 8 GiB of its operand, or name a dead register",
	}
	ruleMoveTrap = classify.Rule{
		ID:     "ppc64/move-trap",
		Reason: "it raises an exception on purpose, whose handler looks at its address",
		Remedy: "let the probe mechanism raise the exception at the original address",
	}
)

// Notes on the forms.
var (
	noteBranch = relocate.Note{ID: "ppc64/branch",
		Text: "the branch has a new displacement; out of reach, it goes over a longer branch, or through TAR, which the ABI reserves"}
	noteLink = relocate.Note{ID: "ppc64/link-register",
		Text: "LR is loaded with the address after the original, then the branch is taken without link"}
	noteSyscall = relocate.Note{ID: "ppc64/syscall-link",
		Text: "the system call leaves its return address in LR, which is then loaded with the one of the original"}
	noteAddress = relocate.Note{ID: "ppc64/pc-address",
		Text: "the address is computed from the new place, or loaded as a constant"}
	noteMemory = relocate.Note{ID: "ppc64/pc-memory",
		Text: "the displacement is re-based; out of reach, the address is built in a register that the instruction does not use"}
	noteBoundary = relocate.Note{ID: "ppc64/prefix-boundary",
		Text: "a nop goes before the instruction where it would cross a 64-byte boundary"}
)

// moveForm says how a step is emitted.
type moveForm uint8

const (
	formKept     moveForm = iota
	formBranch            // b and bc
	formRegister          // bclrl, bcctrl, bctarl
	formSyscall           // scv
	formAddress           // addpcis, paddi
	formMemory            // prefixed loads and stores
)

// noRegister stands for a register that a form does not need or have.
const noRegister = 0xff

// scratch is a register that a form may change.
type scratch struct {
	reg   uint8 // noRegister where there is none
	saved bool  // on the stack, being live
}

// choice is the form of a step with all that Plan has to know of it.
type choice struct {
	form moveForm
	scratch
	keepTAR  bool // no far jumps
	action   relocate.Action
	note     *relocate.Note
	min, max int // bytes
	clobbers uint64
}

// Step.Detail holds the form in its low byte, the scratch register above, then
// whether that is saved, and whether the plan keeps TAR.
func (c choice) apply(s *relocate.Step) {
	s.Detail = uint32(c.form) | uint32(c.reg)<<8
	if c.saved {
		s.Detail |= savedBit
	}
	s.Note, s.Action, s.Clobbers = c.note, c.action, c.clobbers
	s.Min, s.Max = uint8(c.min), uint8(c.max)
}

const (
	savedBit   = 1 << 16
	keepTARBit = 1 << 17
)

func formOf(s *relocate.Step) moveForm { return moveForm(s.Detail) }

func keepsTAR(s *relocate.Step) bool { return s.Detail&keepTARBit != 0 }

func scratchOf(s *relocate.Step) scratch {
	return scratch{reg: uint8(s.Detail >> 8), saved: s.Detail&savedBit != 0}
}

// none reports whether there is no register to be had.
func (r scratch) none() bool { return r.reg == noRegister }

// changed returns the set of registers that a form loses with r.
func (r scratch) changed() uint64 {
	if r.saved || r.none() {
		return 0
	}
	return 1 << r.reg
}

// scratchFor returns a register other than r1 and those in the set avoid: a
// dead one, else one that is saved on the stack, as the options have it. Any
// could be saved; these two are left when avoid is a pair.
func scratchFor(opt *relocate.Options, avoid uint32) scratch {
	const saved = 1<<11 | 1<<12
	avoid |= 1 << stackPointer
	if dead := opt.Dead() &^ avoid; dead != 0 {
		return scratch{reg: uint8(bits.Len32(dead) - 1)}
	}
	if opt.Scratch != relocate.ScratchStack {
		return scratch{reg: noRegister}
	}
	return scratch{reg: uint8(bits.TrailingZeros32(saved &^ avoid)), saved: true}
}

// Sizes in bytes.
const (
	wordSize     = 4
	prefixedSize = 8
	lineSize     = 64 // a prefixed instruction must not cross the end of a line
	overSize     = 2 * wordSize
)

// frameSize returns the size of the instructions that save and restore r.
func (r scratch) frameSize() int {
	if r.saved {
		return 4 * wordSize
	}
	return 0
}

// setSize is the size of what loads a special register with v.
func setSize(v uint64) int { return constantSize(v) + wordSize }

// farJumpSize is the size of a jump by way of TAR.
func farJumpSize(target uint64, r scratch) int { return r.frameSize() + setSize(target) + wordSize }

// JumpLen returns the length in bytes of the jump that may take a breakpoint's
// place.
func (ISA) JumpLen() int { return wordSize }

// Plan fills p; see relocate.Relocator.
//
// A far jump goes through TAR, the only register of branches that code in user
// mode may lose: the ABI reserves it for the system [OpenPOWER ELFv2 ABI,
// Register Roles], and compilers do not use it. It exists since POWER8. Linux
// does not save it for signal handlers, so that a handler must not itself run
// far forms while the code that it interrupts does. Code that uses TAR is moved
// with near forms only.
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
	keepTAR := opt.Kernel || slices.ContainsFunc(insts, usesTAR)
	for i := range p.Steps {
		s := &p.Steps[i]
		if !opt.Linux { // a kernel's slot holds the instruction as it is
			c, rule := choose(&s.Inst, p, keepTAR)
			if rule != nil {
				return relocate.Refuse(rule, s.Inst.Addr)
			}
			c.apply(s)
		}
		if keepTAR {
			s.Detail |= keepTARBit
		}
	}
	return finishPlan(p, keepTAR)
}

// usesTAR reports whether an instruction reads or writes TAR.
func usesTAR(inst decode.Inst) bool {
	switch OpOf(&inst) {
	case OpBranchTAR:
		return true
	case OpMoveSPR:
		return sprOf(WordOf(&inst)) == sprTAR
	}
	return false
}

// finishPlan adds the way back.
func finishPlan(p *relocate.Plan, keepTAR bool) error {
	switch p.Options.Back {
	case relocate.BackNone:
		p.Finish(0, 0)
	case relocate.BackBreakpoint:
		p.Finish(wordSize, wordSize)
	default:
		r := scratchFor(&p.Options, 0)
		rule := refuseFar(r, keepTAR)
		if rule != nil && p.Options.Reach == relocate.Far {
			return relocate.Refuse(rule, p.From())
		}
		if rule != nil || p.Options.Reach == relocate.Near {
			p.Finish(wordSize, wordSize)
			break
		}
		p.Steps[len(p.Steps)-1].Clobbers |= 1<<TAR | r.changed()
		p.Finish(wordSize, farJumpSize(p.Next(), r))
	}
	return nil
}

// refuseFar returns the rule against a far jump with the scratch register r,
// nil where it can be made.
func refuseFar(r scratch, keepTAR bool) *classify.Rule {
	switch {
	case keepTAR:
		return &ruleMoveTAR
	case r.none():
		return &ruleMoveScratch
	}
	return nil
}

// checkReservation refuses a part of a larx … stcx. sequence: a slot that ends
// in a breakpoint, and a region that does not hold both ends.
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

// choose returns the form of one instruction, or the rule that refuses it.
func choose(inst *decode.Inst, p *relocate.Plan, keepTAR bool) (choice, *classify.Rule) {
	c := choice{scratch: scratch{reg: noRegister}, keepTAR: keepTAR, min: int(inst.Len), max: int(inst.Len)}
	switch OpOf(inst) {
	case OpBranch, OpBranchCond:
		return chooseBranch(c, inst, p)
	case OpBranchLR, OpBranchCTR, OpBranchTAR:
		if inst.Has(decode.Link) {
			return chooseRegister(c, inst, &p.Options)
		}
	case OpSyscall:
		if isSCV(inst) {
			return chooseSyscall(c, inst, &p.Options)
		}
	case OpTrap:
		return c, &ruleMoveTrap
	case OpAddPCIS, OpPCAddress:
		return chooseAddress(c, inst, &p.Options)
	case OpPCMemory:
		return chooseMemory(c, inst, &p.Options)
	}
	if inst.Len == prefixedSize {
		c.note, c.max = &noteBoundary, prefixedSize+wordSize
	}
	return c, nil
}

func chooseBranch(c choice, inst *decode.Inst, p *relocate.Plan) (choice, *classify.Rule) {
	opt := &p.Options
	linked, inside := inst.Has(decode.Link), p.Inside(inst.Target)
	moves := (inside || inst.PCRel.Kind != decode.PCRelNone) && !onlyGetsPC(inst)
	if !moves && !linked {
		return c, nil
	}
	c.form, c.action, c.note = formBranch, relocate.Rebased, &noteBranch
	c.scratch = scratchFor(opt, 0)
	if onlyGetsPC(inst) {
		c.min, c.max = 0, 0
	}
	if moves && inst.Has(decode.Conditional) && opt.Reach != relocate.Near {
		c.max += overSize
	}
	if linked {
		if c.none() {
			return c, &ruleMoveScratch
		}
		c = withLink(c, inst, &noteLink)
	}
	if !moves || inside || opt.Reach == relocate.Near {
		return c, nil
	}
	return chooseFarBranch(c, inst, opt)
}

// chooseFarBranch adds the far form to the near one of c.
func chooseFarBranch(c choice, inst *decode.Inst, opt *relocate.Options) (choice, *classify.Rule) {
	if rule := refuseFar(c.scratch, c.keepTAR); rule != nil {
		return orNear(c, opt, rule)
	}
	size := farJumpSize(inst.Target, c.scratch)
	if inst.Has(decode.Link) {
		size += setSize(inst.Next())
	}
	c.clobbers = 1<<TAR | c.changed()
	return withFar(c, opt, size, size), nil
}

// withLink adds what loads LR with the address behind inst.
func withLink(c choice, inst *decode.Inst, note *relocate.Note) choice {
	size := c.frameSize() + setSize(inst.Next())
	c.action, c.note, c.clobbers = relocate.Expanded, note, c.changed()
	c.min += size
	c.max += size
	return c
}

// onlyGetsPC reports whether inst is bcl 20,31,$+4 or bl $+4, which put the
// address behind them into LR and go on there.
func onlyGetsPC(inst *decode.Inst) bool {
	return inst.Has(decode.Link|decode.HasTarget) && !inst.Has(decode.Conditional) && inst.Target == inst.Next()
}

// chooseRegister is for bcctrl and bctarl, and for bclrl, whose target has to
// leave LR first.
func chooseRegister(c choice, inst *decode.Inst, opt *relocate.Options) (choice, *classify.Rule) {
	c.form = formRegister
	if c.scratch = scratchFor(opt, 0); c.none() {
		return c, &ruleMoveScratch
	}
	c = withLink(c, inst, &noteLink)
	if OpOf(inst) != OpBranchLR {
		return c, nil
	}
	if c.keepTAR {
		return c, &ruleMoveTAR
	}
	c.clobbers |= 1 << TAR
	c.min += 2 * wordSize
	c.max += 2 * wordSize
	return c, nil
}

// isSCV tells scv, which leaves the address behind it in LR, from sc.
func isSCV(inst *decode.Inst) bool { return WordOf(inst)&3 == 1 }

// chooseSyscall is for scv.
func chooseSyscall(c choice, inst *decode.Inst, opt *relocate.Options) (choice, *classify.Rule) {
	c.form = formSyscall
	if c.scratch = scratchFor(opt, 0); c.none() {
		return c, &ruleMoveScratch
	}
	return withLink(c, inst, &noteSyscall), nil
}

// chooseAddress is for addpcis and paddi. A constant goes into r1 in one
// instruction: a signal handler must never find half of it there.
func chooseAddress(c choice, inst *decode.Inst, opt *relocate.Options) (choice, *classify.Rule) {
	c.form, c.action, c.note = formAddress, relocate.Rebased, &noteAddress
	c.max += paddingOf(inst)
	if opt.Reach == relocate.Near {
		return c, nil
	}
	size := constantSize(inst.Target)
	if targetOf(inst) == stackPointer {
		if c.scratch = scratchFor(opt, 0); c.none() {
			return orNear(c, opt, &ruleMoveScratch)
		}
		c.clobbers = c.changed()
		size += wordSize
		if c.saved {
			size += c.frameSize()
		}
	}
	return withFar(c, opt, size, size), nil
}

// withFar adds a far form of least to most bytes to the near one of c.
func withFar(c choice, opt *relocate.Options, least, most int) choice {
	c.min, c.max = min(c.min, least), max(c.max, most)
	if opt.Reach == relocate.Far {
		c.action, c.min, c.max = relocate.Expanded, least, most
	}
	return c
}

// orNear leaves c without a far form, or refuses it where it needs one.
func orNear(c choice, opt *relocate.Options, rule *classify.Rule) (choice, *classify.Rule) {
	if opt.Reach == relocate.Far {
		return c, rule
	}
	return c, nil
}

// paddingOf returns the size of the nop that inst may need in front.
func paddingOf(inst *decode.Inst) int {
	if inst.Len == prefixedSize {
		return wordSize
	}
	return 0
}

func chooseMemory(c choice, inst *decode.Inst, opt *relocate.Options) (choice, *classify.Rule) {
	c.form, c.action, c.note = formMemory, relocate.Rebased, &noteMemory
	c.max += wordSize
	if opt.Reach == relocate.Near {
		return c, nil
	}
	d := dataOf(inst)
	size := constantSize(inst.Target) + prefixedSize
	if d.ownBase() {
		return withFar(c, opt, size, size+wordSize), nil
	}
	const r0 = 1 << 0 // as a base, it is 0
	c.scratch = scratchFor(opt, d.registers|r0)
	switch {
	case c.none():
		return orNear(c, opt, &ruleMoveScratch)
	case !c.saved:
		c.clobbers = c.changed()
	case d.registers>>stackPointer&1 == 0:
		size += c.frameSize()
	case d.pair:
		c.scratch.reg = noRegister
		return orNear(c, opt, &ruleMoveStackPointer)
	case d.load:
		size += c.frameSize() + wordSize
	default:
		size += c.frameSize() + 3*wordSize
	}
	return withFar(c, opt, size, size+wordSize), nil
}

// stackPointer is the number of r1.
const stackPointer = 1

// targetOf returns the field RT.
func targetOf(inst *decode.Inst) uint8 { return uint8(WordOf(inst) >> 21 & 31) }

// data is what a prefixed load or store moves.
type data struct {
	registers uint32 // set of general registers; none where it moves another kind
	load      bool
	pair      bool // this register and the next one
}

// generalData lists the prefixed loads and stores of general registers: the
// type of the prefix and the primary opcode of the suffix [Power ISA 3.1, Book
// I, 1.6.3 and 3.3.2].
var generalData = [...]struct {
	prefixType, opcode uint32
	load, pair         bool
}{
	{2, 32, true, false},  // plwz
	{2, 34, true, false},  // plbz
	{2, 36, false, false}, // pstw
	{2, 38, false, false}, // pstb
	{2, 40, true, false},  // plhz
	{2, 42, true, false},  // plha
	{2, 44, false, false}, // psth
	{0, 41, true, false},  // plwa
	{0, 56, true, true},   // plq
	{0, 57, true, false},  // pld
	{0, 60, false, true},  // pstq
	{0, 61, false, false}, // pstd
}

func dataOf(inst *decode.Inst) data {
	prefixType, suffix := PrefixOf(inst)>>24&3, WordOf(inst)
	for i := range generalData {
		g := &generalData[i]
		if g.prefixType != prefixType || g.opcode != suffix>>26 {
			continue
		}
		d := data{1 << targetOf(inst), g.load, g.pair}
		if g.pair {
			d.registers |= d.registers << 1
		}
		return d
	}
	return data{}
}

// ownBase reports whether a load's own register can hold its address first:
// r0 means zero as a base, and r1 must stay valid.
func (d data) ownBase() bool {
	const not = 1<<0 | 1<<stackPointer
	return d.load && !d.pair && d.registers&not == 0
}
