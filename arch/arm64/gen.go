//go:build ignore

// Gen reads instructions.txt and system.txt and writes tables_gen.go, the
// decoder's decision tree, and names_gen.go, what the text of an instruction is
// made of.
package main

import (
	"bytes"
	"cmp"
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

func main() {
	log.SetFlags(0)
	dir := flag.String("o", ".", "write to the `folder`")
	flag.Parse()
	t := &tables{lets: map[string]string{}, templates: map[string]int{}, formIDs: map[form]int{}, itemIDs: map[string]int{}}
	t.readLines("instructions.txt", t.instruction)
	t.readLines("system.txt", t.system)
	t.checkOverlaps()
	write(filepath.Join(*dir, "tables_gen.go"), t.decoderSource())
	write(filepath.Join(*dir, "names_gen.go"), t.textSource())
}

func write(name string, src []byte) {
	out, err := format.Source(src)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(name, out, 0o644); err != nil {
		log.Fatal(err)
	}
}

// A cube is the set of words that agree with value in the bits of mask.
type cube struct{ mask, value uint32 }

func (c cube) overlaps(d cube) bool { return (c.value^d.value)&c.mask&d.mask == 0 }

func (c cube) contains(d cube) bool { return c.mask&^d.mask == 0 && c.overlaps(d) }

// A row is one way to write certain words, or says that they are no
// instruction. Where several fit, the latter counts, then the one with the most
// fixed bits, then one with a condition, then the first.
type row struct {
	line     int
	fixed    int // bits
	cubes    []cube
	name     string
	template string
	op       string // empty for words that are no instruction
	cond     string
}

type tables struct {
	lets      map[string]string
	rows      []*row
	operands  string // of the rows that follow
	line      int
	templates map[string]int
	forms     []form
	formIDs   map[form]int
	itemLists []int // numbers of items, each list ending in 0
	items     []item
	itemIDs   map[string]int
	lists     [][]string
	registers []systemName
	ops       []systemName
}

// readLines calls parse for every line that is neither empty nor a comment.
func (t *tables) readLines(name string, parse func(string) error) {
	text, err := os.ReadFile(name)
	if err != nil {
		log.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		t.line = i + 1
		if line == "" || line == "#" || strings.HasPrefix(line, "# ") {
			continue
		}
		if err := parse(line); err != nil {
			log.Fatalf("%s:%d: %v", name, t.line, err)
		}
	}
}

// instruction reads a line of instructions.txt.
func (t *tables) instruction(line string) error {
	if rest, ok := strings.CutPrefix(line, "let "); ok {
		name, value, _ := strings.Cut(rest, " ")
		t.lets[name] = value
		return nil
	}
	if line[0] != ' ' {
		t.operands = t.expand(line)
		return nil
	}
	words := strings.Fields(line)
	if len(words) < 2 {
		return fmt.Errorf("want PATTERN MNEMONIC")
	}
	c, err := parsePattern(words[0])
	if err != nil {
		return err
	}
	r := &row{line: t.line, fixed: bits.OnesCount32(c.mask), cubes: []cube{c}, op: "Other"}
	name := []string{}
	for _, w := range words[1:] {
		switch {
		case w[0] == ':':
			r.op = w[1:]
		case w[0] == '?':
			r.cond = w[1:]
		case w[0] == '{' && strings.Contains(w, "="):
			err = r.restrict(strings.Trim(w, "{}"))
		default:
			name = append(name, w)
		}
	}
	if err != nil {
		return err
	}
	r.name = t.expand(strings.Join(name, " "))
	if r.name == "-" {
		r.op, r.fixed = "", 33
	} else if err := t.setTemplate(r); err != nil {
		return err
	}
	t.rows = append(t.rows, r)
	return nil
}

// setTemplate separates the fixed start of the text from the rest, which it
// compiles.
func (t *tables) setTemplate(r *row) error {
	text := r.name
	switch {
	case t.operands == "-":
	case strings.HasPrefix(t.operands, "("):
		text += "( " + t.operands[1:]
	default:
		text += " " + t.operands
	}
	if i := strings.IndexAny(text, "<(["); i >= 0 {
		if j := strings.LastIndexByte(text[:i], ' '); j >= 0 {
			i = j
		}
		r.name, r.template = text[:i], text[i:]
	} else {
		r.name = text
	}
	if err := r.restrictByLists(text); err != nil {
		return err
	}
	return t.compile(r.template)
}

// expand replaces the names of fields.
func (t *tables) expand(s string) string {
	for name, value := range t.lets {
		s = strings.ReplaceAll(s, "<"+name+">", "<"+value+">")
	}
	return s
}

// parsePattern reads 32 characters 0, 1 or . or the word in hexadecimal digits.
func parsePattern(s string) (c cube, err error) {
	if len(s) == 8 {
		v, err := strconv.ParseUint(s, 16, 32)
		return cube{1<<32 - 1, uint32(v)}, err
	}
	if len(s) != 32 {
		return c, fmt.Errorf("%s has %d bits", s, len(s))
	}
	for _, ch := range s {
		c.mask, c.value = c.mask<<1, c.value<<1
		switch ch {
		case '1':
			c.value |= 1
			fallthrough
		case '0':
			c.mask |= 1
		case '.':
		default:
			return c, fmt.Errorf("%s is not a pattern", s)
		}
	}
	return c, nil
}

// restrict keeps the words in which a field has one of some values:
// "23+1.22+1=0|3".
func (r *row) restrict(s string) error {
	where, list, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("%s: want FIELD=VALUES", s)
	}
	f, err := parseField(where)
	if err != nil {
		return err
	}
	var values []uint32
	for _, v := range strings.Split(list, "|") {
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil {
			return err
		}
		values = append(values, uint32(n))
	}
	r.keep(f, values)
	return nil
}

