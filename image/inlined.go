package image

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/ianlancetaylor/demangle"
	"golang.org/x/sync/errgroup"
)

// inlined returns the addresses at which functions of that name begin where
// they were inlined, sorted: where the compiler says that such a function is
// entered, else its first instruction. C++ and Rust functions go by the names
// that people write, with the namespaces that they are in.
func (t *lineTable) inlined(name string) []uint64 {
	ix, err := t.index()
	if err != nil {
		return nil
	}
	s := &inlineSearch{t: t, ix: ix, wanted: newInlineName(name), order: t.byteOrder(), origins: make(map[int64]bool)}
	if s.ranges, err = t.readAll("ranges"); err != nil {
		return nil
	}
	if s.rnglists, err = t.readAll("rnglists"); err != nil {
		return nil
	}
	s.mentions = s.stringMentions()
	s.each(s.mayName, func(u *lineUnit, w *inlineWalk) {
		for off := range w.matched {
			s.origins[u.off+int64(off)] = true
		}
		s.add(w, func(off dwarf.Offset) bool { return w.matched[off] })
	})
	if far := s.farReferences(); far != nil {
		s.each(func(b []byte) bool { return far.in(b, s.order) }, func(u *lineUnit, w *inlineWalk) {
			s.add(w, func(off dwarf.Offset) bool { return !w.known[off] && s.origins[int64(off)] })
		})
	}
	slices.Sort(s.addrs)
	return slices.Compact(s.addrs)
}

// inlineName is the name of a function that is looked for.
type inlineName struct {
	whole string // as it was given
	plain string // without parameters
	last  string // without namespaces and template arguments: a part of what DWARF calls it
}

func newInlineName(name string) inlineName {
	n := inlineName{whole: name, plain: withoutParameters(name)}
	n.last = n.plain
	if IsMangled(name) {
		n.last = demangled(name, demangle.NoParams)
	}
	n.last = withoutArguments(n.last)
	if i := strings.LastIndex(n.last, "::"); i >= 0 {
		n.last = n.last[i+2:]
	}
	return n
}

// withoutParameters takes off a name as C++ has it what begins with the types of
// parameters. Parentheses after a point or a colon are parts of names in Go and
// of unnamed namespaces.
func withoutParameters(name string) string {
	for i := 1; i < len(name); i++ {
		if name[i] == '(' && name[i-1] != '.' && name[i-1] != ':' && !strings.HasSuffix(name[:i], "operator") {
			return name[:i]
		}
	}
	return name
}

// withoutArguments takes the template arguments off the end of a name.
func withoutArguments(name string) string {
	if i := strings.IndexByte(name, '<'); i > 0 && strings.HasSuffix(name, ">") {
		return name[:i]
	}
	return name
}

// is reports whether a function of this name in a scope, and with this name for
// the linker, is the one.
func (n *inlineName) is(name, scope, linkage string) bool {
	if withoutArguments(name) != n.last {
		return false
	}
	for _, scope := range [...]string{scope, strings.ReplaceAll(scope, unnamed, "")} {
		if n.plain == n.whole && (scope+name == n.plain || scope+n.last == n.plain) {
			return true
		}
	}
	return linkage == n.whole || linkage != "" && isWritten(n.whole, linkage)
}

// inlineSearch looks for the places where a function was inlined.
type inlineSearch struct {
	t                *lineTable
	ix               *lineIndex
	order            binary.ByteOrder
	wanted           inlineName
	ranges, rnglists []byte
	mentions         *wordSet // offsets in .debug_str and .debug_line_str of what may be the name

	mu      sync.Mutex
	origins map[int64]bool // entries of .debug_info that describe the function
	addrs   []uint64
}

// each walks the units whose bytes may be of interest, some at a time, and
// calls take with one result at a time.
func (s *inlineSearch) each(interesting func(b []byte) bool, take func(*lineUnit, *inlineWalk)) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range s.ix.units {
		u := &s.ix.units[i]
		if u.size > maxInlineUnit {
			continue
		}
		g.Go(func() error {
			b := make([]byte, u.size)
			if n, _ := s.ix.info.ReadAt(b, u.off); n < len(b) || !interesting(b) {
				return nil
			}
			w, err := s.walk(b)
			if err != nil {
				return nil // what is damaged tells nothing
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			take(u, w)
			return nil
		})
	}
	_ = g.Wait() // there are no errors
}

// maxInlineUnit is the size in bytes of the largest unit that is looked into.
const maxInlineUnit = 128 << 20

// add keeps where functions that are wanted were inlined.
func (s *inlineSearch) add(w *inlineWalk, wanted func(dwarf.Offset) bool) {
	for _, in := range w.inlines {
		if !wanted(in.origin) {
			continue
		}
		if addr, ok := inlineEntry(w.data, in.entry); ok && s.t.inText(addr) {
			s.addrs = append(s.addrs, addr)
		}
	}
}

// stringMentions returns where in the sections of strings those begin that may
// be the name.
func (s *inlineSearch) stringMentions() *wordSet {
	set := new(wordSet)
	for _, section := range [][]byte{s.ix.str, s.ix.lineStr} {
		for _, needle := range s.needles() {
			for at := 0; ; at++ {
				i := bytes.Index(section[at:], needle)
				if i < 0 {
					break
				}
				at += i
				set.add(uint32(at))
			}
		}
	}
	return set
}

// needles are what the name looks like in memory: to its end, or up to template
// arguments.
func (s *inlineSearch) needles() [][]byte {
	return [][]byte{[]byte(s.wanted.last + "\x00"), []byte(s.wanted.last + "<")}
}

