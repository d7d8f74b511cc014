package image

import (
	"cmp"
	"debug/elf"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sort"
	"sync"
)

// Source says what a function is known from.
type Source uint8

// The sources of functions.
const (
	FromSymbol  Source = iota
	FromGo             // .gopclntab
	FromPLT            // a stub of the procedure linkage table
	FromEHFrame        // .eh_frame
	FromEntry          // the entry point of the ELF header
	FromSection        // text that nothing else speaks of
)

var sourceNames = [...]string{"symbol", "gopclntab", "plt", "eh_frame", "entry", "section"}

// String returns the source in one word.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "invalid"
}

// Function is a piece of text that is analyzed as a whole.
type Function struct {
	Name       string // the symbol's, or the section's name with an offset: ".plt", ".text+0x40"
	Section    string
	Addr, Size uint64
	LocalEntry uint64 // ppc64 ELFv2: bytes from Addr to the local entry point
	Source     Source
	// Resolver says that the function is what a symbol of type STT_GNU_IFUNC
	// stands for: it runs once, when the program is loaded, and returns the
	// function that callers of the symbol will call.
	Resolver bool
}

// End returns the address after the function.
func (f *Function) End() uint64 { return f.Addr + f.Size }

func (im *namedFile) listFunctions(e Extent) ([]Function, error) {
	t, err := im.symbols()
	if err != nil {
		return nil, err
	}
	ends := im.pieces(t, e)
	hints := sync.OnceValue(im.functionHints)
	lists := make([]worklist, len(ends))
	lists[0].fns = room[Function](im.textSymbols(t))[:0] // for those of all pieces, in the end
	var cutting sync.WaitGroup
	lo := uint64(0)
	for i, hi := range ends {
		w := &lists[i]
		w.im, w.hints = im, hints
		from := lo
		cutting.Go(func() { w.cut(t, e, from, hi) })
		lo = hi
	}
	cutting.Wait()
	fns := lists[0].fns
	for i := range lists {
		if err := lists[i].err; err != nil {
			return nil, err
		}
		if i > 0 {
			fns = append(fns, lists[i].fns...)
		}
	}
	return slices.Clip(fns), nil
}

// pieceSymbols is how many symbols make a piece of text worth a goroutine.
const pieceSymbols = 1 << 14

// pieces divides the text among goroutines: it returns the addresses where each piece
// ends. Where functions go on to the next symbol, a piece may start at any symbol that
// counts; symbols with a size may reach into each other.
func (im *namedFile) pieces(t *symtab, e Extent) (ends []uint64) {
	all := im.textSymbols(t)
	n := min(all/pieceSymbols, runtime.GOMAXPROCS(0))
	if e != ExtentNext || im.typ == elf.ET_REL {
		n = 1
	}
	rule, passed := im.aliasRule(t, e), 0
	for i := range im.text {
		from, to := t.below(im.text[i].Addr), t.below(im.text[i].End())
		for len(ends)+1 < n && from+all*(len(ends)+1)/n-passed < to {
			at := t.syms[t.sorted[from+all*(len(ends)+1)/n-passed]].addr
			ends = append(ends, im.nextCounted(t, rule, at))
		}
		passed += to - from
	}
	return append(slices.Compact(ends), math.MaxUint64)
}

// nextCounted returns the next address in the text range of addr at which a symbol
// counts by the rule, or the end of the range.
func (im *namedFile) nextCounted(t *symtab, rule *aliasRule, addr uint64) uint64 {
	end := im.text[im.textAt(addr)].End()
	symbols := t.ascending(addr, end)
	for group := symbols.group(); len(group) > 0; group = symbols.group() {
		if best, _, _ := rule.choose(t, group); best != nil {
			return group[0].addr
		}
	}
	return end
}

// cut adds the functions in [lo, hi).
func (w *worklist) cut(t *symtab, e Extent, lo, hi uint64) {
	if w.fns == nil {
		w.fns = room[Function](w.im.symbolsIn(t, lo, hi))[:0]
	}
	for i := range w.im.text {
		r := &w.im.text[i]
		from, to := max(r.Addr, lo), min(r.End(), hi)
		if from >= to {
			continue
		}
		c := cutter{w: w, text: i, pos: from, covered: from, fill: true}
		w.im.cutBySymbols(&c, t, e, from, to)
		c.finish(to)
		if w.err != nil {
			return
		}
	}
}

