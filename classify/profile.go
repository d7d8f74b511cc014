package classify

import (
	"xol/decode"
	"xol/place"
)

// Names of the profiles.
const (
	ISA       = "isa"
	Linux612  = "linux-6.12"
	Uprobe612 = "uprobe-linux-6.12"
)

// Func is a function as a profile sees it: its extent, its instructions and
// what is known of its addresses.
type Func struct {
	Name  string        // symbol without offset
	Addr  uint64        // of its first byte
	Code  []byte        // its bytes, to its end as the profile counts it
	Insts []decode.Inst // Sweep of Code
	Marks place.Marks   // those that touch the function
}

// End returns the address behind the function.
func (f *Func) End() uint64 { return f.Addr + uint64(len(f.Code)) }

// Profile judges probes by one set of rules. A Profile is immutable and safe
// for concurrent use.
type Profile interface {
	// Name returns the profile's name.
	Name() string
	// Func appends one verdict for each of f.Insts, in order. It needs O(n).
	Func(dst []Verdict, f *Func) []Verdict
	// At judges any address of f, also inside an instruction or misaligned.
	At(f *Func, addr uint64) Verdict
	// Lone judges the instruction that code starts with, standing at addr, of
	// which nothing else is known. code may be invalid or cut off.
	Lone(code []byte, addr uint64) Verdict
}

// KernelOptions are the options of a kernel's build and boot that change what
// it answers.
type KernelOptions struct {
	// Preemption: CONFIG_PREEMPTION; the boost is not used.
	Preemption bool
	// Retpoline: CONFIG_MITIGATION_RETPOLINE or CONFIG_X86_KERNEL_IBT;
	// indirect jumps do not stop jump optimization.
	Retpoline bool
	// IBT: CONFIG_X86_KERNEL_IBT; a probe on the landing pad of a function is put
	// after it.
	IBT bool
	// CFI: CONFIG_CFI_CLANG.
	CFI bool
	// FtraceProbes: CONFIG_KPROBES_ON_FTRACE; a probe on an ftrace site
	// becomes ftrace-based. Not available on arm64.
	FtraceProbes bool
	// Module: the text is a module's, not the kernel's own.
	Module bool
	// OptinsnSlot is the address of the symbol optinsn_slot, where ppc64
	// kernels have their detour buffers; 0 where it is not known.
	OptinsnSlot uint64
	// IndirectThunks are the addresses of the retpolines, where they are known:
	// amd64 kernels before 6.12 take a jump there for an indirect one.
	IndirectThunks Range
	// ReturnThunk is the address in IndirectThunks that the file's returns jump
	// to; 0 where there is none. When it boots, the kernel puts returns in the
	// place of these jumps, on CPUs that need no such thunk.
	ReturnThunk uint64
}

// Range is a range of addresses: those from From on, but for To and what follows.
type Range struct{ From, To uint64 }

// Holds reports whether addr lies in the range.
func (r Range) Holds(addr uint64) bool { return addr >= r.From && addr < r.To }
