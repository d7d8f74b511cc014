package rpn

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Assemble turns text into a verified program for a target. Its errors are
// *Error, with the line and column of the first mistake.
func Assemble(text string, target *Target) (*Program, error) {
	a := assembler{target: target, labels: map[string]int{}, handler: exitName}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if err := a.line(number, strings.TrimRight(line, "\r\n")); err != nil {
			return nil, err
		}
	}
	if err := a.resolve(); err != nil {
		return nil, err
	}
	p, err := verify(&a.code, target)
	var wrong *Error
	if errors.As(err, &wrong) && wrong.Inst >= 0 {
		at := a.places[min(wrong.Inst, len(a.places)-1)]
		wrong.Line, wrong.Column = at.line, at.column
	}
	return p, err
}

// assembler collects the code of a text.
type assembler struct {
	target  *Target
	code    source
	labels  map[string]int // indices of instructions
	places  []place        // of the instructions
	refs    []reference
	handler string // the label of the last onfault
	at      place  // of handler
}

// place is where something stands in the text.
type place struct{ line, column int }

// reference is an instruction that goes to a label; its index is negative where
// an onfault only names one.
type reference struct {
	inst  int
	label string
	place
}

// exitName is what stands in onfault for no label.
const exitName = "exit"

func (p place) errorf(format string, args ...any) error {
	return &Error{Line: p.line, Column: p.column, Inst: -1, What: fmt.Sprintf(format, args...)}
}

// token is a word, a quoted string or one of : and =.
type token struct {
	text string
	place
}

// tokens splits a line. What ends it, at which errors say that something is
// missing, has no text.
func tokens(number int, line string) ([]token, error) {
	var list []token
	pos := 0
	for {
		for pos < len(line) && (line[pos] == ' ' || line[pos] == '\t') {
			pos++
		}
		at := place{number, pos + 1}
		if pos == len(line) || line[pos] == ';' || line[pos] == '#' {
			return append(list, token{"", at}), nil
		}
		size := tokenSize(line[pos:])
		if size == 0 {
			return nil, at.errorf("%c begins a text that has no end; it ends with another %[1]c", line[pos])
		}
		list = append(list, token{line[pos : pos+size], at})
		pos += size
	}
}

// tokenSize returns the length of the token at the start of s; 0 for a quoted
// one without an end.
func tokenSize(s string) int {
	switch s[0] {
	case ':', '=':
		return 1
	case '"', '\'':
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case s[0]:
				return i + 1
			}
		}
		return 0
	}
	if end := strings.IndexAny(s, " \t:=;#\"'"); end >= 0 {
		return end
	}
	return len(s)
}

// line assembles one line.
func (a *assembler) line(number int, text string) error {
	list, err := tokens(number, text)
	if err != nil {
		return err
	}
	for len(list) > 2 && list[1].text == ":" {
		if err := a.label(list[0]); err != nil {
			return err
		}
		list = list[2:]
	}
	if len(list) == 1 {
		return nil
	}
	s := statement{assembler: a, word: list[0], rest: list[1:]}
	if err := s.assemble(); err != nil {
		return err
	}
	if extra := s.rest[0]; extra.text != "" {
		return extra.errorf("%q is too much; %s", extra.text, usage(list[0].text))
	}
	return nil
}

func (a *assembler) label(t token) error {
	switch _, twice := a.labels[t.text]; {
	case !isName(t.text) || t.text == exitName:
		return t.errorf("%q is not a label: letters, digits, _ and . with no digit in front, and not %s", t.text, exitName)
	case twice:
		return t.errorf("label %s is there already", t.text)
	}
	a.labels[t.text] = len(a.code.Insts)
	return nil
}

// resolve finds the labels.
func (a *assembler) resolve() error {
	for _, r := range a.refs {
		index, ok := a.labels[r.label]
		if !ok {
			return r.errorf("no label %s; %s", r.label, listed("labels", sortedKeys(a.labels)))
		}
		if r.inst >= 0 {
			a.code.Insts[r.inst].Target = index
		}
	}
	return nil
}

