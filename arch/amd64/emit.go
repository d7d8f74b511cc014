package amd64

import (
	"encoding/binary"

	"xol/decode"
	"xol/relocate"
)

// Encode writes the code of p; see relocate.Relocator.
func (ISA) Encode(dst []byte, p *relocate.Plan, to uint64) (int, error) {
	return relocate.Encode(&mover, dst, p, to)
}

// Emit appends the form of s; see relocate.Forms.
func (movedForms) Emit(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	if moved, reaches := emit(code, s, l); reaches {
		return moved, nil
	}
	return nil, l.OutOfReach(code, s, s.Inst.Target)
}

// Leave appends a jump to the instruction; see relocate.Forms.
func (movedForms) Leave(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	disp := s.Inst.Addr - (l.At(code) + jumpNear)
	if !fitsSigned(disp) {
		return nil, l.OutOfReach(code, s, s.Inst.Addr)
	}
	return binary.LittleEndian.AppendUint32(append(code, 0xe9), uint32(disp)), nil
}

// Back appends the way back; see relocate.Forms.
func (movedForms) Back(code []byte, next uint64, l *relocate.Layout) ([]byte, error) {
	if moved, reaches := appendJumpTo(code, next, l.NearForms(), l); reaches {
		return moved, nil
	}
	return nil, l.OutOfReach(code, &l.Plan.Steps[0], next)
}

// emit appends the form of s, if that reaches what it refers to.
func emit(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, bool) {
	inst := &s.Inst
	switch formOf(s) {
	case formKept:
		return append(code, inst.Bytes()...), true
	case formBranch:
		return appendBranch(code, inst, l)
	case formCall:
		return appendJump(appendPush(code, inst.Next()), inst.Target, l)
	case formSyscall:
		return appendMovabs(append(code, inst.Bytes()...), RCX, inst.Next()), true
	}
	return emitOperand(code, s, l)
}

// emitOperand appends an instruction with an operand in memory, or an indirect
// call: re-based, where it is RIP-relative and that reaches, else its far form.
func emitOperand(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, bool) {
	if s.Inst.PCRel.Kind == decode.PCRelNone {
		return appendCallIndirect(code, s, &l.Plan.Options), true
	}
	if moved, ok := appendRebased(code, s, l); ok {
		return moved, true
	}
	if l.Plan.Options.Reach == relocate.Near || formOf(s) == formRebase {
		return nil, false
	}
	return appendFarOperand(code, s, &l.Plan.Options), true
}

// nearDisplacement returns the displacement to target of a near branch whose
// end is size bytes after code, and whether it fits.
func nearDisplacement(code []byte, size int, target uint64, l *relocate.Layout) (uint32, bool) {
	disp := int64(l.Moved(target) - (l.At(code) + uint64(size)))
	fits := disp == int64(int32(disp)) && (l.NearForms() || l.Plan.Inside(target))
	return uint32(disp), fits
}

// appendJump appends a jump to where the instruction at an original address is.
func appendJump(code []byte, target uint64, l *relocate.Layout) ([]byte, bool) {
	return appendJumpTo(code, l.Moved(target), l.NearForms() || l.Plan.Inside(target), l)
}

// appendJumpTo appends a jump to an address, the near form where that may be used.
func appendJumpTo(code []byte, to uint64, near bool, l *relocate.Layout) ([]byte, bool) {
	if disp := to - (l.At(code) + jumpNear); near && fitsSigned(disp) {
		return binary.LittleEndian.AppendUint32(append(code, 0xe9), uint32(disp)), true
	}
	if l.Plan.Options.Reach == relocate.Near {
		return nil, false
	}
	code = append(code, 0xff, 0x25, 0, 0, 0, 0) // jmp *0(%rip)
	return binary.LittleEndian.AppendUint64(code, to), true
}

