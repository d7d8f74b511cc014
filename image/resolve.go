package image

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Place is an address that Resolve found.
type Place struct {
	Addr   uint64
	Symbol string // the function that holds it, as Functions and Symbolize name it
	Offset uint64 // from the symbol
	// Inlined says that a function of the name that was asked for is inlined
	// here.
	Inlined bool
	// Named says that the place is a function's name without an offset: a probe
	// there is one on the function's entry, which on ppc64 may be elsewhere.
	Named bool
}

// Resolve finds the addresses in text that s means, sorted:
//
//	vfs_read            a symbol; several where files have static ones of that name
//	vfs_read+0x1c       an offset from it
//	.text+0x40          an offset from a section
//	0xffffffff81000000  an address
//	file:0x1040         an offset in the file (for a packed file, in what was unpacked)
//	read_write.c:552    a source line, with DWARF
//	get_page            a function that is only inlined, with DWARF: every place
//
// It returns a *PlaceError, a *SymbolNotFoundError or a *NotTextError where s
// means none.
func (im *Image) Resolve(s string) ([]Place, error) {
	places, err := im.Find(s)
	if e, ok := err.(*SymbolNotFoundError); ok {
		e.Nearest = im.Nearest(e.Name)
	}
	return places, err
}

// Find does what Resolve does, but for the similar names of an error, which take a
// look at all names: it is for one of many files that a place may be in.
func (im *Image) Find(s string) ([]Place, error) {
	addrs, inlined, err := im.resolve(s)
	if err != nil {
		return nil, err
	}
	slices.Sort(addrs)
	addrs = slices.Compact(addrs)
	_, offset := SplitOffset(s)
	named := !inlined && offset == 0 && im.names(s)
	var places []Place
	for _, addr := range addrs {
		if im.textAt(addr) >= 0 {
			name, base := im.Symbolize(addr)
			places = append(places, Place{Addr: addr, Symbol: name, Offset: addr - base, Inlined: inlined, Named: named && addr == base})
		}
	}
	if len(places) == 0 {
		e := im.notText(addrs[0])
		e.Place = s
		return nil, e
	}
	return places, nil
}

// names reports whether a place names a symbol, with an offset or without.
func (im *Image) names(s string) bool {
	if strings.HasPrefix(s, "file:") || strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") {
		return false
	}
	t, err := im.symbols()
	return err == nil && len(im.offsetFrom(s, func(name string) []uint64 { return im.named(t, name) })) > 0
}

// resolve returns at least one address, or an error. The addresses of a
// function that is only inlined are those of its inlined instances.
func (im *Image) resolve(s string) (addrs []uint64, inlined bool, err error) {
	switch {
	case s == "":
		return nil, false, badPlace(s, "it is empty")
	case strings.HasPrefix(s, "file:"):
		addrs, err = im.resolveOffset(s)
		return addrs, false, err
	case strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X"):
		addr, err := strconv.ParseUint(s[2:], 16, 64)
		if err != nil {
			return nil, false, badPlace(s, "the address is no hexadecimal number of 64 bits")
		}
		return []uint64{addr}, false, nil
	}
	t, err := im.symbols()
	if err != nil {
		return nil, false, err
	}
	if addrs := im.offsetFrom(s, func(name string) []uint64 { return im.named(t, name) }); len(addrs) > 0 {
		return addrs, false, nil
	}
	if file, line, ok := splitLine(s); ok {
		addrs, err = im.resolveLine(s, file, line)
		return addrs, false, err
	}
	if addrs := im.offsetFrom(s, im.lines.inlined); len(addrs) > 0 {
		return addrs, true, nil
	}
	name, _ := SplitOffset(s)
	return nil, false, &SymbolNotFoundError{Name: name}
}

// offsetFrom returns what find finds for a name, or with an offset for one that
// an offset follows.
func (im *Image) offsetFrom(s string, find func(name string) []uint64) []uint64 {
	name, offset := SplitOffset(s)
	addrs := find(s)
	if len(addrs) > 0 || name == s {
		return addrs
	}
	addrs = find(name)
	for i := range addrs {
		addrs[i] += offset
	}
	return addrs
}

func (im *Image) resolveOffset(s string) ([]uint64, error) {
	off, err := strconv.ParseUint(strings.TrimPrefix(s, "file:"), 0, 64)
	if err != nil {
		return nil, badPlace(s, "the file offset is no number")
	}
	addr, ok := im.AddrOf(off)
	if !ok {
		return nil, &NotTextError{Place: s, Text: im.text}
	}
	return []uint64{addr}, nil
}

