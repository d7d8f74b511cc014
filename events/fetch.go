package events

import (
	"strconv"
	"strings"
)

// source is where a fetch starts.
type source uint8

const (
	noSource     source = iota
	fromRegister        // number: its index in the register file
	fromStack           // number: the word of the stack
	fromStackPointer
	fromResult
	fromArg      // number: of the argument, from 0
	fromEntryArg // the same, kept since the function started
	fromImmediate
	fromFile   // number: an offset in the probed file
	fromSymbol // text: the symbol, number: bytes from it
	fromComm
	fromString // text: the string
)

// deref is a step through memory: to the word at an offset from the value.
type deref struct {
	offset int64
	user   bool
}

// fetch is how to get a value: from its source, through memory, by its type.
type fetch struct {
	name   string
	source source
	number uint64
	text   string
	derefs []deref
	typ    *fetchType
	bits   bitfield
	count  int // of elements; 0 if it is no array
}

// maxSteps is how many steps Linux has room for: the source, dereferences,
// storing, cutting out a bitfield, repeating for an array
// [kernel/trace/trace_probe.h, FETCH_INSN_MAX; one is the end mark].
const maxSteps = 15

// steps returns how many steps the source and dereferences are.
func (f *fetch) steps() int {
	n := 1 + len(f.derefs)
	if f.source == fromSymbol {
		n++
	}
	return n
}

// fromMemory says whether the last step reads memory.
func (f *fetch) fromMemory() bool { return len(f.derefs) > 0 }

func (f *fetch) fromUser() bool { return f.fromMemory() && f.derefs[len(f.derefs)-1].user }

// args reads the fetch arguments.
func (p *parser) args() error {
	for i := 2; i < len(p.words); i++ {
		if err := p.arg(i); err != nil {
			return err
		}
	}
	return nil
}

// reservedNames are the fields that every event has
// [kernel/trace/trace_probe.c, reserved_field_names].
var reservedNames = [...]string{
	"common_type", "common_flags", "common_preempt_count", "common_pid", "common_tgid",
	"__probe_ip", "__probe_ret_ip", "__probe_func",
}

func (p *parser) usedName(name string) bool {
	for _, reserved := range reservedNames {
		if name == reserved {
			return true
		}
	}
	for i := range p.event.Args {
		if p.event.Args[i].Name == name {
			return true
		}
	}
	return false
}

// arg reads [NAME=]FETCHARG[:TYPE], the w-th word.
func (p *parser) arg(w int) error {
	whole := p.words[w].text
	name, body, named := strings.Cut(whole, "=")
	switch {
	case !named:
		name, body = defaultArgName(len(p.event.Args)), whole
	case len(name) > maxArgName:
		return p.fail(w, 0, ArgNameTooLong)
	case name == "":
		return p.fail(w, 0, NoArgName)
	}
	if !goodName(name) {
		return p.fail(w, 0, BadArgName)
	}
	if p.usedName(name) {
		return p.fail(w, 0, UsedArgName)
	}
	a := argParser{p: p, word: w, fetch: fetch{name: name}}
	if err := a.body(body, len(whole)-len(body)); err != nil {
		return err
	}
	p.event.Args = append(p.event.Args, Arg{Name: name, Text: body})
	p.fetches = append(p.fetches, a.fetch)
	return nil
}

// argParser reads one argument. Its methods take a part of the word and its
// offset in it.
type argParser struct {
	p     *parser
	word  int
	fetch fetch
}

func (a *argParser) fail(offset int, id ID) error { return a.p.fail(a.word, offset, id) }

func (a *argParser) body(body string, at int) error {
	switch {
	case len(body) > maxArgText:
		return a.fail(at, ArgTooLong)
	case body == "":
		return a.fail(at, NoArgBody)
	}
	expr, typ, typed := strings.Cut(body, ":")
	typeAt := at
	if typed {
		typeAt += len(expr) + 1
	}
	name, err := a.array(typ, typeAt)
	if err != nil {
		return err
	}
	if err := a.findType(expr, name, typed, typeAt); err != nil {
		return err
	}
	if err := a.expression(expr, at); err != nil {
		return err
	}
	return a.finish(name, at, typeAt)
}

// array reads the [N] after a type, and returns the type without it.
func (a *argParser) array(typ string, at int) (string, error) {
	name, number, ok := strings.Cut(typ, "[")
	if !ok {
		return typ, nil
	}
	at += len(name) + 1
	end := strings.IndexByte(number, ']')
	switch {
	case end < 0:
		return "", a.fail(at+len(number), ArrayNotClosed)
	case end+1 < len(number):
		return "", a.fail(at+end+1, BadArraySuffix)
	}
	n, ok := parseUint(number[:end], 32)
	switch {
	case !ok || n == 0:
		return "", a.fail(at, BadArrayNumber)
	case n > maxArray:
		return "", a.fail(at, ArrayTooBig)
	}
	a.fetch.count = int(n)
	return name, nil
}

