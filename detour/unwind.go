package detour

import "xol/machine"

// Unwinder finds the registers that code of a buffer's own began with.
type Unwinder interface {
	// Unwind sets the general registers, the flags and the stack pointer to what
	// they were when code began to run, of which all has been executed. The code
	// is what saves or restores registers, counts, or stands for a single moved
	// instruction. What it has saved is looked for in m, and nothing has changed
	// where that is an error.
	Unwind(code []byte, r machine.Registers, m machine.Memory) error
}

// Stack follows what code does to the stack, an instruction at a time. It is for the
// ISAs' own use; offsets are in bytes.
type Stack struct {
	pointer int   // the register that tells where the frame is
	offset  int64 // of the pointer from the stack pointer at the start
	saved   []savedRegister
	held    map[int]savedRegister // in a general register, by that
}

type savedRegister struct {
	register int
	offset   int64  // from the stack pointer at the start
	bits     uint64 // that are saved
}

const allBits = 1<<64 - 1

// NewStack returns one at the start of code, where sp is the stack pointer.
func NewStack(sp int) *Stack { return &Stack{pointer: sp, held: map[int]savedRegister{}} }

// Move says that the stack pointer becomes higher.
func (s *Stack) Move(by int64) { s.offset += by }

// Offset returns how much higher the pointer is than the stack pointer at the start.
func (s *Stack) Offset() int64 { return s.offset }

// Follow says that another register is so much higher from now on, by which the frame
// is to be found.
func (s *Stack) Follow(register int, offset int64) { s.pointer, s.offset = register, offset }

// Hold says that a general register has got bits of another one.
func (s *Stack) Hold(general, register int, bits uint64) {
	s.held[general] = savedRegister{register: register, bits: bits}
}

// Save says that a general register is stored so much above the pointer. Only the
// first time counts: what it holds later is not its own.
func (s *Stack) Save(general int, at int64) {
	one, held := s.held[general]
	if !held {
		one = savedRegister{register: general, bits: allBits}
	}
	for i := range s.saved {
		if s.saved[i].register == one.register {
			return
		}
	}
	one.offset = s.offset + at
	s.saved = append(s.saved, one)
}

// Restore sets the registers to what they were at the start.
func (s *Stack) Restore(sp int, r machine.Registers, m machine.Memory) error {
	start := r.Reg(s.pointer) - uint64(s.offset)
	values := make([]uint64, len(s.saved))
	for i := range s.saved {
		v, err := m.ReadWord(start + uint64(s.saved[i].offset))
		if err != nil {
			return err
		}
		values[i] = v
	}
	for i := range s.saved {
		one := &s.saved[i]
		r.SetReg(one.register, values[i]&one.bits|r.Reg(one.register)&^one.bits)
	}
	r.SetReg(sp, start)
	return nil
}