func (im *Image) resolveLine(s, file string, line int) ([]uint64, error) {
	addrs, err := im.lines.addrs(file, line)
	if err != nil {
		return nil, &PlaceError{s, err.Error()}
	}
	return addrs, nil
}

// SplitOffset takes a place such as "symbol+0x1c" apart, with an offset in bytes; one
// without an offset is all name.
func SplitOffset(s string) (name string, offset uint64) {
	if i := strings.LastIndexByte(s, '+'); i > 0 {
		if offset, err := strconv.ParseUint(s[i+1:], 0, 64); err == nil {
			return s[:i], offset
		}
	}
	return s, 0
}

// splitLine splits "source.c:123".
func splitLine(s string) (file string, line int, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 || s[i-1] == ':' {
		return "", 0, false
	}
	line, err := strconv.Atoi(s[i+1:])
	return s[:i], line, err == nil && line > 0
}

// named returns the addresses of the symbols, functions and sections of that
// name, of the first of these kinds that has it.
func (im *Image) named(t *symtab, name string) []uint64 {
	var addrs []uint64
	t.each(name, func(s *symbol) bool {
		if !s.external() {
			addrs = append(addrs, s.addr)
		}
		return true
	})
	if len(addrs) == 0 {
		addrs = im.versioned(name)
	}
	if len(addrs) > 0 {
		return addrs
	}
	if fns, err := im.Functions(im.ownExtent()); err == nil {
		for i := range fns {
			if f := &fns[i]; f.Name == name {
				addrs = append(addrs, f.Addr)
			}
		}
	}
	if len(addrs) > 0 {
		return addrs
	}
	if s := im.sectionNamed(name); s != nil && s.inMemory() {
		return []uint64{s.addr}
	}
	return im.demangled(t, name)
}

// versioned returns the addresses of the symbols of the dynamic linker that
// "memcpy@GLIBC_2.2.5" means: of a name in one version, which a file's own table of
// symbols has with the name, and that of the dynamic linker has not.
func (im *Image) versioned(name string) (addrs []uint64) {
	base, version := splitAt(name)
	version = strings.TrimLeft(version, "@")
	if version == "" || im.headers == nil {
		return nil
	}
	symbols, err := im.headers.DynamicSymbols()
	if err != nil {
		return nil
	}
	for i := range symbols {
		if s := &symbols[i]; s.Name == base && s.Version == version && s.Section != elf.SHN_UNDEF {
			addrs = append(addrs, s.Value)
		}
	}
	return addrs
}

// demangled returns the addresses of the symbols and functions that are written
// so in C++ or Rust, with or without the types of parameters.
func (im *Image) demangled(t *symtab, name string) []uint64 {
	var addrs []uint64
	for _, i := range t.sorted {
		if s := &t.syms[i]; !s.external() && isWritten(name, t.name(s)) {
			addrs = append(addrs, s.addr)
		}
	}
	fns, err := im.Functions(im.ownExtent())
	if err != nil {
		return addrs
	}
	for i := range fns {
		if f := &fns[i]; f.Source != FromSymbol && isWritten(name, f.Name) {
			addrs = append(addrs, f.Addr)
		}
	}
	return addrs
}

// ownExtent is how the functions of the file are counted where nothing else
// was asked for.
func (im *Image) ownExtent() Extent {
	if im.kind == KindKernel || im.kind == KindModule {
		return ExtentNext
	}
	return ExtentSymbol
}

// Match returns the functions whose name, or a name of the same address,
// matches the pattern: * stands for any characters, ? for any one, [a-c] for
// one of a set. Names of C++ and Rust match as they are in the file and as
// they were written, with or without the types of parameters. Where none does
// it returns a *SymbolNotFoundError.
func (im *Image) Match(e Extent, pattern string) ([]Function, error) {
	found, err := im.FindMatch(e, pattern)
	if e, ok := err.(*SymbolNotFoundError); ok {
		e.Nearest = im.Nearest(pattern)
	}
	return found, err
}

// FindMatch does what Match does, but for the similar names of an error; see Find.
func (im *Image) FindMatch(e Extent, pattern string) ([]Function, error) {
	found, missing, err := im.find(e, []string{pattern})
	if err == nil && len(missing) > 0 {
		err = missing[0]
	}
	return found, err
}