// findType sets the type. The values that are no numbers have only one.
func (a *argParser) findType(expr, name string, typed bool, at int) error {
	f := &a.fetch
	isString := expr == "$comm" || expr == "$COMM" || strings.HasPrefix(expr, `\"`)
	switch {
	case isString && (f.count > 0 || typed && name != "string"):
		return a.fail(at, NeedStringType)
	case isString:
		name = "string"
	case !typed:
		f.typ = defaultType
		return nil
	}
	if f.typ = findType(name, a.p.opt.Kind); f.typ == nil {
		return a.fail(at, BadType)
	}
	return nil
}

// expression reads a FETCHARG.
func (a *argParser) expression(s string, at int) error {
	if s == "" {
		return a.fail(at, BadFetchArg)
	}
	switch c := s[0]; {
	case c == '$':
		return a.variable(s[1:], at)
	case c == '%':
		return a.register(s[1:], at)
	case c == '@':
		return a.memory(s[1:], at)
	case c == '+' || c == '-':
		return a.dereference(s, at)
	case c == '\\':
		return a.immediate(s[1:], at)
	case isAlpha(c) || c == '_':
		return a.fail(at, NoSupBTFArg)
	}
	return a.fail(at, BadFetchArg)
}

// plainVariables are those without a number.
var plainVariables = map[string]source{
	"stack": fromStackPointer, "comm": fromComm, "COMM": fromComm, "retval": fromResult,
}

// variable reads the name after $.
func (a *argParser) variable(name string, at int) error {
	f := &a.fetch
	f.source = plainVariables[name]
	switch {
	case strings.HasPrefix(name, "retval"):
		return a.result(name, at)
	case f.source != noSource:
		return nil
	case strings.HasPrefix(name, "stack") && isDigit(name[len("stack")]):
		return a.stackWord(name[len("stack"):], at)
	case strings.HasPrefix(name, "arg"):
		return a.argument(name[len("arg"):], at)
	}
	return a.fail(at, BadVariable)
}

// result checks $retval, and tells its fields, which need type information,
// from other names.
func (a *argParser) result(name string, at int) error {
	switch rest := name[len("retval"):]; {
	case !a.p.result:
		return a.fail(at, RetvalOnProbe)
	case rest == "":
		return nil
	case rest[0] == '.' || rest[0] == '-':
		return a.fail(at, NoSupBTFArg)
	}
	return a.fail(at, BadVariable)
}

func (a *argParser) stackWord(number string, at int) error {
	n, ok := parseDecimal(number)
	switch {
	case !ok:
		return a.fail(at, BadVariable)
	case a.p.opt.Kind == Kprobe && n > maxStack:
		return a.fail(at, BadStackNumber)
	}
	a.fetch.source, a.fetch.number = fromStack, n
	return nil
}

func (a *argParser) argument(number string, at int) error {
	n, ok := parseDecimal(number)
	switch {
	case !ok:
		return a.fail(at, BadVariable)
	case n == 0 || n > maxStack:
		return a.fail(at, BadArgNumber)
	case a.p.opt.Kind == Kprobe && a.p.entry:
		a.fetch.source = fromArg
	case a.p.opt.Kind == Kprobe && a.p.result:
		a.fetch.source = fromEntryArg
	default:
		return a.fail(at, NoEntryArgs)
	}
	a.fetch.number = n - 1
	return nil
}

func (a *argParser) register(name string, at int) error {
	index := 0
	if isa := a.p.opt.ISA; isa != nil {
		var ok bool
		if index, ok = isa.FetchRegister(name); !ok {
			return a.fail(at, BadRegister)
		}
	}
	a.fetch.source, a.fetch.number, a.fetch.text = fromRegister, uint64(int64(index)), name
	return nil
}

// memory reads what stands after @: an address, a file offset or a symbol.
func (a *argParser) memory(s string, at int) error {
	f, ok := &a.fetch, false
	offset := int64(0)
	switch {
	case s != "" && isDigit(s[0]):
		f.source = fromImmediate
		if f.number, ok = parseUint(s, 64); !ok {
			return a.fail(at, BadMemAddr)
		}
	case strings.HasPrefix(s, "+"):
		if a.p.opt.Kind == Kprobe {
			return a.fail(at, FileOnKprobe)
		}
		if offset, ok = parseInt(s[1:]); !ok {
			return a.fail(at, BadFileOffset)
		}
		f.source, f.number, offset = fromFile, uint64(offset), 0
	default:
		if a.p.opt.Kind == Uprobe {
			return a.fail(at, SymbolOnUprobe)
		}
		f.source = fromSymbol
		if f.text, offset, ok = splitOffset(s); !ok || f.text == "" {
			return a.fail(at, FailRegProbe)
		}
		f.number = uint64(offset)
	}
	return a.addDeref(deref{}, at)
}

