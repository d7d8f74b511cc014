// Package notation reads probes as people write them for other tools: attach points
// of bpftrace, lines of tracefs, definitions of perf, and plain places. What it
// returns is where the probe is wanted and by which way in; whether there is such a
// place is a matter of the file.
package notation

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Kind is what sort of probe is wanted.
type Kind uint8

// The kinds.
const (
	Any    Kind = iota // a place alone, which does not say
	Kprobe             // in the kernel or a module
	Fentry             // on a function of the kernel, through its ftrace site
	Uprobe             // in a program or library
	Marker             // a static marker (USDT probe) of one
)

var kindNames = [...]string{Any: "probe", Kprobe: "kprobe", Fentry: "fentry", Uprobe: "uprobe", Marker: "usdt"}

func (k Kind) String() string { return kindNames[k] }

// Tool is whose notation a probe is written in.
type Tool uint8

// The tools.
const (
	Plain    Tool = iota // none: a place
	Bpftrace             // an attach point
	Tracefs              // a line of kprobe_events or uprobe_events
	Perf                 // a definition for perf probe
)

var toolNames = [...]string{Plain: "plain", Bpftrace: "bpftrace", Tracefs: "tracefs", Perf: "perf"}

func (t Tool) String() string { return toolNames[t] }

// Probe is a probe that somebody wants.
type Probe struct {
	Text string // as it was written
	Kind Kind
	Tool Tool
	// Return says that the return of the function is wanted.
	Return bool
	// File is the path of the program or library; empty where the probe names
	// none.
	File string
	// Module is the kernel module that the place is in, or a program or library by
	// the name that people call it: "ext4", "libc". Empty for none.
	Module string
	// Place is where the probe is wanted, as image.Resolve takes it: "vfs_read+0x4",
	// "0xffffffff81000000", "file:0x1040", "main.c:12". Empty for a Marker.
	Place string
	// Source is the source file that the function of Place is in, where there are
	// several of that name; empty for any.
	Source string
	// Glob says that Place, or Provider and Name, are patterns.
	Glob bool
	// Provider and Name are those of a Marker; Provider may be empty for any.
	Provider, Name string
	// Event is the name of what is recorded, with its group where it has one; Args
	// are the arguments, as they were written: "size=%di". Only where the notation has
	// such.
	Event string
	Args  []string
}

// Error says what is wrong with a probe's notation.
type Error struct {
	Text string // as it was written
	What string
}

func (e *Error) Error() string { return fmt.Sprintf("%q: %s", e.Text, e.What) }

// ErrNotAPlace says that an attach point stands at no instruction: a tracepoint, a
// timer.
var ErrNotAPlace = errors.New("it is no place in text")

// Parse reads one probe, in whichever notation it is. It returns an *Error, or one
// that wraps ErrNotAPlace.
func Parse(s string) (Probe, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return Probe{}, &Error{s, "it is empty"}
	case isEvent(s):
		return parseEvent(s)
	case isAttachPoint(s):
		return parseAttachPoint(s)
	case isShort(s):
		return parseShort(s)
	case !isWritten(s) && strings.ContainsAny(s, "%@;= "):
		return parseDefinition(s)
	}
	p := Probe{Text: s}
	p.setPlace(s)
	return p, nil
}

// isShort reports whether s is a place with the first letter of an event before it:
// "r:malloc" is its return. No tool refuses such a place before Linux does.
func isShort(s string) bool {
	return len(s) >= 2 && (s[:2] == "r:" || s[:2] == "p:") && !strings.ContainsAny(s, " \t")
}

func parseShort(s string) (Probe, error) {
	p, err := Parse(s[2:])
	if err != nil {
		return Probe{}, err
	}
	p.Text, p.Return = s, p.Return || s[0] == 'r'
	return p, nil
}

// returnWithOffset is what bpftrace and perf have against an offset. Linux does not
// mind one that still is the entry of the function.
const returnWithOffset = "a return probe has no offset: it is the function that returns"

var (
	bareAddress = regexp.MustCompile(`^[0-9a-f]{8,16}$`)
	moduleName  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	lineNumber  = regexp.MustCompile(`^[0-9]+$`)
)

// setPlace takes a place as it stands in no notation of its own: an address, or what
// image.Resolve takes, perhaps with a file or a module before it.
func (p *Probe) setPlace(s string) {
	if bareAddress.MatchString(s) {
		s = "0x" + s // as kallsyms and stack traces have it
	}
	before, place, ok := splitFile(s)
	switch {
	case !ok:
		place = s
	case sourceFile.MatchString(before):
		p.Source = before
	case moduleName.MatchString(before):
		p.Module = before
	default:
		p.File = before
	}
	p.Place = place
	p.Glob = isGlob(place)
}

// splitFile splits "libc.so.6:malloc", "/bin/bash:main.c:42", "ext4:ext4_file_open",
// "main.c:parse". What "main.c:42", "file:0x1040" and "ns::f" have before the colon is
// a part of the place.
func splitFile(s string) (file, place string, ok bool) {
	file, place, ok = strings.Cut(s, ":")
	if !ok || file == "" || file == "file" || place == "" || place[0] == ':' || lineNumber.MatchString(place) ||
		strings.ContainsAny(file, "(<") {
		return "", "", false
	}
	return file, place, true
}

// isWritten reports whether s is a name as C++ or Rust write it, with parameters or
// of an operator: it may have any of the characters that mean something to perf.
// Parentheses there stand around a register or a number.
func isWritten(s string) bool {
	i := strings.IndexByte(s, '(')
	return i > 0 && !strings.ContainsAny(s[i:min(i+2, len(s))], "%$+-@0123456789") || strings.Contains(s, "operator")
}

// isGlob reports whether s is a pattern. Brackets alone may be those of a C++
// operator.
func isGlob(s string) bool { return strings.ContainsAny(s, "*?") && !strings.Contains(s, "(") }