// restrictByLists keeps the words for which no list of names gives "-".
func (r *row) restrictByLists(text string) error {
	for _, hole := range strings.Split(text, "<")[1:] {
		where, list, ok := strings.Cut(hole[:strings.IndexByte(hole, '>')], "=")
		if !ok || !slices.Contains(strings.Split(list, "|"), "-") {
			continue
		}
		f, err := parseField(where)
		if err != nil {
			return err
		}
		var values []uint32
		for v, name := range strings.Split(list, "|") {
			if name != "-" {
				values = append(values, uint32(v))
			}
		}
		r.keep(f, values)
	}
	return nil
}

func (r *row) keep(f field, values []uint32) {
	var cubes []cube
	for _, c := range r.cubes {
		for _, v := range values {
			d := f.holding(v)
			if c.overlaps(d) {
				cubes = append(cubes, cube{c.mask | d.mask, c.value | d.value})
			}
		}
	}
	slices.SortFunc(cubes, compareCubes)
	r.cubes = slices.Compact(cubes)
}

func compareCubes(a, b cube) int {
	return cmp.Or(cmp.Compare(a.mask, b.mask), cmp.Compare(a.value, b.value))
}

// A segment is a run of bits of the word, or, below 0, of zeros.
type segment struct{ low, width int }

// A field is a number: its segments from the high end, scaled and moved.
type field struct {
	segments []segment
	signed   bool
	scale    int
	offset   int
}

// parseField reads "22+1.10+2s*4+16": segments LOW+WIDTH, or _N for N zero bits,
// then s for a signed number, then a scale, then an offset.
func parseField(s string) (f field, err error) {
	f.scale = 1
	parts := strings.Split(s, ".")
	for i, p := range parts {
		if zeros, ok := strings.CutPrefix(p, "_"); ok {
			n, err := strconv.Atoi(zeros)
			if err != nil {
				return f, err
			}
			f.segments = append(f.segments, segment{-1, n})
			continue
		}
		low, rest, ok := strings.Cut(p, "+")
		if !ok {
			return f, fmt.Errorf("%s is not a field", s)
		}
		end := 0
		for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
			end++
		}
		var seg segment
		if seg.low, err = strconv.Atoi(low); err != nil {
			return f, err
		}
		if seg.width, err = strconv.Atoi(rest[:end]); err != nil {
			return f, err
		}
		f.segments = append(f.segments, seg)
		if rest = rest[end:]; rest == "" {
			continue
		}
		if i != len(parts)-1 {
			return f, fmt.Errorf("%s is not a field", s)
		}
		rest, f.signed = strings.CutPrefix(rest, "s")
		if rest, ok = strings.CutPrefix(rest, "*"); ok {
			end = 1
			for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
				end++
			}
			if f.scale, err = strconv.Atoi(rest[:end]); err != nil {
				return f, err
			}
			rest = rest[end:]
		}
		if rest != "" {
			if f.offset, err = strconv.Atoi(rest); err != nil {
				return f, err
			}
		}
	}
	if len(f.segments) > maxSegments {
		return f, fmt.Errorf("%s has more than %d segments", s, maxSegments)
	}
	return f, nil
}

