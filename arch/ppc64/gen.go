//go:build ignore

// Gen reads instructions.txt and writes tables_gen.go.
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
	"regexp"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("o", ".", "write to the `folder`")
	flag.Parse()
	text, err := os.ReadFile("instructions.txt")
	if err != nil {
		log.Fatal(err)
	}
	t := &tables{operands: map[string]arg{}, argIDs: map[arg]int{}}
	t.argID(arg{}) // number 0 means none
	t.formats = []instr{nothing}
	for i, line := range strings.Split(string(text), "\n") {
		if err := t.line(line); err != nil {
			log.Fatalf("instructions.txt:%d: %v", i+1, err)
		}
	}
	if err := t.check(); err != nil {
		log.Fatal(err)
	}
	src, err := format.Source(t.source())
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*dir, "tables_gen.go"), src, 0o644); err != nil {
		log.Fatal(err)
	}
}

// segment is a run of bits: width bits from bit shift, counted from the least
// significant bit of the suffix or word.
type segment struct{ shift, width int }

// arg is an operand and how it is printed.
type arg struct {
	kind     string
	segments [3]segment
	scale    int
	base     bool // in parentheses after a displacement
	optional bool
	def      int // value of an optional operand that is left out; a literal
}

// cond restricts operands.
type cond struct {
	op   string
	a, b int
	n    int
}

// instr is one way to write certain words.
type instr struct {
	mask, value uint64
	name        string
	args        []int
	conds       []int
	class       string
	priv        bool
	aliases     []instr // other names of some of the words
}

// nothing is number 0, which no word matches.
var nothing = instr{mask: 0, value: 1, class: "Other"}

type tables struct {
	operands map[string]arg
	args     []arg
	argIDs   map[arg]int
	conds    []cond
	formats  []instr
	bases    []int // the formats of the last line that was not indented
}

func (t *tables) argID(a arg) int {
	id, ok := t.argIDs[a]
	if !ok {
		id = len(t.args)
		t.args = append(t.args, a)
		t.argIDs[a] = id
	}
	return id
}

func (t *tables) line(line string) error {
	indented := strings.HasPrefix(line, " ")
	line = strings.TrimSpace(line)
	switch {
	case line == "" || line[0] == '#':
		return nil
	case strings.HasPrefix(line, "operand "):
		return t.operand(strings.Fields(line)[1:])
	}
	variants, err := t.instruction(line)
	if err != nil {
		return err
	}
	if indented {
		return t.addAliases(variants)
	}
	t.bases = t.bases[:0]
	for _, v := range variants {
		t.bases = append(t.bases, len(t.formats))
		t.formats = append(t.formats, v)
	}
	return nil
}

// addAliases gives each format of the last line those variants that name some
// of its words.
func (t *tables) addAliases(variants []instr) error {
	for _, v := range variants {
		found := false
		for _, b := range t.bases {
			f := &t.formats[b]
			if f.mask&^v.mask == 0 && v.value&f.mask == f.value {
				f.aliases = append(f.aliases, v)
				found = true
			}
		}
		if !found {
			return fmt.Errorf("%s names no word of the line above", v.name)
		}
	}
	return nil
}

// check reports an instruction that is only another name of words of one.
func (t *tables) check() error {
	for i, a := range t.formats[1:] {
		for j, b := range t.formats[1:] {
			if i != j && b.mask&^a.mask == 0 && a.value&b.mask == b.value && len(b.conds) == 0 {
				return fmt.Errorf("%s must be indented under %s", a.name, b.name)
			}
		}
	}
	return nil
}

func (t *tables) operand(f []string) error {
	if len(f) < 3 {
		return fmt.Errorf("operand: want NAME KIND BITS")
	}
	a := arg{kind: f[1]}
	var err error
	if a.segments, err = parseBits(f[2]); err != nil {
		return err
	}
	if len(f) > 3 {
		a.scale, err = strconv.Atoi(strings.TrimPrefix(f[3], "<<"))
	}
	t.operands[f[0]] = a
	return err
}

// parseBits reads a list of bits in the manual's numbering.
func parseBits(s string) (segs [3]segment, err error) {
	parts := strings.Split(s, ",")
	if len(parts) > len(segs) {
		return segs, fmt.Errorf("%s: more than %d parts", s, len(segs))
	}
	for i, part := range parts {
		top := 31
		if strings.HasPrefix(part, "p") {
			top, part = 63, part[1:]
		}
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		lo, err1 := strconv.Atoi(from)
		hi, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || lo > hi || hi > 31 {
			return segs, fmt.Errorf("%s: not a range of bits", part)
		}
		segs[i] = segment{top - hi, hi - lo + 1}
	}
	return segs, nil
}

func cover(a arg) (mask uint64) {
	for _, s := range a.segments {
		mask |= (1<<s.width - 1) << s.shift
	}
	return mask
}

