//go:build ignore

// Gennames makes names_gen.go of the names in instructions.txt.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// spaces are the opcode maps in the order of nameSpace in names.go.
var spaces = []string{
	"legacy 1b", "legacy 0f", "legacy 0f38", "legacy 0f3a", "3dnow",
	"vex 0f", "vex 0f38", "vex 0f3a", "vex 7",
	"evex 0f", "evex 0f38", "evex 0f3a", "evex 4", "evex 5", "evex 6", "evex 7",
	"xop 8", "xop 9", "xop a",
}

// keyFields are the parts of the word that conditions compare, from bit 0 up.
var keyFields = []struct {
	name string
	bits int
}{
	{"PP", 2}, {"W", 1}, {"L", 2}, {"Mem", 1}, {"Reg", 3}, {"RM", 3}, {"ND", 1}, {"NF", 1},
	{"Size", 2}, {"Addr32", 1}, {"B", 1}, {"REX2", 1}, {"RIP", 1},
}

// conditions are the conditions of instructions.txt: a field and its value.
var conditions = map[string]struct {
	field string
	value int
}{
	"np": {"PP", 0}, "66": {"PP", 1}, "f3": {"PP", 2}, "f2": {"PP", 3},
	"w0": {"W", 0}, "w1": {"W", 1}, "l0": {"L", 0}, "l1": {"L", 1}, "l2": {"L", 2},
	"mem": {"Mem", 1}, "reg": {"Mem", 0}, "rip": {"RIP", 1},
	"o16": {"Size", 1}, "o32": {"Size", 2}, "o64": {"Size", 3},
	"a32": {"Addr32", 1}, "b0": {"B", 0}, "b1": {"B", 1}, "rex2": {"REX2", 1},
	"nd0": {"ND", 0}, "nd1": {"ND", 1}, "nf0": {"NF", 0}, "nf1": {"NF", 1},
}

// suffixes are the marks at the end of mnemonics, the longer before their parts.
var suffixes = []struct{ mark, attr string }{
	{"~", "suffixMem"}, {"^", "suffixSize"}, {"_", "suffixStack"},
	{"%%", "suffixXYZ"}, {"%", "suffixXY"}, {"@", "suffixCond"},
}

// fixedOperands are the operands that have no size in their name.
var fixedOperands = map[string]string{
	"AL": "opFixed,regAL", "CL": "opFixed,regCL", "AX": "opFixed,regAX", "rAX": "opAcc,sizeV", "eAX": "opAcc,sizeZ",
	"EAX": "opFixed,regEAX", "EBX": "opFixed,regEBX", "ECX": "opFixed,regECX", "EDX": "opFixed,regEDX",
	"MON": "opAcc,sizeA", "XMM0": "opFixed,regXMM0", "dx": "opFixed,regDXMem",
	"%fs": "opFixed,regFS", "%gs": "opFixed,regGS", "ST": "opFixed,regST", "STi": "opST,0",
	"1": "opOne,0", "br": "opBndReg,0", "bm": "opBndRM,0", "Sr": "opSegReg,0", "Cr": "opCtrlReg,0", "Dr": "opDebugReg,0",
	"Kr": "opMaskReg,0", "Kv": "opMaskV,0", "Km": "opMaskRM,0", "Tr": "opTileReg,0", "Tv": "opTileV,0", "Tm": "opTileRM,0",
	"P": "opMMXReg,0", "Q": "opMMXRM,0", "M": "opRM,sizeA", "*M": "opStarRM,sizeA", "*Es": "opStarRM,sizeS",
	"XLAT": "opXlat,0", "J": "opTarget,0", "O": "opMoffs,0",
	"Ib": "opImm,sizeB", "Iw": "opImm,sizeW", "Id": "opImm,sizeD", "Iq": "opImm,sizeQ", "Iv": "opImm,sizeV",
	"Is": "opImm,sizeS", "Ib2": "opImm2,0", "I4": "opImm4,0",
	"er": "opRounding,0", "sae": "opSAE,0",
}

// sizedOperands are the first letters of the others.
var sizedOperands = map[byte]string{
	'E': "opRM", 'R': "opRMReg", 'G': "opReg", 'B': "opV", 'Z': "opOpcode", 'X': "opSource", 'Y': "opDest",
	'W': "opVecRM", 'V': "opVecReg", 'H': "opVecV", 'L': "opVecImm", 'U': "opVSIB",
}

var predicates = []struct{ prefix, attr string }{
	{"cmp?", "predCmp8"}, {"vcmp?", "predCmp32"}, {"vpcmp?", "predInt"}, {"vpcom?", "predXOP"},
	{"pclmul?", "predClmul"}, {"vpclmul?", "predClmul"},
}

type form struct {
	mask, want uint32
	name       string
	ops        []int
	attrs      []string
	encoding   string // vex or evex: only there
	alone      bool   // marked new!
	vector     bool   // has vector operands
}

type generator struct {
	operands []string
	known    map[string]int
	forms    [][]form // by space and opcode
}