// holding returns the words in which the segments hold v.
func (f field) holding(v uint32) (c cube) {
	for i := len(f.segments) - 1; i >= 0; i-- {
		s := f.segments[i]
		m := uint32(1)<<s.width - 1
		if s.low >= 0 {
			c.mask |= m << s.low
			c.value |= (v & m) << s.low
		}
		v >>= s.width
	}
	return c
}

// checkOverlaps stops the program where two rows fit the same words and
// nothing tells which of them counts.
func (t *tables) checkOverlaps() {
	for i, r := range t.rows {
		for _, s := range t.rows[:i] {
			if r.op == "" || s.op == "" || r.cond != "" || s.cond != "" || r.name == s.name && r.op == s.op {
				continue
			}
			for _, c := range r.cubes {
				for _, d := range s.cubes {
					if c.overlaps(d) && (r.fixed == s.fixed || !c.contains(d) && !d.contains(c)) && !t.covered(cube{c.mask | d.mask, c.value | d.value}, r, s) {
						log.Fatalf("lines %d (%s) and %d (%s) overlap", s.line, s.name, r.line, r.name)
					}
				}
			}
		}
	}
}

// covered reports whether a row of more fixed bits than r and s holds all of c.
func (t *tables) covered(c cube, r, s *row) bool {
	for _, x := range t.rows {
		if x.fixed > max(r.fixed, s.fixed) && x.cond == "" && slices.ContainsFunc(x.cubes, func(d cube) bool { return d.contains(c) }) {
			return true
		}
	}
	return false
}

// A systemName is the name of a system register, or of a system instruction.
type systemName struct {
	kind, name string
	key        int
	operand    string
}

// system reads a line of system.txt.
func (t *tables) system(line string) error {
	words := strings.Fields(line)
	n := systemName{kind: words[0]}
	count := 4
	if n.kind == "reg" {
		count = 5
	}
	if len(words) < count+2 {
		return fmt.Errorf("too short")
	}
	for i, w := range words[1 : count+1] {
		v, err := strconv.Atoi(w)
		if err != nil {
			return err
		}
		width := 3
		if i == count-3 || i == count-2 {
			width = 4
		}
		if i == 0 && count == 5 {
			v -= 2
			width = 1
		}
		n.key = n.key<<width | v
	}
	words = words[count+1:]
	if n.kind == "reg" {
		n.name = words[0]
		if len(words) > 1 {
			n.operand = words[1]
		}
		t.registers = append(t.registers, n)
		return nil
	}
	n.operand = words[0]
	n.name = strings.Join(words[1:], " ")
	t.ops = append(t.ops, n)
	return nil
}

// match is a cube with what it means.
type match struct {
	cube
	leaf int
	cond bool
}

// A tree tells words apart. An entry says where the next ones start and which
// bits select one of them: start<<12 | mask<<5 | shift. The tree starts with
// the answers, which lead to themselves, and the root.
type tree struct {
	entries []uint32
	known   map[string]uint32
	leafOf  func([]match) int
}

const rootShift, rootWidth = 21, 11

// build returns the tree over the matches, which are sorted by what counts
// first. leafOf gives the answer where all that are left fit all words.
func build(matches []match, answers func() int, leafOf func([]match) int) (entries []uint32, root int) {
	tr := &tree{known: map[string]uint32{}, leafOf: leafOf}
	// The number of answers is known after a first run only.
	for range 2 {
		root = answers()
		tr.entries = make([]uint32, root+1<<rootWidth)
		for i := range root {
			tr.entries[i] = uint32(i << 12)
		}
		clear(tr.known)
		children := tr.children(matches, cube{}, rootShift, rootWidth)
		copy(tr.entries[root:], children)
	}
	return tr.entries, root
}

func (tr *tree) children(matches []match, at cube, shift, width int) []uint32 {
	out := make([]uint32, 1<<width)
	for i := range out {
		mask := uint32(1<<width-1) << shift
		child := cube{at.mask | mask, at.value | uint32(i)<<shift}
		var fit []match
		for _, m := range matches {
			if m.overlaps(child) {
				fit = append(fit, m)
				if !m.cond && m.contains(child) {
					break
				}
			}
		}
		out[i] = tr.entry(fit, child)
	}
	return out
}

