package registration

import (
	"math"
	"slices"

	"xol/classify"
)

var (
	linux5_18 = classify.Linux(5, 18)
	linux6_1  = classify.Linux(6, 1)
	linux6_12 = classify.Linux(6, 12)
	linux7_3  = classify.Linux(7, 3)
)

func since(v classify.Version) classify.Span { return classify.Span{Since: v} }
func until(v classify.Version) classify.Span { return classify.Span{Until: v} }

// The reasons and remedies of rules with more than one row.
const (
	returnReason  = "a return probe stands at the entry of a function, and this is not the entry"
	returnRemedy  = "name the function without an offset"
	unknownReason = "the kernel has no symbol of that name"
	unknownRemedy = "a function that is inlined everywhere has none; name one that calls it"
	severalReason = "several functions have this name, and the kernel does not choose"
	severalRemedy = "give the address of the one that is meant, or an offset from a symbol near it that is the only one of its name"
	notraceReason = "the function has no ftrace site, and tracing takes only functions that have one (CONFIG_KPROBE_EVENTS_ON_NOTRACE is off)"
	notraceRemedy = "probe a function that calls it or that it calls, or register the probe from a module"
	multiReason   = "multi-kprobes are made of ftrace sites, and this function has none"
	multiRemedy   = "attach a single kprobe (through perf)"
)

// tracing are the interfaces that go through the kernel's tracing.
var tracing = []Via{KprobeEvents, Perf}

