package amd64

import (
	"encoding/binary"

	"xol/decode"
	"xol/relocate"
)

// emitter writes the moved forms.
type emitter struct{}

// Encode writes the code of p; see relocate.Relocator.
func (ISA) Encode(dst []byte, p *relocate.Plan, to uint64) (int, error) {
	return relocate.Encode(emitter{}, dst, p, to)
}

// Emit appends the form of s; see relocate.Emitter.
func (e emitter) Emit(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst := &s.Inst
	switch formOf(s) {
	case formBranch:
		return e.branch(code, s, l)
	case formCall:
		return e.jump(push(code, inst.Next()), s, inst.Target, l)
	case formCallReg:
		return e.callIndirect(code, s, l)
	case formSyscall:
		return movabs(append(code, inst.Bytes()...), RCX, inst.Next()), nil
	case formKept:
		return append(code, inst.Bytes()...), nil
	}
	if moved, ok := e.rebased(code, inst, l); ok {
		return moved, nil
	}
	if l.Plan.Options.Reach == relocate.Near || l.Plan.Options.Linux {
		return nil, outOfReach(code, s, inst.Target, l)
	}
	switch form := formOf(s); {
	case form == formAddress:
		return e.address(code, inst), nil
	case form == formThrough:
		return e.through(code, s, l), nil
	case scratchOf(s) == noRegister:
		return nil, outOfReach(code, s, inst.Target, l)
	case form == formPush:
		return e.push(code, inst), nil
	case form == formPop:
		return e.pop(code, inst, l), nil
	}
	return e.memory(code, s, l), nil
}

// Back appends the way back; see relocate.Emitter.
func (e emitter) Back(code []byte, next uint64, l *relocate.Layout) ([]byte, error) {
	if l.Plan.Options.Back == relocate.BackBreakpoint {
		return append(code, 0xcc), nil
	}
	last := &l.Plan.Steps[len(l.Plan.Steps)-1]
	return e.jump(code, last, next, l)
}

func outOfReach(code []byte, s *relocate.Step, target uint64, l *relocate.Layout) error {
	return &relocate.RangeError{Addr: s.Inst.Addr, Target: target, At: l.At(code)}
}

// displacementTo returns the displacement from the end of an instruction to
// target, and whether it fits 32 bits.
func displacementTo(target, end uint64) (uint32, bool) {
	d := int64(target - end)
	return uint32(d), d == int64(int32(d))
}

// near returns the displacement of a near branch whose end is size bytes
// behind code.
func near(code []byte, size int, target uint64, l *relocate.Layout) (uint32, bool) {
	disp, fits := displacementTo(l.Moved(target), l.At(code)+uint64(size))
	return disp, fits && (l.Plan.Options.Reach != relocate.Far || l.Plan.Inside(target))
}

// jump appends a jump to an original address.
func (e emitter) jump(code []byte, s *relocate.Step, target uint64, l *relocate.Layout) ([]byte, error) {
	if disp, ok := near(code, jumpNear, target, l); ok {
		return binary.LittleEndian.AppendUint32(append(code, 0xe9), disp), nil
	}
	if l.Plan.Options.Reach == relocate.Near || l.Plan.Options.Linux {
		return nil, outOfReach(code, s, target, l)
	}
	code = append(code, 0xff, 0x25, 0, 0, 0, 0) // jmp *0(%rip)
	return binary.LittleEndian.AppendUint64(code, l.Moved(target)), nil
}

// branch appends a direct branch other than a call.
func (e emitter) branch(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst := &s.Inst
	switch branchKindOf(inst) {
	case kindCond:
		return e.cond(code, s, l)
	case kindLoop:
		if DetailOf(inst).addressSizeBytes() > 0 {
			code = append(code, 0x67)
		}
		code = append(code, DetailOf(inst).Opcode(), 2)
		return e.over(code, s, l)
	case kindXbegin:
		if disp, ok := near(code, xbeginSize, inst.Target, l); ok {
			return binary.LittleEndian.AppendUint32(append(code, 0xc7, 0xf8), disp), nil
		}
		return e.over(append(code, 0xc7, 0xf8, 2, 0, 0, 0), s, l)
	}
	return e.jump(code, s, inst.Target, l)
}

// over appends a short jump over a jump to the target of s, which a branch in
// front of it goes to.
func (e emitter) over(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	code = append(code, 0xeb, 0)
	start := len(code)
	code, err := e.jump(code, s, s.Inst.Target, l)
	if err != nil {
		return nil, err
	}
	code[start-1] = byte(len(code) - start)
	return code, nil
}

