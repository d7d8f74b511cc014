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

	"xol/analyze"
	"xol/arch"
	"xol/classify"
	"xol/image"
	"xol/machine"
)

// Runtime is a machine with probes. It is used by one goroutine at a time;
// handlers may call all of its methods but those that run the machine: from a
// handler these cannot be answered, and return ErrInHandler.
type Runtime struct {
	registry
	notifiers []Notifier
	ctx       context.Context // of the run that is going on
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
	r := &Runtime{ctx: context.Background()}
	r.target, r.sites, r.cpus = newTarget(m, isa, opt), map[uint64]*site{}, make([]control, m.NumCPU())
	r.host, r.gateCalled, r.armed, r.handling, r.failing = r, r.hostCalled, true, noCPU, noCPU
	if err := m.OnClose(r.closing); err != nil {
		return nil, err
	}
	if err := r.checkProfile(); err != nil {
		return nil, err
	}
	r.optimizing, r.due = !opt.NoOptimize, opt.Pass
	m.OnBreakpoint(r.quick)
	m.OnStore(r.stored)
	r.startTasks()
	return r, nil
}

// Load makes the text of a file, which the caller has put into the machine's
// memory at the addresses that the file names, known to the runtime.
func (r *Runtime) Load(name string, img *image.Image) (*Module, error) {
	return r.LoadAt(name, img, 0)
}

// LoadAt is Load for a file that stands at other addresses than it names: bias
// is what has to be added to them, a multiple of the page size.
func (r *Runtime) LoadAt(name string, img *image.Image, bias uint64) (*Module, error) {
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
	im := &Module{Name: name, owner: &r.target, analysis: a, bias: bias, rules: a.Profile, functions: map[uint64]*function{}}
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

// Unload is called when the text of an image goes away. Its probes are gone:
// they stay attached, and may be closed, but are never hit again.
func (r *Runtime) Unload(im *Module) error {
	switch {
	case r.closed:
		return machine.ErrClosed
	case im == nil || im.owner != &r.target:
		return errNotLoaded
	case im.unloaded:
		return errUnloaded
	}
	im.unloaded = true
	var errs []error
	for _, s := range r.byAddress() {
		if s.image == im {
			errs = append(errs, r.forget(s))
		}
	}
	r.images = deleteFrom(r.images, im)
	r.retireEntries(im)
	return errors.Join(append(errs, r.forgetJudged(im))...)
}

var (
	errUnloaded  = errors.New("runtime: the image is unloaded already")
	errNotLoaded = errors.New("runtime: the image is not one that this runtime has loaded")
)
