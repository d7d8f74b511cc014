package kernel

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"xol/classify"
	"xol/kconfig"
	"xol/registration"
)

// Option is one of the options that rules ask about.
type Option uint8

// The options.
const (
	Preemption      Option = iota // a boosted copy could be preempted: none is
	Retpoline                     // indirect jumps go through thunks
	IBT                           // functions start with landing pads that kprobes know
	CFI                           // calls are checked by the type of the function
	KprobesOnFtrace               // a probe on an ftrace site is one of ftrace
	OnNotrace                     // tracing takes functions without an ftrace site
	DynamicFtrace                 // it is known which functions have one
	Fprobe                        // there are multi-kprobes
	numOptions
)

// named is a name that an option has in some versions.
type named struct {
	name     string
	versions classify.Span
}

// usual says that Debian builds the kernels of an architecture with an option.
type usual struct {
	arch     string
	versions classify.Span
}

// asked says which rules ask about an option: those of the profiles of these
// architectures, or of these interfaces on all.
type asked struct {
	arches   []string
	via      []registration.Via
	versions classify.Span
}

func (a *asked) by(arch string, v classify.Version, via registration.Via) bool {
	return a.versions.Holds(v) && (slices.Contains(a.arches, arch) || slices.Contains(a.via, via))
}

func since(major, minor uint8) classify.Span {
	return classify.Span{Since: classify.Linux(major, minor)}
}
func until(major, minor uint8) classify.Span {
	return classify.Span{Until: classify.Linux(major, minor)}
}

var always classify.Span

// options are the names of the options, and what Debian makes of them: as its
// packages linux-config-5.10, -6.1, -6.12 and -7.3 have them for the flavours
// amd64, arm64 and powerpc64le. Of an architecture that no row names the option is
// off.
//
// shows is a function that kernels with the option have and others have not, hides one
// that kernels with the option have not.
var options = [numOptions]struct {
	names        []named
	asks         asked
	debian       []usual
	shows, hides string
}{
	Preemption: {
		[]named{{"PREEMPTION", always}},
		asked{arches: []string{"amd64"}},
		[]usual{{"amd64", since(6, 1)}, {"arm64", since(7, 3)}, {"ppc64", since(7, 3)}},
		"preempt_schedule", "",
	},
	Retpoline: {
		[]named{{"RETPOLINE", until(6, 8)}, {"MITIGATION_RETPOLINE", since(6, 8)}},
		asked{arches: []string{"amd64"}},
		[]usual{{"amd64", always}},
		"__x86_indirect_thunk_rax", "",
	},
	IBT: {
		[]named{{"X86_KERNEL_IBT", since(5, 18)}},
		asked{arches: []string{"amd64"}, versions: since(5, 18)},
		[]usual{{"amd64", since(6, 12)}},
		"ibt_save", "",
	},
	CFI: {
		[]named{{"CFI_CLANG", until(6, 18)}, {"CFI", since(6, 18)}},
		asked{arches: []string{"amd64"}, versions: since(6, 12)},
		nil,
		"report_cfi_failure", "",
	},
	KprobesOnFtrace: {
		[]named{{"KPROBES_ON_FTRACE", always}},
		asked{arches: []string{"amd64", "ppc64", "ppc64le"}},
		[]usual{{"amd64", always}, {"ppc64", always}},
		"kprobe_ftrace_handler", "",
	},
	OnNotrace: {
		[]named{{"KPROBE_EVENTS_ON_NOTRACE", always}},
		asked{via: []registration.Via{registration.KprobeEvents, registration.Perf}},
		nil,
		"", "__within_notrace_func",
	},
	DynamicFtrace: {
		[]named{{"DYNAMIC_FTRACE", always}},
		asked{via: []registration.Via{registration.KprobeEvents, registration.Perf}},
		[]usual{{"amd64", always}, {"arm64", always}, {"ppc64", always}},
		"ftrace_location", "",
	},
	Fprobe: {
		[]named{{"FPROBE", since(5, 18)}},
		asked{via: []registration.Via{registration.BPF}, versions: since(5, 18)},
		[]usual{{"amd64", since(6, 12)}, {"arm64", since(7, 3)}, {"ppc64", since(6, 12)}},
		"register_fprobe_ips", "",
	},
}

// nameIn returns the name of an option in a version, the last one where the version
// has none.
func (o Option) nameIn(v classify.Version) string {
	names := options[o].names
	for _, n := range names {
		if n.versions.Holds(v) {
			return n.name
		}
	}
	return names[len(names)-1].name
}

// usual reports whether Debian's kernels of that version have the option.
func (o Option) usual(arch string, v classify.Version) bool {
	return slices.ContainsFunc(options[o].debian, func(u usual) bool {
		return strings.HasPrefix(arch, u.arch) && u.versions.Holds(v)
	})
}

// Names returns the names of all options, of all versions.
func Names() (names []string) {
	for o := range options {
		for _, n := range options[o].names {
			names = append(names, n.name)
		}
	}
	return names
}