// cond appends jcc, or jcc of the opposite condition over a jump.
func (e emitter) cond(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	condition := DetailOf(&s.Inst).Opcode() & 15
	if disp, ok := near(code, jccNear, s.Inst.Target, l); ok {
		return binary.LittleEndian.AppendUint32(append(code, 0x0f, 0x80|condition), disp), nil
	}
	code = append(code, 0x70|condition^1, 0)
	start := len(code)
	code, err := e.jump(code, s, s.Inst.Target, l)
	if err != nil {
		return nil, err
	}
	code[start-1] = byte(len(code) - start)
	return code, nil
}

// pushSize is the size of what push appends.
func pushSize(v uint64) int {
	if v == uint64(int64(int32(v))) {
		return 5
	}
	return pushMax
}

// push appends instructions that push v and change nothing else.
func push(code []byte, v uint64) []byte {
	code = binary.LittleEndian.AppendUint32(append(code, 0x68), uint32(v))
	if pushSize(v) == 5 {
		return code
	}
	code = append(code, 0xc7, 0x44, 0x24, 4) // movl $…,4(%rsp)
	return binary.LittleEndian.AppendUint32(code, uint32(v>>32))
}

// movabs appends the load of a general register with a constant.
func movabs(code []byte, reg byte, v uint64) []byte {
	code = append(code, 0x48|reg>>3, 0xb8|reg&7)
	return binary.LittleEndian.AppendUint64(code, v)
}

// rebased appends an instruction with a RIP-relative operand whose displacement
// is changed, if that reaches.
func (e emitter) rebased(code []byte, inst *decode.Inst, l *relocate.Layout) ([]byte, bool) {
	if inst.PCRel.Kind == decode.PCRelNone {
		return nil, false
	}
	end := l.At(code) + uint64(inst.Len)
	disp, fits := displacementTo(inst.Target, end)
	short := DetailOf(inst).Prefixes()&Prefix67 != 0 // the sum is cut to 32 bits
	if !short && (!fits || l.Plan.Options.Reach == relocate.Far) {
		return nil, false
	}
	at := len(code) + int(inst.PCRel.Offset)
	code = append(code, inst.Bytes()...)
	binary.LittleEndian.PutUint32(code[at:], disp)
	return code, true
}

// Sizes of the far forms of address, push and pop.
func constantSize(inst *decode.Inst) int {
	d := DetailOf(inst)
	prefix := 0
	switch {
	case d.Encoding() == EncREX2:
		prefix = 2
	case d.W() != 0 || d.R() != 0:
		prefix = 1
	}
	switch {
	case d.W() != 0:
		return prefix + 9
	case d.Prefixes()&Prefix66 != 0:
		return prefix + 4
	}
	return prefix + 5
}

// address appends the load of a register with the address that lea computes,
// cut to the operand's size.
func (e emitter) address(code []byte, inst *decode.Inst) []byte {
	d := DetailOf(inst)
	if d.W() == 0 && d.Prefixes()&Prefix66 != 0 {
		code = append(code, 0x66)
	}
	switch {
	case d.Encoding() == EncREX2:
		code = append(code, 0xd5, d.W()<<3|d.R()|d.R4()<<4)
	case d.W() != 0 || d.R() != 0:
		code = append(code, 0x40|d.W()<<3|d.R())
	}
	code = append(code, 0xb8|d.Reg())
	switch {
	case d.W() != 0:
		return binary.LittleEndian.AppendUint64(code, inst.Target)
	case d.Prefixes()&Prefix66 != 0:
		return binary.LittleEndian.AppendUint16(code, uint16(inst.Target))
	}
	return binary.LittleEndian.AppendUint32(code, uint32(inst.Target))
}

// leaRSP appends lea n(%rsp),reg with a long displacement.
func leaRSP(code []byte, reg byte, n int32) []byte {
	code = append(code, 0x48, 0x8d, 0x84|reg<<3, 0x24)
	return binary.LittleEndian.AppendUint32(code, uint32(n))
}

// redZoneOf is the number of bytes that moved code keeps below the stack
// pointer.
func redZoneOf(opt *relocate.Options) int32 {
	if keepsRedZone(opt) {
		return redZone
	}
	return 0
}

// below appends the step over the red zone.
func below(code []byte, opt *relocate.Options) []byte {
	if keepsRedZone(opt) {
		code = append(code, 0x48, 0x8d, 0x64, 0x24, 0x80) // lea -128(%rsp),%rsp
	}
	return code
}

// above appends the way back, and n bytes further.
func above(code []byte, opt *relocate.Options, n int32) []byte {
	if up := redZoneOf(opt) + n; up != 0 {
		code = leaRSP(code, RSP, up)
	}
	return code
}

