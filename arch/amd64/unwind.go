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
	if d.Map() != MapOneByte {
		return
	}
	onStack := inst.Fields.ModRM != 0 && d.Mod() != 3 && baseIsStackPointer(inst)
	switch op, reg := d.Opcode(), int(d.R()<<3|d.Reg()); {
	case op&^7 == 0x50: // push
		s.Move(-wordSize)
		s.Save(int(d.B()<<3|op&7), 0)
	case op == 0x9c: // pushf
		s.Move(-wordSize)
		s.Hold(RFLAGS, RFLAGS, 1<<32-1)
		s.Save(RFLAGS, 0)
	case op == 0x68, op == 0x6a, d.isGroup5(group5Push):
		s.Move(-wordSize)
	case op&^7 == 0x58, op == 0x9d: // pop, popf
		s.Move(wordSize)
	case op == 0x8d && onStack && reg == RSP: // lea
		s.Move(int64(displacement(inst)))
	case op == movStore && onStack:
		s.Save(reg, int64(displacement(inst)))
	case op == movStore && reg == RSP: // mov %rsp,%rbx or %rsi
		*frame = s.Offset()
	case op == 0x83 && d.RM() == RSP: // and
		s.Follow(RBX, *frame)
	case op == movStore && d.RM() == RSP: // mov %rbx,%rsp
		s.Follow(RSP, *frame)
	}
}