// letters are the optional parts of mnemonics and the bit that they stand for.
var letters = []struct {
	mark, letter string
	bit          uint64
}{
	{"[o]", "o", 1 << 10},
	{"[.@21]", ".", 1 << 10},
	{"[.]", ".", 1},
	{"[l]", "l", 1},
}

func (t *tables) instruction(line string) ([]instr, error) {
	text, rest, _ := strings.Cut(line, ";")
	f := strings.Fields(text)
	if len(f) < 2 || len(f) > 3 {
		return nil, fmt.Errorf("want VALUE MNEMONIC OPERANDS")
	}
	value, err := strconv.ParseUint(f[0], 16, 64)
	if err != nil {
		return nil, err
	}
	in := instr{value: value, name: f[1], class: "Other"}
	free := uint64(0)
	local := map[string]arg{}
	if len(f) == 3 {
		if free, err = t.parseArgs(&in, f[2], local); err != nil {
			return nil, err
		}
	}
	more, err := t.parseRest(&in, strings.Fields(rest), local)
	if err != nil {
		return nil, err
	}
	in.mask = ^(free | more)
	if in.value&^in.mask != 0 {
		return nil, fmt.Errorf("%s: an operand covers fixed bits", in.name)
	}
	return expand(in), nil
}

// expand makes one format of each combination of optional letters.
func expand(in instr) []instr {
	variants := []instr{in}
	for _, l := range letters {
		if !strings.Contains(in.name, l.mark) {
			continue
		}
		for _, v := range variants {
			v.value |= l.bit
			v.name = strings.Replace(v.name, l.mark, l.letter, 1)
			variants = append(variants, v)
		}
		for i := range variants {
			variants[i].name = strings.Replace(variants[i].name, l.mark, "", 1)
		}
	}
	return variants
}

var argSyntax = regexp.MustCompile(`^([A-Za-z0-9]+)(?:@(p?[0-9]+(?:-[0-9]+)?))?(\?(?:=([0-9]+))?)?$`)

// parseArgs reads the operands into in.args and returns the bits they cover.
func (t *tables) parseArgs(in *instr, list string, local map[string]arg) (free uint64, err error) {
	list = strings.ReplaceAll(strings.ReplaceAll(list, "(", ",("), ")", "")
	for _, word := range strings.Split(list, ",") {
		if strings.HasPrefix(word, "~") {
			segs, err := parseBits(word[1:])
			if err != nil {
				return 0, err
			}
			free |= cover(arg{segments: segs})
			continue
		}
		if _, err := strconv.Atoi(word); err == nil {
			n, _ := strconv.Atoi(word)
			in.args = append(in.args, t.argID(arg{kind: "literal", def: n}))
			continue
		}
		base := strings.HasPrefix(word, "(")
		m := argSyntax.FindStringSubmatch(strings.TrimPrefix(word, "("))
		if m == nil {
			return 0, fmt.Errorf("operand %s: bad syntax", word)
		}
		a, ok := t.operands[m[1]]
		if m[2] != "" {
			a = arg{kind: "uint"}
			if a.segments, err = parseBits(m[2]); err != nil {
				return 0, err
			}
		} else if !ok {
			return 0, fmt.Errorf("operand %s is not declared", m[1])
		}
		local[m[1]] = a
		free |= cover(a)
		a.base = base
		if m[3] != "" {
			a.optional = true
			a.def, _ = strconv.Atoi(m[4])
		}
		in.args = append(in.args, t.argID(a))
	}
	return free, nil
}

var condSyntax = []struct {
	op string
	re *regexp.Regexp
}{
	{"sum", regexp.MustCompile(`^(\w+)\+(\w+(?:@[0-9-]+)?)=([0-9]+)$`)},
	{"even", regexp.MustCompile(`^even\((\w+)\)()()$`)},
	{"oneBit", regexp.MustCompile(`^onebit\((\w+)\)()()$`)},
	{"apart", regexp.MustCompile(`^apart\((\w+),(\w+)\)()$`)},
	{"equal", regexp.MustCompile(`^(\w+)=([A-Z]\w*)()$`)},
	{"differ", regexp.MustCompile(`^(\w+)!=([A-Z]\w*)()$`)},
	{"differ", regexp.MustCompile(`^(\w+)!=()([0-9]+)$`)},
	{"less", regexp.MustCompile(`^(\w+)<([A-Z]\w*)()$`)},
	{"less", regexp.MustCompile(`^(\w+)<()([0-9]+)$`)},
}