// appendBranch appends a direct branch other than a call.
func appendBranch(code []byte, inst *decode.Inst, l *relocate.Layout) ([]byte, bool) {
	onlyNear := l.Plan.Options.Reach == relocate.Near
	switch OpOf(inst) {
	case OpJumpIf:
		condition := DetailOf(inst).Opcode() & 15
		if disp, ok := nearDisplacement(code, jccNear, inst.Target, l); ok || onlyNear {
			return binary.LittleEndian.AppendUint32(append(code, 0x0f, 0x80|condition), disp), ok
		}
		return appendOver(append(code, 0x70|condition^1), inst.Target, l)
	case OpLoop:
		// With its prefixes: on AMD's CPUs F2 and F3 choose between loopne and
		// loope, whatever the opcode says.
		code = append(code, inst.Bytes()...)
		code[len(code)-1] = jumpShort
		return appendOver(append(code, 0xeb), inst.Target, l)
	case OpXBegin:
		if disp, ok := nearDisplacement(code, xbeginSize, inst.Target, l); ok || onlyNear {
			return binary.LittleEndian.AppendUint32(append(code, 0xc7, 0xf8), disp), ok
		}
		return appendOver(append(code, 0xc7, 0xf8, jumpShort, 0, 0, 0, 0xeb), inst.Target, l)
	}
	return appendJump(code, inst.Target, l)
}

// appendOver completes a short branch, whose opcode code ends with, so that it
// goes over a jump to target.
func appendOver(code []byte, target uint64, l *relocate.Layout) ([]byte, bool) {
	code = append(code, 0)
	start := len(code)
	code, reaches := appendJump(code, target, l)
	if reaches {
		code[start-1] = byte(len(code) - start)
	}
	return code, reaches
}

// appendRebased appends an instruction with a RIP-relative operand whose
// displacement is changed, if that reaches. A call becomes a push and a jump.
func appendRebased(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, bool) {
	inst, opt := &s.Inst, &l.Plan.Options
	call := inst.Flow == decode.FlowCallIndirect && !opt.Linux
	if call {
		code = appendPush(code, inst.Next())
	}
	disp := int64(displacement(inst)) + int64(inst.Addr-l.At(code))
	reaches := disp == int64(int32(disp)) && opt.Reach != relocate.Far || alwaysReaches(inst) && !opt.Linux
	if !reaches {
		return nil, false
	}
	start := len(code)
	code = append(code, inst.Bytes()...)
	binary.LittleEndian.PutUint32(code[start+int(inst.Fields.Disp):], uint32(disp))
	if call {
		setGroup5(code[start:], inst, group5Jump)
	}
	return code, true
}

// setGroup5 turns a copy of inst, of opcode FF, into another one of its group.
func setGroup5(code []byte, inst *decode.Inst, reg byte) {
	m := inst.Fields.Operands
	code[m] = code[m]&^0x38 | reg<<3
}

// appendFarOperand appends the form of an instruction whose operand is out of
// reach.
func appendFarOperand(code []byte, s *relocate.Step, opt *relocate.Options) []byte {
	inst, zone := &s.Inst, redZoneOf(opt)
	switch formOf(s) {
	case formConstant:
		return appendConstant(code, inst)
	case formSavedBase:
		return appendSavedBase(code, inst, s.Scratch.Reg, zone)
	case formStackPointer:
		return appendStackPointerOperand(code, inst, zone)
	case formPush:
		code = appendPushOperand(code, inst, zone)
		return appendAdjustStack(code, zone)
	case formPop:
		return appendPopOperand(code, inst, zone)
	case formJumpThrough:
		code = appendLoadBelow(code, inst, wordSize, zone+wordSize, wordSize)
		return appendReturn(code, zone)
	case formCallOperand, formCallThrough:
		return appendCallIndirect(code, s, opt)
	}
	code = appendMovabs(code, s.Scratch.Reg, inst.Target)
	return appendWithBase(code, inst, s.Scratch.Reg)
}

const (
	movabsSize = 10
	wordSize   = 8 // of what is pushed
)

// appendMovabs appends the load of a general register with a constant.
func appendMovabs(code []byte, reg byte, v uint64) []byte {
	code = append(code, 0x48|reg>>3, 0xb8|reg&7)
	return binary.LittleEndian.AppendUint64(code, v)
}

