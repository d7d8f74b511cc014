package events

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the file that a line belongs to.
type Kind uint8

// The kinds of events.
const (
	Kprobe Kind = iota // kprobe_events: places are functions and addresses
	Uprobe             // uprobe_events: places are offsets in files
)

func (k Kind) String() string { return [...]string{"kprobe", "uprobe"}[k&1] }

// Limits of Linux [kernel/trace/trace_probe.h, trace.h, include/linux/kprobes.h].
const (
	maxName      = 63   // bytes of a group's or event's name
	maxArgName   = 32   // bytes of an argument's name
	maxArgText   = 63   // bytes of an argument's expression and type
	maxArgs      = 128  // arguments of an event
	maxArray     = 64   // elements of an array
	maxMaxActive = 4096 // active calls of a return event
	MaxString    = 4096 // bytes of a string with its final zero byte

	maxStack = 2048 // words of a kernel's stack
)

// Event is a line of kprobe_events or uprobe_events: a probe to define, or one
// to remove.
type Event struct {
	Kind   Kind
	Remove bool // clears the events of that name; Group and Name may be empty
	Return bool // probes the return of the function
	// MaxActive is how many calls of the function are followed at once; 0
	// leaves the number to the implementation. Kprobe only.
	MaxActive   int
	Group, Name string
	// Symbol is the function, with "MODULE:" before it if it is a module's.
	// Empty for a uprobe, and for a probe at an address.
	Symbol string
	// Offset is that of the probe from Symbol, or in the file at Path; bytes.
	Offset uint64
	Addr   uint64 // of the probe, where Symbol and Path are empty
	Path   string // of the probed file
	// RefCounter is the file offset of the counter that says whether anybody
	// looks at a static marker; 0 for none.
	RefCounter uint64
	Args       []Arg
	// Match holds further words of a line that removes: only events of that
	// place with those first arguments are meant.
	Match []string
}

// Arg is what an event records.
type Arg struct {
	Name string
	Text string // the fetch argument and its type: "+8(%di):x32[4]"
}

// Module returns the module in Symbol, empty for none, and the function's name.
func (e *Event) Module() (module, function string) {
	module, function, ok := strings.Cut(e.Symbol, ":")
	if !ok {
		return "", module
	}
	return module, function
}

// String returns the line that defines the event, with all names, as reading
// kprobe_events or uprobe_events shows it. Addresses are never hidden.
func (e *Event) String() string {
	var b strings.Builder
	if e.Remove {
		b.WriteString("-:")
		if e.Group != "" {
			b.WriteString(e.Group + "/")
		}
		b.WriteString(e.Name)
		for _, word := range e.Match {
			b.WriteString(" " + word)
		}
		return b.String()
	}
	b.WriteString(e.letter())
	if e.Return && e.MaxActive > 0 {
		b.WriteString(strconv.Itoa(e.MaxActive))
	}
	fmt.Fprintf(&b, ":%s/%s %s", e.Group, e.Name, e.place())
	for _, a := range e.Args {
		b.WriteString(" " + a.Name + "=" + a.Text)
	}
	return b.String()
}

func (e *Event) letter() string {
	if e.Return {
		return "r"
	}
	return "p"
}

// place returns where the probe stands: "vfs_read+16", "/bin/zsh:0x…".
func (e *Event) place() string {
	switch {
	case e.Kind == Uprobe && e.RefCounter != 0:
		return fmt.Sprintf("%s:0x%016x(0x%x)", e.Path, e.Offset, e.RefCounter)
	case e.Kind == Uprobe:
		return fmt.Sprintf("%s:0x%016x", e.Path, e.Offset)
	case e.Symbol == "":
		return fmt.Sprintf("0x%016x", e.Addr)
	case e.Offset != 0:
		return fmt.Sprintf("%s+%d", e.Symbol, e.Offset)
	}
	return e.Symbol
}

// defaultGroup returns the group of events that name none.
func (k Kind) defaultGroup() string { return k.String() + "s" }

// setDefaultName makes a name of the place. Linux keeps in it what else a
// path or symbol contains, so that its line for the event may not be read
// again; here it becomes an underscore.
func (e *Event) setDefaultName() {
	var name string
	switch {
	case e.Kind == Uprobe:
		base := e.Path[strings.LastIndexByte(e.Path, '/')+1:]
		if i := strings.IndexAny(base, ".-_"); i >= 0 {
			base = base[:i]
		}
		name = fmt.Sprintf("p_%s_0x%x", base, e.Offset)
	case e.Symbol != "":
		name = fmt.Sprintf("%s_%s_%d", e.letter(), e.Symbol, e.Offset)
	default:
		name = fmt.Sprintf("%s_0x%016x", e.letter(), e.Addr)
	}
	safe := []byte(name[:min(len(name), maxName)])
	for i, c := range safe {
		if !isNameByte(c) {
			safe[i] = '_'
		}
	}
	e.Name = string(safe)
}

func isNameByte(c byte) bool { return isAlpha(c) || isDigit(c) || c == '_' }

// goodName says whether s may name an event or argument.
func goodName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return s != "" && !isDigit(s[0])
}

// goodGroup says whether s may name a group.
func goodGroup(s string) bool { return goodName(strings.ReplaceAll(s, "-", "_")) }
