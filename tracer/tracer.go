// Package tracer defines probes on running programs by the lines that people
// write to kprobe_events and uprobe_events, and gives back what they record as
// the lines of the file trace.
package tracer

import (
	"cmp"

	"xol/arch"
	"xol/decode"
	"xol/events"
	"xol/image"
	"xol/runtime"
)

// Options say what becomes of hits. The zero value drops them.
type Options struct {
	// Line is called with every line of output.
	Line func(string)
	// Values is called with what a hit recorded, before Line.
	Values func(e *events.Event, task events.Task, values []events.Value)
	// Task says what runs on a CPU, and when it is. Without it that is a task
	// called guest on the CPU, at 0. Events of uprobes use ProcessTask instead.
	Task        func(cpu int) events.Task
	ProcessTask func(p *runtime.Process, cpu int) events.Task
	// Layout is that of the structures that arguments of type %pd and %pD read.
	Layout events.Layout
}

// Tracer holds the events of kprobe_events that are defined on one program. It
// is used by one goroutine at a time.
type Tracer struct {
	file
	r     *runtime.Runtime
	image *image.Image
	table *events.Table
}

// New returns a tracer for a program whose image the runtime has loaded.
func New(r *runtime.Runtime, of arch.ISA, img *image.Image, opt Options) (*Tracer, error) {
	isa, err := arch.Probing(of)
	if err != nil {
		return nil, err
	}
	functions, err := img.Functions(image.ExtentSymbol)
	if err != nil {
		return nil, err
	}
	list := make([]events.Symbol, len(functions))
	local := map[uint64]uint64{}
	for i := range functions {
		f := &functions[i]
		list[i] = events.Symbol{Name: f.Name, Addr: f.Addr, Size: f.Size, Func: true}
		if f.LocalEntry != 0 {
			local[f.Addr] = f.LocalEntry
		}
	}
	table := events.NewTable(list)
	table.Landing = func(addr uint64) uint64 { return cmp.Or(local[addr], landing(img, isa, addr)) }
	t := &Tracer{r: r, image: img, table: table}
	t.file = file{
		isa: isa, opt: opt, attach: t.attach,
		places: func(_, pattern string) []string { return table.Functions(pattern) },
		parse:  events.Options{Kind: events.Kprobe, ISA: isa, Symbols: symbols{table, img}, Layout: opt.Layout},
	}
	return t, nil
}

// symbols are the functions of a program and, to be found by name only, its
// data.
type symbols struct {
	*events.Table
	image *image.Image
}

func (s symbols) Address(name string) (addr uint64, ok bool) {
	if addr, ok = s.Table.Address(name); ok {
		return addr, true
	}
	return s.image.SymbolAddress(name)
}

// landing returns the length of the landing pad at addr; 0 where none is.
func landing(img *image.Image, isa arch.ISA, addr uint64) uint64 {
	code, err := img.Code(nil, addr, 4)
	if err != nil {
		return 0
	}
	var inst decode.Inst
	if isa.Decode(&inst, code, addr) != nil || !inst.Has(decode.LandingPad) {
		return 0
	}
	return uint64(inst.Len)
}

// Nmissed returns how many hits of the events of a name were missed.
func (t *Tracer) Nmissed(name string) (n uint64) {
	for _, d := range t.defs {
		if p, ok := d.probe.(interface{ Nmissed() uint64 }); ok && d.is(name) {
			n += p.Nmissed()
		}
	}
	return n
}

// attach attaches the probe of an event.
func (t *Tracer) attach(d *definition) (probe, error) {
	e := &d.event
	if e.Return {
		return t.attachReturn(d)
	}
	return t.put(runtime.Probe{
		Symbol: e.Symbol, Offset: e.Offset, Addr: e.Addr, Disabled: !d.enabled,
		PreHandler: func(c *runtime.Context) bool {
			t.record(d, t.task(c.CPU), &events.Hit{Registers: &c.Regs, Memory: c.Memory(), Probe: c.Link.Address()})
			return false
		},
	})
}

func (t *Tracer) attachReturn(d *definition) (probe, error) {
	e := &d.event
	p := runtime.ReturnProbe{
		Symbol: e.Symbol, Offset: e.Offset, Addr: e.Addr, MaxActive: e.MaxActive, Disabled: !d.enabled,
	}
	var active map[*byte][]uint64 // of calls that are going on: what Program.Entry returned
	if d.program.NeedsEntry() {
		active = map[*byte][]uint64{}
		p.DataSize = 1 // its address is the call's name
		p.EntryHandler = func(c *runtime.ReturnContext) bool {
			active[&c.Data[0]] = d.program.Entry(&c.Regs, c.Memory())
			return false
		}
	}
	p.Handler = func(c *runtime.ReturnContext) {
		h := &events.Hit{Registers: &c.Regs, Memory: c.Memory(), Probe: t.function(d), Return: c.To}
		if active != nil {
			h.Entry = active[&c.Data[0]]
			delete(active, &c.Data[0])
		}
		t.record(d, t.task(c.CPU), h)
	}
	return t.put(p)
}

func (t *Tracer) put(spec runtime.Spec) (probe, error) {
	l, err := t.r.Attach(spec)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// function returns the address of the function whose return an event probes.
func (t *Tracer) function(d *definition) uint64 {
	if d.event.Symbol == "" {
		return d.event.Addr
	}
	addr, _ := t.table.Address(d.event.Symbol)
	return addr
}

func (t *Tracer) task(cpu int) events.Task {
	if t.opt.Task != nil {
		return t.opt.Task(cpu)
	}
	return defaultTask(cpu)
}

func defaultTask(cpu int) events.Task { return events.Task{Comm: "guest", PID: cpu, CPU: cpu} }
