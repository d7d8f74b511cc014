// Package registration says what the interfaces by which Linux takes kprobes refuse
// before the instruction is looked at: by the name, the offset, the function, and
// whether its return is wanted. What the instruction has to say is a profile's
// matter (package classify).
//
// The rules are read in the sources of Debian's 5.10.218, 6.1.176, 6.12.107 and
// 7.3.4 [kernel/kprobes.c, kernel/trace/trace_kprobe.c, kernel/trace/bpf_trace.c,
// kernel/trace/ftrace.c, kernel/trace/fprobe.c].
package registration

import (
	"slices"

	"xol/classify"
)

// Via is an interface of Linux that takes kprobes.
type Via uint8

// The interfaces.
const (
	Register     Via = iota // register_kprobe, register_kretprobe: a module's own call
	KprobeEvents            // the file kprobe_events of tracefs
	Perf                    // perf_event_open with the PMU kprobe; a single probe of BPF
	BPF                     // a multi-kprobe link of BPF, made of ftrace sites
)

var viaNames = [...]string{Register: "register", KprobeEvents: "kprobe_events", Perf: "perf", BPF: "bpf"}

func (v Via) String() string { return viaNames[v] }

// Names returns the names of all interfaces.
func Names() []string { return slices.Clone(viaNames[:]) }

// Parse returns the interface of that name.
func Parse(name string) (v Via, ok bool) {
	i := slices.Index(viaNames[:], name)
	return Via(max(i, 0)), i >= 0
}

// Kernel is what the rules have to know of a kernel.
type Kernel struct {
	Version classify.Version
	// OnNotrace: CONFIG_KPROBE_EVENTS_ON_NOTRACE; functions without an ftrace site
	// may be traced.
	OnNotrace bool
	// DynamicFtrace: CONFIG_DYNAMIC_FTRACE; it is known which functions have one.
	DynamicFtrace bool
	// Fprobe: CONFIG_FPROBE; there are multi-kprobes.
	Fprobe bool
	// NoReturn are functions whose return the architecture cannot follow
	// [kretprobe_blacklist].
	NoReturn []string
}

// Probe is a probe that somebody wants, with what the kernel's symbols tell of it.
type Probe struct {
	Symbol string // as it was asked for, without offset; empty for an address
	Module string // that the symbol was asked for in; empty for none
	Offset uint64 // from Symbol, in bytes
	Return bool

	// Count is how many symbols have the name of Symbol: in Module, or in the kernel
	// and its modules. Without Symbol it has no meaning.
	Count int
	// InKernel is how many of them are the kernel's own.
	InKernel int
	// ModuleLoaded says that there is a module of the name Module.
	ModuleLoaded bool
	// Function is the name of the function that holds the address.
	Function string
	// OnEntry says that the kernel takes the address for the function's entry.
	OnEntry bool
	// AtStart says that it is the function's first byte or its ftrace site.
	AtStart bool
	// Traceable says that the function has an ftrace site, or the function of that
	// name without the compiler's suffix.
	Traceable bool
}

// rule is one reason to refuse a probe, on some interfaces of some versions.
type rule struct {
	classify.Rule
	via      []Via
	versions classify.Span
	applies  func(k *Kernel, p *Probe) bool
}

// Refuse returns the first rule by which the kernel refuses the probe, nil where the
// instruction decides.
func (k *Kernel) Refuse(via Via, p *Probe) *classify.Rule {
	for i := range rules {
		r := &rules[i]
		if slices.Contains(r.via, via) && r.versions.Holds(k.Version) && r.applies(k, p) {
			return &r.Rule
		}
	}
	return nil
}

// returnInside is what becomes of a return probe that is put on a program elsewhere
// than at the entry of a function: the kernel asks no symbols
// [kernel/events/uprobes.c, prepare_uretprobe].
var returnInside = classify.Hazard{
	ID: "linux/uretprobe-not-at-entry",
	Text: "the kernel replaces what it takes for the return address: on x86-64 the word at the top of the stack, elsewhere the link register, " +
		"which holds that only at the entry of a function",
}

// UprobeHazard returns what goes wrong with a uprobe that the kernel accepts: with a
// return probe that is not at the entry of a function. It is nil for all others.
func UprobeHazard(returns, onEntry bool) *classify.Hazard {
	if returns && !onEntry {
		return &returnInside
	}
	return nil
}
