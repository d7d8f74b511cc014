package events

import (
	"io/fs"
	"iter"
	"strings"
)

// RegisterNames is what Parse must know of an ISA.
type RegisterNames interface {
	// FetchRegister returns the index, in the ISA's register file, of the
	// register that Linux calls name; negative for one that is not modelled. ok
	// says whether there is such a name.
	FetchRegister(name string) (index int, ok bool)
}

// Symbols is what is known of the names of the probed program.
type Symbols interface {
	// Count returns how many functions are called name in the module, or
	// anywhere if module is empty.
	Count(module, name string) int
	// Entry says whether a probe at function+offset sees the function's
	// arguments: whether no instruction of it has done anything before. function
	// may start with "MODULE:".
	Entry(function string, offset uint64) bool
	// Address returns that of a function or data symbol.
	Address(name string) (addr uint64, ok bool)
	// Lookup returns the symbol that holds addr, with its size, and how far
	// addr is into it.
	Lookup(addr uint64) (s Symbol, offset uint64, ok bool)
}

// Options say what a line is checked against.
type Options struct {
	Kind Kind
	// ISA knows the names of registers. With nil any name is accepted.
	ISA RegisterNames
	// Symbols knows the functions. With nil every function is accepted, and
	// offset 0 is taken for its entry.
	Symbols Symbols
	// Stat finds the files of uprobes; os.Stat does. With nil any path is
	// accepted.
	Stat func(path string) (fs.FileInfo, error)
	// Layout is that of the structures that the types %pd and %pD read.
	Layout Layout
}

// word is a word of a line.
type word struct {
	text string
	pos  int // in the line
	// Of a word that was expanded: where text was inserted, how many bytes, and
	// how long the word was in the line.
	at, inserted, length int
}

// offset returns where in the line's word a byte of the text stands.
func (w *word) offset(i int) int {
	if w.inserted == 0 || i <= w.at {
		return i
	}
	return min(max(w.at, i-w.inserted), w.length)
}

func split(line string) []word {
	var words []word
	for i := 0; i < len(line); {
		n := strings.IndexAny(line[i:], " \t\n\v\f\r")
		if n < 0 {
			n = len(line) - i
		}
		if n > 0 {
			words = append(words, word{text: line[i : i+n], pos: i})
		}
		i += n + 1
	}
	return words
}

// Parse reads a line of kprobe_events or uprobe_events, as opt.Kind says, and
// checks it as Linux 6.12 without BTF does. The error is an *Error.
//
// Positions are those of Linux's error log, but for two things: they count the
// spaces of the line as written, and after a dereference they do not run
// ahead of the mistake.
func Parse(line string, opt Options) (Event, error) {
	p, err := parse(line, opt)
	if err != nil {
		return Event{}, err
	}
	return p.event, nil
}

// Commands returns the lines of a text that is written to such a file, without
// comments, which start with a #, and without those that have nothing else.
func Commands(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(strings.TrimSuffix(line, "\n"), "#")
			if len(split(line)) > 0 && !yield(line) {
				return
			}
		}
	}
}