func (tr *tree) entry(matches []match, at cube) uint32 {
	if leaf := tr.leaf(matches, at); leaf >= 0 {
		return uint32(leaf << 12)
	}
	shift, width := choose(matches, at)
	kids := tr.children(matches, at, shift, width)
	key := fmt.Sprint(shift, kids)
	if e, ok := tr.known[key]; ok {
		return e
	}
	e := uint32(len(tr.entries)<<12 | (1<<width-1)<<5 | shift)
	tr.entries = append(tr.entries, kids...)
	tr.known[key] = e
	return e
}

// leaf returns the answer for all words of at, or -1 where it differs.
func (tr *tree) leaf(matches []match, at cube) int {
	if len(matches) == 0 {
		return 0
	}
	for _, m := range matches {
		if !m.contains(at) {
			return tr.sameLeaf(matches, at)
		}
	}
	return tr.leafOf(matches)
}

// sameLeaf returns the answer where all that fit agree on it and the last of
// them fits everything, else -1.
func (tr *tree) sameLeaf(matches []match, at cube) int {
	last := matches[len(matches)-1]
	if !last.contains(at) {
		return -1
	}
	for _, m := range matches {
		if m.leaf != last.leaf || m.cond {
			return -1
		}
	}
	return tr.leafOf(matches[len(matches)-1:])
}

// choose returns the run of bits that tells the matches apart best: that leaves
// the fewest to a child, for the entries that it costs.
func choose(matches []match, at cube) (shift, width int) {
	best := -1e9
	for w := 1; w <= 7; w++ {
		for s := 0; s+w <= 32; s++ {
			mask := uint32(1<<w-1) << s
			if at.mask&mask != 0 {
				continue
			}
			copies := 0.0
			tested := false
			for _, m := range matches {
				n := bits.OnesCount32(m.mask & mask)
				tested = tested || n > 0
				copies += float64(uint32(1) << (w - n))
			}
			if !tested {
				continue
			}
			perChild := copies / float64(uint32(1)<<w)
			score := float64(len(matches)) / perChild
			score = score / (1 + float64(uint32(1)<<w)/float64(8*len(matches)))
			if score > best {
				best, shift, width = score, s, w
			}
		}
	}
	return shift, width
}

// sorted returns the rows in the order in which they count.
func (t *tables) sorted() []*row {
	rows := slices.Clone(t.rows)
	slices.SortStableFunc(rows, func(a, b *row) int {
		c := cmp.Compare(b.fixed, a.fixed)
		if c == 0 && (a.cond == "") != (b.cond == "") {
			if a.cond != "" {
				return -1
			}
			return 1
		}
		return c
	})
	return rows
}

func (t *tables) decoderSource() []byte {
	ops := map[string]int{"": 0}
	names := []string{}
	var matches []match
	for _, r := range t.sorted() {
		if r.cond != "" {
			continue
		}
		leaf, ok := ops[r.op]
		if !ok {
			leaf = len(names) + 1
			ops[r.op] = leaf
			names = append(names, r.op)
		}
		for _, c := range r.cubes {
			matches = append(matches, match{c, leaf, false})
		}
	}
	entries, root := build(matches, func() int { return len(names) + 1 }, func(ms []match) int { return ms[0].leaf })
	var b bytes.Buffer
	b.WriteString("// Code generated by gen.go from instructions.txt; DO NOT EDIT.\n\npackage arm64\n\n")
	b.WriteString("// leafOps are the classes that the leaves of opTree stand for. Leaf 0 is no\n// instruction.\n")
	fmt.Fprintf(&b, "var leafOps = [...]Op{\n")
	for i, n := range names {
		fmt.Fprintf(&b, "%d: Op%s,\n", i+1, n)
	}
	b.WriteString("}\n\n")
	writeTree(&b, "opTree", "leafOps", entries, root)
	return b.Bytes()
}

func writeTree(b *bytes.Buffer, name, leaves string, entries []uint32, root int) {
	fmt.Fprintf(b, "// %sRoot is the place of the root in %s.\nconst %sRoot = %d\n\n", name, name, name, root)
	fmt.Fprintf(b, "// %s is the decision tree from words to %s.\nvar %s = [...]uint32{", name, leaves, name)
	for i, e := range entries {
		if i%12 == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "%d,", e)
	}
	b.WriteString("\n}\n")
}