// textSymbols returns how many symbols are in text.
func (im *file) textSymbols(t *symtab) int { return im.symbolsIn(t, 0, math.MaxUint64) }

// symbolsIn returns how many symbols are in text in [lo, hi).
func (im *file) symbolsIn(t *symtab, lo, hi uint64) int {
	n := 0
	for i := range im.text {
		r := &im.text[i]
		if from, to := max(r.Addr, lo), min(r.End(), hi); from < to {
			n += t.below(to) - t.below(from)
		}
	}
	return n
}

// cutBySymbols adds what the symbols say of [lo, hi), which lies in the cutter's range
// of text.
func (im *file) cutBySymbols(c *cutter, t *symtab, e Extent, lo, hi uint64) {
	rule := im.aliasRule(t, e)
	r := &im.text[c.text]
	covered := uint64(0) // end of the symbols so far that have a size
	symbols := t.ascending(lo, hi)
	for group := symbols.group(); len(group) > 0; group = symbols.group() {
		addr := group[0].addr
		best, name, size := rule.choose(t, group)
		if best == nil {
			continue
		}
		p := candidate{addr: addr, name: name}
		if e == ExtentSymbol {
			if size == 0 && best.typ() == elf.STT_NOTYPE && addr < covered {
				continue // a label inside a function
			}
			p.size = min(size, r.End()-addr)
			p.data = best.typ() == elf.STT_OBJECT
			covered = max(covered, addr+p.size)
		}
		p.local = im.localEntry(best.other)
		p.resolver = anyIFunc(group)
		c.add(p)
	}
}

// worklist collects the functions of an image.
type worklist struct {
	im    *namedFile
	fns   []Function
	buf   []byte
	hints func() []candidate
	data  map[uint64]bool // bytes that relocations fill with data
	err   error
}

// candidate is a function whose end is not settled yet.
type candidate struct {
	addr, size uint64 // size 0: to the next one
	name       string
	local      uint64
	source     Source
	data       bool // not a function
	resolver   bool
}

// cutter turns candidates of a range of text, added in the order of their
// addresses, into functions that do not overlap.
type cutter struct {
	w       *worklist
	text    int       // index of the range
	pos     uint64    // all below is settled
	covered uint64    // end of the candidates so far that have a size
	last    candidate // not settled
	pending bool
	fill    bool // look into what no candidate covers
}

func (c *cutter) add(p candidate) {
	c.settle(p.addr)
	c.w.gap(c.text, c.pos, p.addr, c.fill)
	c.last, c.pending = p, true
}

func (c *cutter) finish(hi uint64) {
	c.settle(hi)
	c.w.gap(c.text, c.pos, hi, c.fill)
}

// settle ends the last candidate at limit at most. One without a size inside
// another goes on to the other's end.
func (c *cutter) settle(limit uint64) {
	if !c.pending {
		return
	}
	p := &c.last
	c.pending = false
	c.covered = max(c.covered, p.addr+p.size)
	end := limit
	if p.addr < c.covered {
		end = min(limit, c.covered)
	}
	if !p.data && end > p.addr {
		c.w.fns = append(c.w.fns, Function{
			Name: p.name, Section: c.w.im.text[c.text].Section, Addr: p.addr, Size: end - p.addr,
			LocalEntry: p.local, Source: p.source, Resolver: p.resolver,
		})
	}
	c.pos = end
}

// gap deals with text that no candidate covers.
func (w *worklist) gap(text int, lo, hi uint64, fill bool) {
	r := &w.im.text[text]
	if lo >= hi || r.Section == ".altinstr_replacement" || w.err != nil {
		return
	}
	start := w.skipFiller(text, lo, hi)
	if hi-start < w.im.isa.MinInsn {
		return
	}
	if fill {
		if inside := hintsIn(w.hints(), lo, hi); len(inside) > 0 {
			w.cutByHints(text, inside, lo, hi)
			return
		}
	}
	w.fns = append(w.fns, Function{
		Name: w.im.sectionName(r, start), Section: r.Section, Addr: start, Size: hi - start, Source: FromSection,
	})
}

// cutByHints divides a gap.
func (w *worklist) cutByHints(text int, inside []candidate, lo, hi uint64) {
	c := cutter{w: w, text: text, pos: lo, covered: lo}
	for _, p := range inside {
		if p.name == "" {
			p.name = w.im.sectionName(&w.im.text[text], p.addr)
		}
		p.size = min(p.size, hi-p.addr)
		c.add(p)
	}
	c.finish(hi)
}