// parseRest reads what stands after the semicolon and returns the bits that
// only conditions speak of.
func (t *tables) parseRest(in *instr, words []string, local map[string]arg) (free uint64, err error) {
	for _, word := range words {
		found := false
		for _, s := range condSyntax {
			m := s.re.FindStringSubmatch(word)
			if m == nil {
				continue
			}
			c := cond{op: s.op}
			var bitsA, bitsB uint64
			if c.a, bitsA, err = t.condArg(m[1], local); err == nil {
				c.b, bitsB, err = t.condArg(m[2], local)
			}
			if err != nil {
				return 0, err
			}
			free |= bitsA | bitsB
			c.n, _ = strconv.Atoi(m[3])
			in.conds = append(in.conds, len(t.conds))
			t.conds = append(t.conds, c)
			found = true
			break
		}
		switch {
		case found:
		case word == "priv":
			in.priv = true
		case classes[word] != "":
			in.class = classes[word]
		default:
			return 0, fmt.Errorf("%s: neither condition nor class", word)
		}
	}
	return free, nil
}

func (t *tables) condArg(name string, local map[string]arg) (int, uint64, error) {
	if name == "" {
		return 0, 0, nil
	}
	name, place, _ := strings.Cut(name, "@")
	a, ok := local[name]
	if !ok {
		a, ok = t.operands[name]
	}
	if place != "" {
		segs, err := parseBits(place)
		if err != nil {
			return 0, 0, err
		}
		a, ok = arg{kind: "uint", segments: segs}, true
	}
	if !ok {
		return 0, 0, fmt.Errorf("operand %s is not declared", name)
	}
	return t.argID(a), cover(a), nil
}

// classes are the words for the class of an instruction.
var classes = map[string]string{
	"b": "B", "bl": "BL", "ba": "BA", "bla": "BLA",
	"bc": "BC", "bcl": "BCL", "bca": "BCA", "bcla": "BCLA",
	"bclr": "BCLR", "bclrl": "BCLRL", "bcctr": "BCCTR", "bcctrl": "BCCTRL", "bctar": "BCTAR", "bctarl": "BCTARL",
	"sc": "Syscall", "rfi": "Return", "trap": "Trap", "halt": "Halt",
	"larx": "LoadReserve", "stcx": "StoreConditional", "mtmsr": "MoveMSR", "spr": "MoveSPR",
	"addpcis": "AddPCIS", "pcmem": "PCMemory", "pcaddr": "PCAddress", "pnop": "PrefixedNop",
}

// hash says which bits of a word or suffix tell the instructions of a primary
// opcode apart: width bits from bit shift. The opcodes from 64 on stand for
// the four types of prefix.
func hash(opcode int) segment {
	switch opcode {
	case 4, 19, 31, 59, 63:
		return segment{0, 11}
	case 60:
		return segment{2, 9}
	case 30:
		return segment{0, 5}
	case 6, 17, 56, 57, 58, 61, 62:
		return segment{0, 4}
	case 16, 18:
		return segment{0, 2}
	case 20, 21, 23:
		return segment{0, 1}
	case 10, 11:
		return segment{21, 1}
	case 64, 65, 66:
		return segment{26, 6}
	case 67:
		return segment{3, 8}
	}
	return segment{0, 0}
}

// matches reports whether some word of opcode with key in the bits h is one of f.
func (f *instr) matches(opcode int, h segment, key int) bool {
	value, mask := uint64(opcode)<<26, uint64(0xffffffff_fc000000)
	if opcode >= 64 {
		value = 1<<58 | uint64(opcode-64)<<56
		mask = 0xff000000_00000000
	}
	value |= uint64(key) << h.shift
	mask |= (1<<h.width - 1) << h.shift
	return (f.value^value)&f.mask&mask == 0
}

// chain marks an index entry that is a place in chains.
const chain = 0x8000

func (t *tables) source() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "// Code generated by gen.go from instructions.txt; DO NOT EDIT.\n\npackage ppc64")
	t.writeIndex(&b)
	t.writeArgs(&b)
	t.writeCodes(&b)
	t.writeFormats(&b)
	return b.Bytes()
}

func (t *tables) writeIndex(b *bytes.Buffer) {
	var index, chains []int
	seen := map[string]int{}
	fmt.Fprintln(b, "\n// opcodes says where in index the instructions of a primary opcode start, and")
	fmt.Fprintln(b, "// which bits select one; after the 64 opcodes come the four types of prefix.")
	fmt.Fprintln(b, "var opcodes = [68]opcode{")
	for op := 0; op < 68; op++ {
		h := hash(op)
		start := len(index)
		any := false
		for v := 0; v < 1<<h.width; v++ {
			var list []int
			for i := range t.formats[1:] {
				if t.formats[i+1].matches(op, h, v) {
					list = append(list, i+1)
				}
			}
			any = any || list != nil
			index = append(index, entry(list, &chains, seen))
		}
		if !any {
			index = index[:start+1] // holds 0
			h = segment{}
		}
		fmt.Fprintf(b, "{%d, %#x, %d},\n", start, 1<<h.width-1, h.shift)
	}
	fmt.Fprintln(b, "}")
	writeInts(b, "index", "holds numbers of instructions, or places in chains with the bit indexChain.", powerOfTwo(len(index)), index)
	writeInts(b, "chains", "holds lists of instructions, the first that fits counts; 0 ends a list.", len(chains), chains)
	fmt.Fprintf(b, "\nconst indexChain = %#x\n", chain)
}

