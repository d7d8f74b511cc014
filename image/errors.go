package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Errors that Open returns for files of the wrong kind.
var (
	// ErrEmpty: the file has no bytes.
	ErrEmpty = errors.New("the file is empty")
	// ErrNotELF: neither an ELF file nor a packed kernel or module.
	ErrNotELF = errors.New("not an ELF file, and no packed kernel or module either")
	// ErrClass: an ELF file of another class.
	ErrClass = errors.New("not a 64-bit ELF file; only 64-bit ones are supported")
	// ErrTruncated: the file ends before something that its headers promise.
	ErrTruncated = errors.New("the file is cut off")
	// ErrNoSymbols: a kernel's bare memory image has no symbols in it that say
	// where its parts are, and none were given.
	ErrNoSymbols = errors.New("this bare kernel image has no symbols of its own (kallsyms); give its System.map")
)

// FormatError says what is wrong with a file, and where in it.
type FormatError struct {
	What  string // one clause
	Where string // section, table or file offset
	Err   error  // the cause, where there is one; ErrTruncated among others
}

func (e *FormatError) Error() string {
	what := e.What
	switch {
	case what == "" && e.Err != nil:
		what = e.Err.Error()
	case e.Err != nil:
		what += ": " + e.Err.Error()
	}
	if e.Where == "" {
		return what
	}
	return fmt.Sprintf("%s (%s)", what, printable(e.Where))
}

func (e *FormatError) Unwrap() error { return e.Err }

// truncated says that part of what the headers promise is missing.
func truncated(where string) error { return &FormatError{Where: where, Err: ErrTruncated} }

// TypeError says that an ELF file is of a type that holds no program text to
// analyze.
type TypeError struct{ Type elf.Type }

func (e *TypeError) Error() string {
	return fmt.Sprintf("ELF type %v is not supported (supported: ET_EXEC, ET_DYN, ET_REL)", e.Type)
}

// SymbolNotFoundError says that no symbol has a name, or that no function
// matches a pattern, and which names are like it.
type SymbolNotFoundError struct {
	Name    string
	Pattern bool     // Name is a pattern for names of functions
	Nearest []string // the most similar first; empty where none is similar
}

func (e *SymbolNotFoundError) Error() string {
	text := fmt.Sprintf("no symbol %q", e.Name)
	if e.Pattern && strings.ContainsAny(e.Name, "*?[") {
		text = fmt.Sprintf("no function matches %q", e.Name)
	}
	if len(e.Nearest) > 0 {
		text += " (similar: " + strings.Join(e.Nearest, ", ") + ")"
	}
	return text
}

// NotTextError says that an address or file offset holds no program text.
type NotTextError struct {
	Place   string // as it was given; empty where an address was
	Addr    uint64
	Section string  // the section that holds the address; empty where none does
	Text    []Range // where text is
}

func (e *NotTextError) Error() string {
	var b strings.Builder
	if e.Place != "" {
		fmt.Fprintf(&b, "%s is not in text", e.Place)
	} else {
		fmt.Fprintf(&b, "%#x is not in text", e.Addr)
	}
	if e.Section != "" {
		fmt.Fprintf(&b, " but in section %s", printable(e.Section))
	}
	const most = 4
	for i, r := range e.Text {
		switch {
		case i == 0:
			b.WriteString("; text is ")
		case i == most:
			fmt.Fprintf(&b, " and %d more ranges", len(e.Text)-most)
			return b.String()
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%#x–%#x", r.Addr, r.End())
	}
	return b.String()
}

// PlaceError says that nothing can be found at a place, because it is not
// written as one or the file does not tell.
type PlaceError struct {
	Place string
	What  string
}

func (e *PlaceError) Error() string { return fmt.Sprintf("place %q: %s", e.Place, e.What) }

// badPlace says what is wrong with the way a place is written.
func badPlace(place, what string) error {
	return &PlaceError{place, what + " (places are symbol, symbol+0x1c, 0x1000, file:0x1000, source.c:123)"}
}

// printable keeps what a file contains from spoiling the line that speaks of
// it.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		s = strconv.Quote(s)
	}
	return s
}

// readError says which part of a file could not be read, or is not there.
func readError(err error, where string) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return truncated(where)
	}
	return &FormatError{What: "cannot read", Where: where, Err: err}
}
