package isa

// When says on which machines a kernel replaces a piece of its text.
type When uint8

// On which machines.
const (
	WhenCPU    When = iota // on some, by their CPU, its firmware or boot options
	WhenAlways             // on all that are no guests of Xen without hardware virtualization (PV)
	WhenNever              // on no such machine
)

// Alternatives is how an ISA's kernels describe text that they replace, in
// .altinstructions.
type Alternatives struct {
	// Layouts are those that entries had in different versions, the newest
	// first. All start with where the original and its replacement stand, each
	// relative to itself, and a condition of 2 bytes.
	Layouts []AltLayout
	// Condition says what the condition and the flags of an entry mean, whose
	// replacement has length bytes.
	Condition func(layout *AltLayout, condition, flags uint16, length uint8) AltCondition
	// Nops is the name of the function that "computes" NOPs.
	Nops string
	// Calls are the indirect calls that a kernel makes direct ones.
	Calls *PointerCalls
}

// AltLayout is the layout of an entry.
type AltLayout struct {
	Size    int  // bytes of an entry
	Flags   int  // offset of 2 bytes of flags; 0 where there are none
	Lengths int  // offset of the original's length, and of the replacement's after it, a byte each
	Traps   bool // see image.Alternative
}

// AltCondition is what an entry says besides places and lengths.
type AltCondition struct {
	When     When
	Computed bool // the replacement is a function that computes it
	Call     bool // the original is a call through a pointer, which becomes a direct one
}

// PointerCalls are indirect calls through a pointer of a table, such as pv_ops.
type PointerCalls struct {
	// Through returns the address of the pointer that the call at the start of
	// code, 7 bytes, goes through, and the call's length.
	Through func(code []byte, addr uint64) (slot, size uint64, ok bool)
	// Direct returns a direct call.
	Direct func(addr, target uint64) []byte
	// Inlined are functions that are not called, but replaced by what they do.
	Inlined []InlinedFunction
	// Section lists the calls in kernels that have them apart: address, type
	// and length, 16 bytes an entry. Kernels before the version InTables, major
	// and minor, made some of them instructions that no table has.
	Section  string
	InTables [2]int
}

// InlinedFunction is a function's name and what it does.
type InlinedFunction struct{ Name, Code string }
