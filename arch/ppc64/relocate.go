package ppc64

import (
	"math/bits"

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

// noRegister stands for a register that an operand or a form does not have.
const noRegister = relocate.NoRegister

// formFor is the form of each class of instruction. The others keep their bytes.
var formFor = [opCount]moveForm{
	OpBranch:     formBranch,
	OpBranchCond: formBranch,
	OpBranchLR:   formRegister,
	OpBranchCTR:  formRegister,
	OpBranchTAR:  formRegister,
	OpSyscall:    formSyscall,
	OpAddPCIS:    formAddress,
	OpPCAddress:  formAddress,
	OpPCMemory:   formMemory,
}

func formOf(s *relocate.Step) moveForm { return moveForm(s.Form) }

// keepsTAR in Plan.Detail forbids far jumps, which go through TAR.
const keepsTAR = 1

// scratchFor returns a register other than r1 and those in the set avoid: a
// dead one, else one that is saved on the stack, as the options have it. Any
// could be saved; these two are left when avoid is a pair.
func scratchFor(opt *relocate.Options, avoid uint32) relocate.Scratch {
	const saved = 1<<11 | 1<<12
	avoid |= 1 << stackPointer
	if dead := opt.Dead() &^ avoid; dead != 0 {
		return relocate.Scratch{Reg: uint8(bits.Len32(dead) - 1)}
	}
	if opt.Scratch != relocate.ScratchStack {
		return relocate.Scratch{Reg: noRegister}
	}
	return relocate.Scratch{Reg: uint8(bits.TrailingZeros32(saved &^ avoid)), Saved: true}
}

// Sizes in bytes.
const (
	wordSize     = 4
	prefixedSize = 8
	lineSize     = 64 // a prefixed instruction must not cross the end of a line
	overSize     = 2 * wordSize
)

// frameSize returns the size of the instructions that save and restore r.
func frameSize(r relocate.Scratch) int {
	if r.Saved {
		return 4 * wordSize
	}
	return 0
}

// setSize is the size of what loads a special register with v.
func setSize(v uint64) int { return constantSize(v) + wordSize }

// farJumpSize is the size of a jump by way of TAR.
func farJumpSize(target uint64, r relocate.Scratch) int {
	return frameSize(r) + setSize(target) + wordSize
}

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
	return relocate.Make(a.mover(), p, insts, opt)
}

// The movers of each byte order.
var bigEndianMover, littleEndianMover = newMover(emitter{}), newMover(emitter{littleEndian: true})

func newMover(e emitter) *relocate.Mover {
	return &relocate.Mover{Align: wordSize, Breakpoint: e.put(nil, insnTrap), LeaveLen: wordSize, Forms: movedForms{e}}
}

func (a ISA) mover() *relocate.Mover {
	if a.LittleEndian {
		return littleEndianMover
	}
	return bigEndianMover
}

// movedForms are the moved forms of one byte order; see relocate.Forms.
type movedForms struct{ emitter }

// Check refuses a part of a larx … stcx. sequence, in a slot that ends in a
// breakpoint or in a region, and branches into instructions.
func (movedForms) Check(p *relocate.Plan) error {
	s, region := p.Torn(noOp), p.Options.Form == relocate.Region
	if s != nil && (region || p.Options.Back == relocate.BackBreakpoint && s.Inst.Has(decode.LoadExclusive)) {
		return relocate.Refuse(&ruleMoveReservation, s.Inst.Addr)
	}
	if addr, found := p.BranchInto(); found {
		return relocate.Refuse(&ruleMoveInto, addr)
	}
	p.Detail = tarUse(p)
	return nil
}

// tarUse tells whether the code of p needs the value that TAR has: it uses it
// itself, or runs in kernel mode.
func tarUse(p *relocate.Plan) uint8 {
	if p.Options.Kernel {
		return keepsTAR
	}
	for i := range p.Steps {
		if usesTAR(&p.Steps[i].Inst) {
			return keepsTAR
		}
	}
	return 0
}

// noOp is the class of no instruction: only a store ends a sequence.
const noOp = uint16(opCount)

