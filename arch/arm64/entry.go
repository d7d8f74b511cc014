package arm64

import (
	"encoding/binary"

	"xol/decode"
	"xol/detour"
	"xol/machine"
	"xol/patch"
)

const (
	wordNOP       = 0xd503201f
	wordMovX9     = 0xaa1e03e9 // mov x9, x30
	wordRetX9     = 0xd65f0120 // ret x9, which needs no landing pad
	wordSubX0     = 0xd10013c0 // sub x0, x30, #4
	entryRegister = 9          // holds the function's return address
)

// entryTexts are those that PlanEntry's plans put in the place of each other.
type entryTexts struct{ ISA }

// Breakpoint returns the text that does nothing.
func (t entryTexts) Breakpoint(bool) []byte { return t.EntryNop() }

// JumpTo returns the call of the stub.
func (t entryTexts) JumpTo(at, stub uint64) ([]byte, error) {
	if err := template(t).Jump().Check(at, stub); err != nil {
		return nil, err
	}
	return put(nil, insnBL|branchField(at, stub)), nil
}

// EntryNop returns nop.
func (ISA) EntryNop() []byte { return put(nil, wordNOP) }

// EntryLead returns the size of the instruction that keeps the return address.
func (ISA) EntryLead() int { return wordSize }

// EntryText takes the two NOPs of -fpatchable-function-entry=2. As in Linux, the
// first becomes mov x9, x30 [arch/arm64/kernel/ftrace.c, ftrace_init_nop].
func (ISA) EntryText(text []byte) (ready []byte, ok bool) {
	if len(text) < 2*wordSize {
		return nil, false
	}
	lead, site := binary.LittleEndian.Uint32(text), binary.LittleEndian.Uint32(text[wordSize:])
	return put(put(nil, wordMovX9), wordNOP), (lead == wordNOP || lead == wordMovX9) && site == wordNOP
}

// PlanEntry writes one word: CPUs may execute nop and bl while one becomes the
// other.
func (a ISA) PlanEntry(op patch.Operation, s *patch.Site) (*patch.Plan, error) {
	return patch.EntryWord(entryTexts{a}, op, s, func(old, new []byte) bool { return isConcurrent(old) && isConcurrent(new) })
}

// EntryStub returns the stub; see detour.EntryBuilder. x9 is not in use when a
// function starts; x30 holds the site's return address.
func (a ISA) EntryStub(at, callback uint64, kernel bool) []byte {
	p, t := detour.EntryPlan(callback, kernel), template{a}
	code := t.Save(nil, p)
	code = put(code, wordSubX0)
	code = put(code, insnSTR|ptRegsPC/slotSize<<10|1<<5)
	code = put(code, insnSTR|ptRegsX30/slotSize<<10|1<<5|entryRegister)
	code = t.Call(code, p, at+uint64(len(code)))
	code = put(code, insnLDR|ptRegsPC/slotSize<<10|zeroOrSP<<5)
	code = put(code, insnSTR|entryRegister<<10|zeroOrSP<<5)
	return put(t.Restore(code, p), wordRetX9)
}

// LeaveEntry has x30 be the function's return address again; see detour.EntryBuilder.
func (ISA) LeaveEntry(r machine.Registers, _ machine.Memory) (next uint64, err error) {
	next = r.Reg(X0 + linkRegister)
	r.SetReg(X0+linkRegister, r.Reg(X0+entryRegister))
	return next, nil
}

// OnlyLandingPad reports whether inst does nothing but to be where indirect
// branches may land: bti. What signs the return address lands as well, but a
// probe that replaces that address has to come before it.
func (ISA) OnlyLandingPad(inst *decode.Inst) bool {
	const (
		wordBTI    = 0xd503241f
		btiTargets = 0xc0
	)
	return OpOf(inst) == OpLandingPad && binary.LittleEndian.Uint32(inst.Raw[:])&^btiTargets == wordBTI
}
