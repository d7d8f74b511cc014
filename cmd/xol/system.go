package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xol/analyze"
	"xol/classify"
	"xol/image"
	"xol/kernel"
	"xol/live"
	"xol/notation"
	"xol/selection"
)

// systemFlags ask for what runs instead of a file.
type systemFlags struct {
	live bool
	pid  int
	root string
}

func (f *systemFlags) addTo(set *pflag.FlagSet) {
	set.BoolVar(&f.live, "live", false, "the kernel that runs, instead of a file: its text, symbols, options, probes and lists as it shows them (be root)")
	set.IntVar(&f.pid, "pid", 0, "the program and the libraries that process `N` has mapped, instead of a file; addresses are those of its memory")
	set.StringVar(&f.root, "sysroot", "", "with --live or --pid: the `DIR` that /proc, /sys, /boot and /lib are in (default /)")
}

// any reports whether no file is to be given.
func (f *systemFlags) any() bool { return f.live || f.pid != 0 }

// name returns the flag that is given.
func (f *systemFlags) name() string {
	if f.live {
		return "--live"
	}
	return "--pid"
}

// check finds out whether the flags go with each other and with those for files.
func (f *systemFlags) check(cmd *cobra.Command, files ...string) error {
	switch {
	case f.live && f.pid != 0:
		return usageError(cmd, errors.New("--live and --pid do not go together: the first asks about the kernel, the second about a program"))
	case f.pid < 0 || f.pid == 0 && cmd.Flags().Changed("pid"):
		return usageError(cmd, fmt.Errorf("%d is no number of a process (--pid)", f.pid))
	case f.root != "" && !f.any():
		return usageError(cmd, errors.New("--sysroot goes with --live or --pid only"))
	case !f.any():
		return nil
	}
	for _, name := range files {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			return usageError(cmd, fmt.Errorf("%s goes without --%s: what runs tells it", f.name(), name))
		}
	}
	return nil
}

// complete offers the functions of what runs for PLACE. It says nothing of what is not
// shown.
func (f *systemFlags) complete(typed string) (names []string) {
	system := live.System{Root: f.root}
	if f.live {
		k, err := system.OpenKernel(image.Options{})
		if err != nil {
			return nil
		}
		defer k.Close()
		return functionsLike(k.Image, image.ExtentNext, typed)
	}
	p, err := system.OpenProcess(f.pid)
	if err != nil {
		return nil
	}
	defer p.Close()
	for i := range p.Files {
		if img, err := image.OpenFile(p.Files[i].Path, image.Options{}); err == nil {
			names = append(names, functionsLike(img, image.ExtentSymbol, typed)...)
			img.Close()
		}
	}
	return names
}

// functionsLike returns the functions of an image whose names start so, those of
// modules with the module before the name where that is typed.
func functionsLike(img *image.Image, extent image.Extent, typed string) (names []string) {
	module, start, inModule := strings.Cut(typed, ":")
	if !inModule {
		module, start = "", typed
	}
	functions, err := img.Match(extent, start+"*")
	if err != nil {
		return nil
	}
	for i := range functions {
		name := functions[i].Name
		if printable(name) != name || inModule && img.ModuleOf(functions[i].Addr) != module {
			continue
		}
		if inModule {
			name = module + ":" + name
		}
		names = append(names, name)
	}
	return names
}

// takesUnlessLive is the check of arguments of a command that takes files, of which
// there are none where what runs is asked.
func takesUnlessLive(f *systemFlags, what string, least, most, files int) cobra.PositionalArgs {
	own := takes(what, least, most)
	return func(cmd *cobra.Command, args []string) error {
		if !f.any() {
			return own(cmd, args)
		}
		rest := strings.TrimSpace(strings.NewReplacer("[FILE]", "", "FILE…", "").Replace(what))
		if rest == "" && len(args) > 0 {
			return fmt.Errorf("%s takes no file, and %q is given", f.name(), args[0])
		}
		return takes(rest, least-files, most)(cmd, args)
	}
}

// subject is what an answer is about: a file, or what runs.
type subject struct {
	img   *image.Image
	path  string
	facts kernel.Facts
	armed []uint64 // addresses of other probes
	// running is what is known of it besides; nil for a file.
	running *running
	// text returns what stands in memory where the file has code.
	text  func(code []byte, addr uint64) []byte
	close func() error
}

// running is what is known of what runs, besides its text.
type running struct {
	bias   uint64 // to be added to the image's addresses
	placed bool   // it is known
	memory bool   // the text is that in memory
	gaps   []live.Gap
	probes []live.Probe
	// uprobes is the profile of the kernel that runs; empty for the default.
	uprobes string
	process *processFile // nil for the kernel
}

// openFile opens a file to be asked about.
func (a *app) openFile(path string, symbols []byte, facts kernel.Facts) (*subject, error) {
	img, err := a.openImage(path, symbols)
	if err != nil {
		return nil, err
	}
	return &subject{img: img, path: path, facts: facts, close: img.Close}, nil
}

