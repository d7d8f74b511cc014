// Package tracer defines probes on a running program by the lines that people
// write to kprobe_events, and gives back what they record as the lines of the
// file trace.
package tracer

import (
	"errors"
	"fmt"
	"strings"
	"time"

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
	// Values is called with what a hit recorded, in front of Line.
	Values func(e *events.Event, task events.Task, values []events.Value)
	// Task says what runs on a CPU, and when it is. Without it that is a task
	// called guest on the CPU, at 0.
	Task func(cpu int) events.Task
}

// Tracer holds the events that are defined on one program. It is used by one
// goroutine at a time.
type Tracer struct {
	r     *runtime.Runtime
	isa   arch.ISA
	image *image.Image
	opt   Options
	parse events.Options
	table *events.Table
	defs  []*definition
}

// definition is one probe of an event.
type definition struct {
	event   events.Event
	enabled bool
	program *events.Program
	probe   *runtime.Probe
	ret     *runtime.ReturnProbe
	active  map[*byte][]uint64 // of calls that are going on: what Program.Entry returned
}

// New returns a tracer for a program whose image the runtime has loaded.
func New(r *runtime.Runtime, isa arch.ISA, img *image.Image, opt Options) (*Tracer, error) {
	functions, err := img.Functions(image.ExtentSymbol)
	if err != nil {
		return nil, err
	}
	list := make([]events.Symbol, len(functions))
	for i := range functions {
		f := &functions[i]
		list[i] = events.Symbol{Name: f.Name, Addr: f.Addr, Size: f.Size, Func: true}
	}
	t := &Tracer{r: r, isa: isa, image: img, opt: opt, table: events.NewTable(list)}
	t.table.Landing = func(addr uint64) uint64 { return landing(img, isa, addr) }
	t.parse = events.Options{Kind: events.Kprobe, ISA: isa, Symbols: symbols{t.table, img}}
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

// ErrNoEvent: a line removes or enables an event that is not defined.
var ErrNoEvent = errors.New("no such event")

// Write does what text written to kprobe_events does, line by line up to the
// first mistake: a line defines an event, which is not enabled yet, adds a probe
// to one, or removes probes, unlike in Linux also enabled ones. A glob defines an
// event for each function that it matches, whose names are those of the
// functions. It returns an *events.Error that points at a mistake, a
// *runtime.RegisterError, or ErrNoEvent.
func (t *Tracer) Write(text string) error {
	for line := range events.Commands(text) {
		if err := t.command(line); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tracer) command(line string) error {
	list, err := events.ParseGlob(line, t.parse, t.table.Functions)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Remove {
			err = t.remove(&list[i])
		} else {
			err = t.define(line, &list[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Events returns the probes of all events as reading kprobe_events gives them.
func (t *Tracer) Events() []string {
	lines := make([]string, len(t.defs))
	for i, d := range t.defs {
		lines[i] = d.event.String()
	}
	return lines
}

// Enable has the events of a name recorded, or no longer: group/event, event,
// group/ or, for all, an empty name. It returns ErrNoEvent where there is none.
func (t *Tracer) Enable(name string, on bool) error {
	found := name == ""
	for _, d := range t.defs {
		if !d.is(name) {
			continue
		}
		found = true
		if err := t.setEnabled(d, on); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("tracer: %s: %w", name, ErrNoEvent)
	}
	return nil
}

// is reports whether a name means the event.
func (d *definition) is(name string) bool {
	group, event, grouped := strings.Cut(name, "/")
	if !grouped {
		group, event = "", name
	}
	return (group == "" || group == d.event.Group) && (event == "" || event == d.event.Name)
}

func (t *Tracer) setEnabled(d *definition, on bool) (err error) {
	switch {
	case d.ret != nil && on:
		err = t.r.EnableReturn(d.ret)
	case d.ret != nil:
		err = t.r.DisableReturn(d.ret)
	case on:
		err = t.r.Enable(d.probe)
	default:
		err = t.r.Disable(d.probe)
	}
	if err == nil {
		d.enabled = on
	}
	return err
}

// Nmissed returns how many hits of the events of a name were missed.
func (t *Tracer) Nmissed(name string) (n uint64) {
	for _, d := range t.defs {
		if d.is(name) && d.ret != nil {
			n += d.ret.Nmissed()
		} else if d.is(name) {
			n += d.probe.Nmissed()
		}
	}
	return n
}

// define registers the probe of a line, which is enabled if its event is.
func (t *Tracer) define(line string, e *events.Event) error {
	d := &definition{event: *e}
	var err error
	if d.program, err = events.Compile(&d.event, t.isa, t.parse); err != nil {
		return err
	}
	var others []*events.Program
	for _, other := range t.defs {
		if other.event.Group == e.Group && other.event.Name == e.Name {
			others = append(others, other.program)
			d.enabled = other.enabled
		}
	}
	if err := d.program.CheckJoin(line, others); err != nil {
		return err
	}
	symbol, offset, addr := e.Symbol, e.Offset, e.Addr
	if e.Return {
		err = t.defineReturn(d, symbol, offset, addr)
	} else {
		d.probe = &runtime.Probe{Symbol: symbol, Offset: offset, Addr: addr, Disabled: !d.enabled}
		d.probe.PreHandler = func(c *runtime.Context) bool { t.hit(d, c); return false }
		err = t.r.Register(d.probe)
	}
	if err == nil {
		t.defs = append(t.defs, d)
	}
	return err
}

func (t *Tracer) defineReturn(d *definition, symbol string, offset, addr uint64) error {
	d.ret = &runtime.ReturnProbe{Symbol: symbol, Offset: offset, Addr: addr, MaxActive: d.event.MaxActive, Disabled: !d.enabled}
	if d.program.NeedsEntry() {
		d.active = map[*byte][]uint64{}
		d.ret.DataSize = 1 // its address is the call's name
		d.ret.EntryHandler = func(c *runtime.ReturnContext) bool {
			d.active[&c.Data[0]] = d.program.Entry(&c.Regs, c.Memory())
			return false
		}
	}
	d.ret.Handler = func(c *runtime.ReturnContext) { t.returned(d, c) }
	return t.r.RegisterReturn(d.ret)
}

// remove unregisters the probes that a line removes.
func (t *Tracer) remove(e *events.Event) error {
	var kept, gone []*definition
	for _, d := range t.defs {
		if e.Removes(&d.event) {
			gone = append(gone, d)
		} else {
			kept = append(kept, d)
		}
	}
	if len(gone) == 0 {
		return fmt.Errorf("tracer: %s: %w", e.Name, ErrNoEvent)
	}
	t.defs = kept
	var errs []error
	for _, d := range gone {
		if d.ret != nil {
			errs = append(errs, t.r.UnregisterReturn(d.ret))
		} else {
			errs = append(errs, t.r.Unregister(d.probe))
		}
	}
	return errors.Join(errs...)
}

func (t *Tracer) hit(d *definition, c *runtime.Context) {
	t.record(d, c.CPU, &events.Hit{Registers: &c.Regs, Memory: c.Memory(), Probe: d.probe.Address()})
}

func (t *Tracer) returned(d *definition, c *runtime.ReturnContext) {
	h := &events.Hit{Registers: &c.Regs, Memory: c.Memory(), Probe: t.function(d), Return: c.To}
	if d.active != nil {
		h.Entry = d.active[&c.Data[0]]
		delete(d.active, &c.Data[0])
	}
	t.record(d, c.CPU, h)
}

// function returns the address of the function whose return an event probes.
func (t *Tracer) function(d *definition) uint64 {
	if d.event.Symbol == "" {
		return d.event.Addr
	}
	addr, _ := t.table.Address(d.event.Symbol)
	return addr
}

func (t *Tracer) record(d *definition, cpu int, h *events.Hit) {
	task := events.Task{Comm: "guest", PID: cpu, CPU: cpu, Time: time.Duration(0)}
	if t.opt.Task != nil {
		task = t.opt.Task(cpu)
	}
	h.Comm = task.Comm
	values, err := d.program.Record(h)
	if err != nil {
		return // a register that the machine does not model: Compile refuses it
	}
	if t.opt.Values != nil {
		t.opt.Values(&d.event, task, values)
	}
	if t.opt.Line != nil {
		t.opt.Line(task.Line(d.program.Text(h, values)))
	}
}