// ParseLines reads the text of such a file. It stops at the first mistake,
// which is an *Error.
func ParseLines(text string, opt Options) ([]Event, error) {
	var all []Event
	for line := range Commands(text) {
		e, err := Parse(line, opt)
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

// parser is the state of reading one line.
type parser struct {
	line  string
	words []word
	opt   Options
	event Event
	// entry and result say what the place gives: arguments of the function,
	// its result.
	entry, result bool
	fetches       []fetch
}

func parse(line string, opt Options) (*parser, error) {
	p := &parser{line: line, words: split(line), opt: opt}
	p.event.Kind = opt.Kind
	if err := p.command(); err != nil {
		return nil, err
	}
	return p, nil
}

// fail returns the mistake at an offset in a word.
func (p *parser) fail(w, offset int, id ID) error {
	pos := len(p.line)
	if w < len(p.words) {
		pos = p.words[w].pos + p.words[w].offset(offset)
	}
	return &Error{ID: id, Line: p.line, Pos: pos}
}

func (p *parser) command() error {
	if len(p.words) == 0 {
		return p.fail(0, 0, Invalid)
	}
	switch p.words[0].text[0] {
	case '-':
		return p.removal()
	case 'r':
		p.event.Return = true
	case 'p':
	default:
		return p.fail(0, 0, Invalid)
	}
	if len(p.words) < 2 {
		return p.fail(1, 0, Invalid)
	}
	if p.opt.Kind == Uprobe {
		return p.uprobe()
	}
	return p.kprobe()
}

// removal reads -:[GRP/][EVENT] and the words that narrow it down.
func (p *parser) removal() error {
	name, ok := strings.CutPrefix(p.words[0].text, "-:")
	if !ok {
		return p.fail(0, min(1, len(p.words[0].text)), Invalid)
	}
	group, event, ok := strings.Cut(name, "/")
	switch {
	case !ok && name == "":
		return p.fail(0, 2, Invalid)
	case ok && group == "":
		return p.fail(0, 2, NoGroupName)
	case ok:
		p.event.Group, p.event.Name = group, event
	default:
		p.event.Name = name
	}
	p.event.Remove = true
	for _, w := range p.words[1:] {
		p.event.Match = append(p.event.Match, w.text)
	}
	return nil
}

func (p *parser) kprobe() error {
	head := p.words[0].text
	names := strings.IndexByte(head, ':')
	if err := p.maxActive(head, names); err != nil {
		return err
	}
	if err := p.kprobePlace(p.words[1].text); err != nil {
		return err
	}
	if err := p.names(head, names); err != nil {
		return err
	}
	if err := p.metaArgs(); err != nil {
		return err
	}
	if len(p.words)-2 > maxArgs {
		return p.fail(2, 0, TooManyArgs)
	}
	p.expandDentries()
	return p.args()
}

// maxActive reads the number after the r; names is where the colon is, or
// negative.
func (p *parser) maxActive(head string, names int) error {
	if len(head) < 2 || !isDigit(head[1]) {
		return nil
	}
	if !p.event.Return {
		return p.fail(0, 1, BadMaxActiveType)
	}
	number := head[1:]
	if names >= 0 {
		number = head[1:names]
	}
	v, ok := parseUint(number, 32)
	switch {
	case !ok || v == 0 || len(number) > maxName:
		return p.fail(0, 1, BadMaxActive)
	case v > maxMaxActive:
		return p.fail(0, 1, MaxActiveTooBig)
	}
	p.event.MaxActive = int(v)
	return nil
}

const returnSuffix = "%return"

// kprobePlace reads an address, or [MOD:]SYM[+offset][%return].
func (p *parser) kprobePlace(place string) error {
	e := &p.event
	if addr, ok := parseUint(place, 64); ok {
		e.Addr = addr
		return nil
	}
	if strings.Contains(place, "/") && strings.Contains(place, ":") {
		return p.fail(1, 0, Invalid) // a uprobe
	}
	if i := strings.IndexByte(place, '%'); i >= 0 {
		if place[i:] != returnSuffix {
			return p.fail(1, i, BadAddrSuffix)
		}
		place = place[:i]
		e.Return = true
	}
	symbol, offset, ok := splitOffset(place)
	if _, number := parseUint(symbol, 64); !ok || offset < 0 || offset > 1<<32-1 || symbol == "" || number {
		return p.fail(1, 0, BadProbeAddr)
	}
	e.Symbol, e.Offset = symbol, uint64(offset)
	return p.checkSymbol()
}

// checkSymbol asks what is known of the function, and whether the place is its
// entry.
func (p *parser) checkSymbol() error {
	e := &p.event
	entry := e.Offset == 0
	if s := p.opt.Symbols; s != nil {
		switch n := s.Count(e.Module()); {
		case n == 0:
			return p.fail(1, 0, BadProbeAddr)
		case n > 1:
			return p.fail(1, 0, NonUniqueSymbol)
		}
		entry = s.Entry(e.Symbol, e.Offset)
	}
	if e.Return && !entry {
		return p.fail(1, 0, BadReturnProbe)
	}
	p.result, p.entry = e.Return, entry && !e.Return
	return nil
}

// splitOffset splits SYM[+|-offset].
func splitOffset(s string) (symbol string, offset int64, ok bool) {
	i := strings.IndexAny(s, "+-")
	if i < 0 {
		return s, 0, true
	}
	offset, ok = parseInt(s[i:])
	return s[:i], offset, ok
}

// names reads [GRP/][EVENT] after the colon at the index names of head; without
// a name the event gets one.
func (p *parser) names(head string, names int) error {
	e := &p.event
	e.Group = p.opt.Kind.defaultGroup()
	if names >= 0 {
		if err := p.givenNames(head[names+1:], names+1); err != nil {
			return err
		}
	}
	if e.Name == "" {
		e.setDefaultName()
	}
	return nil
}

// givenNames reads [GRP/][EVENT] at an offset in the first word. A dot
// separates as a slash does where there is none.
func (p *parser) givenNames(text string, offset int) error {
	slash := strings.IndexByte(text, '/')
	if slash < 0 {
		slash = strings.IndexByte(text, '.')
	}
	if slash >= 0 {
		group := text[:slash]
		switch {
		case group == "":
			return p.fail(0, offset, NoGroupName)
		case len(group) > maxName:
			return p.fail(0, offset, GroupTooLong)
		case !goodGroup(group):
			return p.fail(0, offset, BadGroupName)
		}
		p.event.Group = group
		text, offset = text[slash+1:], offset+slash+1
		if text == "" {
			return nil
		}
	}
	switch {
	case text == "":
		return p.fail(0, offset, NoEventName)
	case len(text) > maxName:
		return p.fail(0, offset, EventTooLong)
	case !goodName(text):
		return p.fail(0, offset, BadEventName)
	}
	p.event.Name = text
	return nil
}

func (p *parser) uprobe() error {
	if len(p.words)-2 > maxArgs {
		return p.fail(2, 0, TooManyArgs)
	}
	place := p.words[1].text
	colon := strings.LastIndexByte(place, ':')
	if !strings.Contains(place, "/") || colon < 0 || colon+1 == len(place) || !isDigit(place[colon+1]) {
		return p.fail(1, 0, Invalid)
	}
	p.event.Path = place[:colon]
	if err := p.checkFile(); err != nil {
		return err
	}
	if err := p.uprobeOffset(place[colon+1:], colon+1); err != nil {
		return err
	}
	p.result = p.event.Return
	names := -1
	if head := p.words[0].text; len(head) > 1 && head[1] == ':' {
		names = 1
	}
	if err := p.names(p.words[0].text, names); err != nil {
		return err
	}
	return p.args()
}

func (p *parser) checkFile() error {
	if p.opt.Stat == nil {
		return nil
	}
	info, err := p.opt.Stat(p.event.Path)
	if err != nil {
		return p.fail(1, 0, FileNotFound)
	}
	if !info.Mode().IsRegular() {
		return p.fail(1, 0, NoRegularFile)
	}
	return nil
}

// uprobeOffset reads OFFSET[%return][(REF_CTR)] at an index of the second word.
func (p *parser) uprobeOffset(text string, at int) error {
	e := &p.event
	if open := strings.IndexByte(text, '('); open >= 0 {
		n := strings.IndexByte(text[open:], ')')
		if n < 0 {
			return p.fail(1, at+len(text), RefCountOpen)
		}
		end := open + n
		if end+1 < len(text) {
			return p.fail(1, at+end+1, BadRefSuffix)
		}
		var ok bool
		if e.RefCounter, ok = parseUint(text[open+1:end], 64); !ok {
			return p.fail(1, at+open+1, BadRefCount)
		}
		text = text[:open]
	}
	if i := strings.IndexByte(text, '%'); i >= 0 {
		if text[i:] != returnSuffix {
			return p.fail(1, at+i, BadAddrSuffix)
		}
		text = text[:i]
		e.Return = true
	}
	var ok bool
	if e.Offset, ok = parseUint(text, 64); !ok {
		return p.fail(1, at, BadUprobeOffset)
	}
	return nil
}

// metaArgs refuses $arg*, which stands for all arguments, and $argN where there
// are none.
func (p *parser) metaArgs() error {
	const prefix = "$arg"
	last, all := 0, false
	for i := 2; i < len(p.words); i++ {
		rest, ok := strings.CutPrefix(p.words[i].text, prefix)
		if !ok {
			continue
		}
		last = i
		switch {
		case !p.entry && !p.result:
			return p.fail(i, 0, NoEntryArgs)
		case rest != "" && isDigit(rest[0]):
		case rest == "" || rest[0] != '*':
			return p.fail(i, 0, BadVariable)
		case all:
			return p.fail(i, 0, DoubleArgs)
		default:
			all = true
		}
	}
	if all {
		return p.fail(last, 0, NoSupBTFArg)
	}
	return nil
}
