package image

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"

	"xol/image/isa"
	"xol/place"
)

// landings collects landings.
type landings struct {
	im   *program
	syms *symtab
	text extent // from the first range of text to the last
	last Range  // of text: where the last landing was
	list place.Landings
	// describing are the ranges of addresses whose words are no landings,
	// sorted.
	describing []extent
}

func (im *program) readLandings() (place.Landings, error) {
	syms, err := im.symbols()
	if err != nil || len(im.text) == 0 {
		return nil, err
	}
	l := &landings{im: im, syms: syms, text: extent{im.text[0].Addr, im.text[len(im.text)-1].End()}}
	l.list = make(place.Landings, 0, 2*im.textSymbols(syms))
	l.describing = im.describingTables(syms)
	l.entry()
	l.symbols(syms)
	p, err := im.pointers()
	l.symbols(&p.symbols)
	err = cmp.Or(err, l.data(p))
	for _, read := range []func(l *landings) error{
		(*landings).dynamic, (*landings).linuxTables, (*landings).landingPads, (*landings).goRecoveries,
	} {
		err = cmp.Or(err, read(l))
	}
	l.list = radixSorted(l.list, func(p *place.Landing) uint64 { return p.Addr })
	return slices.Clip(slices.Compact(l.list)), err
}

// inText reports whether addr is in text. Most that is asked for is not, or is
// where the last one was.
func (l *landings) inText(addr uint64) bool {
	if addr-l.text.lo >= l.text.hi-l.text.lo {
		return false
	}
	if addr-l.last.Addr < l.last.Size {
		return true
	}
	i := l.im.textAt(addr)
	if i >= 0 {
		l.last = l.im.text[i]
	}
	return i >= 0
}

// add takes a landing that is in text. 0 means nothing even where that is text.
func (l *landings) add(addr, from uint64, kind place.LandingKind) {
	if addr != 0 && l.inText(addr) {
		l.list = append(l.list, place.Landing{Addr: addr, From: from, Kind: kind})
	}
}

// entry adds the entry point. That of a kernel may be a physical address.
func (l *landings) entry() {
	im := l.im
	if im.entry == 0 {
		return
	}
	entry := im.CodeOf(im.entry)
	if !l.inText(entry) && im.headers != nil {
		for _, p := range im.headers.Progs {
			if p.Type == elf.PT_LOAD && entry-p.Paddr < p.Memsz {
				entry += p.Vaddr - p.Paddr
				break
			}
		}
	}
	l.add(entry, 0, place.LandEntry)
}

// symbols adds those of t, and the local entry points of ppc64.
func (l *landings) symbols(t *symtab) {
	last := uint64(0)
	for _, i := range t.sorted {
		s := &t.syms[i]
		if !l.inText(s.addr) || t.names[s.name] == '$' && isMapping(t.name(s)) {
			continue
		}
		if s.addr != last || len(l.list) == 0 {
			l.add(s.addr, 0, place.LandSymbol)
			last = s.addr
		}
		if l.im.ABI() == 2 {
			if local := l.im.localEntry(s.other); local != 0 {
				l.add(s.addr+local, s.addr, place.LandLocalEntry)
			}
		}
	}
}