// maxSegments is the number of runs of bits that a field may have.
const maxSegments = 3

// A form is what to write for a row.
type form struct {
	name         string
	template     int // its start in itemLists
	cond, orElse int
}

// A item is some text and an operand after it, as in text.go.
type item struct {
	text    string
	kind    string
	field   field
	list    int // number of names
	sel     segment
	members int
}

// optional are the operands that may be left out, with the comma before them.
var optional = []string{"shift", "optionalX", "optionalPair", "pattern", "patternTimes"}

// compile turns a template into items, once.
func (t *tables) compile(template string) error {
	if _, ok := t.templates[template]; ok {
		return nil
	}
	text := template
	for _, name := range optional {
		text = strings.ReplaceAll(text, ", <"+name, "<"+name)
	}
	text = strings.ReplaceAll(text, ", (", "(, ")
	text, err := expandLists(text)
	if err != nil {
		return err
	}
	items, err := t.parseItems(text)
	if err != nil {
		return fmt.Errorf("%s: %v", template, err)
	}
	t.templates[template] = len(t.itemLists)
	for _, p := range items {
		t.itemLists = append(t.itemLists, t.itemID(p))
	}
	t.itemLists = append(t.itemLists, 0)
	return nil
}

// itemID returns the number of an item; numbers start at 1.
func (t *tables) itemID(p item) int {
	key := fmt.Sprint(p)
	id, ok := t.itemIDs[key]
	if !ok {
		t.items = append(t.items, p)
		id = len(t.items)
		t.itemIDs[key] = id
	}
	return id
}

// expandLists writes {z<0+5>.s*4} as {z<0+5>.s-z<0+5%3>.s}.
func expandLists(s string) (string, error) {
	for {
		star := strings.Index(s, "}")
		for star >= 2 && s[star-2] != '*' || star >= 0 && star < 2 {
			next := strings.Index(s[star+1:], "}")
			if next < 0 {
				return s, nil
			}
			star += 1 + next
		}
		if star < 0 {
			return s, nil
		}
		open := strings.LastIndexByte(s[:star], '{')
		one := s[open+1 : star-2]
		end := strings.IndexByte(one, '>')
		if open < 0 || end < 0 {
			return "", fmt.Errorf("%s: list without a register", s)
		}
		last := one[:end] + "%" + string(s[star-1]-1) + one[end:]
		s = s[:open+1] + one + "-" + last + s[star:]
	}
}

func (t *tables) parseItems(s string) ([]item, error) {
	var out []item
	text := ""
	for s != "" {
		i := strings.IndexAny(s, "<(")
		if i < 0 {
			out = append(out, item{text: text + s, kind: "Text"})
			return out, nil
		}
		text += s[:i]
		if s[i] == '(' {
			end := strings.IndexByte(s, ')')
			members, err := t.parseItems(s[i+1 : end])
			if err != nil {
				return nil, err
			}
			out = append(out, item{text: text, kind: "Group", members: len(members)})
			out = append(out, members...)
			text, s = "", s[end+1:]
			continue
		}
		end := i + strings.IndexByte(s[i:], '>')
		p, err := t.parseHole(s[i+1:end], text)
		if err != nil {
			return nil, err
		}
		s = s[end+1:]
		if n := len(out) - 1; p.kind == "Number" && text == "" && n >= 0 && out[n].kind == "Name" && t.registerNames(out[n].list) {
			// The list names the registers' prefix: w or x.
			p.kind, p.list, p.sel, p.text = "Register", out[n].list, out[n].field.segments[0], out[n].text
			out = out[:n]
		}
		out = append(out, p)
		text = ""
	}
	if text != "" {
		out = append(out, item{text: text, kind: "Text"})
	}
	return out, nil
}

// registerNames reports whether a list holds prefixes of general registers.
func (t *tables) registerNames(list int) bool {
	for _, n := range t.lists[list] {
		if !slices.Contains([]string{"w", "x", "W", "X", "-"}, n) {
			return false
		}
	}
	return true
}

