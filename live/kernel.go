package live

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"xol/image"
	"xol/image/isa"
	"xol/kconfig"
	"xol/kernel"
)

// Kernel is the kernel that runs.
type Kernel struct {
	Image *image.Image
	// Path is where its text is read from: /proc/kcore, or the file that it was
	// started from, below the system's root.
	Path string
	// Bias is what is to be added to an address of Image to get that of the running
	// kernel. It is 0 where the text is that of memory. Placed says that it is known.
	Bias   uint64
	Placed bool
	Facts  kernel.Facts
	Probes []Probe // that are registered now
	Gaps   []Gap   // what the system does not show

	system System
	core   *kcore
	boot   func() (*bootImage, error)
	booted *bootImage
	// armed are the probes that have changed the text, sorted by address; unlisted says
	// that they are not known.
	armed    []Probe
	unlisted bool
	starts   []uint64 // of functions, sorted
}

// The files that tell of a kernel.
const (
	procVersion = "/proc/version"
	osRelease   = "/proc/sys/kernel/osrelease"
	procKcore   = "/proc/kcore"
	kallsyms    = "/proc/kallsyms"
	probeList   = "/sys/kernel/debug/kprobes/list"
	blacklist   = "/sys/kernel/debug/kprobes/blacklist"
	modules     = "/sys/module"
)

// tracefs are where tracefs may be mounted.
var tracefs = []string{"/sys/kernel/tracing/", "/sys/kernel/debug/tracing/"}

// NoTextError says that nothing shows the text of the running kernel.
type NoTextError struct{ Core, Boot error }

func (e *NoTextError) Error() string {
	return fmt.Sprintf("nothing shows the text of the running kernel: %s: %s; %v", procKcore, why(e.Core), e.Boot)
}

// Unwrap returns both errors.
func (e *NoTextError) Unwrap() []error { return []error{e.Core, e.Boot} }

// OpenKernel reads the kernel that runs: its text from /proc/kcore, else from the file
// that it was started from. It returns a *NoTextError where neither can be read, or
// what package image finds wrong.
func (s System) OpenKernel(opt image.Options) (*Kernel, error) {
	k := &Kernel{system: s}
	k.identify()
	k.configure()
	syms := k.symbols()
	modules := s.newModules(syms)
	k.Facts.Modules = modules
	k.boot = sync.OnceValues(func() (*bootImage, error) { return s.openBoot(k.Facts.Release, opt, syms) })
	coreErr := k.openMemory(syms, modules, opt)
	if coreErr == nil {
		return k, nil
	}
	k.lack(procKcore, coreErr, "text is that of the file that the kernel was started from, and modules are left out")
	b, err := k.openBoot()
	if err != nil {
		k.Close()
		return nil, &NoTextError{coreErr, err}
	}
	k.Image, k.Path, k.Bias, k.Placed = b.image, b.path, b.bias, b.placed
	if k.Facts.Release == "" {
		k.Facts.Identity = kernel.FromBanner(b.image.Banner())
	}
	k.readProbes()
	return k, nil
}

// Close closes what is open.
func (k *Kernel) Close() error {
	var errs []error
	if k.core != nil {
		errs = append(errs, k.core.close())
	}
	if k.booted != nil {
		errs = append(errs, k.booted.image.Close())
	}
	return errors.Join(errs...)
}

func (k *Kernel) lack(source string, err error, lost string) {
	k.Gaps = append(k.Gaps, Gap{source, why(err), lost})
}

// identify finds out which version it is.
func (k *Kernel) identify() {
	banner, err := k.system.line(procVersion)
	if err == nil {
		k.Facts.Identity = kernel.FromBanner(banner)
	}
	if k.Facts.Release != "" {
		return
	}
	if err == nil {
		err = errors.New(`it does not start with "Linux version"`)
	}
	release, _ := k.system.line(osRelease)
	k.Facts.Identity = kernel.FromRelease(release)
	if release != "" {
		k.lack(procVersion, err, "the version is that of "+osRelease+", without a distribution's own")
	} else {
		k.lack(procVersion, err, "the version is not known, nor where the files of /boot are")
	}
}

