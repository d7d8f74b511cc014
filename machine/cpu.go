package machine

// Registers are those of a CPU, by their index in its File. The values are the
// low 64 bits.
type Registers interface {
	Reg(i int) uint64
	SetReg(i int, v uint64)
}

// WideRegisters are Registers that show all of what is 16 bytes wide.
type WideRegisters interface {
	Registers
	// Wide returns the low and the high half of register i, as they stand in a
	// State.
	Wide(i int) (low, high uint64)
	SetWide(i int, low, high uint64)
}

// Memory is what a program reads and writes. An error says that there is none
// at the address, or not for that.
type Memory interface {
	Read(dst []byte, addr uint64) error
	Write(addr uint64, src []byte) error
	// ReadWord and WriteWord do it for the 8 bytes of a number, in the program's
	// byte order.
	ReadWord(addr uint64) (uint64, error)
	WriteWord(addr, value uint64) error
}

// Convention is how C functions are called, for integers and pointers.
type Convention struct {
	Args   []int // registers of the first arguments
	Result int
	// Link is the register of the return address; negative where it is on the
	// stack, at the stack pointer when the function starts.
	Link int
	// Entry is the register that holds the called function's address;
	// negative where none does.
	Entry int
	// TOC and Env are the registers of what a function descriptor holds
	// besides the address; negative where there is none.
	TOC, Env int
	// RedZone is how many bytes below the stack pointer a function may use, and
	// Frame how many above it belong to the called function.
	RedZone, Frame uint64
	// Misalignment is what the stack pointer is off its alignment of 16 bytes when a
	// function starts.
	Misalignment uint64
}
