package amd64

import (
	"xol/decode"
	"xol/detour"
	"xol/machine"
)

// Unwind finds the registers that code began with; see detour.Unwinder. Of the flags
// that an insertion need not keep, the values are those of now.
func (a ISA) Unwind(code []byte, r machine.Registers, m machine.Memory) error {
	s := detour.NewStack(RSP)
	frame, packed := int64(0), packedFlags{}
	for len(code) > 0 {
		inst, ok := a.next(&code)
		if !ok {
			return decode.ErrInvalid
		}
		followStack(s, &inst, &frame)
		packed.follow(s, &inst)
	}
	flags, err := packed.flags(s, r, m)
	if err != nil {
		return err
	}
	if err := s.Restore(RSP, r, m); err != nil {
		return err
	}
	if packed.bits != 0 {
		r.SetReg(RFLAGS, flags)
	}
	return nil
}

// next takes the first instruction off code.
func (a ISA) next(code *[]byte) (inst decode.Inst, ok bool) {
	if a.Decode(&inst, *code, 0) != nil {
		return inst, false
	}
	*code = (*code)[inst.Len:]
	return inst, true
}

// packedFlags are flags that rax holds as lahf and seto leave them; or the stack, where
// they are left when they have been taken off.
type packedFlags struct {
	bits    uint64
	onStack bool
	offset  int64 // there, from the stack pointer at the start
}

const lahfFlags = FlagSF | FlagZF | FlagAF | FlagPF | FlagCF

// follow follows one instruction of an insertion, after followStack.
func (p *packedFlags) follow(s *detour.Stack, inst *decode.Inst) {
	switch d := DetailOf(inst); {
	case OpOf(inst) == OpPush && d.opcodeRegister() == RAX && p.bits != 0:
		p.onStack, p.offset = true, s.Offset()
	case d.Map() == MapOneByte && d.Opcode() == 0x9f: // lahf
		p.bits |= lahfFlags
	case d.Map() == Map0F && d.Opcode() == 0x90: // seto %al
		p.bits |= FlagOF
	case d.Map() == MapOneByte && d.Opcode() == 0x04: // add $127,%al
		p.bits &^= FlagOF
	case d.Map() == MapOneByte && d.Opcode() == 0x9e: // sahf
		p.bits = 0
	}
}

// flags returns the register of flags at the start.
func (p *packedFlags) flags(s *detour.Stack, r machine.Registers, m machine.Memory) (uint64, error) {
	packed := r.Reg(RAX)
	if p.onStack {
		var err error
		if packed, err = m.ReadWord(r.Reg(RSP) - uint64(s.Offset()-p.offset)); err != nil {
			return 0, err
		}
	}
	flags := packed >> 8 & lahfFlags
	if packed&1 != 0 {
		flags |= FlagOF
	}
	return flags&p.bits | r.Reg(RFLAGS)&^p.bits, nil
}

// followStack has s follow one instruction of what templates and moved forms are
// made of. frame is where rbx is, once it holds the frame.
func followStack(s *detour.Stack, inst *decode.Inst, frame *int64) {
	d := DetailOf(inst)
	onStack := inst.Fields.Operands != 0 && d.Mod() != 3 && baseIsStackPointer(inst)
	switch op, reg := OpOf(inst), int(d.R()<<3|d.Reg()); {
	case op == OpPush:
		s.Move(-wordSize)
		s.Save(int(d.B()<<3|d.Opcode()&7), 0)
	case op == OpPushFlags:
		s.Move(-wordSize)
		s.Hold(RFLAGS, RFLAGS, 1<<32-1)
		s.Save(RFLAGS, 0)
	case op == OpPushImmediate, op == OpPushMemory:
		s.Move(-wordSize)
	case op == OpPop, op == OpPopFlags:
		s.Move(wordSize)
	case op == OpLea && onStack && reg == RSP:
		s.Move(int64(displacement(inst)))
	case op == OpMoveStore && onStack:
		s.Save(reg, int64(displacement(inst)))
	case op == OpMoveStore && reg == RSP: // mov %rsp,%rbx or %rsi
		*frame = s.Offset()
	case d.Map() == MapOneByte && d.Opcode() == 0x83 && d.RM() == RSP: // and
		s.Follow(RBX, *frame)
	case op == OpMoveStore && d.RM() == RSP: // mov %rbx,%rsp
		s.Follow(RSP, *frame)
	}
}