// configure finds the kernel's options.
func (k *Kernel) configure() {
	files := []string{"/proc/config.gz"}
	if r := k.Facts.Release; r != "" {
		files = append(files, "/boot/config-"+r, "/lib/modules/"+r+"/config", "/lib/modules/"+r+"/build/.config")
	}
	text, name, err := k.system.first(files...)
	if err == nil {
		k.Facts.Config, err = kconfig.Read(bytes.NewReader(text))
	}
	if err == nil {
		if err = k.Facts.Check(); err != nil {
			k.Facts.Config = nil
		}
	}
	if err != nil {
		if len(files) > 1 && errors.Is(err, fs.ErrNotExist) {
			name += " and " + files[1]
		}
		k.lack(name, err, "options that symbols do not tell are taken to be Debian's")
	}
}

// symbols reads the names of the kernel and its modules, with the addresses where
// they are.
func (k *Kernel) symbols() []image.MapSymbol {
	text, err := k.system.read(kallsyms)
	var syms []image.MapSymbol
	if err == nil {
		syms, err = image.ReadSymbolMap(bytes.NewReader(text))
	}
	switch {
	case err == nil:
	case errors.Is(err, image.ErrHiddenAddresses):
		err = errors.New("all addresses are 0, as the kernel hides them (be root, with the sysctl kernel.kptr_restrict below 2)")
		fallthrough
	default:
		k.lack(kallsyms, err, "it is not known where the kernel and its modules are in memory")
	}
	return syms
}

var (
	errNoPlace   = errors.New("without the symbols it is not known where in it the kernel is")
	errElsewhere = errors.New("it does not hold the addresses of the kernel's text")
)

// openMemory makes an image of what is in memory.
func (k *Kernel) openMemory(syms []image.MapSymbol, loaded *loadedModules, opt image.Options) error {
	core, err := openCore(k.system.path(procKcore))
	if err != nil {
		return err
	}
	k.core = core
	if len(syms) == 0 {
		return errNoPlace
	}
	m := &image.Memory{Machine: core.machine, Order: core.order, Symbols: syms, Read: core.read, Restore: k.restore}
	m.Banner, _ = k.system.line(procVersion)
	m.Sections = kernelSections(syms, boundsOf(syms))
	text := slices.IndexFunc(m.Sections, func(s image.MemorySection) bool { return s.Name == ".text" })
	if text < 0 || !core.holds(m.Sections[text].Addr, m.Sections[text].Size) {
		return errElsewhere
	}
	if err := core.read(make([]byte, 1), m.Sections[text].Addr); err != nil {
		return err
	}
	for i := range syms {
		if syms[i].Type|0x20 == 't' {
			k.starts = append(k.starts, syms[i].Addr)
		}
	}
	slices.Sort(k.starts)
	k.readProbes()
	lists := k.readLists(m)
	m.Sections = append(m.Sections, k.modules(syms, loaded, lists)...)
	m.Sections = slices.DeleteFunc(m.Sections, func(s image.MemorySection) bool { return !s.Unread && !core.holds(s.Addr, s.Size) })
	k.Image, err = image.OpenMemory(m, opt)
	k.Path, k.Placed = k.system.path(procKcore), err == nil
	return err
}

// readProbes reads which probes there are.
func (k *Kernel) readProbes() {
	const lost = "which probes are registered now is not known; breakpoints in the text are taken for such"
	text, err := k.system.read(probeList)
	if err == nil {
		k.Probes, err = readProbes(text)
	}
	if err == nil && slices.ContainsFunc(k.Probes, func(p Probe) bool { return p.Addr == 0 }) {
		err = errHidden
	}
	if err != nil {
		k.lack(probeList, err, lost)
		k.unlisted = true
	}
	for _, p := range k.Probes {
		if p.inText() {
			k.armed = append(k.armed, p)
		}
	}
	slices.SortFunc(k.armed, func(a, b Probe) int { return cmp.Compare(a.Addr, b.Addr) })
}

var errHidden = errors.New("its addresses are 0, as the kernel hides them")

