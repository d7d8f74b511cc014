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

// End returns the address after the function.
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
	// Symbol returns the address of a symbol of the kernel, which an ISA's rules
	// may want to know: where detour buffers or thunks are. Where it is nil no
	// symbol is known.
	Symbol func(name string) (addr uint64, ok bool)
}

// SymbolAddress returns what Symbol does; 0 for a symbol that is not known.
func (o *KernelOptions) SymbolAddress(name string) uint64 {
	if o.Symbol == nil {
		return 0
	}
	addr, _ := o.Symbol(name)
	return addr
}
