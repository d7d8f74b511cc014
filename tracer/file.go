package tracer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"xol/arch"
	"xol/events"
)

// file is what kprobe_events and uprobe_events have in common: the events, and
// the lines that change them.
type file struct {
	isa    arch.Prober
	opt    Options
	parse  events.Options
	places func(line, pattern string) []string // that a glob stands for
	attach func(*definition) (probe, error)
	defs   []*definition
}

// definition is one probe of an event.
type definition struct {
	event   events.Event
	enabled bool
	program *events.Program
	probe   probe
}

// probe is a probe that is in place, enabled or not: a *runtime.Link, for one.
type probe interface {
	Enable() error
	Disable() error
	Close() error
}

var (
	// ErrNoEvent: a line removes or enables an event that is not defined.
	ErrNoEvent = errors.New("no such event")
	// ErrBusy: a line removes the last probe of an event that is enabled.
	ErrBusy = errors.New("the event is enabled: disable it first")
)

// Write does what text written to the file does, line by line up to the first
// mistake: a line defines an event, which is not enabled yet, adds a probe to
// one, or removes probes. A glob defines an event for each place that it matches,
// with names of their own unless the line has one. It returns an *events.Error
// that points at a mistake, a *runtime.RegisterError, ErrNoEvent or ErrBusy.
func (f *file) Write(text string) error {
	for line := range events.Commands(text) {
		if err := f.command(line); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) command(line string) error {
	list, err := events.ParseGlob(line, f.parse, func(pattern string) []string { return f.places(line, pattern) })
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Remove {
			err = f.remove(&list[i])
		} else {
			err = f.define(line, &list[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Events returns the probes of all events as reading the file gives them.
func (f *file) Events() []string {
	lines := make([]string, len(f.defs))
	for i, d := range f.defs {
		lines[i] = d.event.String()
	}
	return lines
}

// Enable has the events of a name recorded, or no longer: group/event, event,
// group/ or, for all, an empty name. It returns ErrNoEvent where there is none.
func (f *file) Enable(name string, on bool) error {
	found := name == ""
	for _, d := range f.defs {
		if !d.is(name) {
			continue
		}
		found = true
		change := d.probe.Enable
		if !on {
			change = d.probe.Disable
		}
		if err := change(); err != nil {
			return err
		}
		d.enabled = on
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

// define attaches the probe of a line, which is enabled if its event is.
func (f *file) define(line string, e *events.Event) error {
	d := &definition{event: *e}
	var err error
	if d.program, err = events.Compile(&d.event, f.isa, f.parse); err != nil {
		return err
	}
	var others []*events.Program
	for _, other := range f.defs {
		if other.joins(d) {
			others = append(others, other.program)
			d.enabled = other.enabled
		}
	}
	if err := d.program.CheckJoin(line, others); err != nil {
		return err
	}
	if d.probe, err = f.attach(d); err != nil {
		return err
	}
	f.defs = append(f.defs, d)
	return nil
}

// joins reports whether two probes are of the same event.
func (d *definition) joins(other *definition) bool {
	return d.event.Group == other.event.Group && d.event.Name == other.event.Name
}

// remove takes the probes away that a line removes, up to one that has to stay.
func (f *file) remove(e *events.Event) error {
	found := false
	for _, d := range slices.Clone(f.defs) {
		if !e.Removes(&d.event) {
			continue
		}
		found = true
		if d.enabled && !slices.ContainsFunc(f.defs, func(other *definition) bool { return other != d && other.joins(d) }) {
			return fmt.Errorf("tracer: %s/%s: %w", d.event.Group, d.event.Name, ErrBusy)
		}
		f.defs = slices.DeleteFunc(f.defs, func(other *definition) bool { return other == d })
		if err := d.probe.Close(); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("tracer: %s: %w", e.Name, ErrNoEvent)
	}
	return nil
}

func (f *file) record(d *definition, task events.Task, h *events.Hit) {
	h.Comm = task.Comm
	values, err := d.program.Record(h)
	if err != nil {
		return // the record of a function's entry is missing: attach sees to it
	}
	if f.opt.Values != nil {
		f.opt.Values(&d.event, task, values)
	}
	if f.opt.Line != nil {
		f.opt.Line(task.Line(d.program.Text(h, values)))
	}
}