// fitsSigned reports whether v is a sign-extended 32-bit number.
func fitsSigned(v uint64) bool { return v == uint64(int64(int32(v))) }

// pushSize is the size of what appendPush appends.
func pushSize(v uint64) int {
	if fitsSigned(v) {
		return 5
	}
	return 13
}

// appendPush appends instructions that push v and change nothing else.
func appendPush(code []byte, v uint64) []byte {
	code = binary.LittleEndian.AppendUint32(append(code, 0x68), uint32(v))
	if fitsSigned(v) {
		return code
	}
	code = append(code, 0xc7, 0x44, 0x24, 4) // movl $…,4(%rsp)
	return binary.LittleEndian.AppendUint32(code, uint32(v>>32))
}

// appendStoreStack appends the store of v at n(%rsp).
func appendStoreStack(code []byte, n int32, v uint64) []byte {
	if fitsSigned(v) {
		code = appendStackOperand(append(code, 0x48, 0xc7), 0, n)
		return binary.LittleEndian.AppendUint32(code, uint32(v))
	}
	code = appendStackOperand(append(code, 0xc7), 0, n)
	code = binary.LittleEndian.AppendUint32(code, uint32(v))
	code = appendStackOperand(append(code, 0xc7), 0, n+4)
	return binary.LittleEndian.AppendUint32(code, uint32(v>>32))
}

// appendStackOperand appends ModRM, SIB and displacement of the operand n(%rsp),
// with reg in ModRM.reg.
func appendStackOperand(code []byte, reg byte, n int32) []byte {
	const base = 0x24 // rsp without an index
	switch {
	case n == 0:
		return append(code, 0x04|reg<<3, base)
	case n == int32(int8(n)):
		return append(code, 0x44|reg<<3, base, byte(n))
	}
	return binary.LittleEndian.AppendUint32(append(code, 0x84|reg<<3, base), uint32(n))
}

// appendAdjustStack appends lea n(%rsp),%rsp, which leaves the flags alone.
func appendAdjustStack(code []byte, n int32) []byte {
	if n == 0 {
		return code
	}
	return appendStackOperand(append(code, 0x48, 0x8d), RSP, n)
}

// appendReturn appends a return to the address at the top of the stack, which
// takes n bytes after that off as well.
func appendReturn(code []byte, n int32) []byte {
	if n == 0 {
		return append(code, 0xc3)
	}
	return append(code, 0xc2, byte(n), byte(n>>8))
}

// redZoneOf is the number of bytes that moved code keeps below the stack
// pointer.
func redZoneOf(opt *relocate.Options) int32 {
	if opt.NoRedZone || opt.Kernel {
		return 0
	}
	return redZone
}

// appendConstant appends the load of a register with the address that lea
// computes, cut to the operand's size.
func appendConstant(code []byte, inst *decode.Inst) []byte {
	d := DetailOf(inst)
	if d.operandIs16() {
		code = append(code, 0x66)
	}
	switch {
	case d.Encoding() == EncREX2:
		code = append(code, 0xd5, d.R4()<<4|d.W()<<3|d.R())
	case d.W()|d.R() != 0:
		code = append(code, 0x40|d.W()<<3|d.R())
	}
	code = append(code, 0xb8|d.Reg())
	switch {
	case d.W() != 0:
		return binary.LittleEndian.AppendUint64(code, inst.Target)
	case d.operandIs16():
		return binary.LittleEndian.AppendUint16(code, uint16(inst.Target))
	}
	return binary.LittleEndian.AppendUint32(code, uint32(inst.Target))
}

// appendSavedBase appends an instruction with its operand's address in a
// register that the stack keeps meanwhile.
func appendSavedBase(code []byte, inst *decode.Inst, base byte, zone int32) []byte {
	code = append(appendAdjustStack(code, -zone), 0x50|base) // push
	code = appendMovabs(code, base, inst.Target)
	code = appendWithBase(code, inst, base)
	return appendAdjustStack(append(code, 0x58|base), zone) // pop
}