// segment appends the prefix of an operand's segment, where that matters.
func segment(code []byte, inst *decode.Inst) []byte {
	switch p := DetailOf(inst).Prefixes(); {
	case p&PrefixFS != 0 && p&PrefixGS != 0:
		for _, b := range inst.Raw[:DetailOf(inst).PrefixCount()] {
			if b == 0x64 || b == 0x65 {
				code = append(code, b)
			}
		}
	case p&PrefixFS != 0:
		code = append(code, 0x64)
	case p&PrefixGS != 0:
		code = append(code, 0x65)
	}
	return code
}

const pushFarSize = 1 + movabsSize + 1 + 3 + 4

// push appends the push of an operand out of reach.
func (e emitter) push(code []byte, inst *decode.Inst) []byte {
	code = append(code, 0x56) // push %rsi
	code = movabs(code, RSI, inst.Target)
	code = append(segment(code, inst), 0x48, 0x8b, 0x36) // mov (%rsi),%rsi
	return append(code, 0x48, 0x87, 0x34, 0x24)          // xchg %rsi,(%rsp)
}

func popFarSize(opt *relocate.Options) int {
	return redZoneSize(opt) + 2 + movabsSize + 8 + 1 + 3 + 2 + redZoneUp
}

// pop appends the pop to an operand out of reach.
func (e emitter) pop(code []byte, inst *decode.Inst, l *relocate.Layout) []byte {
	const saved = 16
	opt := &l.Plan.Options
	code = append(below(code, opt), 0x56, 0x57) // push %rsi; push %rdi
	code = movabs(code, RSI, inst.Target)
	code = append(code, 0x48, 0x8b, 0xbc, 0x24) // mov n(%rsp),%rdi
	code = binary.LittleEndian.AppendUint32(code, uint32(redZoneOf(opt)+saved))
	code = append(segment(code, inst), 0x48, 0x89, 0x3e) // mov %rdi,(%rsi)
	code = append(code, 0x5f, 0x5e)                      // pop %rdi; pop %rsi
	return above(code, opt, 8)
}

// memory appends an instruction whose operand is out of reach, with its address
// in the scratch register.
func (e emitter) memory(code []byte, s *relocate.Step, l *relocate.Layout) []byte {
	opt, base := &l.Plan.Options, scratchOf(s)
	if DetailOf(&s.Inst).usesStackPointer() {
		return e.stackOperand(code, s, l)
	}
	saved := opt.Scratch == relocate.ScratchStack
	if saved {
		code = append(below(code, opt), 0x50|base)
	}
	code = movabs(code, base, s.Inst.Target)
	code = withBase(code, &s.Inst, base)
	if saved {
		code = above(append(code, 0x58|base), opt, 0)
	}
	return code
}

func stackOperandSize(inst *decode.Inst, opt *relocate.Options) int {
	return redZoneSize(opt) + 3 + redZoneUp + movabsSize + int(inst.Len) + 5 + 3
}

// stackOperand appends an instruction that names rsp: rdi stands for it, and a
// place on the stack takes the new value.
func (e emitter) stackOperand(code []byte, s *relocate.Step, l *relocate.Layout) []byte {
	const pushed = 24
	opt := &l.Plan.Options
	code = append(below(code, opt), 0x56, 0x56, 0x57) // push %rsi twice, %rdi
	code = leaRSP(code, RDI, redZoneOf(opt)+pushed)
	code = movabs(code, RSI, s.Inst.Target)
	start := len(code)
	code = withBase(code, &s.Inst, RSI)
	code[start+int(s.Inst.Fields.ModRM)] |= RDI << 3
	code = append(code, 0x48, 0x89, 0x7c, 0x24, 0x10) // mov %rdi,16(%rsp)
	return append(code, 0x5f, 0x5e, 0x5c)             // pop %rdi, %rsi, %rsp
}

// withBase appends inst with a base register and a displacement of 0 in place
// of its RIP-relative operand. The length stays.
func withBase(code []byte, inst *decode.Inst, base byte) []byte {
	start := len(code)
	code = append(code, inst.Bytes()...)
	moved := code[start:]
	modrm := int(inst.Fields.ModRM)
	moved[modrm] = 0x80 | moved[modrm]&0x38 | base&7
	binary.LittleEndian.PutUint32(moved[inst.Fields.Disp:], 0)
	setBaseBit(moved, inst, modrm, base>>3)
	return code
}

// setBaseBit sets the bit that extends the base register, and clears the one
// that extends it again, in whatever prefix holds them.
func setBaseBit(moved []byte, inst *decode.Inst, modrm int, bit byte) {
	switch d := DetailOf(inst); d.Encoding() {
	case EncVEX3, EncXOP:
		moved[modrm-3] = moved[modrm-3]&^0x20 | (bit^1)<<5
	case EncEVEX:
		moved[modrm-4] = moved[modrm-4]&^0x28 | (bit^1)<<5
	case EncREX2:
		moved[modrm-2] = moved[modrm-2]&^0x11 | bit
	case EncLegacy:
		if d.HasREX() {
			rex := modrm - 2 - escapes(d.Map())
			moved[rex] = moved[rex]&^1 | bit
		}
	}
}

