package image

import (
	"errors"
	"fmt"
	"io"
	"slices"
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

// readSymbolMap reads what ReadSymbolMap does, but leaves the symbols of modules
// out: the file that the map is for has none of them.
func readSymbolMap(r io.Reader) ([]MapSymbol, error) {
	syms, err := ReadSymbolMap(r)
	if err != nil {
		return nil, err
	}
	syms = slices.DeleteFunc(syms, func(s MapSymbol) bool { return s.Module != "" })
	if len(syms) == 0 {
		return nil, errNoKernelSymbols
	}
	return syms, nil
}

var errNoKernelSymbols error = &FormatError{What: "no symbols of a kernel", Where: "symbols"}

// ReadSymbolMap reads a System.map, the text of /proc/kallsyms, or what nm
// prints: lines of address, type and name, and the module in brackets where it is
// not the kernel's. Undefined symbols are left out. The list is in the order of the
// text.
//
// It returns a *SymbolMapError, ErrHiddenAddresses, ErrTooLarge, a *FormatError
// where there is no symbol, or an error of r.
func ReadSymbolMap(r io.Reader) ([]MapSymbol, error) {
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
func parseSymbolMap(text string) ([]MapSymbol, error) {
	syms := make([]MapSymbol, 0, strings.Count(text, "\n")+1)
	addrs := uint64(0)
	for n := 1; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimSuffix(line, "\r")
		if line == "" || line[0] == ' ' { // undefined symbols have no address
			continue
		}
		s, what := parseSymbol(line)
		if what != "" {
			return nil, &SymbolMapError{Line: n, Text: shorten(line), What: what}
		}
		addrs |= s.Addr
		syms = append(syms, s)
	}
	switch {
	case len(syms) == 0:
		return nil, errNoKernelSymbols
	case addrs == 0:
		return nil, ErrHiddenAddresses
	}
	return syms, nil
}

// parseSymbol parses one line. what says what is wrong with it.
func parseSymbol(line string) (s MapSymbol, what string) {
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
		return s, "not address, type and name"
	}
	s.Type = line[digits+1]
	s.Name = line[digits+3:]
	if end := strings.IndexAny(s.Name, " \t"); end >= 0 {
		rest := strings.TrimSpace(s.Name[end:])
		if s.Name = s.Name[:end]; rest != "" && (rest[0] != '[' || rest[len(rest)-1] != ']') {
			return s, "more than address, type, name and [module]"
		}
		if rest != "" {
			s.Module = rest[1 : len(rest)-1]
		}
	}
	if s.Name == "" {
		return s, "no name"
	}
	return s, ""
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