func main() {
	log.SetFlags(0)
	dir := flag.String("o", ".", "write to the `folder`")
	flag.Parse()
	input, err := os.Open("instructions.txt")
	if err != nil {
		log.Fatal(err)
	}
	defer input.Close()
	g := &generator{known: map[string]int{}, forms: make([][]form, len(spaces)*256)}
	g.operand("nil")
	if err := g.read(input); err != nil {
		log.Fatal(err)
	}
	text, err := format.Source(g.write())
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*dir, "names_gen.go"), text, 0o644); err != nil {
		log.Fatal(err)
	}
}

func (g *generator) read(input io.Reader) error {
	space := -1
	scanner := bufio.NewScanner(input)
	for n := 1; scanner.Scan(); n++ {
		line := scanner.Text()
		if name, ok := strings.CutPrefix(line, "["); ok {
			space = slices.Index(spaces, strings.TrimSuffix(name, "]"))
			continue
		}
		name, ok := strings.CutPrefix(line, "\t")
		if !ok {
			continue // a form
		}
		maps, err := mapsOf(space, strings.HasPrefix(name, "+"))
		if err == nil {
			err = g.line(maps, strings.TrimPrefix(name, "+"))
		}
		if err != nil {
			return fmt.Errorf("instructions.txt:%d: %w", n, err)
		}
	}
	return scanner.Err()
}

// mapsOf returns the opcode maps that a name stands in: that of its section, and
// the same of EVEX.
func mapsOf(space int, alsoEVEX bool) (maps []int, err error) {
	if space < 0 {
		return nil, errors.New("a section without names")
	}
	maps = []int{space}
	if alsoEVEX {
		twin := slices.Index(spaces, "e"+spaces[space])
		if twin < 0 {
			return nil, fmt.Errorf("EVEX has no map of %s", spaces[space])
		}
		maps = append(maps, twin)
	}
	return maps, nil
}

func (g *generator) line(section []int, line string) error {
	opcodes, rest, _ := strings.Cut(line, " ")
	if lo, hi, ok := strings.Cut(opcodes, "-"); ok {
		from, err1 := strconv.ParseUint(lo, 16, 8)
		to, err2 := strconv.ParseUint(hi, 16, 8)
		if err1 != nil || err2 != nil || from > to {
			return fmt.Errorf("opcodes %q", opcodes)
		}
		list := []string{}
		for op := from; op <= to; op++ {
			list = append(list, fmt.Sprintf("%02x", op))
		}
		opcodes = "{" + strings.Join(list, "|") + "}"
	}
	lines, err := expand(opcodes + " " + rest)
	if err != nil {
		return err
	}
	for _, l := range lines {
		opcode, f, err := g.form(l)
		if err != nil {
			return err
		}
		for _, space := range section {
			if at, ok := f.in(spaces[space], len(section) > 1); ok {
				g.forms[space<<8|opcode] = append(g.forms[space<<8|opcode], at)
			}
		}
	}
	return nil
}

// in returns the form as it stands in one opcode map, and whether it does: the
// condition on the encoding is checked here, so that the table need not be. Only
// EVEX has twins in older encodings and uses opmask bits for NF.
func (f form) in(space string, shared bool) (form, bool) {
	evex := strings.HasPrefix(space, "evex ")
	if f.encoding == "vex" && evex || f.encoding == "evex" && !evex {
		return f, false
	}
	attrs := f.attrs
	f.attrs = nil
	if evex && f.encoding == "" && !f.alone && (shared || space == "evex 4") {
		f.attrs = append(f.attrs, "hasTwin")
	}
	if evex && !f.vector {
		f.attrs = append(f.attrs, "scalar")
	}
	f.attrs = append(f.attrs, attrs...)
	return f, true
}