// mayName reports whether the bytes of a unit may name the function: by an
// offset in a section of strings, or in place. Names that are numbered cannot
// be told from other bytes.
func (s *inlineSearch) mayName(b []byte) bool {
	if len(s.ix.strOffsets) > 0 || s.mentions.in(b, s.order) {
		return true
	}
	return slices.ContainsFunc(s.needles(), func(needle []byte) bool { return bytes.Contains(b, needle) })
}

// farReferences returns what stands in units that refer to what others say of
// the function; nil where none says anything.
func (s *inlineSearch) farReferences() *wordSet {
	if len(s.origins) == 0 {
		return nil
	}
	far := new(wordSet)
	for off := range s.origins {
		far.add(uint32(off))
	}
	return far
}

// inlineWalk is what one unit says of functions and of where they are inlined.
// Offsets are in the unit.
type inlineWalk struct {
	data    *dwarf.Data
	known   map[dwarf.Offset]bool // functions
	matched map[dwarf.Offset]bool // those that are wanted
	inlines []inlineSite
}

// inlineSite is one place where a function is inlined.
type inlineSite struct {
	origin dwarf.Offset // which function
	entry  *dwarf.Entry
}

// walk reads the entries of a unit.
func (s *inlineSearch) walk(b []byte) (w *inlineWalk, err error) {
	defer recoverDWARF(&err)
	data, err := unitData(b, s.ix, s.ranges, s.rnglists)
	if err != nil {
		return nil, err
	}
	w = &inlineWalk{data: data, known: make(map[dwarf.Offset]bool), matched: make(map[dwarf.Offset]bool)}
	same := make(map[dwarf.Offset]dwarf.Offset) // a function, and the entry that names it
	var scopes []string
	scope := ""
	r := data.Reader()
	for range b { // an entry has at least a byte; the reader can stand still in damaged ones
		e, err := r.Next()
		if e == nil || err != nil {
			break // the end, or damage: what was read counts
		}
		switch e.Tag {
		case 0:
			if len(scopes) > 0 {
				scope, scopes = scopes[len(scopes)-1], scopes[:len(scopes)-1]
			}
			continue
		case dwarf.TagSubprogram:
			w.known[e.Offset] = true
			name, _ := e.Val(dwarf.AttrName).(string)
			linkage, _ := e.Val(dwarf.AttrLinkageName).(string)
			if s.wanted.is(name, scope, linkage) {
				w.matched[e.Offset] = true
			} else if off, ok := originOf(e); ok {
				same[e.Offset] = off
			}
		case dwarf.TagInlinedSubroutine:
			if off, ok := originOf(e); ok {
				w.inlines = append(w.inlines, inlineSite{off, e})
			}
		}
		if e.Children {
			scopes = append(scopes, scope)
			scope = innerScope(scope, e)
		}
	}
	for off, named := range same {
		for range maxOrigins {
			if w.matched[named] {
				w.matched[off] = true
				break
			}
			named = same[named]
		}
	}
	return w, nil
}

// maxOrigins is how many entries may lead from a function to the one that names
// it: its instance, its abstract instance, its declaration.
const maxOrigins = 3

// originOf returns the entry that describes the same function.
func originOf(e *dwarf.Entry) (dwarf.Offset, bool) {
	for _, attr := range [...]dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		if off, ok := e.Val(attr).(dwarf.Offset); ok {
			return off, true
		}
	}
	return 0, false
}

// innerScope returns what stands before names inside an entry.
func innerScope(scope string, e *dwarf.Entry) string {
	switch e.Tag {
	case dwarf.TagCompileUnit, dwarf.TagPartialUnit, dwarf.TagLexDwarfBlock:
		return scope
	case dwarf.TagNamespace, dwarf.TagClassType, dwarf.TagStructType, dwarf.TagUnionType, dwarf.TagEnumerationType:
		name, ok := e.Val(dwarf.AttrName).(string)
		if !ok {
			return scope + unnamed
		}
		return scope + name + "::"
	}
	return scope
}

// unnamed is what stands for a namespace without a name, and may be left out.
const unnamed = "(anonymous namespace)::"

// inlineEntry returns where an inlined function begins [DWARF 5, 2.18, 3.3.8.2]:
// its entry, which may be written as an offset from its lowest address, else
// that one.
func inlineEntry(d *dwarf.Data, e *dwarf.Entry) (addr uint64, ok bool) {
	offset := int64(0)
	switch entry := e.Val(dwarf.AttrEntrypc).(type) {
	case uint64:
		return entry, true
	case int64:
		offset = entry
	}
	ranges, err := unitRanges(d, e)
	if err != nil || len(ranges) == 0 {
		return 0, false
	}
	addr = ranges[0][0]
	for _, r := range ranges {
		addr = min(addr, r[0])
	}
	return addr + uint64(offset), true
}

// wordSet is a set of 4-byte words that bytes are searched for.
type wordSet struct {
	low  [1 << 16 / 64]uint64 // of the lower halves
	full map[uint32]bool
}

func (s *wordSet) add(v uint32) {
	if s.full == nil {
		s.full = make(map[uint32]bool)
	}
	s.full[v] = true
	s.low[v&0xffff/64] |= 1 << (v & 63)
}

// in reports whether any of the words stands anywhere in b.
func (s *wordSet) in(b []byte, order binary.ByteOrder) bool {
	if len(s.full) == 0 {
		return false
	}
	half := 0
	if order == binary.ByteOrder(binary.BigEndian) {
		half = 2
	}
	for i := 0; i+4 <= len(b); i++ {
		v := order.Uint16(b[i+half:])
		if s.low[v/64]&(1<<(v&63)) != 0 && s.full[order.Uint32(b[i:])] {
			return true
		}
	}
	return false
}