// parseHole reads what stands between < and > after text.
func (t *tables) parseHole(hole, text string) (item, error) {
	where, names, isName := strings.Cut(hole, "=")
	where, add, isMod := strings.Cut(where, "%")
	special := ""
	if f, ok := registerFields[where]; ok {
		where = f
	} else if isLetter(where[0]) {
		special, where, _ = strings.Cut(where, ":")
	}
	p := item{text: text, kind: "Number"}
	if n, err := strconv.Atoi(where); err == nil {
		p.field = field{segments: []segment{}, scale: 1, offset: n}
	} else if where != "" {
		if p.field, err = parseField(where); err != nil {
			return p, err
		}
	}
	switch {
	case special != "":
		p.kind = strings.ToUpper(special[:1]) + special[1:]
	case isName:
		p.kind, p.list = "Name", t.listID(names)
	case isMod:
		n, err := strconv.Atoi(add)
		if err != nil {
			return p, err
		}
		p.field.offset += n
		p.kind = "Mod32"
		if strings.HasSuffix(text, "p") {
			p.kind = "Mod16"
		}
	case strings.HasSuffix(text, "#0x"):
		p.kind = "Hex"
	case text != "" && strings.ContainsRune("wxWX", rune(text[len(text)-1])) && (len(text) == 1 || !isLetter(text[len(text)-2])):
		p.kind, p.list = "Register", t.listID(text[len(text)-1:])
		p.text = text[:len(text)-1]
	}
	return p, nil
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }

// registerFields are the places of register numbers.
var registerFields = map[string]string{"d": "0+5", "n": "5+5", "m": "16+5", "a": "10+5", "g": "10+3"}

func (t *tables) listID(s string) int {
	names := strings.Split(s, "|")
	for i, l := range t.lists {
		if slices.Equal(l, names) {
			return i
		}
	}
	t.lists = append(t.lists, names)
	return len(t.lists) - 1
}

// formID returns the number of a form; numbers start at 1.
func (t *tables) formID(f form) int {
	id, ok := t.formIDs[f]
	if !ok {
		t.forms = append(t.forms, f)
		id = len(t.forms)
		t.formIDs[f] = id
	}
	return id
}

func (t *tables) textSource() []byte {
	var matches []match
	rows := t.sorted()
	for i, r := range rows {
		for _, c := range r.cubes {
			matches = append(matches, match{c, i, r.cond != ""})
		}
	}
	conds := []string{""}
	var leafOf func(ms []match) int
	leafOf = func(ms []match) int {
		if len(ms) == 0 {
			return 0
		}
		r := rows[ms[0].leaf]
		if r.op == "" {
			return 0
		}
		f := form{name: r.name, template: t.templates[r.template]}
		if r.cond != "" {
			f.cond = slices.Index(conds, r.cond)
			if f.cond < 0 {
				f.cond = len(conds)
				conds = append(conds, r.cond)
			}
			f.orElse = leafOf(ms[1:])
		}
		return t.formID(f)
	}
	entries, root := build(matches, func() int { return len(t.forms) + 1 }, leafOf)
	var b bytes.Buffer
	b.WriteString("// Code generated by gen.go from instructions.txt and system.txt; DO NOT EDIT.\n\npackage arm64\n\n")
	writeTree(&b, "formTree", "forms; leaf 0 is no instruction", entries, root)
	b.WriteString("\n// forms are the ways to write instructions.\nvar forms = [...]form{\n1:")
	for _, f := range t.forms {
		fmt.Fprintf(&b, "{%q, %d, %d, %d},\n", f.name, f.template, f.cond, f.orElse)
	}
	b.WriteString("}\n\n// itemLists are the numbers of the items of forms, each list with a 0 at its end.\nvar itemLists = [...]uint16{")
	for i, id := range t.itemLists {
		if i%16 == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d,", id)
	}
	b.WriteString("\n}\n\n// items are operands and the text before them.\nvar items = [...]item{\n1:")
	for _, p := range t.items {
		t.writeItem(&b, p)
	}
	b.WriteString("}\n\n// names are the lists that operands choose from.\nvar names = [...][]string{\n")
	for _, l := range t.lists {
		fmt.Fprintf(&b, "{")
		for _, n := range l {
			fmt.Fprintf(&b, "%q,", n)
		}
		fmt.Fprintf(&b, "},\n")
	}
	b.WriteString("}\n\n// conditions restrict forms beyond their bits.\nvar conditions = [...]condition{\n")
	for i, c := range conds[1:] {
		fmt.Fprintf(&b, "%d: %s,\n", i+1, conditionSource(c))
	}
	b.WriteString("}\n\n")
	t.writeSystem(&b)
	return b.Bytes()
}

