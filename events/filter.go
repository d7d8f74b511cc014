package events

import (
	"fmt"
	"strconv"
	"strings"
)

// Filter is a condition on what an event records, as the files filter of tracefs have
// it [Documentation/trace/events.rst, 5. Event filtering]:
//
//	size > 4096 && (comm == "sh" || name ~ "*.so")
//
// Fields are the event's arguments by their names, common_pid, comm or COMM, and cpu
// or CPU. Numbers are compared by == != < <= > >= and &, strings by == != and ~, which
// takes a pattern as Match does. A value that could not be read meets no condition.
type Filter struct{ holds condition }

// condition says whether what was recorded meets it.
type condition func(t *Task, values []Value) bool

// Match reports whether what was recorded in a task meets the condition.
func (f *Filter) Match(t *Task, values []Value) bool { return f.holds(t, values) }

// FilterError says where a condition is wrong.
type FilterError struct {
	Text string // the condition
	Pos  int    // of the mistake, in bytes
	What string
}

func (e *FilterError) Error() string {
	return fmt.Sprintf("the condition %q is wrong at %q: %s", e.Text, e.Text[e.Pos:], e.What)
}

// Filter compiles a condition on the event's arguments. The error is a *FilterError.
func (p *Program) Filter(text string) (*Filter, error) {
	r := filterReader{program: p, text: text}
	c, err := r.either()
	if err == nil && r.word() != "" {
		err = r.fail("want && or ||")
	}
	if err != nil {
		return nil, err
	}
	return &Filter{c}, nil
}

// filterReader reads a condition.
type filterReader struct {
	program *Program
	text    string
	pos     int
}

func (r *filterReader) fail(format string, args ...any) error {
	return &FilterError{Text: r.text, Pos: r.pos, What: fmt.Sprintf(format, args...)}
}

// filterSigns are what stands between names and values, longer ones first.
var filterSigns = []string{"&&", "||", "==", "!=", "<=", ">=", "<", ">", "&", "~", "!", "(", ")"}

// word returns the next word, which stays: a sign, a string with its quotes, or a name
// or number; empty at the end.
func (r *filterReader) word() string {
	r.pos += len(r.text[r.pos:]) - len(strings.TrimLeft(r.text[r.pos:], " \t"))
	rest := r.text[r.pos:]
	if rest == "" {
		return ""
	}
	if quote := rest[0]; quote == '"' || quote == '\'' {
		if end := strings.IndexByte(rest[1:], quote); end >= 0 {
			return rest[:end+2]
		}
		return rest
	}
	for _, sign := range filterSigns {
		if strings.HasPrefix(rest, sign) {
			return sign
		}
	}
	if end := strings.IndexAny(rest, " \t&|=!<>~()\"'"); end >= 0 {
		return rest[:max(end, 1)]
	}
	return rest
}

// take goes past the next word if it is that one.
func (r *filterReader) take(word string) bool {
	if r.word() != word {
		return false
	}
	r.pos += len(word)
	return true
}

// either reads conditions with || between them, both those with &&, one a single one.
func (r *filterReader) either() (condition, error) {
	return r.list("||", r.both, func(a, b condition) condition {
		return func(t *Task, v []Value) bool { return a(t, v) || b(t, v) }
	})
}

func (r *filterReader) both() (condition, error) {
	return r.list("&&", r.one, func(a, b condition) condition {
		return func(t *Task, v []Value) bool { return a(t, v) && b(t, v) }
	})
}

func (r *filterReader) list(sign string, read func() (condition, error), join func(a, b condition) condition) (condition, error) {
	c, err := read()
	for err == nil && r.take(sign) {
		var next condition
		if next, err = read(); err == nil {
			c = join(c, next)
		}
	}
	return c, err
}

func (r *filterReader) one() (condition, error) {
	switch {
	case r.take("!"):
		c, err := r.one()
		return func(t *Task, v []Value) bool { return !c(t, v) }, err
	case r.take("("):
		c, err := r.either()
		if err == nil && !r.take(")") {
			err = r.fail("want )")
		}
		return c, err
	}
	return r.comparison()
}

// field is what a condition may speak of: a number or a string.
type field struct {
	text   bool
	signed bool
	number func(t *Task, v []Value) (n uint64, ok bool)
	string func(t *Task, v []Value) (s string, ok bool)
}

