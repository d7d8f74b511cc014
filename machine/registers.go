// Package machine is what runs instructions: CPUs with their registers, a memory with
// permissions, and the events that end a run. Machine is the interface of a machine that
// programs run on, Engine that of what executes a few instructions from given states, with
// memory that appears where it is touched.
package machine

import "encoding/binary"

// Kind is the role of a register.
type Kind uint8

// The roles.
const (
	General Kind = iota
	StackPointer
	PC
	Flags   // conditions that instructions set and test
	Control // how instructions behave, or where thread data is
	Vector
	Float // an x87 register, 10 bytes
	Mask  // an AVX-512 opmask
)

// Register describes one register of a File.
type Register struct {
	Name   string
	Kind   Kind
	Size   int    // bytes
	Offset int    // of the value in a State, bytes
	Free   uint64 // Flags and Control: the bits that any program may set to anything
	Set    uint64 // Flags and Control: the bits that are always set
}

// File is the register file of an ISA. General registers come first, in the
// order of their numbers.
type File struct {
	Registers []Register
	Size      int // of a State, bytes
	PC        int // index of the program counter
	SP        int // index of the stack pointer
}

// NewFile lays registers out one after the other.
func NewFile(registers []Register) *File {
	f := &File{Registers: registers}
	for i := range registers {
		r := &registers[i]
		r.Offset = f.Size
		f.Size += (r.Size + 7) &^ 7
		switch r.Kind {
		case PC:
			f.PC = i
		case StackPointer:
			f.SP = i
		}
	}
	return f
}

// Index returns the index of the register of that name, -1 where none has it.
func (f *File) Index(name string) int {
	for i := range f.Registers {
		if f.Registers[i].Name == name {
			return i
		}
	}
	return -1
}

// State holds the values of a File's registers, each in little-endian order.
type State []byte

// NewState returns a State in which every register is 0.
func (f *File) NewState() State { return make(State, f.Size) }

// Bytes returns the value of the i-th register. The slice aliases s.
func (f *File) Bytes(s State, i int) []byte {
	r := &f.Registers[i]
	return s[r.Offset : r.Offset+r.Size]
}

// Word returns the low 64 bits of the i-th register.
func (f *File) Word(s State, i int) uint64 {
	return binary.LittleEndian.Uint64(s[f.Registers[i].Offset:])
}

// SetWord sets the low 64 bits of the i-th register.
func (f *File) SetWord(s State, i int, v uint64) {
	binary.LittleEndian.PutUint64(s[f.Registers[i].Offset:], v)
}
