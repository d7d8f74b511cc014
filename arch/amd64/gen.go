//go:build ignore

// Gen makes tables_gen.go of the forms in instructions.txt.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"log"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A form in the tables is one word: sets of field values that fit, one bit for
// each value; a constraint; and attributes of the instruction. The places are
// those of form and attr in decode.go.
const (
	setW    = 0  // 0, 1
	setL    = 2  // 0 to 3; rounding
	setOp   = 7  // EVEX.b + 2 × EVEX.z + 4 × mod 3
	setMask = 15 // k0; k4; another
	setV    = 18 // 0; 1 to 7; above
	setV4   = 21 // 0, 1
	setReg  = 23 // 0 to 7
	setRM   = 31 // 0 to 7
	setR    = 39 // 0; another
	setB    = 41 // 0; another
	setAddr = 43 // neither; SIB; RIP-relative

	constraintAt = 46
	attrAt       = 50
)

// The places in attr.
const (
	immAt    = 0  // 4 bits each: length of the immediate for operands of 32, 16 and 64 bits
	branchAt = 12 // the immediate is a displacement of the branch target
	moffsAt  = 13 // the immediate is an absolute address
	modRMAt  = 14
	noMemAt  = 15
	leaAt    = 16
	validAt  = 17 // else the low bits are the place of forms, or
	groupAt  = 18 // of a group
	escapeAt = 19 // no opcode, but a byte before one
	rexAt    = 20
	privAt   = 25
	opAt     = 26 // to the highest bit
)

// Sets.
const (
	anyW     = 3 << setW
	anyL     = 31 << setL
	memory   = 1 << setOp
	register = 1 << (setOp + 4)
	withB    = 1 // shifts memory and register
	withZ    = 2
	anyMask  = 7 << setMask
	noMask   = 1 << setMask
	noFlags  = 2 << setMask
	anyV     = 7<<setV | 3<<setV4
	noV      = 1<<setV | 1<<setV4
	anyReg   = 0xff << setReg
	anyRM    = 0xff << setRM
	anyR     = 3 << setR
	anyB     = 3 << setB
	anyAddr  = 7 << setAddr
)

// attrs are the attributes that a token sets.
var attrs = map[string]uint64{
	"nomem": 1 << noMemAt, "lea": 1 << leaAt, "priv": 1 << privAt,
	"escape": 1 << escapeAt, "rex": 1<<escapeAt | 1<<rexAt,

	"ib": imm(1, 1, 1), "iw": imm(2, 2, 2), "id": imm(4, 4, 4), "iwib": imm(3, 3, 3), "ibib": imm(2, 2, 2),
	"iz": imm(4, 2, 4), "iv": imm(4, 2, 8), "moffs": imm(8, 8, 8) | 1<<moffsAt,
	"rel8": rel(1, 1, 1), "rel32": rel(4, 4, 4), "relz": rel(4, 2, 4),
}

// flows are the values of decode.Flow, and props the bits of decode.Props that an
// Op may have.
var (
	flows = []string{
		"none", "jump", "jump-if", "call", "return",
		"jump-indirect", "call-indirect", "syscall", "trap", "halt",
	}
	props = map[string]uint64{
		"target": 1 << 0, "conditional": 1 << 1, "link": 1 << 2, "pad": 1 << 5, "priv": 1 << 6,
	}
)

// An op is a class of instructions.
type op struct {
	name    string
	flow    int
	props   uint64
	comment string
}

// parseOp reads a line of [ops].
func parseOp(row string) (o op, err error) {
	text, comment, _ := strings.Cut(row, ";")
	words := strings.Fields(text)
	if len(words) < 2 {
		return o, fmt.Errorf("op %q: want a name and a flow", row)
	}
	o = op{name: words[0], flow: slices.Index(flows, words[1]), comment: strings.TrimSpace(comment)}
	if o.flow < 0 {
		return o, fmt.Errorf("op %s: flow %q", o.name, words[1])
	}
	for _, w := range words[2:] {
		if props[w] == 0 {
			return o, fmt.Errorf("op %s: property %q", o.name, w)
		}
		o.props |= props[w]
	}
	return o, nil
}