func (t *tables) writeItem(b *bytes.Buffer, p item) {
	fmt.Fprintf(b, "{")
	if p.text != "" {
		fmt.Fprintf(b, "text: %q, ", p.text)
	}
	kind := p.kind
	if p.field.signed && kind == "Number" {
		kind = "Signed"
	}
	if p.kind == "Register" && strings.ContainsAny(t.lists[p.list][0], "WX-") && strings.ContainsAny(strings.Join(t.lists[p.list], ""), "WX") {
		kind = "Stack"
	}
	fmt.Fprintf(b, "kind: item%s, ", kind)
	if p.members != 0 {
		fmt.Fprintf(b, "members: %d, ", p.members)
	}
	if p.field.segments != nil {
		if len(p.field.segments) > 0 {
			writeSegments(b, p.field.segments)
		}
		if p.field.scale != 1 {
			fmt.Fprintf(b, "scale: %d, ", p.field.scale-1)
		}
		if p.field.offset != 0 {
			fmt.Fprintf(b, "offset: %d, ", p.field.offset)
		}
	}
	if p.kind == "Name" || p.kind == "Register" {
		fmt.Fprintf(b, "names: %d, ", p.list)
	}
	if p.sel.width != 0 {
		b.WriteString("choice: segment")
		writeSegment(b, p.sel)
		b.WriteByte(',')
	}
	b.WriteString("},\n")
}

func writeSegments(b *bytes.Buffer, segments []segment) {
	b.WriteString("segments: [maxSegments]segment{")
	for _, s := range segments {
		writeSegment(b, s)
		b.WriteByte(',')
	}
	b.WriteString("}, ")
}

func writeSegment(b *bytes.Buffer, s segment) {
	low := s.low
	if low < 0 {
		low = 32 // shifts everything out
	}
	fmt.Fprintf(b, "{%d, %d}", low, s.width)
}

// conditionSource writes "n=m", fields that are equal, or a named condition.
func conditionSource(c string) string {
	if !strings.Contains(c, "=") {
		return "{kind: cond" + strings.ToUpper(c[:1]) + c[1:] + "}"
	}
	var b bytes.Buffer
	b.WriteString("{kind: condEqual, segments: [maxSegments]segment{")
	for _, part := range strings.Split(c, "=") {
		if f, ok := registerFields[part]; ok {
			part = f
		}
		f, err := parseField(part)
		if err != nil {
			log.Fatal(err)
		}
		writeSegment(&b, f.segments[0])
		b.WriteByte(',')
	}
	b.WriteString("}}")
	return b.String()
}

func (t *tables) writeSystem(b *bytes.Buffer) {
	byKey := func(a, b systemName) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.operand, b.operand)) }
	slices.SortStableFunc(t.registers, byKey)
	b.WriteString("// systemRegisters are the names of system registers, sorted by bits 5 to 19 of\n// the words that read or write them.\nvar systemRegisters = [...]systemRegister{\n")
	for _, r := range t.registers {
		access := map[string]string{"": "accessBoth", "r": "accessRead", "w": "accessWrite"}[r.operand]
		fmt.Fprintf(b, "{%#x, %s, %q},\n", r.key, access, r.name)
	}
	b.WriteString("}\n")
	for _, kind := range []struct{ name, list, what string }{
		{"sys", "systemOps", "sys"}, {"sysl", "systemResultOps", "sysl"}, {"sysp", "systemPairOps", "sysp"},
	} {
		fmt.Fprintf(b, "\n// %s are the names of %s instructions, sorted by bits 5 to 18.\nvar %s = [...]systemOp{\n", kind.list, kind.what, kind.list)
		var ops []systemName
		for _, o := range t.ops {
			if o.kind == kind.name {
				ops = append(ops, o)
			}
		}
		slices.SortStableFunc(ops, byKey)
		for _, o := range ops {
			fmt.Fprintf(b, "{%#x, operand%s, %q},\n", o.key, strings.ToUpper(o.operand[:1])+o.operand[1:], o.name)
		}
		b.WriteString("}\n")
	}
}