// usesTAR reports whether an instruction reads or writes TAR.
func usesTAR(inst *decode.Inst) bool {
	switch OpOf(inst) {
	case OpBranchTAR:
		return true
	case OpMoveSPR:
		return sprOf(WordOf(inst)) == sprTAR
	}
	return false
}

// Jump returns the sizes of the way back.
func (movedForms) Jump(p *relocate.Plan) (near, far int, err error) {
	r := scratchFor(&p.Options, 0)
	if rule := refuseFar(p, r); rule != nil {
		if rule = p.Options.RefuseFar(rule); rule != nil {
			err = relocate.Refuse(rule, p.From())
		}
		return wordSize, wordSize, err
	}
	if p.Options.Reach != relocate.Near {
		p.Steps[len(p.Steps)-1].Clobbers |= 1<<TAR | r.Changed()
	}
	return wordSize, farJumpSize(p.Next(), r), nil
}

// refuseFar returns the rule against a far jump of p with the scratch register
// r, nil where it can be made.
func refuseFar(p *relocate.Plan, r relocate.Scratch) *classify.Rule {
	switch {
	case p.Detail == keepsTAR:
		return &ruleMoveTAR
	case r.None():
		return &ruleMoveScratch
	}
	return nil
}

// Choose gives s its form, or returns the rule that there is none.
func (movedForms) Choose(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	if p.Options.Linux {
		return nil // a kernel's slot holds the instruction as it is
	}
	inst := &s.Inst
	form := formFor[OpOf(inst)%opCount]
	switch {
	case OpOf(inst) == OpTrap:
		return &ruleMoveTrap
	case form == formRegister && !inst.Has(decode.Link), form == formSyscall && !isSCV(inst), form == formBranch && staysAsItIs(inst, p):
		form = formKept
	}
	s.Form = uint8(form)
	switch form {
	case formBranch:
		return chooseBranch(s, p)
	case formRegister:
		return chooseRegister(s, p)
	case formSyscall:
		return chooseLink(s, p, &noteSyscall)
	case formAddress:
		return chooseAddress(s, p)
	case formMemory:
		return chooseMemory(s, p)
	}
	if inst.Len == prefixedSize {
		s.Note, s.Max = &noteBoundary, prefixedSize+wordSize
	}
	return nil
}

// goesElsewhere reports whether a direct branch needs another displacement.
func goesElsewhere(inst *decode.Inst, p *relocate.Plan) bool {
	return (p.Inside(inst.Target) || inst.PCRel.Kind != decode.PCRelNone) && !onlyGetsPC(inst)
}

// staysAsItIs reports whether a direct branch does the same everywhere.
func staysAsItIs(inst *decode.Inst, p *relocate.Plan) bool {
	return !goesElsewhere(inst, p) && !inst.Has(decode.Link)
}

func chooseBranch(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	inst, opt := &s.Inst, &p.Options
	moves := goesElsewhere(inst, p)
	s.Action, s.Note = relocate.Rebased, &noteBranch
	s.Scratch = scratchFor(opt, 0)
	if onlyGetsPC(inst) {
		s.Min, s.Max = 0, 0
	}
	if moves && inst.Has(decode.Conditional) && opt.Reach != relocate.Near {
		s.Max += overSize
	}
	if inst.Has(decode.Link) {
		if rule := chooseLink(s, p, &noteLink); rule != nil {
			return rule
		}
	}
	if !moves || p.Inside(inst.Target) || opt.Reach == relocate.Near {
		return nil
	}
	return addFarBranch(s, p)
}

// addFarBranch adds the far form to the near one of s.
func addFarBranch(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	if rule := refuseFar(p, s.Scratch); rule != nil {
		return p.Options.RefuseFar(rule)
	}
	size := farJumpSize(s.Inst.Target, s.Scratch)
	if s.Inst.Has(decode.Link) {
		size += setSize(s.Inst.Next())
	}
	s.Clobbers = 1<<TAR | s.Scratch.Changed()
	s.AddFar(p.Options.Reach, size, size)
	return nil
}