// openKernel opens the kernel that runs, and says what it does not show. What is given
// counts more than what it tells.
func (a *app) openKernel(f *systemFlags, given kernel.Facts) (*subject, error) {
	k, err := live.System{Root: f.root}.OpenKernel(image.Options{Demangle: true})
	if err != nil {
		return nil, err
	}
	for _, g := range k.Gaps {
		a.report(errors.New(g.String()))
	}
	facts := k.Facts
	facts.Given = given.Given
	if given.Config != nil {
		facts.Config = given.Config
	}
	s := &subject{img: k.Image, path: k.Path, facts: facts, close: k.Close}
	s.running = &running{bias: k.Bias, placed: k.Placed, memory: k.Image.Running(), gaps: k.Gaps, probes: k.Probes}
	for _, p := range k.Probes {
		if p.Addr != 0 && !p.Gone {
			s.armed = append(s.armed, p.Addr-k.Bias)
		}
	}
	return s, nil
}

// analyzed prepares the answers of a profile.
func (s *subject) analyzed(opt analyze.Options) (*analyzedFile, error) {
	opt.Kernel, opt.Text = s.facts, s.text
	opt.Armed = append(opt.Armed, s.armed...)
	defer collectLess()()
	an, err := analyze.New(s.img, opt)
	if err != nil {
		return nil, err
	}
	return &analyzedFile{s.path, an, s.running}, nil
}

// collectLess has the heap grow more than usual before garbage is collected, until what
// it returns is called. The tables of a file are made in one go, and nearly all of what
// is made stays: of 50 MB for a kernel, three collections found a tenth to be garbage, and
// took a fifth of the time. The whole analysis takes 78 MB, and took 84 MB with them.
func collectLess() (restore func()) {
	const percent = 400
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(before) }
}

// uprobes returns the profile for probes on a program: that of the kernel which runs
// it, where it is known.
func (s *subject) uprobes() string {
	if s.running != nil && s.running.uprobes != "" {
		return s.running.uprobes
	}
	return classify.Uprobe612
}

// places returns where a probe may stand. What is in a module whose text is not there
// is no unknown symbol.
func (s *subject) places(p *notation.Probe) ([]image.Place, error) {
	found, err := selection.Places(s.img, p)
	var unknown *image.SymbolNotFoundError
	var elsewhere *selection.ModuleError
	if m := s.facts.Modules; m != nil && (errors.As(err, &unknown) || errors.As(err, &elsewhere)) {
		symbol, _ := image.SplitOffset(p.Place)
		if n, _ := m.Count(p.Module, symbol); n > 0 {
			return nil, &hiddenModuleError{symbol}
		}
	}
	return found, err
}

// hiddenModuleError says that the text of a module is not shown.
type hiddenModuleError struct{ symbol string }

func (e *hiddenModuleError) Error() string {
	return e.symbol + " is in a module, whose text the system does not show"
}

// inImage turns a run-time address that a place may be into one of the image.
func (s *subject) inImage(p notation.Probe) notation.Probe {
	if s.running == nil || s.running.bias == 0 {
		return p
	}
	digits, isAddr := strings.CutPrefix(p.Place, "0x")
	if addr, err := strconv.ParseUint(digits, 16, 64); isAddr && err == nil {
		p.Place = fmt.Sprintf("%#x", addr-s.running.bias)
	}
	return p
}

// freedText reports whether a function of a running kernel is gone: what was only
// needed for booting.
func (f *analyzedFile) freedText(fn *image.Function) bool {
	return f.Image.Running() && (strings.HasPrefix(fn.Section, ".init") || strings.HasPrefix(fn.Section, ".exit")) && f.Image.ModuleOf(fn.Addr) == ""
}

// withoutFreed leaves out functions whose text is gone.
func (f *analyzedFile) withoutFreed(functions []image.Function) []image.Function {
	if !f.Image.Running() {
		return functions
	}
	return slices.DeleteFunc(slices.Clone(functions), func(fn image.Function) bool { return f.freedText(&fn) })
}

// addressNow returns where something of the image is in memory; false where it is not
// known, or where the image is no more than a file.
func (f *analyzedFile) addressNow(addr uint64) (uint64, bool) {
	if f.running == nil || !f.running.placed {
		return 0, false
	}
	return addr + f.running.bias, true
}

// probesIn returns the probes that are registered in a range of the image.
func (f *analyzedFile) probesIn(lo, hi uint64) (found []live.Probe) {
	if f.running == nil {
		return nil
	}
	for _, p := range f.running.probes {
		if at := p.Addr - f.running.bias; p.Addr != 0 && at >= lo && at < hi {
			found = append(found, p)
		}
	}
	return found
}

// probeNotes says which probes are registered in a range.
func (f *analyzedFile) probeNotes(lo, hi uint64) (notes []string) {
	for _, p := range f.probesIn(lo, hi) {
		notes = append(notes, "registered: "+p.String())
	}
	if f.running != nil && f.running.process != nil && f.running.process.breakpointIn(lo, hi) {
		notes = append(notes, "a breakpoint stands here, a uprobe's or a debugger's")
	}
	return notes
}

// joins says what becomes of a probe where another is registered already.
func (a *answer) joins(addr uint64) string {
	if !a.verdict.OK() || mechanismOf(a.profile()) != classify.Kprobes || len(a.file.probesIn(a.target(addr), a.target(addr)+1)) == 0 {
		return ""
	}
	return "a kprobe is registered here already; another one joins it, and both run at each hit"
}

// moduleName puts the module of a function before its name, as tracers write it.
func (f *analyzedFile) moduleName(name string, addr uint64) string {
	if !f.Image.Running() {
		return name
	}
	if m := f.Image.ModuleOf(addr); m != "" {
		return m + ":" + name
	}
	return name
}
