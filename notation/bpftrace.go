package notation

import (
	"fmt"
	"strconv"
	"strings"
)

// provider is a type of probes of bpftrace [bpftrace(8), "Probes"].
type provider struct {
	names    []string
	kind     Kind
	isReturn bool
	noPlace  bool // it stands at no instruction
}

var providers = []provider{
	{names: []string{"kprobe", "k"}, kind: Kprobe},
	{names: []string{"kretprobe", "kr"}, kind: Kprobe, isReturn: true},
	{names: []string{"fentry", "kfunc", "f"}, kind: Fentry},
	{names: []string{"fexit", "kretfunc", "fr"}, kind: Fentry, isReturn: true},
	{names: []string{"uprobe", "u"}, kind: Uprobe},
	{names: []string{"uretprobe", "ur"}, kind: Uprobe, isReturn: true},
	{names: []string{"usdt", "U"}, kind: Marker},
	{names: []string{
		"BEGIN", "END", "begin", "end", "self", "test", "bench", "tracepoint", "t", "rawtracepoint", "rt", "software", "s",
		"hardware", "h", "profile", "p", "interval", "i", "watchpoint", "w", "asyncwatchpoint", "aw", "iter", "it",
	}, noPlace: true},
}

// findProvider returns the type of probes of that name.
func findProvider(name string) *provider {
	for i := range providers {
		for _, n := range providers[i].names {
			if n == name {
				return &providers[i]
			}
		}
	}
	return nil
}

// isAttachPoint reports whether s is written for bpftrace: it starts with the full
// name of a type of probes. The short names are left to scripts, since "t:main" may
// be a symbol of a module.
func isAttachPoint(s string) bool {
	name, _, found := strings.Cut(s, ":")
	return found && len(name) > 2 && findProvider(name) != nil
}

// parseAttachPoint reads one attach point of bpftrace.
func parseAttachPoint(s string) (Probe, error) {
	words := splitAttachPoint(s)
	t := findProvider(words[0])
	switch {
	case t == nil:
		return Probe{}, &Error{s, fmt.Sprintf("bpftrace has no probes of type %q", words[0])}
	case t.noPlace:
		return Probe{}, fmt.Errorf("%s: %w", s, ErrNotAPlace)
	}
	p := Probe{Text: s, Kind: t.kind, Tool: Bpftrace, Return: t.isReturn}
	var what string
	switch t.kind {
	case Uprobe:
		what = p.inProgram(words[1:])
	case Marker:
		what = p.marker(words[1:])
	default:
		what = p.inKernel(words[1:])
	}
	if what == "" && p.Return && strings.ContainsRune(p.Place, '+') {
		what = returnWithOffset
	}
	if what != "" {
		return Probe{}, &Error{s, what}
	}
	return p, nil
}

// splitAttachPoint splits at colons, but not inside quotes, which it takes away.
// Nor does it split at the two colons of C++.
func splitAttachPoint(s string) []string {
	words := []string{""}
	quoted := false
	for i := 0; i < len(s); i++ {
		last := &words[len(words)-1]
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == ':' && !quoted && i+1 < len(s) && s[i+1] == ':' && len(words) > 2:
			*last += "::"
			i++
		case c == ':' && !quoted:
			words = append(words, "")
		default:
			*last += s[i : i+1]
		}
	}
	return words
}

// inKernel takes "[module:]function[+offset]" in. It returns what is wrong.
func (p *Probe) inKernel(words []string) string {
	switch len(words) {
	case 1:
	case 2:
		if p.Module = words[0]; p.Module == "vmlinux" {
			p.Module = ""
		}
	default:
		return "want " + p.Kind.String() + ":function[+offset] or " + p.Kind.String() + ":module:function[+offset]"
	}
	p.Place = words[len(words)-1]
	p.Glob = isGlob(p.Place)
	if p.Place == "" {
		return "it names no function"
	}
	return ""
}

// inProgram takes "file:[cpp:]function[+offset]" or "file:offset" in.
func (p *Probe) inProgram(words []string) string {
	if len(words) == 3 && (words[1] == "cpp" || words[1] == "rust") {
		words = []string{words[0], words[2]}
	}
	if len(words) != 2 || words[0] == "" || words[1] == "" {
		return "want " + p.Kind.String() + ":FILE:function[+offset] or " + p.Kind.String() + ":FILE:offset"
	}
	p.File, p.Place = words[0], words[1]
	if off, err := strconv.ParseUint(p.Place, 0, 64); err == nil {
		p.Place = fmt.Sprintf("file:%#x", off)
	}
	p.Glob = isGlob(p.Place)
	return ""
}

// marker takes "file:[provider:]name" in.
func (p *Probe) marker(words []string) string {
	switch len(words) {
	case 2:
		p.File, p.Name = words[0], words[1]
	case 3:
		p.File, p.Provider, p.Name = words[0], words[1], words[2]
	}
	if p.File == "" || p.Name == "" {
		return "want usdt:FILE:[provider:]name"
	}
	p.Glob = isGlob(p.Provider) || isGlob(p.Name)
	return ""
}