// fields of every event.
var commonFields = map[string]field{
	"common_pid": {signed: true, number: func(t *Task, _ []Value) (uint64, bool) { return uint64(t.PID), true }},
	"cpu":        {number: func(t *Task, _ []Value) (uint64, bool) { return uint64(t.CPU), true }},
	"comm":       {text: true, string: func(t *Task, _ []Value) (string, bool) { return t.Comm, true }},
}

// field finds what a name means, of this event's arguments first.
func (r *filterReader) field(name string) (field, error) {
	for i := range r.program.fetches {
		f := &r.program.fetches[i]
		switch {
		case f.name != name:
			continue
		case f.count > 0:
			return field{}, r.fail("it is an array, which cannot be compared")
		}
		return field{
			text: f.typ.format == asString, signed: f.typ.format == asSigned,
			number: func(_ *Task, v []Value) (uint64, bool) { return v[i].Items[0].Number, !v[i].Items[0].Fault },
			string: func(_ *Task, v []Value) (string, bool) { return v[i].Items[0].Text, !v[i].Items[0].Fault },
		}, nil
	}
	common := name
	if name == "COMM" || name == "CPU" {
		common = strings.ToLower(name)
	}
	if f, ok := commonFields[common]; ok {
		return f, nil
	}
	var names []string
	for i := range r.program.fetches {
		names = append(names, r.program.fetches[i].name)
	}
	return field{}, r.fail("there is no such field (there are %s)", strings.Join(append(names, "common_pid", "comm", "cpu"), ", "))
}

func (r *filterReader) comparison() (condition, error) {
	name := r.word()
	if name == "" || strings.ContainsAny(name[:1], `&|=!<>~()"'`) {
		return nil, r.fail("want the name of a field")
	}
	f, err := r.field(name)
	if err != nil {
		return nil, err
	}
	r.pos += len(name)
	sign := r.word()
	compare, numbers := numberSigns[sign]
	matches, strs := stringSigns[sign]
	switch {
	case !numbers && !strs:
		return nil, r.fail("want == != < <= > >= & or ~")
	case f.text && !strs:
		return nil, r.fail("strings are compared by == != and ~")
	case !f.text && !numbers:
		return nil, r.fail("numbers are compared by == != < <= > >= and &")
	}
	r.pos += len(sign)
	if f.text {
		return r.compareString(f, matches)
	}
	return r.compareNumber(f, compare)
}

var numberSigns = map[string]func(a, b uint64, signed bool) bool{
	"==": func(a, b uint64, _ bool) bool { return a == b },
	"!=": func(a, b uint64, _ bool) bool { return a != b },
	"<":  less,
	">":  func(a, b uint64, signed bool) bool { return less(b, a, signed) },
	"<=": func(a, b uint64, signed bool) bool { return !less(b, a, signed) },
	">=": func(a, b uint64, signed bool) bool { return !less(a, b, signed) },
	"&":  func(a, b uint64, _ bool) bool { return a&b != 0 },
}

func less(a, b uint64, signed bool) bool {
	if signed {
		return int64(a) < int64(b)
	}
	return a < b
}

var stringSigns = map[string]func(s, want string) bool{
	"==": func(s, want string) bool { return s == want },
	"!=": func(s, want string) bool { return s != want },
	"~":  func(s, want string) bool { return Match(want, s) },
}

func (r *filterReader) compareNumber(f field, compare func(a, b uint64, signed bool) bool) (condition, error) {
	word := r.word()
	want, err := strconv.ParseUint(word, 0, 64)
	if err != nil {
		var negative int64
		negative, err = strconv.ParseInt(word, 0, 64)
		want = uint64(negative)
	}
	if err != nil {
		return nil, r.fail("want a number of 64 bits")
	}
	r.pos += len(word)
	return func(t *Task, v []Value) bool {
		n, ok := f.number(t, v)
		return ok && compare(n, want, f.signed)
	}, nil
}

func (r *filterReader) compareString(f field, matches func(s, want string) bool) (condition, error) {
	word := r.word()
	want := word
	if quoted := len(word) > 1 && (word[0] == '"' || word[0] == '\''); quoted {
		if word[len(word)-1] != word[0] {
			return nil, r.fail("the string is not closed")
		}
		want = word[1 : len(word)-1]
	}
	if word == "" || word[0] == '(' || word[0] == ')' || word == `"` || word == "'" {
		return nil, r.fail("want a string")
	}
	r.pos += len(word)
	return func(t *Task, v []Value) bool {
		s, ok := f.string(t, v)
		return ok && matches(s, want)
	}, nil
}