func imm(size32, size16, size64 uint64) uint64 {
	return (size32 | size16<<4 | size64<<8) << immAt
}

func rel(size32, size16, size64 uint64) uint64 {
	return imm(size32, size16, size64) | 1<<branchAt
}

var constraints = map[string]uint64{
	"gather vex": 1, "gather evex": 2, "tiles": 3, "complex": 4, "cr8": 5, "push2": 6, "pop2": 7,
}

var prefixes = map[string]int{"np": 0, "66": 1, "f3": 2, "f2": 3}

// An encoding says what a form takes that does not say so itself.
type encoding struct {
	name  string
	fixed uint64 // sets that no token narrows
	L     uint64
	pps   []int // nil: a form must name them
}

var (
	legacy   = &encoding{"legacy", 1 << setL, 0, []int{0, 1, 2, 3}}
	vex      = &encoding{"vex", 0, anyL, nil}
	evex     = &encoding{"evex", 0, 7 << setL, nil}
	xop      = &encoding{"xop", 0, anyL, []int{0}}
	threeNow = &encoding{"3dnow", 1 << setL, 0, []int{0}}
)

// A section is an opcode map. Its place is among the legacy maps or among the
// vector maps.
type section struct {
	name string
	*encoding
	legacy bool
	place  int
}

var sections = map[string]section{
	"legacy 1b": {"", legacy, true, 0}, "legacy 0f": {"", legacy, true, 1},
	"legacy 0f38": {"", legacy, true, 2}, "legacy 0f3a": {"", legacy, true, 3},
	"vex 0f": {"", vex, false, 1}, "vex 0f38": {"", vex, false, 2}, "vex 0f3a": {"", vex, false, 3}, "vex 7": {"", vex, false, 4},
	"evex 0f": {"", evex, false, 5}, "evex 0f38": {"", evex, false, 6}, "evex 0f3a": {"", evex, false, 7},
	"evex 4": {"", evex, false, 8}, "evex 5": {"", evex, false, 9}, "evex 6": {"", evex, false, 10}, "evex 7": {"", evex, false, 11},
	"xop 8": {"", xop, false, 12}, "xop 9": {"", xop, false, 13}, "xop a": {"", xop, false, 14},
	"3dnow":     {"", threeNow, false, 15},
	"norex2 1b": {"", legacy, false, 16}, "norex2 0f": {"", legacy, false, 17},
	"lock 1b": {"", legacy, false, 18}, "lock 0f": {"", legacy, false, 19},
}

const (
	legacyMaps = 4
	vectorMaps = 20 // the first is empty
)

// A table holds the forms of each opcode by opcode map and mandatory prefix.
type table struct {
	ops    []op // but for the first, OpOther
	names  map[opcode][]string
	legacy [legacyMaps][4][256][]form
	vector [vectorMaps][4][256][]form
}

// An opcode is one of a section.
type opcode struct {
	section string
	opcode  int
}

// A form is one of a line's: sets and constraint, and its attributes.
type form struct {
	sets uint64
	attr uint64
}

// A line is what the tokens of a line say.
type line struct {
	set        uint64 // of the fields without a default of their own
	operand    uint64 // memory, register; 0 without ModRM
	round      uint64
	L          uint64
	reg, rm    uint64
	addr       uint64
	constraint uint64
	attr       uint64
	pps        []int
	zeroing    bool
	stores     bool
	ndd        bool // vvvv may name a new destination
	mustNDD    bool
}

