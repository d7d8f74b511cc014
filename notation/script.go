package notation

import (
	"errors"
	"regexp"
	"strings"
)

// Line is a probe of a script, or what is wrong with it.
type Line struct {
	Number int    // from 1
	Text   string // of the probe
	Probe  Probe
	Err    error // then Probe is empty
}

// Script reads all probes of a text: a bpftrace script, a kprobe_events file, or
// one probe per line in any notation, also as arguments of perf probe. What follows
// a # is a comment, as empty lines are. Attach points that are no places in text
// (timers, tracepoints) are left out.
func Script(text string) []Line {
	if isBpftrace(text) {
		return bpftraceScript(text)
	}
	var lines []Line
	number := 0
	for s := range strings.Lines(text) {
		number++
		if s = withoutComment(s); s == "" || removal.MatchString(s) {
			continue
		}
		lines = append(lines, readLine(number, s)...)
	}
	return lines
}

// removal is a line of tracefs that takes an event away.
var removal = regexp.MustCompile(`^-:\S*(\s|$)`)

// withoutComment returns what a line says. In #include the # is no comment, but
// that stands in bpftrace scripts only.
func withoutComment(s string) string {
	if i := strings.IndexByte(s, '#'); i == 0 || i > 0 && (s[i-1] == ' ' || s[i-1] == '\t') {
		s = s[:i]
	}
	return strings.TrimSpace(s)
}

// readLine reads a line of a list. One with arguments of perf may have several
// probes.
func readLine(number int, s string) []Line {
	if rest, ok := strings.CutPrefix(s, "perf probe "); ok {
		return perfCommand(number, rest)
	}
	return appendLine(nil, number, s, Parse)
}

// appendLine appends what parse makes of a probe, unless that is no place.
func appendLine(lines []Line, number int, s string, parse func(string) (Probe, error)) []Line {
	p, err := parse(s)
	if errors.Is(err, ErrNotAPlace) {
		return lines
	}
	return append(lines, Line{number, s, p, err})
}

// perfCommand reads the arguments of perf probe.
func perfCommand(number int, s string) []Line {
	var file, module string
	var lines []Line
	words := shellWords(s)
	for i := 0; i < len(words); i++ {
		name, value, joined := strings.Cut(words[i], "=")
		if !joined || !strings.HasPrefix(name, "-") {
			name, value = words[i], ""
		}
		if len(name) > 2 && name[0] == '-' && name[1] != '-' { // -x/bin/bash
			name, value = words[i][:2], words[i][2:]
		}
		next := func() string {
			if value == "" && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				i++
				value = words[i]
			}
			return value
		}
		switch name {
		case "-x", "--exec":
			file = next()
		case "-m", "--module":
			module = next()
		case "-a", "--add":
			lines = appendLine(lines, number, next(), parseDefinition)
		case "-k", "--vmlinux", "-s", "--source", "--max-probes", "--target-ns", "--filter",
			"-d", "--del", "-l", "--list", "-L", "--line", "-V", "--vars", "-F", "--funcs":
			next() // no probe is made of it
		default:
			if !strings.HasPrefix(name, "-") {
				lines = appendLine(lines, number, strings.Join(words[i:], " "), parseDefinition)
				i = len(words)
			}
		}
	}
	for i := range lines {
		if p := &lines[i].Probe; lines[i].Err == nil {
			p.setTarget(file, module)
		}
	}
	return lines
}

func (p *Probe) setTarget(file, module string) {
	p.Tool = Perf
	p.Kind = Kprobe
	if file != "" {
		p.Kind, p.File = Uprobe, file
	}
	if module != "" {
		p.Module = module
	}
}

// shellWords splits at spaces, but not inside quotes, which it takes away.
func shellWords(s string) (words []string) {
	var word strings.Builder
	var quote rune
	open := false
	for _, c := range s + " " {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, open = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if open {
				words = append(words, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteRune(c)
			open = true
		}
	}
	if quote != 0 {
		words = append(words, word.String())
	}
	return words
}