func sortedKeys(m map[string]int) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// listed says which names there are.
func listed(what string, names []string) string {
	const most = 8
	if len(names) == 0 {
		return "there are no " + what
	}
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
	}
	return what + " are " + strings.Join(names[:min(len(names), most)], ", ") + more
}

// statement is an instruction or a declaration on its way.
type statement struct {
	*assembler
	word token
	rest []token // not read so far; the last one has no text
}

// next takes a token, and says what is missing where there is none.
func (s *statement) next() (token, error) {
	t := s.rest[0]
	if t.text == "" {
		return t, t.errorf("something is missing; %s", usage(s.word.text))
	}
	s.rest = s.rest[1:]
	return t, nil
}

func (s *statement) assemble() error {
	switch s.word.text {
	case "global", "local":
		return s.declare()
	case "onfault":
		return s.onfault()
	case "arg", "ret", "sp", "ip":
		return s.role()
	}
	op := slices.IndexFunc(ops[:], func(o opInfo) bool { return o.name == s.word.text })
	if op < 0 {
		return s.word.errorf("no instruction %q; %s", s.word.text, alike(s.word.text))
	}
	in := instruction{Op: opcode(op), Target: noTarget}
	if err := s.operand(&in); err != nil {
		return err
	}
	if ops[in.Op].memory && s.handler != exitName {
		s.refer(s.handler, s.at)
	}
	s.add(in)
	return nil
}

func (s *statement) add(in instruction) {
	s.code.Insts = append(s.code.Insts, in)
	s.places = append(s.places, s.word.place)
}

// refer says that the instruction at hand goes to a label.
func (s *statement) refer(label string, at place) {
	s.refs = append(s.refs, reference{len(s.code.Insts), label, at})
}

// operand reads what stands after an operation.
func (s *statement) operand(in *instruction) (err error) {
	switch ops[in.Op].operand {
	case operandNumber:
		in.Arg, err = s.number()
	case operandRegister:
		in.Arg, err = s.register()
	case operandLocal:
		err = s.variable(in)
	case operandLabel:
		err = s.goTo()
	case operandLoop:
		if in.Arg, err = s.number(); err == nil {
			err = s.goTo()
		}
	case operandCode:
		if s.rest[0].text != "" {
			in.Arg, err = s.number()
		}
	case operandLog, operandString:
		err = s.record(in)
	}
	return err
}

func (s *statement) number() (uint64, error) {
	t, err := s.next()
	if err != nil {
		return 0, err
	}
	if c, ok := strings.CutPrefix(t.text, "'"); ok {
		r, _, rest, err := strconv.UnquoteChar(c, '\'')
		if err != nil || rest != "'" {
			return 0, t.errorf("%s is not one character between '", t.text)
		}
		return uint64(r), nil
	}
	if v, err := strconv.ParseInt(t.text, 0, 64); err == nil {
		return uint64(v), nil
	}
	v, err := strconv.ParseUint(t.text, 0, 64)
	if err != nil {
		return 0, t.errorf("%q is not a number of 64 bits; %s", t.text, usage(s.word.text))
	}
	return v, nil
}

func (s *statement) register() (uint64, error) {
	t, err := s.next()
	if err != nil {
		return 0, err
	}
	if i := s.target.File.Index(t.text); i >= 0 {
		return uint64(i), nil
	}
	var names []string
	for i := range s.target.File.Registers {
		names = append(names, s.target.File.Registers[i].Name)
	}
	return 0, t.errorf("no register %q; %s", t.text, listed("registers", names))
}

// role reads a register that is told by what it is used for.
func (s *statement) role() error {
	in := instruction{Op: opReg, Target: noTarget}
	switch s.word.text {
	case "ret":
		in.Arg = uint64(s.target.Convention.Result)
	case "sp":
		in.Arg = uint64(s.target.File.SP)
	case "ip":
		in.Arg = uint64(s.target.File.PC)
	default:
		at := s.rest[0]
		n, err := s.number()
		if err != nil {
			return err
		}
		args := s.target.Convention.Args
		if n >= uint64(len(args)) {
			return at.errorf("argument %d is not in a register; 0 to %d are", n, len(args)-1)
		}
		in.Arg = uint64(args[n])
	}
	s.add(in)
	return nil
}