// OptionError says that no rule asks about an option of that name.
type OptionError struct{ Name string }

func (e *OptionError) Error() string {
	return fmt.Sprintf("no rule asks about %s (there are %s)", e.Name, strings.Join(Names(), ", "))
}

// Parse returns the option of that name, in any version, with or without "CONFIG_".
// The error is an *OptionError.
func Parse(name string) (Option, error) {
	plain := strings.TrimPrefix(name, kconfig.Prefix)
	for o := range options {
		if slices.ContainsFunc(options[o].names, func(n named) bool { return n.name == plain }) {
			return Option(o), nil
		}
	}
	return 0, &OptionError{name}
}

// Facts are all that is known of a kernel's options. The zero value knows nothing.
type Facts struct {
	Arch string // of the kernel: "amd64", "arm64", "ppc64", "ppc64le"
	Identity
	Config *kconfig.Config // nil for none
	Given  map[Option]bool // what somebody has said
	// HasSymbol reports whether the kernel has a symbol; nil where its symbols are not
	// known.
	HasSymbol func(name string) bool
	// Modules are those that are loaded; nil where that is not known.
	Modules Modules
}

// Modules are the modules that a kernel has loaded.
type Modules interface {
	Loaded(name string) bool
	// Count returns how many symbols of a name a module has, or all of them where
	// module is empty. known says whether that can be told.
	Count(module, symbol string) (n int, known bool)
}

// Setting returns an option with the strongest source there is for it.
func (f *Facts) Setting(o Option) Setting {
	s := Setting{Name: o.nameIn(f.Version)}
	switch on, given := f.Given[o]; {
	case given:
		s.On, s.Source = on, Given
	case f.Config != nil:
		for _, n := range options[o].names {
			s.On = s.On || f.Config.Enabled(n.name)
		}
		s.Source = Configured
	case o == Preemption && f.Known:
		s.On, s.Source = f.Preemption, Told
	default:
		var told bool
		if s.On, told = f.shown(o); told {
			s.Source = Told
		} else {
			s.On = o.usual(f.Arch, f.Version)
		}
	}
	return s
}

// shown reports whether the kernel's symbols tell that an option is on.
func (f *Facts) shown(o Option) (on, told bool) {
	t := &options[o]
	switch {
	case f.HasSymbol == nil:
		return false, false
	case t.shows != "":
		return f.HasSymbol(t.shows), true
	}
	return false, f.HasSymbol(t.hides) // that it is missing says nothing: it may be inlined
}

// Assumed returns those of the options that are neither found nor given, and that
// the rules for the interface ask about.
func (f *Facts) Assumed(via registration.Via) (assumed []Setting) {
	for o := range options {
		if s := f.Setting(Option(o)); s.Source == Assumed && options[o].asks.by(f.Arch, f.Version, via) {
			assumed = append(assumed, s)
		}
	}
	return assumed
}

// Flipped returns the facts with the opposite of a setting given.
func (f *Facts) Flipped(s Setting) Facts {
	g := *f
	g.Given = maps.Clone(f.Given)
	if g.Given == nil {
		g.Given = make(map[Option]bool)
	}
	if o, err := Parse(s.Name); err == nil {
		g.Given[o] = !s.On
	}
	return g
}

// ConfigError says that a configuration is that of another kernel.
type ConfigError struct{ Config, Kernel string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("the configuration is that of Linux %s, and the kernel is %s", e.Config, e.Kernel)
}

// Check compares the configuration with the kernel. It returns a *ConfigError.
func (f *Facts) Check() error {
	if f.Config == nil || f.Config.Release == "" || f.Version == 0 {
		return nil
	}
	if c := FromRelease(f.Config.Release); c.Version != 0 && c.Version.Branch() != f.Version.Branch() {
		return &ConfigError{f.Config.Release, f.Version.String()}
	}
	return nil
}

// Options returns what the profiles of the kernel have to know.
func (f *Facts) Options() classify.KernelOptions {
	on := func(o Option) bool { return f.Setting(o).On }
	return classify.KernelOptions{
		Preemption:   on(Preemption),
		Retpoline:    on(Retpoline) || on(IBT),
		IBT:          on(IBT),
		CFI:          on(CFI),
		FtraceProbes: on(KprobesOnFtrace),
	}
}

// Registration returns what the interfaces that take its probes have to know.
func (f *Facts) Registration() registration.Kernel {
	on := func(o Option) bool { return f.Setting(o).On }
	k := registration.Kernel{Version: f.Version, OnNotrace: on(OnNotrace), DynamicFtrace: on(DynamicFtrace), Fprobe: on(Fprobe)}
	if f.Arch == "amd64" {
		k.NoReturn = []string{"__switch_to"} // arch/x86/kernel/kprobes/core.c
	}
	return k
}

// Debian returns the options of Debian's kernel of a version.
func Debian(arch string, v classify.Version) classify.KernelOptions {
	f := Facts{Arch: arch, Identity: Identity{Version: v}}
	return f.Options()
}