// Select returns the functions that match any of the patterns, as Match does,
// sorted by address; and an error for each pattern that matches none, the first
// few of them with similar names.
func (im *Image) Select(e Extent, patterns []string) (found []Function, missing []*SymbolNotFoundError, err error) {
	found, missing, err = im.find(e, patterns)
	for _, e := range missing[:min(len(missing), mostHints)] {
		e.Nearest = im.Nearest(e.Name)
	}
	return found, missing, err
}

// find does what Select does, but for the similar names.
func (im *Image) find(e Extent, patterns []string) (found []Function, missing []*SymbolNotFoundError, err error) {
	fns, err := im.Functions(e)
	if err != nil {
		return nil, nil, err
	}
	t, err := im.symbols()
	if err != nil {
		return nil, nil, err
	}
	starts := func(addr uint64) bool {
		i := sort.Search(len(fns), func(i int) bool { return fns[i].Addr >= addr })
		return i < len(fns) && fns[i].Addr == addr
	}
	g := globs{patterns: patterns, hit: make([]bool, len(patterns))}
	named := make(map[uint64]bool)
	for _, i := range t.sorted {
		if s := &t.syms[i]; starts(s.addr) && g.match(t.name(s)) {
			named[s.addr] = true
		}
	}
	for i := range fns {
		if f := &fns[i]; named[f.Addr] || f.Source != FromSymbol && g.match(f.Name) {
			found = append(found, *f)
		}
	}
	for i, pattern := range patterns {
		if !g.hit[i] {
			missing = append(missing, &SymbolNotFoundError{Name: pattern, Pattern: true})
		}
	}
	return found, missing, nil
}

// mostHints is for how many patterns similar names are looked for, which takes
// a look at all names each time.
const mostHints = 16

// globs are patterns that names are matched with.
type globs struct {
	patterns []string
	hit      []bool // the patterns that matched
}

// match reports whether a name matches any of the patterns.
func (g *globs) match(name string) bool {
	any := g.matchAs(name)
	if any && len(g.patterns) == 1 {
		return true
	}
	for written := range writings(name) {
		any = g.matchAs(written) || any // not only the first: another pattern may match this
	}
	return any
}

func (g *globs) matchAs(name string) (any bool) {
	for i, pattern := range g.patterns {
		if matchGlob(pattern, name) {
			g.hit[i], any = true, true
		}
	}
	return any
}

// matchGlob reports whether all of name matches pattern.
func matchGlob(pattern, name string) bool {
	star, mark := -1, 0 // where to go on after the last *
	p, n := 0, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, mark = p, n
			p++
			continue
		}
		if k, ok := matchOne(pattern[p:], name[n]); ok {
			p += k
			n++
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		p, n = star+1, mark
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches one character, and returns the length of the pattern's part
// that did.
func matchOne(pattern string, c byte) (n int, ok bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		if end := strings.IndexByte(pattern[1:], ']'); end > 0 {
			return end + 2, inSet(pattern[1:end+1], c)
		}
	}
	return 1, pattern[0] == c
}

// inSet reports whether c is in a set as a-cxyz, or not in one as ^a-c.
func inSet(set string, c byte) bool {
	not := set[0] == '^' || set[0] == '!'
	if not {
		set = set[1:]
	}
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			if set[i] <= c && c <= set[i+2] {
				return !not
			}
			i += 2
		} else if set[i] == c {
			return !not
		}
	}
	return not
}

// Symbolize names an address: in text the function that holds it, elsewhere
// the nearest symbol at or below it in its section, else the section. base is
// the address of what is named. The name is empty where the address belongs to
// nothing.
func (im *Image) Symbolize(addr uint64) (name string, base uint64) {
	name, base = im.symbolize(addr)
	return im.printed(name), base
}

// printed returns a name as it is to be shown.
func (im *Image) printed(name string) string {
	if im.opt.Demangle && IsMangled(name) {
		return demangleName(name)
	}
	return name
}

func (im *Image) symbolize(addr uint64) (name string, base uint64) {
	below := im.functionBelow(addr)
	if below != nil && addr < below.End() {
		return below.Name, below.Addr
	}
	t, err := im.symbols()
	if err != nil {
		return "", 0
	}
	s := im.sectionAt(addr)
	if s == nil {
		return im.symbolizeExternal(t, addr)
	}
	name, base, ok := im.nearestBelow(t, addr, s)
	switch {
	case below != nil && (!ok || below.Addr > base):
		return below.Name, below.Addr
	case ok:
		return name, base
	}
	return s.name, s.addr
}

