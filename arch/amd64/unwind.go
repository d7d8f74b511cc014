package amd64

import (
	"xol/decode"
	"xol/detour"
	"xol/machine"
)

// Unwind finds the registers that code began with; see detour.Unwinder.
func (a ISA) Unwind(code []byte, r machine.Registers, m machine.Memory) error {
	s := detour.NewStack(RSP)
	frame := int64(0)
	for len(code) > 0 {
		var inst decode.Inst
		if err := a.Decode(&inst, code, 0); err != nil {
			return err
		}
		code = code[inst.Len:]
		followStack(s, &inst, &frame)
	}
	return s.Restore(RSP, r, m)
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