// data adds what data holds: words that relocations fill, and in a file that
// says where it stands all other words.
func (l *landings) data(p *pointers) error {
	for _, list := range [][]pointer{p.list, p.resolvers} {
		for i := range list {
			if e := &list[i]; !holds(l.describing, e.at) {
				l.add(e.target, e.at, place.LandPointer)
			}
		}
	}
	if l.im.typ == elf.ET_REL {
		return l.narrow()
	}
	if !l.im.holdsAddresses() {
		return nil
	}
	buf := make([]byte, blockSize)
	for _, i := range l.im.byAddr {
		if s := &l.im.sections[i]; holdsWords(s) && !holds(l.describing, s.addr) {
			if err := l.words(s, p, buf); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdsWords reports whether a section may hold addresses that no relocation
// speaks of. Text may, too: between its instructions, of which hardly any look
// like an address.
func holdsWords(s *section) bool {
	switch s.typ {
	case elf.SHT_PROGBITS, elf.SHT_INIT_ARRAY, elf.SHT_FINI_ARRAY, elf.SHT_PREINIT_ARRAY:
		return true
	}
	return false
}

// words adds the addresses in a section, which it reads into buf.
func (l *landings) words(s *section, p *pointers, buf []byte) error {
	const size = 8
	order := l.im.order
	for addr := (s.addr + size - 1) &^ (size - 1); addr < s.end(); {
		data, err := l.im.Data(buf, addr, min(uint64(len(buf)), s.end()-addr))
		if err != nil {
			return err
		}
		for ; len(data) >= size; data, addr = data[size:], addr+size {
			target := order.u64(data)
			if !l.inText(target) || holds(l.describing, addr) {
				continue
			}
			if _, relocated := p.find(addr); !relocated {
				l.add(target, addr, place.LandPointer)
			}
		}
		addr += uint64(len(data)) // less than a word at the section's end
	}
	return nil
}

// narrow adds the addresses that relocations of a relocatable file put into
// less than 8 bytes, or count from where they stand. Those of jump tables
// count from the table's start instead, so that a relocation alone does not
// tell the target: they are known by the section.
func (l *landings) narrow() error {
	im := l.im
	for _, i := range im.byAddr {
		s := &im.sections[i]
		if holds(l.describing, s.addr) || s.exec() && im.isa.ByteFields {
			continue // also the fields of instructions
		}
		relative := !s.exec() && !strings.HasPrefix(s.name, ".rodata")
		err := im.eachRela(s, s.size, l.syms, func(r *rela, h *isa.Howto) error {
			at := s.addr + r.off
			switch {
			case h.Value == isa.AbsoluteS && h.Field == isa.Data32:
				l.add(l.syms.relocated(r, h, at), at, place.LandPointer)
			case h.Value == isa.RelativeS && relative && (h.Field == isa.Data32 || h.Field == isa.Data64):
				l.add(l.syms.relocated(r, h, at)+at, at, place.LandPointer)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// entryTags are the dynamic section's entries that are addresses of code: what
// the loader calls, and where words lead that it binds late.
var entryTags = []elf.DynTag{elf.DT_INIT, elf.DT_FINI, elf.DT_TLSDESC_PLT}

func (l *landings) dynamic() error {
	tags, err := l.im.dynamicTags()
	for _, t := range tags {
		if slices.Contains(entryTags, t.tag) || slices.Contains(l.im.isa.EntryTags, t.tag) {
			l.add(l.im.CodeOf(t.value), t.at, place.LandPointer)
		}
	}
	return err
}

// linuxTables adds what the tables of kernels and modules say of where
// execution goes on.
func (l *landings) linuxTables() error {
	if l.im.kind == KindProgram {
		return nil
	}
	m := newTableReader(&l.im.namedFile, l.syms)
	for i := range linuxTables {
		t := &linuxTables[i]
		var read func(t *tableData)
		switch t.section {
		case "__ex_table":
			read = l.fixups
		case "__jump_table":
			read = l.jumpLabels
		default:
			continue
		}
		parts, err := m.locate(t)
		if err != nil {
			return err
		}
		for i := range parts {
			read(&parts[i])
		}
	}
	return nil
}

// fixups reads __ex_table as marker.exceptions does.
func (l *landings) fixups(t *tableData) {
	t.each(l.im.entrySize(t, 2, l.im.isa.Kernel.ExEntries...), func(off int) { l.add(t.rel(off+4), t.rel(off), place.LandExFixup) })
}

// jumpLabels reads __jump_table as marker.jumpLabels does.
func (l *landings) jumpLabels(t *tableData) {
	t.each(16, func(off int) { l.add(t.rel(off+4), t.rel(off), place.LandJumpLabel) })
}

// describingSections are the starts of the names of sections that tell of
// instructions without leading there: for unwinding, for debugging, or for
// what changes them.
var describingSections = []string{
	".eh_frame", ".sframe", ".orc_", ".debug", ".zdebug", ".stab", ".BTF", ".discard", ".note", ".stapsdt",
	".altinstructions", ".parainstructions", ".return_sites", ".retpoline_sites", ".ibt_endbr_seal",
	".call_sites", ".smp_locks", ".cfi_sites", "__stf_", "__rfi_flush_fixup", "__uaccess_flush_fixup",
	"__entry_flush_fixup", "__scv_entry_flush_fixup", "__spec_barrier_fixup", "__btb_flush_fixup",
	"__soft_mask_table",
}

func describes(name string) bool {
	return slices.ContainsFunc(linuxTables, func(t kernelTable) bool { return t.section == name }) ||
		slices.ContainsFunc(describingSections, func(start string) bool { return strings.HasPrefix(name, start) })
}

// describingTables returns where such sections are, and what lies between the
// symbols around a kernel's tables, sorted and without overlap.
func (im *program) describingTables(syms *symtab) []extent {
	var found []extent
	for _, i := range im.byAddr {
		if s := &im.sections[i]; !s.exec() && describes(s.name) {
			found = append(found, extent{s.addr, s.end()})
		}
	}
	m := newTableReader(&im.namedFile, syms)
	for i := range linuxTables {
		if lo, hi, ok := m.area(linuxTables[i].start, linuxTables[i].stop); ok {
			found = append(found, extent{lo, hi})
		}
	}
	return union(found)
}
