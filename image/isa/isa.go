// Package isa holds what a reader of ELF files has to know of an instruction
// set: a Record for each, in a file of its own. Nothing else in package image
// knows one ISA from another.
package isa

import (
	"debug/elf"
	"slices"

	"xol/place"
)

// Record is what the reader of files knows of one ISA. Where a field is zero
// the ISA has no such thing. Records are immutable.
type Record struct {
	Name    string // as people write it
	Machine elf.Machine

	// MinInsn is the length of the shortest instruction, in bytes.
	MinInsn uint64
	// ByteFields says that the fields of instructions are whole bytes, so that
	// a relocation does not tell whether it fills one of them or data.
	ByteFields bool
	// Padding returns how many bytes at the start of code only fill up the
	// room between functions. big says that the file is big-endian.
	Padding func(code []byte, big bool) uint64
	// EndsFlow reports whether 8 bytes of code seem to end in padding, or in
	// an instruction after which execution does not go on. Calls of what does
	// not return are not told from others.
	EndsFlow func(code []byte, big bool) bool

	// Relocations are the types of relocations that are known.
	Relocations map[uint32]Howto
	Loader      Loader
	// EntryTags are the entries of the dynamic section that are addresses of
	// code, besides those that all ISAs have.
	EntryTags []elf.DynTag
	// Stubs finds the stubs in a section of them, .plt or .plt.sec, which
	// stands at addr and has entries of size bytes, as far as it says so; it
	// calls found with the address of each and that of the word which holds
	// where it leads.
	Stubs func(code []byte, addr, size uint64, found func(addr, slot uint64))

	// ABI returns the version of the ABI that a file follows by the flags in its
	// header, its byte order, and whether it has function descriptors. In
	// version 1 functions have these, in 2 local entry points.
	ABI func(flags uint32, big, descriptors bool) int
	// LocalEntry returns how many bytes after a function's start its local
	// entry point is, by the st_other of its symbol.
	LocalEntry func(other byte) uint64
	// TOC says where the table of contents is.
	TOC *TOC

	Kernel Kernel
}

// Loader has the types of the relocations that the loader applies to whole
// words, besides those that put a symbol's address there in any file.
type Loader struct {
	Relative uint32    // adds to an address how far the file was moved
	Slots    [2]uint32 // of the global offset table: the address of a symbol
	Resolved [2]uint32 // what the function at an address returns
}

// TOC is a table that a register points into, Bias bytes after its start, so
// that signed displacements reach all of it.
type TOC struct {
	Symbol string // that stands for the pointer
	Bias   uint64
	Align  uint64   // of the start, before linking
	Linked []string // the sections that may hold it, the first that there is counts
	Object []string // likewise, before linking
}

// Kernel is what is known of Linux kernels for an ISA.
type Kernel struct {
	// Symbols are names that only the kernels for this ISA have.
	Symbols []string
	// Areas are the ranges of text that probes must not be put into
	// [arch_populate_kprobe_blacklist, arch_within_kprobe_blacklist].
	Areas []Area
	// ExEntries are the sizes that an entry of __ex_table has had, in bytes. The
	// first with which the first two words of every entry are addresses of text,
	// and no further word stands for one, is that of a file.
	ExEntries []int
	// CallSize and TrapSize are the bytes of the call or NOP of static calls
	// and ftrace, and of the trap of BUG and CFI.
	CallSize, TrapSize uint64
	// JumpLabelSize returns the length of the jump or NOP at a jump label by
	// its first two bytes.
	JumpLabelSize func(first, second byte) uint64
	// FtraceAdjust returns how far after an address in __mcount_loc the
	// instruction is that ftrace patches [arch/*/kernel/**/ftrace.c,
	// ftrace_call_adjust].
	FtraceAdjust func(t Text, addr uint64) uint64
	// FtraceSite returns how far after the start of a function, by its code in a
	// kernel that runs, the instruction is that ftrace patches.
	FtraceSite func(code []byte, big bool) (off uint64, ok bool)
	// FtraceWrites calls found with what the kernel writes around an address in
	// __mcount_loc before anything is traced, but for what takes the site's own place
	// [arch/*/kernel/**/ftrace.c, ftrace_init_nop]. adjust is what FtraceAdjust returned.
	FtraceWrites func(t Text, addr, adjust uint64, found func(Written))

	Alternatives Alternatives
	// Thunks are the tables of branches to thunks.
	Thunks []ThunkTable
	// Fixups are the sites of which only the kernel knows what it writes there.
	Fixups *Fixups

	// Image is the kernel's bare memory image.
	Image *Image
	// Wrapper is an ELF file that holds the kernel in a section.
	Wrapper *Wrapper
}

// Written is text that a kernel writes while it boots.
type Written struct {
	Addr, Size uint64
	Code       []byte // nil where the file does not tell what
}

// Area is a range of a kernel's text between two symbols.
type Area struct {
	Start, Stop string
	Kind        place.Kind
	// Whole: the blacklist takes the functions that start in the range, each
	// to its end [kernel/kprobes.c, kprobe_add_area_blacklist]; otherwise the
	// range itself.
	Whole bool
	// Before is the version from which on it is no such area any more, major and
	// minor; the zero value is none.
	Before [2]int
}

// Text answers questions about a kernel's text.
type Text interface {
	// Words reads words of 4 bytes at addr, in the file's byte order, and
	// returns how many of them are in text.
	Words(dst []uint32, addr uint64) int
	// StartsSymbol reports whether a symbol names addr.
	StartsSymbol(addr uint64) bool
	// HasSymbol reports whether there is a symbol of that name.
	HasSymbol(name string) bool
}

// ThunkTable is a section that lists branches, each relative to itself.
type ThunkTable struct {
	Section string
	Kind    place.Kind
}

// Fixups are tables of NOPs, each relative to the entry, and symbols of single
// instructions, relative to the symbol.
type Fixups struct {
	Tables       []string // sections
	SymbolPrefix string
	Nop          uint32 // which the kernel may replace after a site
}

// Image is how the bare memory image of a kernel starts
// [Documentation/arch/arm64/booting.rst, arch/riscv/boot-image-header.rst].
type Image struct {
	Name    string // of the format
	Magic   string
	MagicAt int // offset
}

// Wrapper is a boot wrapper: an ELF file for one of Machines, of 32 or 64
// bits, with the kernel in a section of its own.
type Wrapper struct {
	Name     string // of the format
	Machines []elf.Machine
	Section  string
}

// Set is a list of records, of which the first for a machine counts.
type Set []*Record

// Known returns the records of all ISAs that xol knows.
func Known() Set { return Set{&amd64, &arm64, &ppc64} }

// Find returns the record for a machine. Of one that is not known it has the
// machine's name only.
func (s Set) Find(m elf.Machine) *Record {
	i := slices.IndexFunc(s, func(r *Record) bool { return r.Machine == m })
	if i < 0 {
		return &Record{Name: m.String(), Machine: m}
	}
	return s[i]
}
