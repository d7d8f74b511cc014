package events

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Value is what was recorded of an argument.
type Value struct {
	Name  string
	Type  string // "u32"; of a bitfield, that of its container
	Array bool
	Items []Item // one, or the elements of the array

	format format
}

// Item is a value, or an element of an array.
type Item struct {
	Fault  bool   // memory could not be read
	Number uint64 // sign-extended if the type is signed
	Text   string // of strings, and of the symbol at Number
}

// String returns the value as trace shows it after "name=". A value whose
// memory could not be read is "(fault)", also where Linux shows what happened to
// be in its buffer.
func (v *Value) String() string {
	if !v.Array {
		return v.item(&v.Items[0])
	}
	parts := make([]string, len(v.Items))
	for i := range v.Items {
		parts[i] = v.item(&v.Items[i])
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (v *Value) item(i *Item) string {
	if i.Fault {
		return "(fault)"
	}
	switch v.format {
	case asSigned:
		return strconv.FormatInt(int64(i.Number), 10)
	case asHex:
		return "0x" + strconv.FormatUint(i.Number, 16)
	case asChar:
		return "'" + string([]byte{byte(i.Number)}) + "'"
	case asSymbol:
		return i.Text
	case asString:
		return `"` + i.Text + `"`
	}
	return strconv.FormatUint(i.Number, 10)
}

// isNumber says whether the value is one number.
func (v *Value) isNumber() bool {
	return !v.Array && v.format != asString && !v.Items[0].Fault
}

// symbolText returns addr as SYM+offset/size [MODULE], or as a number
// [kernel/kallsyms.c, sprint_symbol].
func symbolText(s Symbols, addr uint64) string {
	if s != nil {
		if symbol, offset, ok := s.Lookup(addr); ok {
			text := fmt.Sprintf("%s+%#x/%#x", symbol.Name, offset, symbol.Size)
			if symbol.Module != "" {
				text += " [" + symbol.Module + "]"
			}
			return text
		}
	}
	return fmt.Sprintf("%#x", addr)
}

// functionText returns the name of the function at addr, or the number with at
// least 8 digits [kernel/trace/trace_output.c, trace_seq_print_sym].
func functionText(s Symbols, addr uint64) string {
	if s != nil {
		if symbol, _, ok := s.Lookup(addr); ok {
			return symbol.Name
		}
	}
	return fmt.Sprintf("0x%08x", addr)
}

// Text returns the event's part of a line of trace:
//
//	myprobe: (do_sys_open+0x0/0xd6) dfd=0x3 filename=0x7fffd1ec4440
//	myretprobe: (sys_openat+0xc/0xe <- do_sys_open) arg1=0xfffffffffffffffe
//
// Places of uprobes are numbers.
func (p *Program) Text(h *Hit, values []Value) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: (%s)", p.event.Name, p.place(h))
	for i := range values {
		b.WriteString(" " + values[i].Name + "=" + values[i].String())
	}
	return b.String()
}

func (p *Program) place(h *Hit) string {
	switch uprobe := p.event.Kind == Uprobe; {
	case uprobe && p.event.Return:
		return fmt.Sprintf("0x%x <- 0x%x", h.Return, h.Probe)
	case uprobe:
		return fmt.Sprintf("0x%x", h.Probe)
	case p.event.Return:
		return symbolText(p.symbols, h.Return) + " <- " + functionText(p.symbols, h.Probe)
	}
	return symbolText(p.symbols, h.Probe)
}

// Task is what runs when a probe is hit, and when.
type Task struct {
	Comm string
	PID  int
	CPU  int
	Time time.Duration // since the machine started
}

// Line returns text as a line of trace without the state of interrupts (option
// noirq-info): "<comm>-<pid> [cpu]  seconds: text". The time is rounded to the
// nearest microsecond
// [kernel/trace/trace_output.c, trace_print_context; trace.c, ns2usecs].
func (t *Task) Line(text string) string {
	us := t.Time.Round(time.Microsecond).Microseconds()
	return fmt.Sprintf("%16s-%-7d [%03d]  %5d.%06d: %s", t.Comm, t.PID, t.CPU, us/1e6, us%1e6, text)
}
