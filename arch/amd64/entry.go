package amd64

import (
	"bytes"
	"encoding/binary"

	"xol/decode"
	"xol/detour"
	"xol/machine"
	"xol/patch"
	"xol/relocate"
)

const insnCall = 0xe8

// entryTexts are those that PlanEntry's plans put in the place of each other.
type entryTexts struct{ ISA }

// JumpTo returns the call of the stub.
func (t entryTexts) JumpTo(at, stub uint64) ([]byte, error) {
	disp := stub - (at + callNear)
	if !fitsSigned(disp) {
		return nil, &relocate.RangeError{Addr: at, Target: stub, At: at}
	}
	return binary.LittleEndian.AppendUint32([]byte{insnCall}, uint32(disp)), nil
}

// EntryNop returns the NOP of 5 bytes.
func (ISA) EntryNop() []byte { return []byte{0x0f, 0x1f, 0x44, 0x00, 0x00} }

// EntryLead returns 0: the call leaves the return address where it is.
func (ISA) EntryLead() int { return 0 }

// EntryText takes a call of 5 bytes, as -mfentry leaves it, a NOP of 5 bytes, and
// 5 NOPs of -fpatchable-function-entry=5. One NOP takes their place: no CPU is
// ever in the midst of it.
func (a ISA) EntryText(text []byte) (ready []byte, ok bool) {
	ready = a.EntryNop()
	if len(text) < len(ready) {
		return nil, false
	}
	text = text[:len(ready)]
	ok = text[0] == insnCall || bytes.Equal(text, ready) || bytes.Equal(text, []byte{nop, nop, nop, nop, nop})
	return ready, ok
}

// PlanEntry puts a breakpoint on the site while its other bytes change, as Linux
// does [arch/x86/kernel/alternative.c, text_poke_bp_batch].
func (a ISA) PlanEntry(op patch.Operation, s *patch.Site) (*patch.Plan, error) {
	order := [2]patch.Operation{patch.Arm, patch.Optimize}
	switch op {
	case patch.Disarm:
		order = [2]patch.Operation{patch.Unoptimize, patch.Disarm}
	case patch.Arm:
	default:
		return nil, patch.ErrOperation
	}
	first, err := patch.Bytewise(entryTexts{a}, order[0], s)
	if err != nil {
		return nil, err
	}
	second, err := patch.Bytewise(entryTexts{a}, order[1], s)
	if err != nil {
		return nil, err
	}
	p := patch.Follow(first, second)
	p.Operation = op
	return p, nil
}

// Offset of the instruction pointer in struct pt_regs, in bytes.
const ptRegsIP = 16 * wordSize

// EntryStub returns the stub; see detour.EntryBuilder. The site's return address
// stands after the frame: the address to go on at takes its place.
func (a ISA) EntryStub(at, callback uint64, kernel bool) []byte {
	p, t := detour.EntryPlan(callback, kernel), template{a}
	code := t.Save(nil, p)
	code = appendFrameOperand(append(code, 0x48, 0x8b), RDI, ptRegsSize)        // mov after(%rbx),%rdi
	code = append(code, 0x48, 0x83, 0xef, callNear)                             // sub $5,%rdi
	code = appendFrameOperand(append(code, 0x48, movStore), RDI, ptRegsIP)      // mov %rdi,ip(%rbx)
	code = append(appendFrameOperand(append(code, 0x48, 0x83), 0, ptRegsSP), 8) // addq $8,sp(%rbx)
	code = t.Call(code, p, at+uint64(len(code)))
	code = appendFrameOperand(append(code, 0x48, 0x8b), RAX, ptRegsIP)       // mov ip(%rbx),%rax
	code = appendFrameOperand(append(code, 0x48, movStore), RAX, ptRegsSize) // mov %rax,after(%rbx)
	return append(t.Restore(code, p), a.ReturnInst()...)
}

// LeaveEntry takes the return address from the stack; see detour.EntryBuilder.
func (ISA) LeaveEntry(r machine.Registers, m machine.Memory) (next uint64, err error) {
	sp := r.Reg(RSP)
	if next, err = m.ReadWord(sp); err == nil {
		r.SetReg(RSP, sp+wordSize)
	}
	return next, err
}

// appendFrameOperand appends the operand n(%rbx): rbx holds the frame.
func appendFrameOperand(code []byte, reg byte, n uint32) []byte {
	return binary.LittleEndian.AppendUint32(append(code, 0x80|reg<<3|RBX), n)
}

// OnlyLandingPad reports whether inst does nothing but to be where indirect
// branches may land: endbr64.
func (ISA) OnlyLandingPad(inst *decode.Inst) bool { return inst.Has(decode.LandingPad) }