// functionBelow returns the last function of addr's range of text that starts
// at addr or below, or nil.
func (im *Image) functionBelow(addr uint64) *Function {
	text := im.textAt(addr)
	if text < 0 {
		return nil
	}
	fns, err := im.Functions(im.ownExtent())
	if err != nil {
		return nil
	}
	i := sort.Search(len(fns), func(i int) bool { return fns[i].Addr > addr }) - 1
	if i < 0 || fns[i].Addr < im.text[text].Addr {
		return nil
	}
	return &fns[i]
}

// nearestBelow returns the preferred one of the symbols nearest to addr.
func (im *Image) nearestBelow(t *symtab, addr uint64, s *section) (name string, base uint64, ok bool) {
	rule := im.aliasRule(t, im.ownExtent())
	var buf [8]symbol
	for hi := t.upTo(addr); hi > 0; {
		base = t.syms[t.sorted[hi-1]].addr
		if base < s.addr {
			break
		}
		lo := hi
		for lo > 0 && t.syms[t.sorted[lo-1]].addr == base {
			lo--
		}
		group := buf[:0]
		for _, i := range t.sorted[lo:hi] {
			group = append(group, t.syms[i])
		}
		if best, name, _ := rule.choose(t, group); best != nil {
			return name, base, true
		}
		hi = lo
	}
	return "", 0, false
}

// symbolizeExternal names the stand-ins for what the file does not define.
func (im *Image) symbolizeExternal(t *symtab, addr uint64) (name string, base uint64) {
	if im.typ != elf.ET_REL || addr < im.external {
		return "", 0
	}
	if addr < t.got {
		if i := t.upTo(addr); i > 0 {
			s := &t.syms[t.sorted[i-1]]
			return t.name(s), s.addr
		}
		return "", 0
	}
	if i := (addr - t.got) / gotEntrySize; i < uint64(len(t.syms)) {
		return t.name(&t.syms[i]) + "@got", t.got + i*gotEntrySize
	}
	return "", 0
}

// mostNearest is how many similar names an error suggests.
const mostNearest = 3

// Nearest returns the few names in text that are most like name, or like what a
// pattern has besides its stars, first those that a compiler has made of it.
func (im *Image) Nearest(name string) []string {
	t, err := im.symbols()
	if err != nil {
		return nil
	}
	name = strings.Trim(name, "*?")
	type match struct {
		name string
		cost int
	}
	var found []match
	seen := make(map[string]bool)
	limit := max(2, len(name)/3)
	var d distance
	for _, i := range t.sorted {
		s := &t.syms[i]
		if s.external() || im.textAt(s.addr) < 0 {
			continue
		}
		n := t.name(s)
		if isMapping(n) || seen[n] {
			continue
		}
		if cost := d.ofSymbol(name, n, limit); cost <= limit {
			seen[n] = true
			found = append(found, match{im.printed(n), cost})
		}
	}
	sort.SliceStable(found, func(i, j int) bool {
		a, b := &found[i], &found[j]
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(ornaments(a.name), ornaments(b.name)), cmp.Compare(a.name, b.name)) < 0
	})
	var names []string
	for _, m := range found[:min(len(found), mostNearest)] {
		names = append(names, m.name)
	}
	return names
}

// distance computes edit distances.
type distance struct{ rows [3][]int }

// ofSymbol returns how far a symbol's name is from one that was asked for: 0
// for what a compiler has made of it, some number above limit if it is further.
func (d *distance) ofSymbol(asked, name string, limit int) int {
	if withoutClone(name) == withoutClone(asked) {
		return 0
	}
	cost := d.between(asked, name, limit)
	if IsMangled(asked) {
		return cost
	}
	for written := range writings(name) {
		cost = min(cost, d.between(asked, written, limit))
	}
	return cost
}

// between returns how many characters must be inserted, deleted, replaced or
// swapped with their neighbour to make b of a; some number above limit if that
// is more than limit.
func (d *distance) between(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	for i := range d.rows {
		d.rows[i] = slices.Grow(d.rows[i][:0], len(b)+1)[:len(b)+1]
	}
	before, last, row := d.rows[0], d.rows[1], d.rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		best := i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			cost := min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cost = min(cost, before[j-2]+1)
			}
			row[j] = cost
			best = min(best, cost)
		}
		if best > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
