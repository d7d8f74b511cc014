package ppc64

import (
	"encoding/binary"

	"xol/decode"
	"xol/detour"
	"xol/machine"
	"xol/patch"
	"xol/relocate"
)

const (
	wordMFLR0 = 0x7c0802a6 // mflr r0
	wordSaveR = 0xf8010010 // std r0, 16(r1)
	wordBCTR  = 0x4e800420
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
	return t.words(insnB | linkBit | uint32(stub-at)&(1<<branchBits-1)), nil
}

// EntryNop returns nop.
func (a ISA) EntryNop() []byte { return a.words(insnNop) }

// EntryLead returns the size of the instruction that keeps the return address.
func (ISA) EntryLead() int { return wordSize }

// EntryText takes the two NOPs of -fpatchable-function-entry=2 and what
// -mprofile-kernel leaves: mflr r0, perhaps a store of it, and a call. As in
// Linux, the call becomes a NOP and the first NOP mflr r0
// [arch/powerpc/kernel/trace/ftrace.c, ftrace_init_nop].
func (a ISA) EntryText(text []byte) (ready []byte, ok bool) {
	if len(text) < 2*wordSize {
		return nil, false
	}
	order := binary.ByteOrder(binary.BigEndian)
	if a.LittleEndian {
		order = binary.LittleEndian
	}
	lead, site := order.Uint32(text), order.Uint32(text[wordSize:])
	const opcode = 63<<26 | 3
	call := site == insnNop || site&opcode == insnB|linkBit
	switch lead {
	case wordMFLR0, wordSaveR:
		return a.words(lead, insnNop), call
	case insnNop:
		return a.words(wordMFLR0, insnNop), site == insnNop
	}
	return nil, false
}

// PlanEntry writes one word: CPUs may execute nop and bl while one becomes the
// other.
func (a ISA) PlanEntry(op patch.Operation, s *patch.Site) (*patch.Plan, error) {
	return patch.EntryWord(entryTexts{a}, op, s, func(old, new []byte) bool { return a.isPatchClass(old) && a.isPatchClass(new) })
}

// EntryStub returns the stub; see detour.EntryBuilder. CTR is not in use when a
// function starts; r0 holds its return address, and LR the site's.
func (a ISA) EntryStub(at, callback uint64, kernel bool) []byte {
	p, t := detour.EntryPlan(callback, kernel), template{a}
	e, r0 := t.emitter(), uint8(0)
	const gpr0 = 0
	code := t.Save(nil, p)
	code = e.moveSPR(code, insnMFSPR, relocate.Scratch{Reg: firstArg}, sprLR)
	code = e.put(code, insnADDI|firstArg<<21|firstArg<<16|(1<<16-wordSize))
	code = e.field(code, insnSTD, firstArg, ptRegsNIP)
	code = e.field(code, insnLD, r0, gpr0)
	code = e.field(code, insnSTD, r0, ptRegsLink)
	code = t.Call(code, p, at+uint64(len(code)))
	code = e.field(code, insnLD, r0, ptRegsNIP)
	code = e.field(code, insnSTD, r0, ptRegsCTR)
	code = e.field(code, insnLD, r0, ptRegsLink)
	code = e.field(code, insnSTD, r0, gpr0)
	return e.put(t.Restore(code, p), wordBCTR)
}

// LeaveEntry has LR be the function's return address again; see detour.EntryBuilder.
func (ISA) LeaveEntry(r machine.Registers, _ machine.Memory) (next uint64, err error) {
	next = r.Reg(LR)
	r.SetReg(LR, r.Reg(R0))
	return next, nil
}

// OnlyLandingPad reports whether inst does nothing but to be where indirect
// branches may land: there is nothing of the kind.
func (ISA) OnlyLandingPad(*decode.Inst) bool { return false }
