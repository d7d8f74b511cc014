package ppc64

import (
	"xol/classify"
	"xol/decode"
	"xol/relocate"
)

// Rules that keep an instruction from being moved.
var (
	ruleMoveReservation = classify.Rule{
		ID:     "ppc64/move-reservation",
		Reason: "a breakpoint or a part of the sequence left behind, between the load that reserves and the store that depends on it, makes the store fail every time",
		Remedy: "move the whole sequence, or an instruction in front of or behind it",
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
	ruleMoveStackPointer = classify.Rule{
		ID:     "ppc64/move-stack-pointer",
		Reason: "it loads or stores the stack pointer, which its far form needs",
		Remedy: "move it to a place within 8 GiB of its operand",
	}
)

// Notes on the forms.
var (
	noteBranch = relocate.Note{ID: "ppc64/branch",
		Text: "the branch has a new displacement; out of reach, it goes over a longer branch, or through TAR, which the ABI reserves"}
	noteLink = relocate.Note{ID: "ppc64/link-register",
		Text: "LR is loaded with the address behind the original, then the branch is taken without link"}
	noteAddress = relocate.Note{ID: "ppc64/pc-address",
		Text: "the address is computed from the new place, or loaded as a constant"}
	noteMemory = relocate.Note{ID: "ppc64/pc-memory",
		Text: "the displacement is re-based; out of reach, the address is built in a register that the instruction does not use"}
	noteBoundary = relocate.Note{ID: "ppc64/prefix-boundary",
		Text: "a nop goes in front where the instruction would cross a 64-byte boundary"}
)

// moveForm says how a step is emitted.
type moveForm uint8

const (
	formKept       moveForm = iota
	formBranch          // b and bc
	formLinked          // bcctrl, bctarl: LR first, then without link
	formLinkedToLR      // bclrl: likewise, with its target moved to TAR
	formAddress         // addpcis, paddi
	formMemory          // prefixed loads and stores
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
	clobbers uint64
}

// Step.Detail holds the form in its low byte and the scratch register above.
func (c choice) apply(s *relocate.Step) {
	s.Detail = uint32(c.form) | uint32(c.scratch)<<8
	s.Note, s.Action, s.Clobbers = c.note, c.action, c.clobbers
	s.Min, s.Max = uint8(c.min), uint8(c.max)
}

func formOf(s *relocate.Step) moveForm { return moveForm(s.Detail) }

func scratchOf(s *relocate.Step) uint32 { return s.Detail >> 8 & 0xff }

// Sizes in bytes.
const (
	wordSize     = 4
	prefixedSize = 8
	lineSize     = 64 // a prefixed instruction must not cross the end of a line
	overSize     = 2 * wordSize
	frameSize    = 4 * wordSize // the instructions that save and restore a register
)

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
		if p.Options.Reach == relocate.Far && scratchFor(&p.Options, noRegister) == noRegister {
			return relocate.Refuse(&ruleMoveScratch, p.From())
		}
		p.Finish(wordSize, farJumpSize(p.Next(), &p.Options))
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

// choose returns the form of one instruction.
func choose(inst *decode.Inst, opt *relocate.Options) (choice, error) {
	switch OpOf(inst) {
	case OpBranch, OpBranchCond:
		return chooseBranch(inst, opt)
	case OpBranchLR, OpBranchCTR, OpBranchTAR:
		if inst.Has(decode.Link) {
			return chooseLinked(inst, opt)
		}
	case OpAddPCIS, OpPCAddress:
		return chooseAddress(inst, opt), nil
	case OpPCMemory:
		return chooseMemory(inst, opt)
	}
	c := choice{scratch: noRegister, min: int(inst.Len), max: int(inst.Len)}
	if inst.Len == prefixedSize {
		c.note, c.max = &noteBoundary, prefixedSize+wordSize
	}
	return c, nil
}

func chooseBranch(inst *decode.Inst, opt *relocate.Options) (choice, error) {
	c := choice{form: formBranch, scratch: scratchFor(opt, noRegister), action: relocate.Rebased,
		note: &noteBranch, min: wordSize, max: wordSize}
	linked, relative := inst.Has(decode.Link), inst.PCRel.Kind != decode.PCRelNone
	if c.scratch == noRegister && (linked || relative && opt.Reach == relocate.Far) {
		return c, relocate.Refuse(&ruleMoveScratch, inst.Addr)
	}
	switch {
	case onlyGetsPC(inst):
		c.min, c.max = 0, 0
	case relative && opt.Reach != relocate.Near:
		c.max = overSize + farJumpSize(inst.Target, opt)
		c.clobbers = 1 << TAR
	case relative:
		c.max = overSize + wordSize
	}
	if linked {
		c.note, c.action = &noteLink, relocate.Expanded
		c.min += setSize(inst.Next(), opt)
		c.max += setSize(inst.Next(), opt)
	}
	if !relative && !linked {
		c.note, c.action = nil, relocate.Kept
	}
	return c, nil
}

// onlyGetsPC reports whether inst is bcl 20,31,$+4 or bl $+4, which put the
// address behind them into LR and go on there.
func onlyGetsPC(inst *decode.Inst) bool {
	return inst.Has(decode.Link|decode.HasTarget) && !inst.Has(decode.Conditional) && inst.Target == inst.Next()
}

func chooseLinked(inst *decode.Inst, opt *relocate.Options) (choice, error) {
	c := choice{form: formLinked, scratch: scratchFor(opt, noRegister), action: relocate.Expanded, note: &noteLink}
	if c.scratch == noRegister {
		return c, relocate.Refuse(&ruleMoveScratch, inst.Addr)
	}
	c.min = setSize(inst.Next(), opt) + wordSize
	if OpOf(inst) == OpBranchLR {
		c.form, c.clobbers = formLinkedToLR, 1<<TAR
		c.min += 2 * wordSize
	}
	c.max = c.min
	return c, nil
}

func chooseAddress(inst *decode.Inst, opt *relocate.Options) choice {
	c := choice{form: formAddress, scratch: noRegister, action: relocate.Rebased, note: &noteAddress}
	constant := constantSize(inst.Target)
	c.min, c.max = min(constant, int(inst.Len)), max(constant, int(inst.Len)+paddingOf(inst))
	if opt.Reach == relocate.Far {
		c.action, c.min, c.max = relocate.Expanded, constant, constant
	}
	return c
}

// paddingOf returns the size of the nop that inst may need in front.
func paddingOf(inst *decode.Inst) int {
	if inst.Len == prefixedSize {
		return wordSize
	}
	return 0
}

func chooseMemory(inst *decode.Inst, opt *relocate.Options) (choice, error) {
	c := choice{form: formMemory, scratch: noRegister, action: relocate.Rebased, note: &noteMemory,
		min: prefixedSize, max: prefixedSize + wordSize}
	if opt.Reach == relocate.Near {
		return c, nil
	}
	data := dataOf(inst)
	if base := data.ownBase(); base != noRegister {
		c.scratch = base
		c.max += constantSize(inst.Target)
		return c, nil
	}
	c.scratch = scratchFor(opt, data.register)
	if opt.Reach == relocate.Far {
		if data.usesStackPointer() {
			return c, relocate.Refuse(&ruleMoveStackPointer, inst.Addr)
		}
		if c.scratch == noRegister {
			return c, relocate.Refuse(&ruleMoveScratch, inst.Addr)
		}
	}
	if c.scratch != noRegister {
		c.max += constantSize(inst.Target) + savingSize(opt)
	}
	return c, nil
}

// data is the general register that a prefixed load or store moves.
type data struct {
	register uint8 // noRegister where it moves another kind of register
	load     bool
	pair     bool // this register and the next one
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
	for _, g := range generalData {
		if g.prefixType == prefixType && g.opcode == suffix>>26 {
			return data{uint8(suffix >> 21 & 31), g.load, g.pair}
		}
	}
	return data{register: noRegister}
}

// ownBase returns the register of a load that can hold its address first:
// register 0 means zero as a base, and the stack pointer must stay valid.
func (d data) ownBase() uint8 {
	if d.load && d.register > 1 && !d.pair && d.register != noRegister {
		return d.register
	}
	return noRegister
}

func (d data) usesStackPointer() bool { return d.register == 1 || d.pair && d.register == 0 }

// scratchFor returns a register other than avoid, and other than the one in
// front of and behind it for pairs, or noRegister. Any would do on the stack:
// r11 and r12 are those that the ABI's own glue uses.
func scratchFor(opt *relocate.Options, avoid uint8) uint8 {
	candidates := uint32(0)
	switch opt.Scratch {
	case relocate.ScratchStack:
		candidates = 1<<9 | 1<<11
	case relocate.ScratchGiven:
		candidates = opt.Registers
	}
	for r := uint8(31); r > 1; r-- {
		if candidates>>r&1 != 0 && r != avoid && r != avoid+1 {
			return r
		}
	}
	return noRegister
}

// savingSize is the size of the instructions that save and restore a scratch
// register.
func savingSize(opt *relocate.Options) int {
	if opt.Scratch == relocate.ScratchStack {
		return frameSize
	}
	return 0
}

// setSize is the size of what loads a special register with v.
func setSize(v uint64, opt *relocate.Options) int {
	return savingSize(opt) + constantSize(v) + wordSize
}

func farJumpSize(target uint64, opt *relocate.Options) int { return setSize(target, opt) + wordSize }