// chooseLink adds what loads LR with the address after the instruction of s.
func chooseLink(s *relocate.Step, p *relocate.Plan, note *relocate.Note) *classify.Rule {
	if s.Scratch = scratchFor(&p.Options, 0); s.Scratch.None() {
		return &ruleMoveScratch
	}
	size := frameSize(s.Scratch) + setSize(s.Inst.Next())
	s.Action, s.Note, s.Clobbers = relocate.Expanded, note, s.Scratch.Changed()
	s.Min += uint8(size)
	s.Max += uint8(size)
	return nil
}

// onlyGetsPC reports whether inst is bcl 20,31,$+4 or bl $+4, which put the
// address after them into LR and go on there.
func onlyGetsPC(inst *decode.Inst) bool {
	return inst.Has(decode.Link|decode.HasTarget) && !inst.Has(decode.Conditional) && inst.Target == inst.Next()
}

// chooseRegister is for bcctrl and bctarl, and for bclrl, whose target has to
// leave LR first.
func chooseRegister(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	rule := chooseLink(s, p, &noteLink)
	if rule != nil || OpOf(&s.Inst) != OpBranchLR {
		return rule
	}
	if p.Detail == keepsTAR {
		return &ruleMoveTAR
	}
	s.Clobbers |= 1 << TAR
	s.Min += 2 * wordSize
	s.Max += 2 * wordSize
	return nil
}

// isSCV tells scv, which leaves the address after it in LR, from sc.
func isSCV(inst *decode.Inst) bool { return WordOf(inst)&3 == 1 }

// chooseAddress is for addpcis and paddi. A constant goes into r1 in one
// instruction: a signal handler must never find half of it there.
func chooseAddress(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	inst, opt := &s.Inst, &p.Options
	s.Action, s.Note = relocate.Rebased, &noteAddress
	s.Max += paddingOf(inst)
	if opt.Reach == relocate.Near {
		return nil
	}
	size := constantSize(inst.Target)
	if targetOf(inst) == stackPointer {
		if s.Scratch = scratchFor(opt, 0); s.Scratch.None() {
			return opt.RefuseFar(&ruleMoveScratch)
		}
		s.Clobbers = s.Scratch.Changed()
		size += wordSize + frameSize(s.Scratch)
	}
	s.AddFar(opt.Reach, size, size)
	return nil
}

// paddingOf returns the size of the nop that inst may need before it.
func paddingOf(inst *decode.Inst) uint8 {
	if inst.Len == prefixedSize {
		return wordSize
	}
	return 0
}

func chooseMemory(s *relocate.Step, p *relocate.Plan) *classify.Rule {
	inst, opt := &s.Inst, &p.Options
	s.Action, s.Note = relocate.Rebased, &noteMemory
	s.Max += wordSize
	if opt.Reach == relocate.Near {
		return nil
	}
	d := dataOf(inst)
	size := constantSize(inst.Target) + prefixedSize
	if !d.ownBase() {
		scratch, more, rule := scratchForData(d, opt)
		if rule != nil {
			return opt.RefuseFar(rule)
		}
		s.Scratch, s.Clobbers = scratch, scratch.Changed()
		size += more
	}
	s.AddFar(opt.Reach, size, size+wordSize)
	return nil
}

// scratchForData returns the register for the address of d, and the size of what
// it takes to have it; or the rule that there is none.
func scratchForData(d data, opt *relocate.Options) (r relocate.Scratch, size int, rule *classify.Rule) {
	const r0 = 1 << 0 // as a base, it is 0
	r = scratchFor(opt, d.registers|r0)
	switch {
	case r.None():
		return r, 0, &ruleMoveScratch
	case !r.Saved:
		return r, 0, nil
	case d.registers>>stackPointer&1 == 0:
		return r, frameSize(r), nil
	case d.pair:
		return r, 0, &ruleMoveStackPointer
	case d.load:
		return r, frameSize(r) + wordSize, nil
	}
	return r, frameSize(r) + 3*wordSize, nil
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