// variable reads the name of a variable, which tells the operation's kind.
func (s *statement) variable(in *instruction) error {
	t, err := s.next()
	if err != nil {
		return err
	}
	if i := slices.Index(s.code.Locals, t.text); i >= 0 {
		in.Arg = uint64(i)
		return nil
	}
	names := slices.Clone(s.code.Locals)
	for i := range s.code.Globals {
		if s.code.Globals[i].Name == t.text {
			in.Op += opGetGlobal - opGetLocal
			in.Arg = uint64(i)
			return nil
		}
		names = append(names, s.code.Globals[i].Name)
	}
	return t.errorf("no variable %q so far; %s", t.text, listed("variables", names))
}

func (s *statement) goTo() error {
	t, err := s.next()
	if err != nil {
		return err
	}
	s.refer(t.text, t.place)
	return nil
}

func (s *statement) record(in *instruction) error {
	t, err := s.next()
	if err != nil {
		return err
	}
	if in.Name, err = strconv.Unquote(t.text); err != nil || t.text[0] != '"' {
		return t.errorf("%s is not a name between \"", t.text)
	}
	in.Arg, err = s.number()
	return err
}

func (s *statement) onfault() error {
	t, err := s.next()
	s.handler, s.at = t.text, t.place
	if err == nil && t.text != exitName {
		s.refs = append(s.refs, reference{-1, t.text, t.place})
	}
	return err
}

// declare adds a variable. verify looks at the names once more.
func (s *statement) declare() error {
	t, err := s.next()
	if err != nil {
		return err
	}
	known := slices.Contains(s.code.Locals, t.text) ||
		slices.ContainsFunc(s.code.Globals, func(g global) bool { return g.Name == t.text })
	declared := len(s.code.Locals)
	if s.word.text == "global" {
		declared = len(s.code.Globals)
	}
	switch {
	case !isName(t.text):
		return t.errorf("%q is not a name: letters, digits, _ and . with no digit in front", t.text)
	case known:
		return t.errorf("variable %s is declared already", t.text)
	case declared == maxVariables:
		return t.errorf("too many variables; there may be %d of each kind", maxVariables)
	case s.word.text == "local":
		s.code.Locals = append(s.code.Locals, t.text)
		return nil
	}
	g := global{Name: t.text}
	if s.rest[0].text == "=" {
		s.rest = s.rest[1:]
		if g.Init, err = s.number(); err != nil {
			return err
		}
	}
	s.code.Globals = append(s.code.Globals, g)
	return nil
}

// usages are how instructions with operands are written.
var usages = map[operand]string{
	operandNone:     "",
	operandNumber:   " NUMBER",
	operandRegister: " REGISTER",
	operandLocal:    " VARIABLE",
	operandGlobal:   " VARIABLE",
	operandLabel:    " LABEL",
	operandLoop:     " COUNT LABEL",
	operandCode:     " [NUMBER]",
	operandLog:      " \"NAME\" COUNT",
	operandString:   " \"NAME\" BYTES",
}

// directives are what is no operation, with how it is written.
var directives = []struct{ name, operands string }{
	{"arg", " NUMBER"}, {"ret", ""}, {"sp", ""}, {"ip", ""},
	{"global", " NAME [= NUMBER]"}, {"local", " NAME"}, {"onfault", " LABEL"},
}

// usage says how an instruction or declaration is written.
func usage(name string) string {
	for i := range ops {
		if ops[i].name == name {
			return "it is written " + name + usages[ops[i].operand]
		}
	}
	for _, d := range directives {
		if d.name == name {
			return "it is written " + name + d.operands
		}
	}
	return ""
}

// alike names instructions that start as a wrong one does, as far as any do.
func alike(wrong string) string {
	var names []string
	for i := range ops {
		names = append(names, ops[i].name)
	}
	for _, d := range directives {
		names = append(names, d.name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for n := len(wrong); n > 0; n-- {
		close := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, wrong[:n]) })
		if len(close) > 0 {
			return listed("those that start so", close)
		}
	}
	return listed("instructions", names)
}
