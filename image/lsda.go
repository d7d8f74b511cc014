package image

import (
	"debug/elf"
	"fmt"

	"xol/place"
)

// eachLandingPad calls f with every call site for which the language-specific
// data of .eh_frame's functions names a landing pad, where an exception goes
// on that leaves one of the site's calls. What is damaged is left out; the
// first *FormatError is returned.
func (im *program) eachLandingPad(f func(site, pad uint64)) error {
	frames, err := im.unwindTables()
	if err != nil {
		return err
	}
	tags, err := im.dynamicTags()
	if err != nil {
		return err
	}
	r := lsdaReader{im: im, gotBase: tags.value(elf.DT_PLTGOT), sections: make(map[*section]*lsdaSection), found: f}
	for i := range frames {
		r.readFrames(&frames[i])
	}
	return r.err
}

// unwindTables returns the .eh_frame sections, or what PT_GNU_EH_FRAME's header
// points at in a file without section headers.
func (im *file) unwindTables() ([]tableData, error) {
	var tables []tableData
	for i := range im.sections {
		s := &im.sections[i]
		if s.name != ".eh_frame" || !s.inMemory() || !s.inFile() {
			continue
		}
		data, err := im.contents(s)
		if err != nil {
			return nil, err
		}
		tables = append(tables, tableData{im.order, s.addr, data})
	}
	if im.hasSections() || im.headers == nil {
		return tables, nil
	}
	for _, p := range im.headers.Progs {
		if p.Type == elf.PT_GNU_EH_FRAME {
			return im.unwindTableAt(p.Vaddr)
		}
	}
	return nil, nil
}

// unwindTableAt reads the .eh_frame that a .eh_frame_hdr at addr points at. Its
// end is where its terminator is.
func (im *file) unwindTableAt(addr uint64) ([]tableData, error) {
	const size = 4 + 8 // version, encodings, the widest pointer
	hdr, err := im.Data(nil, addr, size)
	if err != nil {
		return nil, err
	}
	c := cursor{data: hdr, pos: 4, addr: addr, order: im.order}
	start := c.pointer(hdr[1])
	s := im.sectionAt(start)
	if c.bad || s == nil {
		return nil, &FormatError{What: "does not say where .eh_frame is", Where: fmt.Sprintf(".eh_frame_hdr at %#x", addr)}
	}
	data, err := im.Data(nil, start, s.end()-start)
	if err != nil {
		return nil, err
	}
	p := newEHFrame(data, start, im.order)
	for pos := 0; pos < len(data); {
		body, end, ok := p.entry(pos)
		if !ok || body == end {
			data = data[:pos]
		}
		pos = end
	}
	return []tableData{{im.order, start, data}}, nil
}

// lsdaReader reads language-specific data: tables of call sites as GCC and
// Clang write them for C++, and for all other languages whose personality
// routine is like that of C++ [Itanium C++ ABI: Exception Handling, 2.2; GCC,
// libgcc/unwind-pe.h].
type lsdaReader struct {
	im       *program
	gotBase  uint64 // what pointers relative to data count from; 0 where there is no such thing
	sections map[*section]*lsdaSection
	found    func(site, pad uint64)
	err      error
}

// lsdaSection is a section that holds language-specific data. Each of its bytes
// belongs to one function: what is read more than once is counted, so that a
// few bytes cannot make long work.
type lsdaSection struct {
	data   []byte
	budget int // bytes that may still be read
}

func (r *lsdaReader) readFrames(t *tableData) {
	p := newEHFrame(t.data, t.addr, r.im.order)
	err := p.each(func(pos int, fr frame) {
		if fr.lsda.data == nil {
			return
		}
		addr, ok := r.pointer(&fr)
		if !ok {
			r.fail("pointer to language-specific data cannot be read", fmt.Sprintf(".eh_frame+%#x", pos))
		} else if addr != 0 {
			r.read(addr, fr.code)
		}
	})
	switch {
	case r.err != nil:
	case err != nil:
		r.err = err
	case p.damaged >= 0:
		r.fail("entry cannot be understood", fmt.Sprintf(".eh_frame+%#x", p.damaged))
	}
}

