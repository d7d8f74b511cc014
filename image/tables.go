package image

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
	"strings"
	"sync"

	"xol/place"
)

// Marks returns what the kernel's tables, sections and symbols say of
// addresses in text, where data stands in text, and in relocatable files which
// bytes relocations fill. The list is sorted. The caller must not change it.
func (im *Image) Marks() (place.Marks, error) { return im.marks() }

// marker collects marks.
type marker struct {
	im    *Image
	syms  *symtab
	err   error // of functions
	relas func() ([][]byte, error)
	marks place.Marks
}

func (m *marker) add(addr, size uint64, k place.Kind) {
	if size > 0 && addr+size > addr {
		m.marks = append(m.marks, place.Mark{Addr: addr, Len: size, Kind: k})
	}
}

func (im *Image) readMarks() (place.Marks, error) {
	syms, err := im.symbols()
	if err != nil {
		return nil, err
	}
	m := &marker{im: im, syms: syms}
	if im.kind == KindKernel {
		m.marks = make(place.Marks, 0, len(syms.sorted)/4*3) // what kernels need
	}
	m.relas = sync.OnceValues(m.dynamicRelocations)
	m.dataInText()
	if im.kind != KindProgram {
		if err := cmp.Or(m.linux(), m.err); err != nil {
			return nil, err
		}
	}
	if im.typ == elf.ET_REL {
		if err := m.relocations(); err != nil {
			return nil, err
		}
	}
	radixSort(m.marks, func(p *place.Mark) uint64 { return p.Addr })
	return slices.Clip(m.marks), nil
}

// functions returns the functions as Linux counts them. They are asked for only
// where they are needed, since others may be finding them meanwhile.
func (m *marker) functions() []Function {
	fns, err := m.im.Functions(ExtentNext)
	if err != nil {
		m.err = err
	}
	return fns
}

// dataInText marks what symbols say is data: from $d to the next $x, and what
// symbols of objects cover.
func (m *marker) dataInText() {
	for i := range m.im.text {
		r := &m.im.text[i]
		from, data := uint64(0), false
		for k := m.syms.below(r.Addr); k < len(m.syms.sorted); k++ {
			s := &m.syms.syms[m.syms.sorted[k]]
			if s.addr >= r.End() {
				break
			}
			if s.typ() == elf.STT_OBJECT {
				m.add(s.addr, min(s.size, r.End()-s.addr), place.Data)
				continue
			}
			if m.syms.names[s.name] != '$' || !isMapping(m.syms.name(s)) {
				continue
			}
			if data {
				m.add(from, s.addr-from, place.Data)
			}
			from, data = s.addr, m.syms.names[s.name+1] == 'd'
		}
		if data {
			m.add(from, r.End()-from, place.Data)
		}
	}
}

// table is one table that Linux's build leaves in a kernel, between two
// symbols, or in a module, in a section.
type table struct {
	start, stop string // symbols; empty where kernels have none
	section     string
	absolute    bool // holds addresses, which a kernel that can stand anywhere relocates
	read        func(m *marker, t *tableData)
}

var linuxTables = []table{
	{"__start___ex_table", "__stop___ex_table", "__ex_table", false, (*marker).exceptions},
	{"__start___jump_table", "__stop___jump_table", "__jump_table", false, (*marker).jumpLabels},
	{"__start_static_call_sites", "__stop_static_call_sites", ".static_call_sites", false, (*marker).staticCalls},
	{"__start___bug_table", "__stop___bug_table", "__bug_table", false, (*marker).bugs},
	{"__start_mcount_loc", "__stop_mcount_loc", mcountSection, true, (*marker).ftraceSites},
	{"", "", patchableSection, true, (*marker).ftraceSites},
	{"__start_kprobe_blacklist", "__stop_kprobe_blacklist", "_kprobe_blacklist", true, (*marker).blacklisted},
	{"__alt_instructions", "__alt_instructions_end", ".altinstructions", false, (*marker).alternatives},
	{"__start___ftr_fixup", "__stop___ftr_fixup", "__ftr_fixup", false, (*marker).featureFixups},
	{"__start___mmu_ftr_fixup", "__stop___mmu_ftr_fixup", "__mmu_ftr_fixup", false, (*marker).featureFixups},
	{"__start___fw_ftr_fixup", "__stop___fw_ftr_fixup", "__fw_ftr_fixup", false, (*marker).featureFixups},
	{"__start___lwsync_fixup", "__stop___lwsync_fixup", "__lwsync_fixup", false, (*marker).wordFixups},
	{"__start___kcfi_traps", "__stop___kcfi_traps", ".kcfi_traps", false, (*marker).cfiTraps},
}

// linux adds what only kernels and modules have.
func (m *marker) linux() error {
	for i := range linuxTables {
		t := &linuxTables[i]
		parts, err := m.locate(t)
		if err != nil {
			return err
		}
		for i := range parts {
			t.read(m, &parts[i])
		}
	}
	if err := m.thunks(); err != nil {
		return err
	}
	m.sections()
	m.preambles()
	if m.im.kind == KindKernel {
		m.kernelAreas()
	}
	m.suffixed()
	return nil
}

