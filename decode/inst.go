// Package decode holds the instruction model that every later step reads:
// length, flow, the operand that depends on the instruction's own address and
// the place of its field. The decoders themselves live in arch/<isa>.
package decode

// Flow says where execution may go after an instruction.
type Flow uint8

// The kinds of flow. A conditional return, call or trap carries Conditional
// in its Props beside its kind.
const (
	FlowNone         Flow = iota // to the next instruction
	FlowJump                     // to Target
	FlowJumpIf                   // to Target or to the next instruction
	FlowCall                     // to Target, the return address is saved
	FlowReturn                   // to a saved address; also returns from exceptions
	FlowJumpIndirect             // to an address in a register or in memory
	FlowCallIndirect             // likewise, the return address is saved
	FlowSyscall                  // into a more privileged level, on purpose
	FlowTrap                     // an exception on purpose: breakpoint, trap, undefined
	FlowHalt                     // stops the CPU until an event
)

var flowNames = [...]string{
	"none", "jump", "jump-if", "call", "return", "jump-indirect",
	"call-indirect", "syscall", "trap", "halt",
}

// String returns the name that the command line's JSON uses.
func (f Flow) String() string {
	if int(f) < len(flowNames) {
		return flowNames[f]
	}
	return "invalid"
}

// PCRelKind says what an instruction does with an address that it computes
// from its own.
type PCRelKind uint8

// The kinds of PC-relative operands.
const (
	PCRelNone    PCRelKind = iota
	PCRelBranch            // execution may go on at the address
	PCRelMemory            // data at the address is read, written or prefetched
	PCRelAddress           // the address itself is the result
)

var pcrelNames = [...]string{"", "branch", "memory", "address"}

// String returns the name that the command line's JSON uses; empty for none.
func (k PCRelKind) String() string {
	if int(k) < len(pcrelNames) {
		return pcrelNames[k]
	}
	return "invalid"
}

// PCRel describes the field that holds a PC-relative operand. No instruction
// of the supported ISAs has more than one. The address it designates is
// Inst.Target.
type PCRel struct {
	Kind   PCRelKind
	Offset uint8 // bytes from the instruction's start to the field
	Width  uint8 // bits of the field; on fixed-width ISAs those of the whole instruction
}

// Props are properties that hold across ISAs.
type Props uint16

const (
	// HasTarget: Target holds the address of a direct branch or of a
	// PC-relative operand.
	HasTarget Props = 1 << iota
	// Conditional: the flow may also go to the next instruction. Set for
	// every FlowJumpIf, and for conditional returns, calls and traps.
	Conditional
	// Link: the address of the next instruction is saved as a return
	// address, whatever the flow.
	Link
	// LoadExclusive opens a reservation: ldxr, ldaxr, lwarx, ldarx …
	LoadExclusive
	// StoreExclusive ends one: stxr, stlxr, stwcx., stdcx. …
	StoreExclusive
	// LandingPad: an indirect branch may be required to land here:
	// endbr64, bti, paciasp.
	LandingPad
	// Privileged: faults outside kernel mode.
	Privileged
	// External: a relocation against a symbol that the file does not define
	// fills the field; Target is a stand-in. Set by the reader of the file.
	External
	// Invalid marks bytes that are no instruction. Decode never sets it:
	// Sweep does, to stand for the gap.
	Invalid
)

// Fields are the places of an instruction's parts, in bytes from its start,
// on ISAs of variable length. A length of 0 means that the part is absent;
// Operands is where its place is 0.
type Fields struct {
	Opcode   uint8 // the opcode byte (after prefixes, escapes and VEX-like prefixes)
	Operands uint8 // the byte that names registers or memory (ModRM on amd64)
	Disp     uint8
	DispLen  uint8
	Imm      uint8
	ImmLen   uint8
}

// MaxLen is the length in bytes of the longest instruction of any ISA.
const MaxLen = 15

// Inst is one decoded instruction: a plain value without pointers.
type Inst struct {
	Addr   uint64 // address of the first byte
	Target uint64 // meaningful where Props has HasTarget
	Detail uint64 // what only the ISA's own package reads
	Raw    [16]byte
	Op     uint16 // the ISA's own class of instruction
	Props  Props
	Flow   Flow
	Len    uint8 // bytes
	PCRel  PCRel
	Fields Fields
}

// Next returns the address after the instruction.
func (i *Inst) Next() uint64 { return i.Addr + uint64(i.Len) }

// Bytes returns the instruction's bytes in memory order. The slice aliases i.
func (i *Inst) Bytes() []byte { return i.Raw[:i.Len&15] }

// Has reports whether all of p hold.
func (i *Inst) Has(p Props) bool { return i.Props&p == p }

// BranchTarget returns the address of a direct branch, relative or absolute.
func (i *Inst) BranchTarget() (uint64, bool) {
	switch i.Flow {
	case FlowJump, FlowJumpIf, FlowCall:
		return i.Target, i.Has(HasTarget)
	}
	return 0, false
}

// SymLookup names an address: the symbol that holds it and the symbol's own
// address. The name is empty where none does.
type SymLookup func(addr uint64) (name string, base uint64)