// fail keeps the first error.
func (r *lsdaReader) fail(what, where string) {
	if r.err == nil {
		r.err = &FormatError{What: what, Where: where}
	}
}

// pointer reads an FDE's pointer to language-specific data. A number of 0 means
// that there is none, whatever it is relative to.
func (r *lsdaReader) pointer(fr *frame) (addr uint64, ok bool) {
	c, enc := fr.lsda, fr.lsdaEnc
	if enc&^peIndirect == peAlign {
		c.skipPadding()
	}
	at := c.addr + uint64(c.pos)
	addr = c.number(enc)
	if c.bad || addr == 0 {
		return 0, !c.bad
	}
	switch enc & peBase {
	case peAbsolute, peAlign:
	case pePCRel:
		addr += at
	case peFuncRel:
		addr += fr.code.lo
	case peDataRel:
		addr += r.gotBase
		if r.gotBase == 0 {
			return 0, false
		}
	default:
		return 0, false
	}
	if enc&peIndirect != 0 {
		return r.im.Pointer(addr)
	}
	return addr, true
}

// section returns the content of a section, read once.
func (r *lsdaReader) section(addr uint64) (*section, *lsdaSection) {
	s := r.im.sectionAt(addr)
	if s == nil || !s.inFile() {
		return nil, nil
	}
	if have := r.sections[s]; have != nil {
		return s, have
	}
	have := new(lsdaSection)
	data, err := r.im.contents(s)
	if err == nil {
		have.data, have.budget = data, 2*len(data)
	}
	r.sections[s] = have
	return s, have
}

// read reads the language-specific data at addr of the function code.
func (r *lsdaReader) read(addr uint64, code extent) {
	where := func() string { return fmt.Sprintf("language-specific data at %#x", addr) }
	s, in := r.section(addr)
	if s == nil || in.data == nil {
		r.fail("not in a section of the file", where())
		return
	}
	c := &cursor{data: in.data, pos: int(addr - s.addr), addr: s.addr, order: r.im.order}
	sites, ok := readLSDA(c, code.lo)
	in.budget -= len(sites.data) - sites.pos
	switch {
	case !ok:
		r.fail("damaged header", where())
	case in.budget < 0:
		r.fail("tables overlap", where())
	case !sites.each(r.site):
		r.fail("damaged table of call sites", where())
	}
}

// site takes one call site; it reports whether its landing pad is in text.
func (r *lsdaReader) site(site, pad uint64) bool {
	if r.im.textAt(pad) < 0 {
		return false
	}
	r.found(site, pad)
	return true
}

// callSites is a table of call sites that is being read.
type callSites struct {
	cursor
	encoding byte
	start    uint64 // of the function: what sites count from
	pads     uint64 // what landing pads count from
}

// readLSDA reads the header of the language-specific data that c is at, of the
// function at start.
func readLSDA(c *cursor, start uint64) (callSites, bool) {
	pads := start
	if enc := c.u8(); enc != peOmit {
		pads = c.pointer(enc)
	}
	if enc := c.u8(); enc != peOmit {
		c.uleb() // offset of the table of types
	}
	enc := c.u8()
	size := c.uleb()
	if c.bad || enc&^peFormat != 0 || size > uint64(len(c.data)-c.pos) {
		return callSites{}, false
	}
	sites := callSites{cursor: *c, encoding: enc, start: start, pads: pads}
	sites.data = sites.data[:c.pos+int(size)]
	return sites, true
}

// each calls f with the start of every call site that has a landing pad, and
// that. It reports whether the table can be read and f was satisfied.
func (s *callSites) each(f func(site, pad uint64) bool) bool {
	for s.pos < len(s.data) {
		site := s.number(s.encoding)
		s.number(s.encoding) // length
		pad := s.number(s.encoding)
		s.uleb() // actions
		if s.bad {
			return false
		}
		if pad != 0 && !f(s.start+site, s.pads+pad) {
			return false
		}
	}
	return true
}

// landingPads adds where exceptions go on.
func (l *landings) landingPads() error {
	return l.im.eachLandingPad(func(site, pad uint64) { l.add(pad, site, place.LandUnwind) })
}