// escapes is the number of bytes in front of the opcode that choose its map.
func escapes(m Map) int {
	switch m {
	case Map0F:
		return 1
	case Map0F38, Map0F3A:
		return 2
	case Map3DNow:
		return 1 // the second 0F stands where the opcode would
	}
	return 0
}

// callIndirect appends the push of the return address and a jump through the
// same operand.
func (e emitter) callIndirect(code []byte, s *relocate.Step, l *relocate.Layout) ([]byte, error) {
	inst := &s.Inst
	pushed := push(code, inst.Next())
	if inst.PCRel.Kind == decode.PCRelNone {
		return jumpThrough(pushed, inst), nil
	}
	start := len(pushed)
	if moved, ok := e.rebased(pushed, inst, l); ok {
		toJump(moved[start:], inst)
		return moved, nil
	}
	if l.Plan.Options.Reach == relocate.Near || scratchOf(s) == noRegister {
		return nil, outOfReach(code, s, inst.Target, l)
	}
	return e.through(code, s, l), nil
}

// toJump turns FF /2 into FF /4.
func toJump(code []byte, inst *decode.Inst) {
	m := inst.Fields.ModRM
	code[m] = code[m]&^0x38 | 4<<3
}

// jumpThrough appends a jump through the operand of an indirect call, after the
// return address has been pushed.
func jumpThrough(code []byte, inst *decode.Inst) []byte {
	start := len(code)
	if !DetailOf(inst).baseIsStackPointer(inst) {
		code = append(code, inst.Bytes()...)
		toJump(code[start:], inst)
		return code
	}
	m := int(inst.Fields.ModRM)
	code = append(code, inst.Raw[:m]...)
	return stackMemory(code, inst, 4, displacement(inst)+8)
}

// stackMemory appends ModRM, SIB and a long displacement of an operand whose
// base is rsp, with another register and displacement.
func stackMemory(code []byte, inst *decode.Inst, reg byte, disp int32) []byte {
	sib := inst.Raw[inst.Fields.ModRM+1]
	code = append(code, 0x84|reg<<3, sib)
	return binary.LittleEndian.AppendUint32(code, uint32(disp))
}

// Sizes of the parts of through.
const (
	throughLoad   = movabsSize + 1 + 3
	throughReturn = movabsSize + 8
	throughFrame  = 8 + 2 + 5 + 1 + 3
)

func throughSize(*relocate.Options) int { return throughFrame + throughLoad + throughReturn }

func throughCallSize(inst *decode.Inst, _ *relocate.Options) int {
	return throughFrame + throughReturn + int(inst.Len) + 9
}

// through appends an indirect jump or call whose target is loaded before
// anything is pushed, and reached by a return:
//
//	lea -down(%rsp),%rsp; push %rsi; push %rsi
//	load the target into %rsi; mov %rsi,8(%rsp)
//	call only: movabs $return,%rsi; mov %rsi,down+8(%rsp)
//	pop %rsi; ret $redzone
func (e emitter) through(code []byte, s *relocate.Step, l *relocate.Layout) []byte {
	inst, opt := &s.Inst, &l.Plan.Options
	call := inst.Flow == decode.FlowCallIndirect
	zone := redZoneOf(opt)
	down := zone
	if call {
		down += 8
	}
	if down != 0 {
		code = leaRSP(code, RSP, -down)
	}
	code = append(code, 0x56, 0x56)
	code = loadTarget(code, inst, down+16)
	code = append(code, 0x48, 0x89, 0x74, 0x24, 8)
	if call {
		code = movabs(code, RSI, inst.Next())
		code = append(code, 0x48, 0x89, 0xb4, 0x24)
		code = binary.LittleEndian.AppendUint32(code, uint32(down+8))
	}
	code = append(code, 0x5e)
	if zone == 0 {
		return append(code, 0xc3)
	}
	return append(code, 0xc2, byte(zone), byte(zone>>8))
}

// loadTarget appends the load of rsi with the target of an indirect transfer,
// the stack pointer being lower by moved bytes.
func loadTarget(code []byte, inst *decode.Inst, moved int32) []byte {
	d := DetailOf(inst)
	switch {
	case inst.PCRel.Kind != decode.PCRelNone:
		code = movabs(code, RSI, inst.Target)
		return append(segment(code, inst), 0x48, 0x8b, 0x36)
	case d.Mod() == 3: // call *%rsp
		return leaRSP(code, RSI, moved)
	}
	code = segment(code, inst)
	code = append(code, 0x48|d.X()<<1, 0x8b)
	return stackMemory(code, inst, RSI, displacement(inst)+moved)
}