// readLists fills in the blacklist and the ftrace sites. It returns the sections of
// modules that have to stand in for what the kernel does not show.
func (k *Kernel) readLists(m *image.Memory) (lists []string) {
	if err := k.readBlacklist(m); err != nil {
		ranges, bootErr := k.fromBoot((*bootImage).blacklist)
		lists = append(lists, "_kprobe_blacklist")
		if bootErr != nil {
			m.Missing |= image.MissingBlacklist
			k.lack(blacklist, err, "which functions the kernel forbids to probe is not known ("+bootErr.Error()+" either): what hangs on it is not judged")
		} else {
			m.Blacklist = ranges
			k.lack(blacklist, err, "the blacklist is that of "+k.booted.path)
		}
	}
	if err := k.readFtrace(m); err != nil {
		ranges, bootErr := k.fromBoot((*bootImage).ftraceSites)
		lists = append(lists, "__mcount_loc")
		if bootErr != nil {
			m.Missing |= image.MissingTables
			k.lack(tracefs[0]+"available_filter_functions", err, "which functions have an ftrace site is not known ("+bootErr.Error()+" either): what hangs on it is not judged")
		} else {
			for _, r := range ranges {
				m.FtraceSites = append(m.FtraceSites, r.Addr)
			}
			k.lack(tracefs[0]+"available_filter_functions", err, "ftrace sites are those of "+k.booted.path)
		}
	}
	return lists
}

func (k *Kernel) readBlacklist(m *image.Memory) error {
	text, err := k.system.read(blacklist)
	if err != nil {
		return err
	}
	ranges, hidden, err := readBlacklist(text)
	switch {
	case err != nil:
		return err
	case hidden:
		return errHidden
	case len(ranges) == 0:
		return errEmpty
	}
	m.Blacklist = ranges
	return nil
}

// readFtrace takes the addresses of ftrace sites, or the names of functions where
// there is an older kernel.
func (k *Kernel) readFtrace(m *image.Memory) error {
	text, _, err := k.system.first(tracefs[0]+"available_filter_functions_addrs", tracefs[1]+"available_filter_functions_addrs")
	if err == nil {
		m.FtraceSites, err = readFtraceAddrs(text)
	}
	if err == nil && len(m.FtraceSites) > 0 {
		return nil
	}
	if isa.Known().Find(m.Machine).Kernel.FtraceSite == nil {
		return errors.New("there is no available_filter_functions_addrs, and names do not tell where the sites are")
	}
	text, _, err = k.system.first(tracefs[0]+"available_filter_functions", tracefs[1]+"available_filter_functions")
	if err == nil {
		m.FtraceNames, err = readFtraceNames(text)
	}
	if err == nil && len(m.FtraceNames) == 0 {
		err = errEmpty
	}
	return err
}

// modules returns the sections of all modules.
func (k *Kernel) modules(syms []image.MapSymbol, loaded *loadedModules, lists []string) (all []image.MemorySection) {
	byModule := make(map[string][]image.MapSymbol)
	for i := range syms {
		if m := syms[i].Module; m != "" {
			byModule[m] = append(byModule[m], syms[i])
		}
	}
	var hidden []string
	var hiddenErr error
	for _, name := range loaded.sorted() {
		if len(byModule[name]) == 0 {
			continue
		}
		loaded, err := k.system.loadedSections(name)
		if err != nil {
			hidden, hiddenErr = append(hidden, name), err
			continue
		}
		all = append(all, moduleSections(name, loaded, byModule[name], lists)...)
	}
	if len(hidden) > 0 {
		source := modules + "/" + hidden[0] + "/sections"
		if len(hidden) > 1 {
			source = fmt.Sprintf("%s/*/sections of %d modules", modules, len(hidden))
		}
		k.lack(source, hiddenErr, "text that is theirs is left out")
	}
	return all
}

// loadedSections reads where the sections of a module are.
func (s System) loadedSections(module string) (loaded []loadedSection, err error) {
	dir := modules + "/" + module + "/sections"
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		return nil, err
	}
	known := false
	for _, e := range entries {
		text, err := s.line(dir + "/" + e.Name())
		if err != nil {
			return nil, err
		}
		addr, err := hex(text)
		if err != nil {
			return nil, fmt.Errorf("%s is no address: %.20q", e.Name(), text)
		}
		known = known || addr != 0
		loaded = append(loaded, loadedSection{e.Name(), addr})
	}
	if !known {
		return nil, errHidden
	}
	return loaded, nil
}
