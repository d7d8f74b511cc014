// Package runtime carries out the whole life of probes in programs that run on
// an emulated machine: what a kernel does, by the mechanism of the ISA. A probed
// instruction is replaced by a breakpoint, which traps; handlers run; the
// instruction is executed out of line; the program goes on. Where it is safe
// the copy is boosted, and the breakpoint becomes a jump to a detour buffer.
//
// The package knows no ISA: what is true of one only is in arch/<isa>.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"xol/analyze"
	"xol/arch"
	"xol/classify"
	"xol/detour"
	"xol/image"
	"xol/kernel"
	"xol/machine"
	"xol/place"
)

// Stepping is how the copy of a probed instruction is executed in its slot.
type Stepping uint8

const (
	// StepBreakpoint puts a breakpoint behind the copy, as kernels do since
	// 5.13; instructions that transfer control are interpreted.
	StepBreakpoint Stepping = iota
	// StepTrap uses the ISA's single-step exception: the trap flag of amd64,
	// MSR[SE] of ppc64.
	StepTrap
)

var steppingNames = [...]string{"breakpoint", "trap"}

// String returns the way in a word.
func (s Stepping) String() string {
	if int(s) < len(steppingNames) {
		return steppingNames[s]
	}
	return "invalid"
}

// Options say what a Runtime is like. The zero value is fine.
type Options struct {
	Stepping   Stepping
	NoBoost    bool // copies always end in a breakpoint
	NoOptimize bool // breakpoints never become jumps (see SetOptimization)
	// Kernel says that the program is a kernel: its breakpoints and detour
	// buffers are those of kernel mode.
	Kernel bool
	// Pass is the number of instructions between two passes of the optimizer;
	// 10,000 where it is 0.
	Pass int
	// Blacklist is text that must not be probed.
	Blacklist []machine.Range
	// Reserved are addresses that the runtime's own areas have to stay out of, though
	// the machine has no memory there: what the host will give the program, where it
	// is touched first. The addresses of the images are reserved anyway.
	Reserved []machine.Range
	// ClassicTrampoline has functions with return probes return to a
	// breakpoint. Else they return to code that calls out, which costs no
	// exception.
	ClassicTrampoline bool
	// EntryProbes makes patchable function entries, which the compiler has left
	// and tables name, the runtime's own: when an image is loaded, before
	// its text runs, calls there become NOPs. A probe of such a function has no
	// breakpoint; its site becomes a call while the probe is enabled.
	EntryProbes bool
	// Profile names the rules of a kernel version, such as linux-6.12: what that
	// kernel refuses is refused, with its error number; a probe stands where it
	// would put it, after a landing pad for one; and only what it would boost or
	// make a jump may become that. Empty means isa, and with Uprobes the uprobes of
	// Linux 6.12.
	Profile string
	// KernelFacts are what is known of that kernel, beside what the file of a kernel
	// tells; the options of the zero value are Debian's.
	KernelFacts kernel.Facts
	// Uprobes makes the probes those of user programs: the rules of uprobes of
	// a kernel version decide where they may be, copies are not boosted, and
	// breakpoints do not become jumps, but for OptimizeNops.
	Uprobes bool
	// OptimizeNops has breakpoints on NOPs as long as a jump become jumps, with
	// Uprobes. The buffer that they jump to keeps the red zone below the
	// stack pointer, which a call in the NOP's place would write to.
	OptimizeNops bool
	// Observe, where it is not nil, is told every change of a CPU's state.
	Observe func(Transition)
}

const defaultPass = 10_000

// Runtime is a machine with probes. It is used by one goroutine at a time;
// handlers may call all of its methods but those that run the machine: from a
// handler these cannot be answered, and return ErrInHandler.
type Runtime struct {
	m          machine.Machine
	isa        arch.Prober
	file       *machine.File
	convention *machine.Convention
	opt        Options
	fields     []*detour.Field // of the frame, by register

	images    []*Image
	sites     map[uint64]*site
	gone      []*site
	cpus      []control
	tasks     map[uint64]*task // by number
	slots     allocator
	stubs     stubs
	returns   returns
	watches   watches
	counters  counterPages
	optimizer optimizer
	notifiers []Notifier
	armed     bool            // the global switch
	depth     int             // of runs inside handlers
	starts    uint64          // that there have been
	handling  int             // the CPU whose event is being handled, or noCPU
	closed    bool            // the machine has been closed
	failed    error           // what it cannot recover from: it runs no more
	failing   int             // the CPU that did it: until its call is given up
	ctx       context.Context // of the run that is going on
	scratch   []byte
}

// OptionError says which of the Options a runtime cannot have.
type OptionError struct {
	Option string
	Reason string
	Err    error // the cause, where there is one
}

