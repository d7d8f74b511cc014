package events

import "strings"

// ParseGlob is Parse for a line that may stand for many probes: a pattern, with
// one of * ? and [, in place of a function, or of a file's offset after the
// colon. places returns what the pattern stands for, each of which takes its
// place in the line: names of functions, or offsets. A line without a pattern is
// one event. After MODULE: only the module's functions are meant. A pattern
// that matches nothing is BadProbeAddr.
func ParseGlob(line string, opt Options, places func(pattern string) []string) ([]Event, error) {
	p := &parser{line: line, words: split(line), opt: opt}
	if len(p.words) < 2 || p.words[0].text[0] == '-' {
		return parseOne(line, opt)
	}
	pattern, at := p.pattern()
	if !strings.ContainsAny(pattern, "*?[") {
		return parseOne(line, opt)
	}
	var all []Event
	seen := map[string]bool{}
	for _, place := range places(pattern) {
		if seen[place] || !p.inModule(place) {
			continue
		}
		seen[place] = true
		e, err := Parse(line[:at]+place+line[at+len(pattern):], opt)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil, p.fail(1, at-p.words[1].pos, BadProbeAddr)
	}
	return all, nil
}

func parseOne(line string, opt Options) ([]Event, error) {
	e, err := Parse(line, opt)
	if err != nil {
		return nil, err
	}
	return []Event{e}, nil
}

// inModule says whether a function is in the module that stands before it in
// the line, if any.
func (p *parser) inModule(function string) bool {
	module, _, ok := strings.Cut(p.words[1].text, ":")
	return !ok || p.opt.Kind != Kprobe || p.opt.Symbols == nil || p.opt.Symbols.Count(module, function) > 0
}

// pattern returns the part of the place that may be a pattern, and where it is
// in the line.
func (p *parser) pattern() (string, int) {
	place, at := p.words[1].text, p.words[1].pos
	if i := strings.LastIndexByte(place, ':'); i >= 0 {
		place, at = place[i+1:], at+i+1
	}
	end := strings.IndexAny(place, "+%(")
	if end < 0 {
		end = len(place)
	}
	return place[:end], at
}

// Match says whether all of name matches a pattern of the kernel's kind
// [lib/glob.c]: * is any number of characters, ? one, [a-z] and [!a-z] one of a
// set, and a backslash takes the next character for itself.
func Match(pattern, name string) bool {
	// Where the last * was, and the part of name that it stands for so far.
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(name) {
		if i < len(pattern) && pattern[i] == '*' {
			star, mark = i, j
			i++
			continue
		}
		if n, ok := matchByte(pattern[i:], name[j]); ok {
			i += n
			j++
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		i, j = star+1, mark
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// matchByte matches c against the first element of a pattern, n bytes long.
func matchByte(pattern string, c byte) (n int, ok bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == c
		}
	case '[':
		if n, ok := matchSet(pattern, c); n > 0 {
			return n, ok
		}
	}
	return 1, pattern[0] == c
}

// matchSet matches c against a set [a-z] or [!a-z], n bytes long; n is 0 if
// the set does not end. A ] that comes first belongs to it.
func matchSet(pattern string, c byte) (n int, ok bool) {
	i := 1
	inverted := i < len(pattern) && pattern[i] == '!'
	if inverted {
		i++
	}
	in := false
	for first := i; i < len(pattern) && (pattern[i] != ']' || i == first); i++ {
		lo, hi := pattern[i], pattern[i]
		if i+2 < len(pattern) && pattern[i+1] == '-' && pattern[i+2] != ']' {
			hi = pattern[i+2]
			i += 2
		}
		in = in || lo <= c && c <= hi
	}
	if i >= len(pattern) {
		return 0, false
	}
	return i + 1, in != inverted
}
