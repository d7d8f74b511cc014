// Package place says what is known about addresses of a program besides their
// bytes: which of them a kernel table, a section or a relocation speaks of.
// It carries facts from the file's reader to the rules.
package place

import (
	"cmp"
	"slices"
	"sort"
)

// Kind is a set of facts about a range of addresses.
type Kind uint32

const (
	// Blacklist: kprobes must not be put here (.kprobes.text, .noinstr.text,
	// _kprobe_blacklist, an architecture's own ranges).
	Blacklist Kind = 1 << iota
	// EntryText: x86 entry code.
	EntryText
	// InitText: freed when booting or loading is over.
	InitText
	// JumpLabel: a site of __jump_table.
	JumpLabel
	// StaticCall: a site of .static_call_sites.
	StaticCall
	// Bug: a BUG() or WARN() instruction, in __bug_table.
	Bug
	// Ftrace: an entry call or nop that ftrace patches.
	Ftrace
	// ExTable: an instruction whose fault __ex_table handles.
	ExTable
	// ExFixup: where such a fault continues.
	ExFixup
	// Alternative: the source range of an .altinstructions entry.
	Alternative
	// CFIPreamble: bytes of a __cfi_ or __pfx_ symbol.
	CFIPreamble
	// CFITrap: the trap instruction of a kCFI check.
	CFITrap
	// Data: bytes in text that are no instructions.
	Data
	// Reloc: bytes that a relocation fills.
	Reloc
	// ExternalReloc: likewise, against a symbol that the file does not define.
	ExternalReloc
	// OutsideText: executable, but not within the bounds of the kernel's text.
	OutsideText
	// JumpTarget: where a site of __jump_table jumps to when it is enabled.
	JumpTarget
	// BootKnown: text that was written while the kernel booted, on every
	// machine alike.
	BootKnown
	// BootOpen: text that the kernel replaces while it boots, on some machines.
	BootOpen
	// BootUnknown: likewise, by text that the file does not have.
	BootUnknown
	// ReturnThunk: an x86 jump to a return thunk, or a return in its place.
	ReturnThunk
	// BranchThunk: an x86 branch to a thunk that branches indirectly, or an
	// indirect branch in its place.
	BranchThunk
)

// Mark says that all of Kind hold for the Len bytes at Addr.
type Mark struct {
	Addr uint64
	Len  uint64 // bytes; at least 1
	Kind Kind
}

// End returns the address after the range.
func (m Mark) End() uint64 { return m.Addr + m.Len }

// Marks is a list sorted by Addr. The ranges may overlap.
type Marks []Mark

// Sort puts the list in order.
func (ms Marks) Sort() {
	byAddr := func(a, b Mark) int { return cmp.Compare(a.Addr, b.Addr) }
	if !slices.IsSortedFunc(ms, byAddr) {
		slices.SortStableFunc(ms, byAddr)
	}
}

// Starting returns the part of the list whose ranges start in [lo, hi).
func (ms Marks) Starting(lo, hi uint64) Marks {
	i := sort.Search(len(ms), func(i int) bool { return ms[i].Addr >= lo })
	j := i + sort.Search(len(ms)-i, func(k int) bool { return ms[i+k].Addr >= hi })
	return ms[i:j]
}

// At returns all that is known of the byte at addr.
func (ms Marks) At(addr uint64) Kind {
	var k Kind
	for _, m := range ms {
		if m.Addr > addr {
			break
		}
		if addr < m.End() {
			k |= m.Kind
		}
	}
	return k
}