func (e *OptionError) Error() string {
	text := "runtime: Options." + e.Option + ": " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// check returns an *OptionError for what the machine cannot do.
func (o *Options) check(m machine.Machine) error {
	switch {
	case o.Pass < 0:
		return &OptionError{Option: "Pass", Reason: "there is at least one instruction between two passes; 0 stands for 10,000"}
	case int(o.Stepping) >= len(steppingNames):
		return &OptionError{Option: "Stepping", Reason: "neither StepBreakpoint nor StepTrap"}
	case o.Stepping == StepTrap && m.NumCPU() > 0:
		c := m.CPU(0)
		if err := c.SingleStep(true); err != nil {
			return &OptionError{Option: "Stepping", Reason: "the machine cannot single-step: use StepBreakpoint", Err: err}
		}
		return c.SingleStep(false)
	}
	return nil
}

// New returns a runtime without probes. It returns an *OptionError for options that the
// machine cannot have, and an *arch.MissingError for an ISA that cannot be probed.
func New(m machine.Machine, of arch.ISA, opt Options) (*Runtime, error) {
	isa, err := arch.Probing(of)
	if err != nil {
		return nil, err
	}
	if err := opt.check(m); err != nil {
		return nil, err
	}
	if opt.Pass == 0 {
		opt.Pass = defaultPass
	}
	r := &Runtime{
		m: m, isa: isa, file: isa.Registers(), convention: isa.Convention(), opt: opt,
		ctx: context.Background(), sites: map[uint64]*site{}, cpus: make([]control, m.NumCPU()), armed: true, handling: noCPU, failing: noCPU,
	}
	if err := m.OnClose(r.closing); err != nil {
		return nil, err
	}
	if err := r.checkProfile(); err != nil {
		return nil, err
	}
	r.optimizer.on, r.optimizer.due = !opt.NoOptimize, opt.Pass
	m.OnBreakpoint(r.quick)
	m.OnStore(r.stored)
	r.fields = make([]*detour.Field, len(r.file.Registers))
	frame := isa.PtRegs()
	for i := range frame.Fields {
		if f := &frame.Fields[i]; f.Register != detour.NoRegister {
			r.fields[f.Register] = f
		}
	}
	r.startTasks()
	return r, nil
}

// Image is a program in the machine's memory whose text may be probed.
type Image struct {
	Name     string
	owner    *Runtime
	analysis *analyze.Analysis
	text     []image.Range
	memory   []image.Range
	fixups   map[uint64]uint64 // of the exception table
	entries  entries
	unloaded bool
	bias     uint64           // what addresses are above those in the file
	rules    classify.Profile // that decide where probes may be
	kernel   *kernelRules     // that decide as well; nil without Options.Profile

	judged    *analyze.Result // the function that was asked about last
	functions map[uint64]*function
}

// Load makes the text of a file, which the caller has put into the machine's
// memory at the addresses that the file names, known to the runtime.
func (r *Runtime) Load(name string, img *image.Image) (*Image, error) {
	return r.LoadAt(name, img, 0)
}

// LoadAt is Load for a file that stands at other addresses than it names: bias
// is what has to be added to them, a multiple of the page size.
func (r *Runtime) LoadAt(name string, img *image.Image, bias uint64) (*Image, error) {
	if r.closed {
		return nil, machine.ErrClosed
	}
	a, err := analyze.New(img, analyze.Options{Profile: classify.ISA, Optimize: true, AsFile: true})
	if err != nil {
		return nil, err
	}
	if a.ISA.Name() != r.isa.Name() {
		return nil, fmt.Errorf("runtime: %s is for %s, the machine is %s", name, a.ISA.Name(), r.isa.Name())
	}
	im := &Image{Name: name, owner: r, analysis: a, bias: bias, rules: a.Profile, functions: map[uint64]*function{}}
	im.text, im.memory = moved(img.Text(), bias), moved(img.Memory(), bias)
	if im.fixups, err = readFixups(img, bias); err != nil {
		return nil, err
	}
	if err := r.loadRules(im, img); err != nil {
		return nil, err
	}
	if r.opt.EntryProbes {
		if err := r.prepareEntries(im); err != nil {
			return nil, err
		}
	}
	r.images = append(r.images, im)
	return im, nil
}

// moved returns ranges at bias above their addresses.
func moved(ranges []image.Range, bias uint64) []image.Range {
	ranges = slices.Clone(ranges)
	for i := range ranges {
		ranges[i].Addr += bias
	}
	return ranges
}

// readFixups returns where the faults of instructions in the exception table
// continue.
func readFixups(img *image.Image, bias uint64) (map[uint64]uint64, error) {
	landings, err := img.Landings()
	if err != nil {
		return nil, err
	}
	fixups := map[uint64]uint64{}
	for _, l := range landings {
		if l.Kind == place.LandExFixup {
			fixups[l.From+bias] = l.Addr + bias
		}
	}
	return fixups, nil
}

// Unload is called when the text of an image goes away. Its probes are gone:
// they stay attached, and may be closed, but are never hit again.
func (r *Runtime) Unload(im *Image) error {
	switch {
	case r.closed:
		return machine.ErrClosed
	case im == nil || im.owner != r:
		return errNotLoaded
	case im.unloaded:
		return errUnloaded
	}
	im.unloaded = true
	for _, s := range r.byAddress() {
		if s.image == im {
			r.forget(s)
		}
	}
	r.images = deleteFrom(r.images, im)
	r.retireEntries(im)
	return r.forgetJudged(im)
}

var (
	errUnloaded  = errors.New("runtime: the image is unloaded already")
	errNotLoaded = errors.New("runtime: the image is not one that this runtime has loaded")
)

// imageAt returns the image whose text holds addr; nil where none does.
func (r *Runtime) imageAt(addr uint64) *Image {
	for _, im := range r.images {
		for i := range im.text {
			if t := &im.text[i]; addr-t.Addr < t.Size {
				return im
			}
		}
	}
	return nil
}

func deleteFrom[T comparable](list []T, item T) []T {
	for i := range list {
		if list[i] == item {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}