// expand returns the lines that the lists of a line stand for.
func expand(line string) ([]string, error) {
	open := strings.IndexAny(line, "{(")
	if open < 0 {
		return []string{line}, nil
	}
	brackets := "{}"
	if line[open] == '(' {
		brackets = "()"
	}
	n := -1
	var lines []string
	for i := 0; n < 0 || i < n; i++ {
		rest, one := line, ""
		for {
			before, after, ok := strings.Cut(rest, brackets[:1])
			if !ok {
				break
			}
			list, after, ok := strings.Cut(after, brackets[1:])
			if !ok {
				return nil, fmt.Errorf("unclosed list in %q", line)
			}
			items := strings.Split(list, "|")
			if n < 0 {
				n = len(items)
			}
			if len(items) == n {
				one += before + items[i]
			} else {
				one += before + brackets[:1] + list + brackets[1:]
			}
			rest = after
		}
		more, err := expand(one + rest)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

func fieldMask(name string) uint32 {
	shift := 0
	for _, f := range keyFields {
		if f.name == name {
			return (1<<f.bits - 1) << shift
		}
		shift += f.bits
	}
	panic(name)
}

func (f *form) condition(token string) bool {
	field, value := "", 0
	if c, ok := conditions[token]; ok {
		field, value = c.field, c.value
	} else if len(token) == 2 && token[0] == '/' && token[1] >= '0' && token[1] <= '7' {
		field, value = "Reg", int(token[1]-'0')
	} else if len(token) == 3 && token[:2] == "rm" {
		field, value = "RM", int(token[2]-'0')
		f.condition("reg")
	} else if token == "vex" || token == "evex" {
		f.encoding = token
		return true
	} else {
		return false
	}
	mask := fieldMask(field)
	f.mask |= mask
	f.want |= mask & (mask & -mask * uint32(value))
	return true
}

func (g *generator) form(line string) (opcode int, f form, err error) {
	tokens := strings.Fields(line)
	op, err := strconv.ParseUint(tokens[0], 16, 8)
	if err != nil {
		return 0, f, err
	}
	tokens = tokens[1:]
	for len(tokens) > 0 && f.condition(tokens[0]) {
		tokens = tokens[1:]
	}
	for len(tokens) > 0 && strings.HasSuffix(tokens[0], "!") {
		switch tokens[0] {
		case "vex!":
			f.attrs = append(f.attrs, "pseudoVEX")
		case "new!":
			f.alone = true
		default:
			return 0, f, fmt.Errorf("mark %q", tokens[0])
		}
		tokens = tokens[1:]
	}
	if len(tokens) == 0 || len(tokens) > 2 {
		return 0, f, fmt.Errorf("not a form: %q", line)
	}
	f.name = tokens[0]
	for _, s := range suffixes {
		if name, ok := strings.CutSuffix(f.name, s.mark); ok {
			f.name = name
			f.attrs = append(f.attrs, s.attr)
		}
	}
	for _, p := range predicates {
		if strings.HasPrefix(f.name, p.prefix) {
			f.attrs = append(f.attrs, p.attr)
		}
	}
	if len(tokens) == 2 {
		for _, name := range strings.Split(tokens[1], ",") {
			i, err := g.operand(name)
			if err != nil {
				return 0, f, err
			}
			f.ops = append(f.ops, i)
			f.vector = f.vector || strings.Contains("VWHU", name[:1])
		}
	}
	if len(f.ops) > 5 {
		return 0, f, fmt.Errorf("too many operands: %q", line)
	}
	return int(op), f, nil
}

// operand returns the number of an operand of that name.
func (g *generator) operand(name string) (int, error) {
	if i, ok := g.known[name]; ok {
		return i, nil
	}
	code, ok := fixedOperands[name]
	switch {
	case name == "nil":
		code = "opNone,0,0"
	case ok:
		code += ",0"
	case len(name) >= 2 && sizedOperands[name[0]] != "":
		code = sizedOperands[name[0]] + ",size" + strings.ToUpper(name[1:2])
		switch rest := name[2:]; {
		case rest == "":
			code += ",0"
		case rest == "/r":
			code += ",elemByW"
		case rest[0] == '/':
			code += "," + rest[1:]
		case rest[0] == ':':
			code += ",elemOnly|" + rest[1:]
		default:
			return 0, fmt.Errorf("operand %q", name)
		}
	default:
		return 0, fmt.Errorf("operand %q", name)
	}
	i := len(g.operands)
	g.operands = append(g.operands, fmt.Sprintf("{%s}, // %s", code, name))
	g.known[name] = i
	return i, nil
}

func (g *generator) write() []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, "// Code generated by gennames.go from instructions.txt; DO NOT EDIT.\n\npackage amd64\n\n")
	fmt.Fprint(&b, "// The fields of a nameKey.\nconst (\n")
	shift := 0
	for _, f := range keyFields {
		fmt.Fprintf(&b, "key%s = %d\n", f.name, shift)
		shift += f.bits
	}
	fmt.Fprintf(&b, ")\n\nvar operandSpecs = [...]operandSpec{\n%s\n}\n\n", strings.Join(g.operands, "\n"))
	fmt.Fprint(&b, "// nameStart holds the index in nameForms of the first form of each space and opcode.\n")
	fmt.Fprint(&b, "var nameStart = [...]uint16{\n")
	n := 0
	for i, list := range g.forms {
		if i%16 == 0 {
			fmt.Fprintf(&b, "\n")
		}
		fmt.Fprintf(&b, "%d,", n)
		n += len(list)
	}
	fmt.Fprintf(&b, "\n%d,\n}\n\nvar nameForms = [...]nameForm{\n", n)
	for _, list := range g.forms {
		for _, f := range list {
			f.write(&b)
		}
	}
	fmt.Fprint(&b, "}\n")
	return b.Bytes()
}

func (f *form) write(b *bytes.Buffer) {
	attrs := "0"
	if len(f.attrs) > 0 {
		attrs = strings.Join(f.attrs, "|")
	}
	ops := strings.Trim(strings.ReplaceAll(fmt.Sprint(f.ops), " ", ", "), "[]")
	fmt.Fprintf(b, "{%#x, %#x, %q, [5]uint8{%s}, %s},\n", f.mask, f.want, f.name, ops, attrs)
}
