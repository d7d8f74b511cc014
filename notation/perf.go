package notation

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// definition is what perf probe takes [tools/perf/Documentation/perf-probe.txt,
// "PROBE SYNTAX"]: a name, a place, and arguments after a space.
var definition = regexp.MustCompile(`^(?:([\w:]+)=)?(\S+?)(?:\s(.*))?$`)

// parseDefinition reads a definition for perf probe.
func parseDefinition(s string) (Probe, error) {
	m := definition.FindStringSubmatch(s)
	if m == nil {
		return Probe{}, &Error{s, "it is neither a place nor a definition for perf"}
	}
	p := Probe{Text: s, Tool: Perf, Event: strings.Replace(m[1], ":", "/", 1)}
	if args := strings.Fields(m[3]); len(args) > 0 {
		p.Args = args
	}
	place := m[2]
	if place, p.Return = strings.CutSuffix(place, "%return"); strings.ContainsRune(place, '%') {
		return Probe{}, &Error{s, "only %return may follow a function"}
	}
	if strings.ContainsRune(place, ';') {
		return Probe{}, &Error{s, "patterns of source lines are not known here: give the line, as file.c:123"}
	}
	if at := strings.IndexByte(place, '@'); at > 0 && !isVersion(place[at:]) {
		p.Source, place = splitSource(place, at)
	}
	if place == "" || strings.HasSuffix(place, "=") {
		return Probe{}, &Error{s, "it names no place"}
	}
	if name, line, ok := strings.Cut(place, ":"); ok && isNumber(line) && !strings.ContainsRune(name, '.') {
		return Probe{}, &Error{s, "lines of a function are not known here: give that of the file, as file.c:123"}
	}
	if place == s {
		p.Tool = Plain
	}
	p.setPlace(place)
	if p.Return && strings.ContainsRune(p.Place, '+') {
		return Probe{}, &Error{s, returnWithOffset}
	}
	return p, nil
}

// splitSource takes "function@source.c+4" apart, whose @ is at at.
func splitSource(s string, at int) (source, place string) {
	source, place = s[at+1:], s[:at]
	if i := strings.LastIndexByte(source, '+'); i > 0 && isNumber(source[i+1:]) {
		source, place = source[:i], place+source[i:]
	}
	return source, place
}

// isVersion reports whether what follows a symbol from its @ on is the version of
// one, as memcpy@GLIBC_2.2.5 has it, and no source file.
func isVersion(s string) bool {
	s = strings.TrimLeft(s, "@")
	return !strings.Contains(s, "/") && !sourceFile.MatchString(s)
}

var sourceFile = regexp.MustCompile(`\.(c|h|S|s|cc|cpp|cxx|C|rs|go|hpp|hh)(\+|$)`)

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 0, 64)
	return err == nil
}

func placeIn(prefix string, v uint64) string { return fmt.Sprintf("%s%#x", prefix, v) }
