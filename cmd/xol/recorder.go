package main

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"xol/arch"
	"xol/events"
	"xol/notation"
	"xol/selection"
	"xol/session"
	"xol/usdt"
)

// recorder records what a probe asks for at one place.
type recorder struct {
	isa      arch.Prober
	isReturn bool
	program  *events.Program
	filter   *events.Filter // nil where nothing has to hold
	symbols  *placeSymbols
	marker   []usdt.Arg // of a static marker
	module   *session.Module
	addr     uint64 // of the file
}

// checkRecorded finds mistakes in arguments and conditions before a program is started.
func checkRecorded(list []wish) error {
	isa, err := hostISA()
	if err != nil {
		return nil // the program's own is asked then
	}
	for i := range list {
		w := &list[i]
		if w.Kind == notation.Marker && w.condition != "" {
			return fmt.Errorf("%q: there are no conditions on the arguments of static markers", w.Text)
		}
		if _, _, err := w.compile(isa, "f", &placeSymbols{entry: true}); err != nil {
			return err
		}
	}
	return nil
}

// hostISA returns the instruction set of this machine.
func hostISA() (arch.Prober, error) {
	isa, err := arch.ByName(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	return arch.Probing(isa)
}

// newRecorder compiles what is recorded at a place of a module.
func (l *traceListing) newRecorder(m *session.Module, p *selection.Place) (*recorder, error) {
	isa, err := arch.Probing(m.Analysis.ISA)
	if err != nil {
		return nil, err
	}
	w := &wish{Probe: notation.Probe{Return: p.Return}}
	if p.Probe >= 0 {
		w = &l.wishes[p.Probe]
	}
	rec := &recorder{isa: isa, isReturn: p.Return, module: m, addr: p.Addr}
	rec.symbols = &placeSymbols{book: l.book, entry: startsFunction(m, p)}
	name := p.Symbol
	if p.Marker != nil {
		name = p.Marker.Name
		if rec.marker, err = usdt.Parse(isa, p.Marker.Args, m.Image.SymbolAddress); err != nil {
			return nil, err
		}
	} else if p.Offset != 0 && !rec.symbols.entry {
		name += fmt.Sprintf("_%x", p.Offset)
	}
	rec.program, rec.filter, err = w.compile(isa, name, rec.symbols)
	return rec, err
}

// startsFunction reports whether a probe at a place sees the arguments of a function.
func startsFunction(m *session.Module, p *selection.Place) bool {
	f, ok := m.Analysis.FunctionAt(p.Addr)
	return ok && p.Addr == f.Addr+f.LocalEntry
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// mostName is how long the name of an event may be.
const mostName = 63

// defaultName makes a name for an event of what people call a function, as perf does.
func defaultName(symbol string, isReturn bool) string {
	if i := strings.IndexByte(symbol, '('); i > 0 {
		symbol = symbol[:i]
	}
	name := strings.Trim(notInName.ReplaceAllString(symbol, "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "at_" + name
	}
	suffix := ""
	if isReturn {
		suffix = "__return"
	}
	return name[:min(len(name), mostName-len(suffix))] + suffix
}

// compile makes a program of what a probe records, and of its condition.
func (w *wish) compile(isa arch.Prober, symbol string, symbols *placeSymbols) (*events.Program, *events.Filter, error) {
	e, opt, err := w.event(isa, symbol, symbols)
	if err != nil {
		return nil, nil, w.mistake(err)
	}
	p, err := events.Compile(&e, isa, opt)
	if err != nil || w.condition == "" {
		return p, nil, w.mistake(err)
	}
	f, err := p.Filter(w.condition)
	return p, f, w.mistake(err)
}

// event returns what is recorded as a line of tracefs has it: of uprobe_events where it
// is one, else of kprobe_events, in which a function has arguments and a name.
func (w *wish) event(isa arch.Prober, symbol string, symbols *placeSymbols) (events.Event, events.Options, error) {
	if w.Tool == notation.Tracefs && w.Kind == notation.Uprobe {
		opt := events.Options{Kind: events.Uprobe, ISA: isa}
		e, err := events.Parse(w.Text, opt)
		return e, opt, err
	}
	opt := events.Options{Kind: events.Kprobe, ISA: isa, Symbols: symbols}
	name := w.Event
	if name == "" {
		name = defaultName(symbol, w.Return)
	}
	letter := "p"
	if w.Return {
		letter = "r"
	}
	e, err := events.Parse(letter+":"+name+" "+placeholder+" "+strings.Join(w.Args, " "), opt)
	return e, opt, err
}

// placeholder stands for the function in lines, which may have any name.
const placeholder = "function"

// mistake says which probe is wrong.
func (w *wish) mistake(err error) error {
	var syntax *events.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("%q: %s at %q: %s", w.Text, syntax.ID, strings.TrimSpace(syntax.Line[min(syntax.Pos, len(syntax.Line)):]), syntax.ID.Explanation())
	}
	return fmt.Errorf("%q: %w", w.Text, err)
}

// record fetches what a hit has; nil where the condition does not hold.
func (rec *recorder) record(l *traceListing, h *session.Hit) *traced {
	e := &traced{event: rec.program.Event().Name, tgid: h.PID, task: taskOf(h.PID, h.TID)}
	e.task.Time = l.clock.since(h.Time)
	rec.symbols.pid = h.PID
	pc := h.Registers.Reg(rec.isa.Registers().PC)
	hit := &events.Hit{Registers: h.Registers, Memory: h.Memory, Probe: pc, Comm: e.task.Comm}
	bias := pc - rec.addr
	if rec.isReturn {
		if rec.program.NeedsEntry() {
			if hit.Entry = l.leave(h, rec); hit.Entry == nil {
				return nil // it was called before there was a probe
			}
		}
		hit.Return = rec.returnAddress(l, h, pc)
		bias = l.book.bias(h.PID, rec.module)
		hit.Probe, e.returnTo = rec.addr+bias, hit.Return
	}
	values, err := rec.program.Record(hit)
	if err != nil || rec.filter != nil && !rec.filter.Match(&e.task, values) {
		return nil
	}
	e.text = rec.program.Text(hit, values)
	for i := range values {
		e.values = append(e.values, valueOf(&values[i]))
	}
	rec.recordMarker(e, h, bias)
	return e
}

// recordMarker adds the arguments of a static marker, as perf names them.
func (rec *recorder) recordMarker(e *traced, h *session.Hit, bias uint64) {
	for i := range rec.marker {
		a := &rec.marker[i]
		v := tracedValue{name: fmt.Sprintf("arg%d", i+1), text: "(fault)"}
		if n, err := a.Eval(h.Registers, h.Memory, bias); err == nil {
			v.number = true
			v.text = strconv.FormatUint(n, 10)
			if a.Signed {
				v.text = strconv.FormatInt(int64(n), 10)
			}
		}
		e.text += " " + v.name + "=" + v.text
		e.values = append(e.values, v)
	}
}

// returnAddress returns where a function returns to, that is about to, or has just
// returned there.
func (rec *recorder) returnAddress(l *traceListing, h *session.Hit, pc uint64) uint64 {
	f, ok := rec.module.Analysis.FunctionAt(rec.addr)
	if at := pc - l.book.bias(h.PID, rec.module); !ok || at < f.Addr || at >= f.End() {
		return pc
	}
	c := rec.isa.Convention()
	if c.Link >= 0 {
		return h.Registers.Reg(c.Link)
	}
	to, err := h.Memory.ReadWord(h.Registers.Reg(rec.isa.Registers().SP))
	if err != nil {
		return 0
	}
	return to
}

// valueOf returns a recorded value as it goes into JSON.
func valueOf(v *events.Value) tracedValue {
	value := tracedValue{name: v.Name, text: v.String()}
	switch {
	case v.Array || v.Items[0].Fault:
	case v.Type == "string" || v.Type == "ustring":
		value.text = v.Items[0].Text
	case strings.TrimLeft(v.Type, "us") != v.Type && v.Type != "symstr":
		value.number = true
	}
	return value
}

// placeSymbols is what a line at one place may know of names: its function is there,
// once, and other addresses have names as the process has them.
type placeSymbols struct {
	book  *addressBook // nil where none is known
	pid   int          // of the process that has come there
	entry bool         // the place is the function's entry
}

func (s *placeSymbols) Count(string, string) int              { return 1 }
func (s *placeSymbols) Entry(string, uint64) bool             { return s.entry }
func (s *placeSymbols) Address(string) (addr uint64, ok bool) { return 0, false }

func (s *placeSymbols) Lookup(addr uint64) (events.Symbol, uint64, bool) {
	if s.book == nil {
		return events.Symbol{}, 0, false
	}
	return s.book.lookup(s.pid, addr)
}