// sectionName names an address after its section.
func (im *file) sectionName(r *Range, addr uint64) string {
	if addr == r.Addr {
		return r.Section
	}
	return fmt.Sprintf("%s+%#x", r.Section, addr-r.Addr)
}

// skipFiller returns the address of the first byte in [lo, hi) that neither is
// padding nor filled by a relocation of data.
func (w *worklist) skipFiller(text int, lo, hi uint64) uint64 {
	for {
		from := lo
		lo = w.skipPadding(text, lo, hi)
		for lo < hi && w.isData(lo) {
			lo++
		}
		if lo == from || lo == hi || w.err != nil {
			return lo
		}
	}
}

// isData reports whether a relocation fills the byte at addr with data.
func (w *worklist) isData(addr uint64) bool {
	if w.im.typ != elf.ET_REL {
		return false
	}
	if w.data == nil {
		w.data = make(map[uint64]bool)
		w.err = cmp.Or(w.err, w.im.eachDataReloc(func(addr, size uint64) {
			for i := range size {
				w.data[addr+i] = true
			}
		}))
	}
	return w.data[addr]
}

// skipPadding returns the address of the first byte in [lo, hi) that is not
// padding.
func (w *worklist) skipPadding(text int, lo, hi uint64) uint64 {
	const chunk = 256
	for lo < hi {
		n := min(hi-lo, chunk)
		code, err := w.im.Code(w.buf, lo, n)
		if err != nil {
			w.err = err
			return hi
		}
		w.buf = code
		skipped := w.im.paddingLen(code)
		lo += skipped
		if skipped < n && (n < chunk || skipped < chunk-maxPadding) {
			return lo
		}
	}
	return hi
}

// maxPadding is the length of the longest piece of padding.
const maxPadding = 16

// paddingLen returns how many bytes at the start of code only fill up.
func (im *file) paddingLen(code []byte) uint64 {
	if im.isa.Padding == nil {
		return 0
	}
	return im.isa.Padding(code, im.order == bigEndian)
}

// functionHints returns what else than symbols tells of functions, by address.
// What is damaged tells nothing.
func (im *file) functionHints() []candidate {
	hints := im.linkageStubs()
	if fns, err := im.readGoFunctions(); err == nil {
		for _, f := range fns {
			if f.lo < f.hi {
				hints = append(hints, candidate{addr: f.lo, size: f.hi - f.lo, name: f.name, source: FromGo})
			}
		}
	}
	if extents, err := im.unwindExtents(); err == nil {
		for _, e := range extents {
			if e.lo < e.hi {
				hints = append(hints, candidate{addr: e.lo, size: e.hi - e.lo, source: FromEHFrame})
			}
		}
	}
	sort.SliceStable(hints, func(i, j int) bool { return hints[i].addr < hints[j].addr })
	hints = slices.CompactFunc(hints, func(a, b candidate) bool { return a.addr == b.addr })
	entry := im.CodeOf(im.entry)
	if im.entry == 0 || im.textAt(entry) < 0 {
		return hints
	}
	i, found := slices.BinarySearchFunc(hints, entry, func(p candidate, addr uint64) int { return cmp.Compare(p.addr, addr) })
	switch {
	case !found:
		hints = slices.Insert(hints, i, candidate{addr: entry, name: entryName, source: FromEntry})
	case hints[i].name == "":
		hints[i].name = entryName
	}
	return hints
}

// entryName is what the entry point is called that has no symbol.
const entryName = "entry"

func (im *file) unwindExtents() ([]extent, error) {
	frames := im.sectionNamed(".eh_frame")
	if frames == nil {
		return nil, nil
	}
	data, err := im.contents(frames)
	if err != nil {
		return nil, err
	}
	return ehFrameFunctions(data, frames.addr, im.ByteOrder())
}

// hintsIn returns the hints that start in [lo, hi).
func hintsIn(hints []candidate, lo, hi uint64) []candidate {
	i := sort.Search(len(hints), func(i int) bool { return hints[i].addr >= lo })
	j := i + sort.Search(len(hints)-i, func(k int) bool { return hints[i+k].addr >= hi })
	return hints[i:j]
}

// functionAt returns the function that holds addr, or nil.
func functionAt(fns []Function, addr uint64) *Function {
	i := sort.Search(len(fns), func(i int) bool { return fns[i].Addr > addr }) - 1
	if i >= 0 && addr < fns[i].End() {
		return &fns[i]
	}
	return nil
}