// appendStackPointerOperand is appendSavedBase for an instruction that names
// rsp: rdi stands for it, and a place on the stack takes the new value.
func appendStackPointerOperand(code []byte, inst *decode.Inst, zone int32) []byte {
	code = append(appendAdjustStack(code, -zone), 0x56, 0x56, 0x57) // push %rsi twice, %rdi
	code = appendStackOperand(append(code, 0x48, 0x8d), RDI, zone+3*wordSize)
	code = appendMovabs(code, RSI, inst.Target)
	start := len(code)
	code = appendWithBase(code, inst, RSI)
	code[start+int(inst.Fields.Operands)] |= RDI << 3
	code = appendStackOperand(append(code, 0x48, 0x89), RDI, 2*wordSize)
	return append(code, 0x5f, 0x5e, 0x5c) // pop %rdi, %rsi, %rsp
}

// appendSegment appends the prefixes of an operand's segment, where they
// matter.
func appendSegment(code []byte, inst *decode.Inst) []byte {
	if DetailOf(inst).Prefixes()&(PrefixFS|PrefixGS) == 0 {
		return code
	}
	end := inst.Fields.Opcode
	if DetailOf(inst).Encoding() == EncREX2 {
		end -= 2
	}
	for _, b := range inst.Raw[:end] {
		if b == 0x64 || b == 0x65 {
			code = append(code, b)
		}
	}
	return code
}

// appendMov appends a mov of 2 or 8 bytes between a register and an operand in
// memory, up to its opcode.
func appendMov(code []byte, size int32, opcode byte) []byte {
	if size == 2 {
		return append(code, 0x66, opcode)
	}
	return append(code, 0x48, opcode)
}

const (
	movLoad  = 0x8b
	movStore = 0x89
)

// appendLoadBelow lowers the stack pointer by down bytes, reads size bytes from
// an operand out of reach and stores them n bytes above the place that keeps rsi
// meanwhile.
func appendLoadBelow(code []byte, inst *decode.Inst, size, down, n int32) []byte {
	code = append(appendAdjustStack(code, -down), 0x56) // push %rsi
	code = appendMovabs(code, RSI, inst.Target)
	code = append(appendMov(appendSegment(code, inst), size, movLoad), 0x36) // (%rsi),%rsi
	code = appendStackOperand(appendMov(code, size, movStore), RSI, n)
	return append(code, 0x5e) // pop %rsi
}

// transferSize is the size in bytes of what push and pop move.
func transferSize(inst *decode.Inst) int32 {
	if DetailOf(inst).operandIs16() {
		return 2
	}
	return wordSize
}

// appendPushOperand appends the push of an operand out of reach, and leaves the
// stack pointer zone bytes too low.
func appendPushOperand(code []byte, inst *decode.Inst, zone int32) []byte {
	size := transferSize(inst)
	return appendLoadBelow(code, inst, size, zone+size, zone+wordSize)
}

// appendPopOperand appends the pop to an operand out of reach.
func appendPopOperand(code []byte, inst *decode.Inst, zone int32) []byte {
	size := transferSize(inst)
	code = append(appendAdjustStack(code, -zone), 0x56, 0x57) // push %rsi, %rdi
	code = appendMovabs(code, RSI, inst.Target)
	code = appendStackOperand(appendMov(code, size, movLoad), RDI, zone+2*wordSize)
	code = append(appendMov(appendSegment(code, inst), size, movStore), 0x3e) // %rdi,(%rsi)
	code = append(code, 0x5f, 0x5e)                                           // pop %rdi, %rsi
	return appendAdjustStack(code, zone+size)
}

