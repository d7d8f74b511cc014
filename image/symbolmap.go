package image

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxSymbolMap bounds how much of a symbol map is read. That of a kernel with
// all its modules takes some 20 MiB.
const maxSymbolMap = 1 << 30

// ErrHiddenAddresses: every address in a symbol map is 0, as /proc/kallsyms
// shows them to those who must not know.
var ErrHiddenAddresses = errors.New("all addresses are 0, because the kernel hides them: read /proc/kallsyms as root, with the sysctl kernel.kptr_restrict below 2")

// SymbolMapError says which line of a symbol map is wrong.
type SymbolMapError struct {
	Line int    // from 1
	Text string // of the line, shortened
	What string
}

func (e *SymbolMapError) Error() string {
	return fmt.Sprintf("symbols: %s: %q (line %d)", e.What, e.Text, e.Line)
}

// readSymbolMap reads a System.map, the text of /proc/kallsyms, or what nm
// prints: lines of address, type and name. Symbols of modules, which kallsyms
// marks with the module's name, are left out, and so are nm's undefined ones.
// The list is in the order of the text.
//
// It returns a *SymbolMapError, ErrHiddenAddresses, ErrTooLarge, or an error
// of r.
func readSymbolMap(r io.Reader) ([]mapSymbol, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSymbolMap+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSymbolMap {
		return nil, fmt.Errorf("symbols: %w", ErrTooLarge)
	}
	return parseSymbolMap(string(text))
}

// parseSymbolMap makes symbols of text, whose memory their names share.
func parseSymbolMap(text string) ([]mapSymbol, error) {
	syms := make([]mapSymbol, 0, strings.Count(text, "\n")+1)
	addrs := uint64(0)
	for n := 1; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimSuffix(line, "\r")
		if line == "" || line[0] == ' ' { // undefined symbols have no address
			continue
		}
		s, module, what := parseSymbol(line)
		if what != "" {
			return nil, &SymbolMapError{Line: n, Text: shorten(line), What: what}
		}
		addrs |= s.Addr
		if module {
			continue
		}
		syms = append(syms, s)
	}
	switch {
	case len(syms) == 0:
		return nil, &FormatError{What: "no symbols of a kernel", Where: "symbols"}
	case addrs == 0:
		return nil, ErrHiddenAddresses
	}
	return syms, nil
}

// parseSymbol parses one line. what says what is wrong with it.
func parseSymbol(line string) (s mapSymbol, module bool, what string) {
	digits := 0
	for ; digits < len(line); digits++ {
		d := hexDigit(line[digits])
		if d > 15 {
			break
		}
		s.Addr = s.Addr<<4 | uint64(d)
	}
	const mostDigits = 16
	if digits == 0 || digits > mostDigits || len(line) < digits+4 || line[digits] != ' ' || line[digits+2] != ' ' {
		return s, false, "not address, type and name"
	}
	s.Type = line[digits+1]
	s.Name = line[digits+3:]
	if end := strings.IndexAny(s.Name, " \t"); end >= 0 {
		rest := strings.TrimSpace(s.Name[end:])
		if s.Name = s.Name[:end]; rest != "" && (rest[0] != '[' || rest[len(rest)-1] != ']') {
			return s, false, "more than address, type, name and [module]"
		}
		module = rest != ""
	}
	if s.Name == "" {
		return s, false, "no name"
	}
	return s, module, ""
}

// hexDigit returns the value of a digit, or more than 15.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// shorten cuts a line to what fits into a message.
func shorten(line string) string {
	const most = 100
	if len(line) > most {
		return line[:most] + "…"
	}
	return line
}