// rules are in the order in which the kernel asks. Where the kernels between two that
// were read were not, a change is put at the later one.
var rules = []rule{
	{
		classify.Rule{ID: "tracing/offset-too-large", Errno: classify.EINVAL,
			Reason: "an offset is at most 4294967295 (BAD_PROBE_ADDR)", Remedy: "name the function that holds the address"},
		[]Via{KprobeEvents}, classify.Span{},
		func(_ *Kernel, p *Probe) bool { return p.Offset > math.MaxUint32 },
	},
	{
		classify.Rule{ID: "tracing/return-not-at-entry", Errno: classify.EINVAL, Reason: returnReason, Remedy: returnRemedy},
		[]Via{KprobeEvents}, until(linux6_12), func(_ *Kernel, p *Probe) bool { return named(p) && p.Count > 0 && inside(p) },
	},

	// The symbol. With 6.12 kprobe_events makes one error of them all
	// [trace_kprobe_create_internal, parse_error].
	{
		classify.Rule{ID: "tracing/unknown-symbol", Errno: classify.EINVAL, Reason: unknownReason + " (BAD_PROBE_ADDR)", Remedy: unknownRemedy},
		[]Via{KprobeEvents}, since(linux6_12), unknown,
	},
	{
		classify.Rule{ID: "tracing/symbol-not-unique", Errno: classify.EINVAL, Reason: severalReason + " (NON_UNIQ_SYMBOL)", Remedy: severalRemedy},
		[]Via{KprobeEvents}, since(linux6_12), several,
	},
	{
		classify.Rule{ID: "tracing/unknown-symbol", Errno: classify.ENOENT, Reason: unknownReason, Remedy: unknownRemedy},
		[]Via{KprobeEvents}, until(linux6_12), unknown,
	},
	{
		classify.Rule{ID: "tracing/unknown-symbol", Errno: classify.ENOENT, Reason: unknownReason, Remedy: unknownRemedy},
		[]Via{Perf}, classify.Span{}, missing,
	},
	{
		classify.Rule{ID: "tracing/symbol-not-unique", Errno: classify.EADDRNOTAVAIL, Reason: severalReason, Remedy: severalRemedy},
		[]Via{Perf}, since(linux6_1), several,
	},
	{
		classify.Rule{ID: "tracing/symbol-not-unique", Errno: classify.EADDRNOTAVAIL, Reason: severalReason, Remedy: severalRemedy},
		[]Via{KprobeEvents}, classify.Span{Since: linux6_1, Until: linux6_12}, several,
	},
	{
		classify.Rule{ID: "tracing/return-not-at-entry", Errno: classify.EINVAL, Reason: returnReason + " (BAD_RETPROBE)", Remedy: returnRemedy},
		[]Via{KprobeEvents}, since(linux6_12), func(_ *Kernel, p *Probe) bool { return named(p) && p.Count > 0 && inside(p) },
	},

	// The function.
	{
		classify.Rule{ID: "tracing/notrace", Errno: classify.EINVAL, Reason: notraceReason, Remedy: notraceRemedy},
		tracing, classify.Span{},
		func(k *Kernel, p *Probe) bool {
			return k.DynamicFtrace && !k.OnNotrace && p.Function != "" && !p.Traceable
		},
	},

	// Multi-kprobes.
	{
		classify.Rule{ID: "bpf/no-multi-kprobes", Errno: classify.EINVAL,
			Reason: "this kernel has no multi-kprobes: they came with 5.18", Remedy: multiRemedy},
		[]Via{BPF}, until(linux5_18), func(*Kernel, *Probe) bool { return true },
	},
	{
		classify.Rule{ID: "bpf/no-fprobe", Errno: classify.EOPNOTSUPP,
			Reason: "this kernel was built without multi-kprobes (CONFIG_FPROBE is off)", Remedy: multiRemedy},
		[]Via{BPF}, since(linux5_18), func(k *Kernel, _ *Probe) bool { return !k.Fprobe },
	},
	{
		classify.Rule{ID: "bpf/unknown-symbol", Errno: classify.ESRCH, Reason: unknownReason, Remedy: unknownRemedy},
		[]Via{BPF}, since(linux5_18), missing,
	},
	{
		classify.Rule{ID: "bpf/not-at-entry", Errno: classify.EINVAL,
			Reason: "a multi-kprobe stands at the entry of a function, and this is not the entry", Remedy: multiRemedy},
		[]Via{BPF}, since(linux5_18), func(_ *Kernel, p *Probe) bool { return !p.AtStart },
	},
	{
		classify.Rule{ID: "bpf/no-ftrace-site", Errno: classify.ESRCH, Reason: multiReason, Remedy: multiRemedy},
		[]Via{BPF}, since(linux5_18), func(_ *Kernel, p *Probe) bool { return named(p) && !p.Traceable },
	},
	{
		classify.Rule{ID: "bpf/no-ftrace-site", Errno: classify.EINVAL, Reason: multiReason, Remedy: multiRemedy},
		[]Via{BPF}, since(linux5_18), func(_ *Kernel, p *Probe) bool { return !named(p) && !p.Traceable },
	},

	// register_kprobe and register_kretprobe themselves.
	{
		classify.Rule{ID: "linux/unknown-symbol", Errno: classify.ENOENT, Reason: unknownReason, Remedy: unknownRemedy},
		[]Via{Register}, classify.Span{}, missing,
	},
	{
		classify.Rule{ID: "linux/return-not-at-entry", Errno: classify.EINVAL, Reason: returnReason, Remedy: returnRemedy},
		[]Via{Register, KprobeEvents, Perf}, classify.Span{}, func(_ *Kernel, p *Probe) bool { return inside(p) },
	},
	{
		classify.Rule{ID: "linux/no-return-probe", Errno: classify.EINVAL,
			Reason: "the kernel refuses return probes here: the function returns on another task's stack", Remedy: "probe its entry, or a caller's return"},
		[]Via{Register, KprobeEvents, Perf}, classify.Span{},
		func(k *Kernel, p *Probe) bool { return p.Return && slices.Contains(k.NoReturn, p.Function) },
	},
}

func named(p *Probe) bool { return p.Symbol != "" }

// inside reports whether a return probe is wanted elsewhere than at an entry.
func inside(p *Probe) bool { return p.Return && !p.OnEntry }

func missing(_ *Kernel, p *Probe) bool { return named(p) && p.Count == 0 }

// unknown reports whether there is no such symbol, and none can be expected: the
// probe of a module that is not loaded waits for it.
func unknown(k *Kernel, p *Probe) bool {
	return missing(k, p) && (p.Module == "" || p.ModuleLoaded)
}

// several reports whether the name is that of more than one symbol. Since 7.3 one of
// the kernel's own hides those of modules; before 6.12 the name of a module leaves it
// to the first of that name.
func several(k *Kernel, p *Probe) bool {
	switch {
	case !named(p):
		return false
	case p.Module != "":
		return k.Version >= linux6_12 && p.Count > 1
	case k.Version >= linux7_3 && p.InKernel > 0:
		return p.InKernel > 1
	}
	return p.Count > 1
}