func entry(list []int, chains *[]int, seen map[string]int) int {
	switch len(list) {
	case 0:
		return 0
	case 1:
		return list[0]
	}
	key := fmt.Sprint(list)
	at, ok := seen[key]
	if !ok {
		at = len(*chains)
		seen[key] = at
		*chains = append(append(*chains, list...), 0)
	}
	return at | chain
}

// powerOfTwo returns the smallest one that is not less than n. Tables of such
// a size need no checks of their bounds.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

func writeInts(b *bytes.Buffer, name, doc string, size int, list []int) {
	fmt.Fprintf(b, "\n// %s %s\nvar %s = [%d]uint16{", name, doc, name, size)
	for i, v := range list {
		if i%16 == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "%d,", v)
	}
	fmt.Fprintln(b, "\n}")
}

func (t *tables) writeArgs(b *bytes.Buffer) {
	fmt.Fprintln(b, "\n// args are operands and how they are printed; number 0 is none.\nvar args = [...]arg{")
	for _, a := range t.args {
		kind := "argNone"
		if a.kind != "" {
			kind = "arg" + strings.ToUpper(a.kind[:1]) + a.kind[1:]
		}
		fmt.Fprintf(b, "{%s, [3]segment{", kind)
		for i, s := range a.segments {
			if s.width == 0 {
				break
			}
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(b, "{%d, %d}", s.shift, s.width)
		}
		fmt.Fprintf(b, "}, %d, %v, %v, %d},\n", a.scale, a.base, a.optional, a.def)
	}
	fmt.Fprintln(b, "}\n\n// conds are restrictions of operands.\nvar conds = [...]cond{")
	for _, c := range t.conds {
		fmt.Fprintf(b, "{cond%s, %d, %d, %d},\n", strings.ToUpper(c.op[:1])+c.op[1:], c.a, c.b, c.n)
	}
	fmt.Fprintln(b, "}")
}

func (t *tables) writeCodes(b *bytes.Buffer) {
	fmt.Fprintln(b, "\n// codes are the words or suffixes of the instructions; number 0 is none.")
	fmt.Fprintf(b, "var codes = [%d]code{\n", powerOfTwo(len(t.formats)))
	for _, f := range t.formats {
		writeCode(b, f)
		fmt.Fprintf(b, ", // %s\n", f.name)
	}
	fmt.Fprintln(b, "}\n\n// prefixes are the prefixes of those from firstPrefixed on.\nvar prefixes = [...]prefix{")
	first := len(t.formats)
	for i, f := range t.formats {
		if f.prefixed() {
			first = min(first, i)
			fmt.Fprintf(b, "{%#x, %#x}, // %s\n", f.mask>>32, f.value>>32, f.name)
		} else if i > first {
			log.Fatalf("%s stands after a prefixed instruction", f.name)
		}
	}
	fmt.Fprintf(b, "}\n\nconst firstPrefixed = %d\n", first)
}

func (f *instr) prefixed() bool { return f.value>>32 != 0 }

func writeCode(b *bytes.Buffer, f instr) {
	first := 0
	if len(f.conds) > 0 {
		first = f.conds[0]
	}
	attr := "class" + f.class
	if f.priv {
		attr += " | privileged"
	}
	fmt.Fprintf(b, "{%#x, %#x, %s, %d, %d}", uint32(f.mask), uint32(f.value), attr, first, len(f.conds))
}

func (t *tables) writeFormats(b *bytes.Buffer) {
	var aliases []instr
	fmt.Fprintln(b, "\n// formats say how the instructions of codes are written.\nvar formats = [...]format{")
	for _, f := range t.formats {
		writeFormat(b, f)
		fmt.Fprintf(b, ", %d, %d},\n", len(aliases), len(f.aliases))
		aliases = append(aliases, f.aliases...)
	}
	fmt.Fprintln(b, "}\n\n// aliases are other ways to write certain words or suffixes.\nvar aliases = [...]alias{")
	for _, f := range aliases {
		fmt.Fprint(b, "{code")
		writeCode(b, f)
		fmt.Fprint(b, ", format")
		writeFormat(b, f)
		fmt.Fprintln(b, ", 0, 0}},")
	}
	fmt.Fprintln(b, "}")
}

func writeFormat(b *bytes.Buffer, f instr) {
	fmt.Fprintf(b, "{%q, [6]uint8{", f.name)
	for i, a := range f.args {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(b, a)
	}
	b.WriteByte('}')
}
