package tracer

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"xol/arch"
	"xol/events"
	"xol/image"
	"xol/runtime"
)

// Uprobes holds the events of uprobe_events that are defined in files of
// processes. As in Linux a probe is put into the processes when its event is
// enabled, and only then asked for its instruction. It is used by one goroutine
// at a time.
type Uprobes struct {
	file
	group *runtime.Uprobes
	files []*runtime.Executable
}

// NewUprobes returns the events of a group of processes, which lines define in
// the files by their names. A glob stands for the entries of the functions whose
// names it matches. It returns an *arch.MissingError for an ISA that cannot be
// probed.
func NewUprobes(group *runtime.Uprobes, of arch.ISA, files []*runtime.Executable, opt Options) (*Uprobes, error) {
	isa, err := arch.Probing(of)
	if err != nil {
		return nil, err
	}
	u := &Uprobes{group: group, files: files}
	u.file = file{
		isa: isa, opt: opt, attach: u.attach, places: u.functions,
		parse: events.Options{Kind: events.Uprobe, ISA: isa, Stat: u.stat},
	}
	return u, nil
}

// find returns the file of that name, nil for none.
func (u *Uprobes) find(name string) *runtime.Executable {
	i := slices.IndexFunc(u.files, func(f *runtime.Executable) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return u.files[i]
}

// regular is a file of which nothing but its mode is asked.
type regular struct{ fs.FileInfo }

func (regular) Mode() fs.FileMode { return 0 }

func (u *Uprobes) stat(name string) (fs.FileInfo, error) {
	if u.find(name) == nil {
		return nil, fs.ErrNotExist
	}
	return regular{}, nil
}

// functions returns the offsets of the functions, of the file in a line, that
// match a pattern.
func (u *Uprobes) functions(line, pattern string) []string {
	place := strings.Fields(line)[1]
	f := u.find(place[:max(strings.LastIndexByte(place, ':'), 0)])
	if f == nil {
		return nil
	}
	functions, err := f.Image.Functions(image.ExtentSymbol)
	if err != nil {
		return nil
	}
	var offsets []string
	for i := range functions {
		function := &functions[i]
		offset, ok := f.Image.OffsetOf(function.Addr + function.LocalEntry)
		if ok && events.Match(pattern, function.Name) {
			offsets = append(offsets, fmt.Sprintf("%#x", offset))
		}
	}
	return offsets
}

// Hits returns how often the probes of the events of a name were hit since they
// were enabled last, as uprobe_profile has it.
func (u *Uprobes) Hits(name string) (n uint64) {
	for _, d := range u.defs {
		if p, ok := d.probe.(*uprobe); ok && p.last != nil && d.is(name) {
			n += p.last.Hits()
		}
	}
	return n
}

// attach makes the probe of an event.
func (u *Uprobes) attach(d *definition) (probe, error) {
	e := &d.event
	p := &uprobe{group: u.group, spec: runtime.Uprobe{Executable: u.find(e.Path), Offset: e.Offset, Semaphore: e.RefCounter}}
	if e.Return {
		p.spec.ReturnHandler = func(c *runtime.UreturnContext) {
			u.record(d, u.task(c.Process, c.CPU), &events.Hit{
				Registers: &c.Regs, Memory: c.Memory(), Probe: c.Function, Return: c.To,
			})
		}
	} else {
		p.spec.Handler = func(c *runtime.UprobeContext) (remove bool) {
			u.record(d, u.task(c.Process, c.CPU), &events.Hit{Registers: &c.Regs, Memory: c.Memory(), Probe: c.Regs.IP()})
			return false
		}
	}
	if !d.enabled {
		return p, nil
	}
	return p, p.Enable()
}

func (u *Uprobes) task(p *runtime.Process, cpu int) events.Task {
	if u.opt.ProcessTask != nil {
		return u.opt.ProcessTask(p, cpu)
	}
	return defaultTask(cpu)
}

// uprobe is a probe in a file, which the processes have while it is enabled: only then
// is it attached, as in Linux.
type uprobe struct {
	group *runtime.Uprobes
	spec  runtime.Uprobe
	last  *runtime.Link // nil where it has never been enabled
	on    bool
}

func (p *uprobe) Enable() error {
	if p.on {
		return nil
	}
	l, err := p.group.Attach(p.spec)
	if err != nil {
		return err
	}
	p.last, p.on = l, true
	return nil
}

func (p *uprobe) Disable() error {
	if !p.on {
		return nil
	}
	p.on = false
	return p.last.Close()
}

func (p *uprobe) Close() error { return p.Disable() }
