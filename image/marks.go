package image

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"

	"xol/image/isa"
	"xol/place"
)

// marker collects marks.
type marker struct {
	*tableReader
	im    *program
	err   error // of functions
	last  Range // of text: where the last site was
	marks place.Marks
}

func (im *program) newMarker(syms *symtab) marker {
	return marker{tableReader: newTableReader(&im.namedFile, syms), im: im}
}

func (m *marker) add(addr, size uint64, k place.Kind) {
	if size > 0 && addr+size > addr {
		m.marks = append(m.marks, place.Mark{Addr: addr, Len: size, Kind: k})
	}
}

func (im *program) readMarks() (place.Marks, error) {
	syms, err := im.symbols()
	if err != nil {
		return nil, err
	}
	m := im.newMarker(syms)
	if im.kind == KindKernel {
		m.marks = room[place.Mark](len(syms.sorted) / 8 * 9)[:0] // as many as kernels have
	}
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
	return radixSorted(m.marks, func(p *place.Mark) uint64 { return p.Addr }), nil
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
		symbols := m.syms.ascending(r.Addr, r.End())
		for group := symbols.group(); len(group) > 0; group = symbols.group() {
			for k := range group {
				s := &group[k]
				switch {
				case s.typ() == elf.STT_OBJECT:
					m.add(s.addr, min(s.size, r.End()-s.addr), place.Data)
				case m.syms.names[s.name] == '$' && isMapping(m.syms.name(s)):
					if data {
						m.add(from, s.addr-from, place.Data)
					}
					from, data = s.addr, m.syms.names[s.name+1] == 'd'
				}
			}
		}
		if data {
			m.add(from, r.End()-from, place.Data)
		}
	}
}

// tableMarkers read the tables, by their sections.
var tableMarkers = map[string]func(m *marker, t *tableData){
	"__ex_table":         (*marker).exceptions,
	"__jump_table":       (*marker).jumpLabels,
	".static_call_sites": (*marker).staticCalls,
	"__bug_table":        (*marker).bugs,
	mcountSection:        (*marker).ftraceSites,
	patchableSection:     (*marker).ftraceSites,
	"_kprobe_blacklist":  (*marker).blacklisted,
	altSection:           (*marker).alternatives,
	"__ftr_fixup":        (*marker).featureFixups,
	"__mmu_ftr_fixup":    (*marker).featureFixups,
	"__fw_ftr_fixup":     (*marker).featureFixups,
	"__lwsync_fixup":     (*marker).wordFixups,
	".kcfi_traps":        (*marker).cfiTraps,
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
			tableMarkers[t.section](m, &parts[i])
		}
	}
	if err := m.thunks(); err != nil {
		return err
	}
	m.sections()
	suffixed := m.preambles()
	if m.im.Running() {
		m.fromMemory()
	}
	if m.im.kind == KindKernel {
		m.kernelAreas()
	}
	m.suffixed(suffixed)
	return nil
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
// depth tracking: probes are refused there [kernel/kprobes.c]. It returns the indices
// of the functions whose name has a suffix: names are everywhere in memory, so that
// they are looked at once.
func (m *marker) preambles() (suffixed []int) {
	fns := m.functions()
	for i := range fns {
		f := &fns[i]
		switch {
		case f.Source != FromSymbol:
			continue
		case strings.HasPrefix(f.Name, "__cfi_"), strings.HasPrefix(f.Name, "__pfx_"):
			m.add(f.Addr, f.Size, place.CFIPreamble)
		}
		if strings.IndexByte(f.Name, '.') > 0 {
			suffixed = append(suffixed, i)
		}
	}
	return suffixed
}

// suffixed blacklists the parts that the compiler split off from blacklisted
// functions: the kernel looks a name with a suffix up without it, too
// [kernel/kprobes.c].
func (m *marker) suffixed(indices []int) {
	black := m.blackRanges()
	fns := m.functions()
	for _, i := range indices {
		f := &fns[i]
		if holds(black, f.Addr) {
			continue
		}
		name, _, _ := strings.Cut(f.Name, ".")
		if addr, ok := m.syms.address(name); ok && holds(black, addr) {
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

// relocations marks the bytes of text that relocations fill.
func (m *marker) relocations() error {
	err := m.im.eachTextReloc(m.syms, func(addr uint64, r *rela, h *isa.Howto) {
		kind := place.Reloc
		if m.syms.syms[r.sym].external() {
			kind = place.ExternalReloc
		}
		m.add(addr, h.Field.Size, kind)
	})
	if err != nil {
		return err
	}
	return m.im.eachDataReloc(func(addr, size uint64) { m.add(addr, size, place.Data) })
}