// tableData is the content of a table.
type tableData struct {
	order byteOrder
	addr  uint64
	data  []byte
}

// word returns the 4 bytes at off, widened with their sign.
func (t *tableData) word(off int) uint64 { return t.order.i32(t.data[off:]) }

// rel returns the address that the 4 bytes at off give relative to themselves.
func (t *tableData) rel(off int) uint64 { return t.addr + uint64(off) + t.word(off) }

// each calls f with the offset of every whole entry of size bytes.
func (t *tableData) each(size int, f func(off int)) {
	for off := 0; size > 0 && off+size <= len(t.data); off += size {
		f(off)
	}
}

// locate reads a table: what lies between its symbols, else all sections of
// its name.
func (m *marker) locate(t *table) ([]tableData, error) {
	parts, err := m.readTable(t)
	if err != nil {
		return nil, &FormatError{What: "cannot read a kernel table", Where: t.section, Err: err}
	}
	if t.absolute && m.im.typ != elf.ET_REL {
		for i := range parts {
			if err := m.relocateTable(&parts[i]); err != nil {
				return nil, err
			}
		}
	}
	return parts, nil
}

func (m *marker) readTable(t *table) ([]tableData, error) {
	im := m.im
	if lo, hi, ok := m.area(t.start, t.stop); ok {
		data, err := im.Data(nil, lo, hi-lo)
		return []tableData{{im.order, lo, data}}, err
	}
	var parts []tableData
	for i := range im.sections {
		if s := &im.sections[i]; s.name == t.section && s.inMemory() && s.inFile() {
			data, err := im.contents(s)
			if err != nil {
				return nil, err
			}
			parts = append(parts, tableData{im.order, s.addr, data})
		}
	}
	return parts, nil
}

// area returns the addresses of two symbols of a kernel, if something lies
// between them.
func (m *marker) area(start, stop string) (lo, hi uint64, ok bool) {
	if m.im.kind != KindKernel || start == "" {
		return 0, 0, false
	}
	lo, ok1 := m.syms.address(start)
	hi, ok2 := m.syms.address(stop)
	return lo, hi, ok1 && ok2 && lo < hi
}

// sections marks the sections whose name says what holds of their content.
func (m *marker) sections() {
	for i := range m.im.text {
		r := &m.im.text[i]
		if k := sectionKind(m.im.kind, r.Section); k != 0 {
			m.add(r.Addr, r.Size, k)
		}
	}
}

// sectionKind returns what a section's name says. Modules keep their exit
// text, kernels do not.
func sectionKind(kind Kind, name string) place.Kind {
	switch {
	case strings.HasPrefix(name, ".init"):
		return place.InitText
	case kind == KindKernel && (strings.HasPrefix(name, ".exit") || strings.HasPrefix(name, ".altinstr")):
		return place.InitText
	case name == ".kprobes.text" || name == ".noinstr.text" || name == ".entry.text":
		return place.Blacklist
	}
	return 0
}

// preambles marks what stands before functions for the sake of CFI or call
// depth tracking: probes are refused there [kernel/kprobes.c].
func (m *marker) preambles() {
	fns := m.functions()
	for i := range fns {
		f := &fns[i]
		if f.Source == FromSymbol && (strings.HasPrefix(f.Name, "__cfi_") || strings.HasPrefix(f.Name, "__pfx_")) {
			m.add(f.Addr, f.Size, place.CFIPreamble)
		}
	}
}

// suffixed blacklists the parts that the compiler split off from blacklisted
// functions: the kernel looks a name with a suffix up without it, too
// [kernel/kprobes.c].
func (m *marker) suffixed() {
	black := m.blackRanges()
	fns := m.functions()
	for i := range fns {
		f := &fns[i]
		dot := strings.IndexByte(f.Name, '.')
		if dot <= 0 || f.Source != FromSymbol || holds(black, f.Addr) {
			continue
		}
		if addr, ok := m.syms.address(f.Name[:dot]); ok && holds(black, addr) {
			m.add(f.Addr, f.Size, place.Blacklist)
		}
	}
}

// blackRanges returns the union of the blacklisted ranges so far, sorted.
func (m *marker) blackRanges() []extent {
	var all []extent
	for i := range m.marks {
		if p := &m.marks[i]; p.Kind&place.Blacklist != 0 {
			all = append(all, extent{p.Addr, p.End()})
		}
	}
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.lo, b.lo) })
	merged := all[:0]
	for _, e := range all {
		if n := len(merged); n > 0 && e.lo <= merged[n-1].hi {
			merged[n-1].hi = max(merged[n-1].hi, e.hi)
		} else {
			merged = append(merged, e)
		}
	}
	return merged
}

// holds reports whether one of the sorted, disjoint ranges holds addr.
func holds(ranges []extent, addr uint64) bool {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].lo > addr }) - 1
	return i >= 0 && addr < ranges[i].hi
}