func (a *argParser) addDeref(d deref, at int) error {
	f := &a.fetch
	if f.steps() == maxSteps {
		return a.fail(at, TooManyOps)
	}
	f.derefs = append(f.derefs, d)
	return nil
}

// dereference reads +|-[u]OFFSET(FETCHARG).
func (a *argParser) dereference(s string, at int) error {
	rest, user := strings.CutPrefix(s[1:], "u")
	number, inner, ok := strings.Cut(rest, "(")
	if !ok {
		return a.fail(at, DerefNeedBrace)
	}
	if s[0] == '-' {
		number = "-" + number
	}
	offset, ok := parseInt(number)
	if !ok {
		return a.fail(at, BadDerefOffset)
	}
	at += len(s) - len(inner)
	end := strings.LastIndexByte(inner, ')')
	if end < 0 {
		return a.fail(at+len(inner), DerefOpenBrace)
	}
	if err := a.expression(inner[:end], at); err != nil {
		return err
	}
	if a.fetch.source == fromComm || a.fetch.source == fromString {
		return a.fail(at, CommCantDeref)
	}
	return a.addDeref(deref{offset, user}, at)
}

// immediate reads what stands after the backslash: a number, or a string.
func (a *argParser) immediate(s string, at int) error {
	f := &a.fetch
	if str, ok := strings.CutPrefix(s, `"`); ok {
		if f.text, ok = strings.CutSuffix(str, `"`); !ok {
			return a.fail(at+2+len(str), StringNotClosed)
		}
		f.source = fromString
		return nil
	}
	ok := false
	if s != "" && (isDigit(s[0]) || s[0] == '+' || s[0] == '-') {
		f.number, ok = parseImmediate(s)
	}
	if !ok {
		return a.fail(at+1, BadImmediate)
	}
	f.source = fromImmediate
	return nil
}

// parseImmediate parses a number that has a sign or may use all 64 bits.
func parseImmediate(s string) (uint64, bool) {
	if isDigit(s[0]) {
		return parseUint(s, 64)
	}
	v, ok := parseInt(strings.TrimPrefix(s, "+"))
	return uint64(v), ok
}

// finish checks that the type suits what is fetched.
func (a *argParser) finish(typ string, at, typeAt int) error {
	f := &a.fetch
	if id := f.unsuited(); id != "" {
		return a.fail(typeAt, id)
	}
	steps := f.steps()
	if f.hasStore() {
		if steps++; steps > maxSteps {
			return a.fail(at, TooManyOps)
		}
	}
	if strings.HasPrefix(typ, "b") {
		var ok bool
		if f.bits, ok = parseBitfield(typ, f.typ.size); !ok || steps == maxSteps {
			return a.fail(typeAt, BadBitfield)
		}
		steps++
	}
	if f.count == 0 {
		return nil
	}
	if !f.isArrayable() {
		return a.fail(typeAt, BadString)
	}
	if steps == maxSteps {
		return a.fail(at, TooManyOps)
	}
	return nil
}

// unsuited returns the mistake of asking for a string of what is no memory, or
// for a symbol's name of what is no address.
func (f *fetch) unsuited() ID {
	if f.typ.format != asString {
		return ""
	}
	if f.typ.name == symStr {
		address := f.source == fromRegister || f.source == fromStack || f.source == fromResult || f.source == fromArg
		if f.fromMemory() && !f.fromUser() || !f.fromMemory() && address {
			return ""
		}
		return BadSymString
	}
	if f.fromMemory() || f.source == fromImmediate || f.source == fromComm || f.source == fromString {
		return ""
	}
	return BadString
}

// hasStore says whether storing the value is a step of its own, not the last
// dereference.
func (f *fetch) hasStore() bool {
	if f.typ.format == asString {
		return f.typ.name == symStr || !f.fromMemory() || f.count > 0
	}
	return !f.fromMemory()
}

// isArrayable says whether what follows in memory can be read as well.
func (f *fetch) isArrayable() bool {
	if f.typ.format == asString {
		return f.typ.name != symStr
	}
	return f.fromMemory() && !f.fromUser()
}

func defaultArgName(i int) string { return "arg" + strconv.Itoa(i+1) }