// appendCallIndirect appends an indirect call whose operand is out of reach, or
// not RIP-relative.
func appendCallIndirect(code []byte, s *relocate.Step, opt *relocate.Options) []byte {
	if formOf(s) == formCallThrough {
		return appendCallThrough(code, &s.Inst, redZoneOf(opt))
	}
	code = appendPush(code, s.Inst.Next())
	jmp := s.Inst
	setGroup5(jmp.Raw[:], &jmp, group5Jump)
	switch {
	case jmp.PCRel.Kind != decode.PCRelNone:
		return appendWithBase(appendMovabs(code, s.Scratch.Reg, jmp.Target), &jmp, s.Scratch.Reg)
	case baseIsStackPointer(&jmp):
		return appendHigherBy8(code, &jmp)
	}
	return append(code, jmp.Bytes()...)
}

// appendHigherBy8 appends an instruction whose operand is based on rsp, for a
// stack pointer that is lower by what has been pushed.
func appendHigherBy8(code []byte, inst *decode.Inst) []byte {
	m := inst.Fields.Operands
	const longDisplacement = 0x80
	code = append(code, inst.Raw[:m]...)
	code = append(code, longDisplacement|inst.Raw[m]&0x3f, inst.Raw[m+1])
	return binary.LittleEndian.AppendUint32(code, uint32(displacement(inst)+wordSize))
}

// appendCallThrough appends an indirect call that reads its operand before it
// pushes anything else:
//
//	push operand            lower the stack pointer by the red zone
//	push zone(%rsp)         a copy of the target, to return to
//	mov $next,zone+8(%rsp)  the return address in its place
//	ret $zone
func appendCallThrough(code []byte, inst *decode.Inst, zone int32) []byte {
	if inst.PCRel.Kind != decode.PCRelNone {
		code = appendLoadBelow(code, inst, wordSize, zone+wordSize, zone+wordSize)
	} else {
		start := len(code)
		code = append(code, inst.Bytes()...)
		setGroup5(code[start:], inst, group5Push)
		code = appendAdjustStack(code, -zone)
	}
	code = appendStackOperand(append(code, 0xff), group5Push, zone)
	code = appendStoreStack(code, zone+wordSize, inst.Next())
	return appendReturn(code, zone)
}

// appendWithBase appends inst with a base register and a displacement of 0 in
// place of its RIP-relative operand. The length stays, unless the register needs
// a prefix that the instruction lacks.
func appendWithBase(code []byte, inst *decode.Inst, base byte) []byte {
	start, enc := len(code), DetailOf(inst).Encoding()
	if base < R8 || DetailOf(inst).hasBaseBit() {
		code = append(code, inst.Bytes()...)
	} else {
		code, enc = appendExtensible(code, inst)
	}
	moved := code[start:]
	m := int(inst.Fields.Operands) + len(moved) - int(inst.Len)
	moved[m] = 0x80 | moved[m]&0x38 | base&7
	binary.LittleEndian.PutUint32(moved[m+1:], 0)
	switch bit := base >> 3; enc {
	case EncVEX3, EncXOP:
		moved[m-3] = moved[m-3]&^0x20 | (bit^1)<<5
	case EncEVEX:
		moved[m-4] = moved[m-4]&^0x28 | (bit^1)<<5
	case EncREX2:
		moved[m-2] = moved[m-2]&^0x11 | bit
	case EncLegacy:
		if DetailOf(inst).HasREX() || bit != 0 {
			rex := m - opcodeLen(inst) - 1
			moved[rex] = moved[rex]&^1 | bit
		}
	}
	return code
}

// appendExtensible appends inst with a REX prefix, or a VEX prefix of three
// bytes in place of one of two. It returns the encoding.
func appendExtensible(code []byte, inst *decode.Inst) ([]byte, Encoding) {
	opcode := int(inst.Fields.Operands) - opcodeLen(inst)
	if DetailOf(inst).Encoding() == EncVEX2 {
		p := inst.Raw[opcode-1]
		code = append(code, inst.Raw[:opcode-2]...)
		code = append(code, 0xc4, p&0x80|0x61, p&0x7f) // map 1, W 0
		return append(code, inst.Raw[opcode:inst.Len]...), EncVEX3
	}
	code = append(code, inst.Raw[:opcode]...)
	code = append(code, 0x40)
	return append(code, inst.Raw[opcode:inst.Len]...), EncLegacy
}
