package image

import (
	"cmp"
	"debug/elf"
	"fmt"
	"math/bits"
	"slices"

	"xol/image/isa"
)

// holdsAddresses reports whether words that no relocation speaks of may be
// addresses: where the file says where it stands. A kernel does, whatever its
// type.
func (im *namedFile) holdsAddresses() bool {
	return im.typ == elf.ET_EXEC || im.typ == elf.ET_DYN && im.kind == KindKernel
}

// word returns the 8-byte word at addr as the file has it.
func (im *namedFile) word(addr uint64) (v uint64, ok bool) {
	const size = 8
	s := im.sectionAt(addr)
	if s == nil || !s.inFile() || s.end()-addr < size {
		return 0, false
	}
	n, i := (addr-s.addr)/blockSize, (addr-s.addr)%blockSize
	b, err := im.block(s, n)
	if err != nil {
		return 0, false
	}
	if i+size <= uint64(len(b)) {
		return im.order.u64(b[i:]), true
	}
	var w [size]byte
	k := copy(w[:], b[i:])
	if b, err = im.block(s, n+1); err != nil {
		return 0, false
	}
	copy(w[k:], b)
	return im.order.u64(w[:]), true
}

// pointer is a word that a relocation fills with an address.
type pointer struct {
	at     uint64
	target uint64 // 0 where the file does not tell
}

// pointers are the words that relocations fill.
type pointers struct {
	list []pointer // by at
	// resolvers are the words that get what a function returns; target is the
	// function. They are in list, too.
	resolvers []pointer
	// symbols are those of the dynamic linker.
	symbols symtab
}

// find returns the index of the word at addr.
func (p *pointers) find(addr uint64) (int, bool) {
	return slices.BinarySearchFunc(p.list, addr, func(p pointer, addr uint64) int { return cmp.Compare(p.at, addr) })
}

func (p *pointers) add(at, target uint64) { p.list = append(p.list, pointer{at, target}) }

// readPointers collects what relocations say. Beside an error it returns what
// could be read.
func (im *namedFile) readPointers() (*pointers, error) {
	p := new(pointers)
	t, err := im.symbols()
	switch {
	case err != nil:
	case im.typ == elf.ET_REL:
		err = p.unlinked(im, t)
	default:
		err = cmp.Or(p.relas(im, t), p.relrs(im))
	}
	p.list = radixSorted(p.list, func(p *pointer) uint64 { return p.at })
	p.list = slices.CompactFunc(p.list, func(a, b pointer) bool { return a.at == b.at })
	return p, err
}

// unlinked takes the relocations of a relocatable file.
func (p *pointers) unlinked(im *namedFile, t *symtab) error {
	for _, i := range im.byAddr {
		s := &im.sections[i]
		err := im.eachRela(s, s.size, t, func(r *rela, h *isa.Howto) error {
			switch at := s.addr + r.off; {
			case h.Field != isa.Data64:
			case h.Value == isa.AbsoluteS && !t.syms[r.sym].external():
				p.add(at, t.relocated(r, h, at))
			default:
				p.add(at, 0)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// relas takes the relocations of a linked file.
func (p *pointers) relas(im *namedFile, t *symtab) error {
	tables, err := newTableReader(im, t).loaderTables()
	if err != nil {
		return err
	}
	if err := p.symbols.takeDynamic(&im.file); err != nil {
		return err
	}
	p.symbols.sort()
	total := 0
	for i := range tables {
		total += len(tables[i].data) / relaSize
	}
	p.list = make([]pointer, 0, total)
	for i := range tables {
		p.table(im, &tables[i])
	}
	return nil
}

// table takes one table of relocations.
func (p *pointers) table(im *namedFile, table *relaTable) {
	types := &im.isa.Loader
	known := im.isa.Relocations
	table.each(relaSize, func(off int) {
		r := table.order.rela(table.data[off:])
		if r.typ == types.Relative {
			p.add(r.off, r.addend)
			return
		}
		h, ok := known[r.typ]
		switch {
		case r.typ == types.Resolved[0] || r.typ == types.Resolved[1]:
			p.resolver(r.off, r.addend)
		case r.typ == types.Slots[0] || r.typ == types.Slots[1] || ok && h.Value == isa.AbsoluteS && h.Field == isa.Data64:
			var s symbol
			if table.symbols && uint64(r.sym) < uint64(len(p.symbols.syms)) {
				s = p.symbols.syms[r.sym]
			}
			p.symbol(im, &r, &s, r.typ == types.Slots[0])
		case ok && (h.Value == isa.Nothing || h.Field != isa.Data64):
		default:
			p.add(r.off, 0)
		}
	})
}

func (p *pointers) resolver(at, function uint64) {
	p.resolvers = append(p.resolvers, pointer{at, function})
	p.add(at, 0)
}

// symbol takes a relocation that puts the address of s into a word. Until the
// loader binds one that it binds late, the word leads to the loader.
func (p *pointers) symbol(im *namedFile, r *rela, s *symbol, late bool) {
	value := s.addr + r.addend
	switch {
	case r.sym == 0:
		p.add(r.off, r.addend)
	case s.typ() == elf.STT_GNU_IFUNC && !s.external():
		p.resolver(r.off, value)
	case s.sec == absolute || s.typ() == elf.STT_TLS:
		p.add(r.off, 0)
	case s.addr != 0: // also a function elsewhere that has a stub here
		p.add(r.off, value)
	case late:
		stub, _ := im.word(r.off)
		p.add(r.off, stub)
	default:
		p.add(r.off, 0)
	}
}

// What debug/elf has no names for.
const (
	shtRELR  = elf.SectionType(19)
	dtRELR   = elf.DynTag(36)
	dtRELRSZ = elf.DynTag(35)
)

// relrs takes the tables of packed relocations, which tell only where words
// are that the loader moves along with the file [System V ABI, 5, Relative
// Relocation Table].
func (p *pointers) relrs(im *namedFile) error {
	for i := range im.sections {
		s := &im.sections[i]
		if s.typ != shtRELR || !s.inMemory() {
			continue
		}
		data, err := im.rawContents(s)
		if err != nil {
			return err
		}
		if err := p.relr(im, &tableData{im.order, s.addr, data}); err != nil {
			return err
		}
	}
	tables, err := im.taggedTables([2]elf.DynTag{dtRELR, dtRELRSZ})
	if err != nil {
		return err
	}
	for _, e := range tables {
		data, err := im.Data(nil, e.lo, e.hi-e.lo)
		if err != nil {
			return err
		}
		if err := p.relr(im, &tableData{im.order, e.lo, data}); err != nil {
			return err
		}
	}
	return nil
}

// relr takes one table. An even entry is the address of a word; each bit but
// the lowest of an odd one stands for one of the 63 words after.
func (p *pointers) relr(im *namedFile, t *tableData) error {
	const size, words = 8, 63
	next, ok := uint64(0), true
	add := func(at uint64) {
		if v, in := im.word(at); in {
			p.add(at, v)
		}
	}
	t.each(size, func(off int) {
		w := t.order.u64(t.data[off:])
		switch {
		case w&1 == 0:
			ok = ok && w >= next
			if ok {
				add(w)
			}
			next = w + size
		case ok:
			for rest := w &^ 1; rest != 0; rest &= rest - 1 {
				add(next + size*uint64(bits.TrailingZeros64(rest)-1))
			}
			next += words * size
		}
	})
	if !ok {
		return &FormatError{What: "packed relocations are not in order", Where: fmt.Sprintf("table at %#x", t.addr)}
	}
	return nil
}