// parse reads a line's tokens after the opcodes.
func (t *table) parse(e *encoding, tokens []string) (*line, error) {
	l := &line{set: anyW | anyR | anyB | noMask | noV | e.fixed, addr: anyAddr, pps: e.pps}
	for _, token := range tokens {
		name, isOp := strings.CutPrefix(token, "=")
		if !isOp {
			if err := l.token(e, token); err != nil {
				return nil, err
			}
			continue
		}
		i := slices.IndexFunc(t.ops, func(o op) bool { return o.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no op %s", name)
		}
		l.attr |= uint64(i+1) << opAt
	}
	if l.pps == nil {
		return nil, fmt.Errorf("no mandatory prefix")
	}
	return l, nil
}

func (l *line) token(e *encoding, t string) (err error) {
	if pps := prefixList(t); pps != nil {
		l.pps = pps
		return nil
	}
	if c := max(constraints[t], constraints[t+" "+e.name]); c != 0 {
		l.constraint = c
		return nil
	}
	if attrs[t] != 0 {
		l.attr |= attrs[t]
		return nil
	}
	switch {
	case t == "m":
		l.operand = memory | register
	case t == "mem":
		l.operand = memory
	case t == "reg":
		l.operand = register
	case t == "sib":
		l.operand, l.addr = memory, 2<<setAddr
	case t == "vsib":
		l.operand, l.addr = memory, 2<<setAddr
		l.set |= 2 << setV4
	case t == "norip":
		l.addr = 3 << setAddr
	case t[0] == '/':
		l.reg, err = values(t[1:])
	case strings.HasPrefix(t, "rm="):
		l.rm, err = values(t[3:])
	case t == "r0", t == "r1":
		l.set = l.set&^anyR | 1<<(setR+int(t[1]-'0'))
	case t == "b0":
		l.set = l.set&^anyB | 1<<setB
	case t == "w0", t == "w1":
		l.set = l.set&^anyW | 1<<(setW+int(t[1]-'0'))
	case t[0] == 'L':
		for _, c := range t[1:] {
			l.L |= 1 << (setL + int(c-'0'))
		}
	case t == "v":
		l.set |= anyV
	case t == "v8":
		l.set &^= 4<<setV | 2<<setV4
	case t == "bc":
		l.round |= memory << withB
	case t == "er", t == "sae":
		l.round |= register << withB
		l.set |= 16 << setL
	case t == "kz":
		l.set |= anyMask
		l.zeroing = true
	case t == "k":
		l.set |= anyMask
	case t == "k!":
		l.set |= anyMask
		l.set &^= noMask
	case t == "st":
		l.stores = true
	case t == "nd":
		l.ndd = true
	case t == "nd!":
		l.ndd, l.mustNDD = true, true
	case t == "zu":
		l.round |= (memory | register) << withB
	case t == "nf":
		l.set |= noFlags
	case t == "dfv":
		l.set |= anyV | anyMask
	default:
		err = fmt.Errorf("token %q", t)
	}
	return err
}

// forms returns the forms of a line under a mandatory prefix.
func (l *line) forms(e *encoding, pp int) []form {
	attr, operand := l.attr, l.operand
	if operand == 0 && (l.reg|l.rm != 0 || attr&(1<<noMemAt) != 0) {
		operand = memory | register
	}
	if operand != 0 {
		attr |= 1 << modRMAt
	} else {
		operand = memory | register
	}
	if e == evex && pp == prefixes["66"] {
		attr = attr&^(15<<immAt) | attr>>4&(15<<immAt)
	}
	ops := operand | l.round
	if l.zeroing {
		zeroed := ops << withZ
		if l.stores {
			zeroed &^= (memory | memory<<withB) << withZ
		}
		ops |= zeroed
	}
	sets := l.set | or(l.L, e.L) | or(l.reg, 0xff)<<setReg | or(l.rm, 0xff)<<setRM | l.addr |
		l.constraint<<constraintAt
	var forms []form
	if !l.mustNDD {
		forms = append(forms, form{sets | ops, attr})
	}
	if l.ndd {
		forms = append(forms, form{sets | operand<<withB | anyV, attr})
	}
	return forms
}

func or(set, otherwise uint64) uint64 {
	if set == 0 {
		return otherwise
	}
	return set
}

// prefixList returns the prefixes that a token lists, nil if it is no such list.
func prefixList(token string) (pps []int) {
	for name := range strings.SplitSeq(token, ",") {
		pp, ok := prefixes[name]
		if !ok {
			return nil
		}
		pps = append(pps, pp)
	}
	return pps
}

// values returns the set of the values that a list such as 0-3,6 names.
func values(list string) (set uint64, err error) {
	err = eachOf(list, 8, func(n int) { set |= 1 << n })
	return set, err
}

// eachOf calls f for every number of a list of numbers and ranges.
func eachOf(list string, base int, f func(n int)) error {
	bits := 8
	if base == 8 {
		bits = 3
	}
	for part := range strings.SplitSeq(list, ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		from, err := strconv.ParseUint(low, base, bits)
		if err != nil {
			return err
		}
		to, err := strconv.ParseUint(high, base, bits)
		if err != nil {
			return err
		}
		for n := from; n <= to; n++ {
			f(int(n))
		}
	}
	return nil
}

// read reads the forms of instructions.txt.
func read(text string) (*table, error) {
	t := new(table)
	var s section
	t.names = map[opcode][]string{}
	number, inOps := 0, false
	for row := range strings.Lines(text) {
		number++
		if row[0] == '\t' {
			t.name(s, strings.Fields(row))
			continue
		}
		row, _, _ = strings.Cut(row, "#")
		if inOps && row != "\n" && row[0] != '[' {
			o, err := parseOp(row)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			t.ops = append(t.ops, o)
			continue
		}
		row, _, _ = strings.Cut(row, ";")
		row = strings.TrimSpace(row)
		if row == "" {
			continue
		}
		if name, ok := strings.CutPrefix(row, "["); ok {
			if inOps = name == "ops]"; inOps {
				continue
			}
			name = strings.TrimSuffix(name, "]")
			if s, ok = sections[name]; !ok {
				return nil, fmt.Errorf("line %d: section %s", number, row)
			}
			s.name = name
			continue
		}
		tokens := strings.Fields(row)
		l, err := t.parse(s.encoding, tokens[1:])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		maps := t.vector[:]
		if s.legacy {
			maps = t.legacy[:]
		}
		err = eachOf(tokens[0], 16, func(op int) {
			for _, pp := range l.pps {
				maps[s.place][pp][op] = append(maps[s.place][pp][op], l.forms(s.encoding, pp)...)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return t, nil
}

// name takes note of what the opcodes of a line with a name are called, for the
// comments of the tables.
func (t *table) name(s section, tokens []string) {
	opcodes, shared := strings.CutPrefix(tokens[0], "+")
	var list []int
	if eachOf(strings.ReplaceAll(strings.Trim(opcodes, "{}"), "|", ","), 16, func(op int) { list = append(list, op) }) != nil {
		return // gennames.go says so
	}
	i := slices.IndexFunc(tokens[1:], func(token string) bool { return !isCondition(token) })
	if i < 0 {
		return
	}
	n := 1
	if shared {
		n = 2 // in the same map of EVEX as well
	}
	for k, op := range list {
		name := alternative(tokens[1+i], k, len(list))
		for _, at := range []string{s.name, "e" + s.name}[:n] {
			if o := (opcode{at, op}); !slices.Contains(t.names[o], name) {
				t.names[o] = append(t.names[o], name)
			}
		}
	}
}

// isCondition recognises what may stand before a mnemonic.
func isCondition(token string) bool {
	token = strings.Trim(token, "{}()")
	if strings.Contains(token, "|") {
		token, _, _ = strings.Cut(token, "|")
	}
	switch strings.TrimRight(token, "!") {
	case "np", "66", "f3", "f2", "mem", "reg", "rip", "rex2", "vex", "evex", "new":
		return true
	}
	last := token[len(token)-1]
	return token[0] == '/' || strings.HasPrefix(token, "rm{") || last >= '0' && last <= '9' && slices.Contains([]string{"w", "l", "b", "nd", "nf", "rm", "o1", "o3", "o6", "a3"}, token[:len(token)-1])
}

// alternative returns a mnemonic for the k-th of n opcodes.
func alternative(name string, k, n int) string {
	name = strings.TrimRight(name, "~^_%@")
	before, rest, ok := strings.Cut(name, "{")
	list, after, closed := strings.Cut(rest, "}")
	if !ok || !closed {
		return name
	}
	items := strings.Split(list, "|")
	if len(items) == n {
		return before + items[k] + after
	}
	for i := range items {
		items[i] = before + items[i] + after
	}
	return strings.Join(items, " ")
}

// comment returns what the opcode at a place is called.
func (t *table) comment(legacy bool, place, op int) string {
	for name, s := range sections {
		if s.legacy == legacy && s.place == place {
			return strings.TrimSpace(fmt.Sprintf("%s %02x %s", strings.TrimPrefix(name, "legacy "), op, strings.Join(t.names[opcode{name, op}], " ")))
		}
	}
	return ""
}

// A pool holds the distinct lists of forms, groups and attributes of the
// tables. A list of forms ends with 0; the first is empty: nothing fits.
type pool struct {
	forms   []uint64
	formsAt map[string]int
	groups  [][groupSize]uint64
	attrs   []uint64

	label       string // of the opcode that is being added
	formLabels  []string
	groupLabels []string
}

// groupSize is the number of values of ModRM.mod and ModRM.reg.
const groupSize = 32

// word returns a form's attributes as those of all operands.
func (f form) word() uint64 {
	if f.attr&(1<<escapeAt) != 0 {
		return f.attr
	}
	return f.attr | 1<<validAt
}

// list returns the place of a list of forms.
func (p *pool) list(forms []form) int {
	key := fmt.Sprint(forms)
	at, ok := p.formsAt[key]
	if ok {
		return at
	}
	at = len(p.forms)
	p.formsAt[key] = at
	for _, f := range forms {
		p.forms = append(p.forms, f.sets|uint64(index(&p.attrs, f.attr))<<attrAt)
		p.formLabels = append(p.formLabels, p.label)
	}
	p.forms = append(p.forms, 0)
	p.formLabels = append(p.formLabels, "")
	return at
}

// index returns the place of an element, which it appends where it is new.
func index[E comparable](list *[]E, e E) int {
	at := slices.Index(*list, e)
	if at < 0 {
		at = len(*list)
		*list = append(*list, e)
	}
	return at
}

// entry returns the word of a legacy opcode.
func (p *pool) entry(forms []form) uint64 {
	if len(forms) == 0 {
		return 0
	}
	if len(forms) == 1 && unconditional(forms[0], anyOperand|anyReg) {
		return forms[0].word()
	}
	var group [groupSize]uint64
	for i := range group {
		group[i] = p.groupEntry(forms, i)
	}
	at := index(&p.groups, group)
	if at == len(p.groupLabels) {
		p.groupLabels = append(p.groupLabels, p.label)
	}
	return uint64(at*groupSize) | 1<<groupAt
}

// groupEntry returns the word of an opcode with those bits 3-7 of ModRM.
func (p *pool) groupEntry(forms []form, modReg int) uint64 {
	operand := uint64(memory)
	if modReg>>3 == 3 {
		operand = register
	}
	fields := operand | 1<<(setReg+modReg&7)
	for _, f := range forms {
		switch {
		case f.sets&fields != fields:
		case unconditional(f, fields):
			return f.word()
		default:
			return uint64(p.list(forms))
		}
	}
	return 0
}

// anyOperand is the set of the operands of legacy instructions.
const anyOperand = memory | register

// unconditional reports whether a legacy form fits all operands with such
// fields, whatever the others are.
func unconditional(f form, fields uint64) bool {
	all := fields | anyW | 1<<setL | noMask | noV | anyRM | anyR | anyB | anyAddr
	return f.sets&all == all && f.sets>>constraintAt == 0
}

func render(t *table) []byte {
	p := &pool{formsAt: map[string]int{}}
	p.list(nil)
	var out bytes.Buffer
	out.WriteString("// Code generated by gen.go from instructions.txt. DO NOT EDIT.\n\npackage amd64\n\n")
	renderOps(&out, t.ops)

	out.WriteString("// legacyEntries are the one-byte map and, by mandatory prefix, 0F, 0F38 and 0F3A.\n")
	out.WriteString("var legacyEntries = [13 * 256]attr{\n")
	for m := range t.legacy {
		for pp := range t.legacy[m] {
			if m == 0 && pp > 0 {
				continue
			}
			for op, forms := range t.legacy[m][pp] {
				p.label = t.comment(true, m, op)
				fmt.Fprintf(&out, "%#x, // %s\n", p.entry(forms), p.label)
			}
		}
	}
	out.WriteString("}\n\n")

	out.WriteString("// vectorEntries are the other maps by mandatory prefix: places in forms.\n")
	fmt.Fprintf(&out, "var vectorEntries = [%d * 4 * 256]uint16{\n", vectorMaps)
	for m := range t.vector {
		for pp := range t.vector[m] {
			for op, forms := range t.vector[m][pp] {
				if p.label = t.comment(false, m, op); len(forms) > 0 {
					fmt.Fprintf(&out, "%#x: %#x, // %s\n", (m*4+pp)*256+op, p.list(forms), p.label)
				}
			}
		}
	}
	out.WriteString("}\n\n")

	out.WriteString("// groups are entries by bits 3-7 of ModRM.\n")
	fmt.Fprintf(&out, "var groups = [%d]attr{\n", powerOf2(len(p.groups)*groupSize))
	for i, group := range p.groups {
		fmt.Fprintf(&out, "// %#x: %s\n", i*groupSize, p.groupLabels[i])
		for j, word := range group {
			put(&out, j, 8, word)
		}
	}
	out.WriteString("}\n\n")

	out.WriteString("// operands are those of each ModRM byte.\n")
	out.WriteString("var operands = [256]operand{\n")
	for b := range 256 {
		layout, scale := operand(b)
		fmt.Fprintf(&out, "{%#x, %#x},\n", layout, scale)
	}
	out.WriteString("}\n\n")

	out.WriteString("// modRMKeys are what each ModRM byte says to a form.\n")
	out.WriteString("var modRMKeys = [256]form{\n")
	for b := range 256 {
		put(&out, b, 8, modRMKey(b))
	}
	out.WriteString("}\n\n")

	out.WriteString("// lengthMasks keep the first bytes of two words.\n")
	out.WriteString("var lengthMasks = [16][2]uint64{\n")
	for n := range 16 {
		low, high := min(n, 8), max(n, 8)-8
		fmt.Fprintf(&out, "{%#x, %#x},\n", uint64(1)<<(8*low)-1, uint64(1)<<(8*high)-1)
	}
	out.WriteString("}\n\n")

	out.WriteString("// forms are lists that end with 0.\n")
	fmt.Fprintf(&out, "var forms = [%d]form{\n", len(p.forms))
	for i, f := range p.forms {
		fmt.Fprintf(&out, "%#x, // %s\n", f, p.formLabels[i])
	}
	out.WriteString("}\n\n")

	out.WriteString("// formAttrs are the attributes of forms.\n")
	fmt.Fprintf(&out, "var formAttrs = [%d]attr{\n", powerOf2(len(p.attrs)))
	for i, a := range p.attrs {
		put(&out, i, 8, a|1<<validAt)
	}
	out.WriteString("}\n")
	return out.Bytes()
}

const (
	// maxOps is how many classes an entry has room for.
	maxOps = 64

	// The places in fact.
	factPropsAt = 16
	factFlowAt  = 32
)

// renderOps writes the classes of instructions.
func renderOps(out *bytes.Buffer, ops []op) {
	out.WriteString("// The classes. Everything that a probe mechanism need not tell apart is\n// OpOther.\nconst (\nOpOther Op = iota\n")
	for _, o := range ops {
		fmt.Fprintf(out, "Op%s // %s\n", o.name, o.comment)
	}
	out.WriteString("\nopCount\n)\n")

	out.WriteString("\n// opFacts are those of each class, without and with attrPriv.\n")
	fmt.Fprintf(out, "var opFacts = [2 * %d]fact{\n", maxOps)
	for i, o := range append([]op{{name: "Other"}}, ops...) {
		for priv := range 2 {
			props := o.props | uint64(priv)*props["priv"]
			fmt.Fprintf(out, "%#x,", uint64(i)|props<<factPropsAt|uint64(o.flow)<<factFlowAt)
		}
		fmt.Fprintf(out, "// %s %s\n", o.name, flows[o.flow])
	}
	out.WriteString("}\n\n")
}

// The places in layout. The highest 8 bits hold the length of ModRM and what
// belongs to it, and whether a base of 5 in the SIB byte means 4 bytes more.
const (
	kindAt    = 0
	offsetAt  = 8
	widthAt   = 16
	modRMPos  = 32
	dispAt    = 40
	dispLenAt = 48
	lengthPos = 56
	baseAt    = 63
)

// operand returns the layout of a ModRM byte and what belongs to it after an
// opcode at 0, and what the place of the opcode adds to.
func operand(modRM int) (layout, scale uint64) {
	const memory, ripRelative = 2, 32
	dispLen := []uint64{0, 1, 4, 0}[modRM>>6]
	length := uint64(1)
	rip := false
	switch {
	case modRM>>6 == 3:
	case modRM&7 == 4:
		length = 2
		if modRM>>6 == 0 {
			layout = 1 << baseAt
		}
	case modRM&7 == 5 && modRM>>6 == 0:
		rip = true
		dispLen = 4
	}
	layout |= 1<<modRMPos | dispLen<<dispLenAt | (length+dispLen)<<lengthPos
	scale = 1 << modRMPos
	if dispLen > 0 {
		layout |= (1 + length) << dispAt
		scale |= 1 << dispAt
	}
	if rip {
		layout |= memory<<kindAt | (1+length)<<offsetAt | ripRelative<<widthAt
		scale |= 1 << offsetAt
	}
	return layout, scale
}

// modRMKey returns the sets of a ModRM byte's values.
func modRMKey(modRM int) uint64 {
	addr := 0
	switch {
	case modRM>>6 == 3:
	case modRM&7 == 4:
		addr = 1
	case modRM&7 == 5 && modRM>>6 == 0:
		addr = 2
	}
	return 1<<(setReg+modRM>>3&7) | 1<<(setRM+modRM&7) | 1<<(setAddr+addr)
}

// powerOf2 returns the next power of two, with which an index can be masked.
func powerOf2(n int) int { return 1 << bits.Len(uint(n-1)) }

// put writes the number at index i of a table, columns of them on a line.
func put(out *bytes.Buffer, i, columns int, number any) {
	fmt.Fprintf(out, "%#x,", number)
	if i%columns == columns-1 {
		out.WriteByte('\n')
	}
}

func main() {
	log.SetFlags(0)
	dir := flag.String("o", ".", "write to the `folder`")
	flag.Parse()
	text, err := os.ReadFile("instructions.txt")
	if err != nil {
		log.Fatal(err)
	}
	t, err := read(string(text))
	if err != nil {
		log.Fatal("instructions.txt: ", err)
	}
	source, err := format.Source(render(t))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*dir, "tables_gen.go"), source, 0o644); err != nil {
		log.Fatal(err)
	}
}
