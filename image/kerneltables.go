package image

import (
	"debug/elf"
	"sync"
)

// kernelTable is one table that Linux's build leaves in a kernel, between two
// symbols, or in a module, in a section.
type kernelTable struct {
	start, stop string // symbols; empty where kernels have none
	section     string
	absolute    bool // holds addresses, which a kernel that can stand anywhere relocates
}

var linuxTables = []kernelTable{
	{"__start___ex_table", "__stop___ex_table", "__ex_table", false},
	{"__start___jump_table", "__stop___jump_table", "__jump_table", false},
	{"__start_static_call_sites", "__stop_static_call_sites", ".static_call_sites", false},
	{"__start___bug_table", "__stop___bug_table", "__bug_table", false},
	{"__start_mcount_loc", "__stop_mcount_loc", mcountSection, true},
	{"", "", patchableSection, true},
	{"__start_kprobe_blacklist", "__stop_kprobe_blacklist", "_kprobe_blacklist", true},
	{"__alt_instructions", "__alt_instructions_end", ".altinstructions", false},
	{"__start___ftr_fixup", "__stop___ftr_fixup", "__ftr_fixup", false},
	{"__start___mmu_ftr_fixup", "__stop___mmu_ftr_fixup", "__mmu_ftr_fixup", false},
	{"__start___fw_ftr_fixup", "__stop___fw_ftr_fixup", "__fw_ftr_fixup", false},
	{"__start___lwsync_fixup", "__stop___lwsync_fixup", "__lwsync_fixup", false},
	{"__start___kcfi_traps", "__stop___kcfi_traps", ".kcfi_traps", false},
}

// The sections of the two tables.
const (
	mcountSection    = "__mcount_loc"
	patchableSection = "__patchable_function_entries"
)

// The sections of the tables that say where a replacement stands: of x86 and
// arm64, and of ppc64.
const altSection = ".altinstructions"

var fixupTables = []string{"__ftr_fixup", "__mmu_ftr_fixup", "__fw_ftr_fixup"}

// tableReader reads the tables of kernels and modules.
type tableReader struct {
	im    *namedFile
	syms  *symtab
	relas func() ([][]byte, error)
}

func newTableReader(im *namedFile, syms *symtab) *tableReader {
	m := &tableReader{im: im, syms: syms}
	m.relas = sync.OnceValues(m.dynamicRelocations)
	return m
}

// locate reads a table: what lies between its symbols, else all sections of
// its name.
func (m *tableReader) locate(t *kernelTable) ([]tableData, error) {
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

func (m *tableReader) readTable(t *kernelTable) ([]tableData, error) {
	im := m.im
	var parts []tableData
	if lo, hi, ok := m.area(t.start, t.stop); ok {
		data, err := im.Data(nil, lo, hi-lo)
		parts = append(parts, tableData{im.order, lo, data})
		if err != nil || !im.Running() { // whose modules have tables of their own
			return parts, err
		}
	}
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
// between them. A kernel that runs has freed some of it.
func (m *tableReader) area(start, stop string) (lo, hi uint64, ok bool) {
	if m.im.kind != KindKernel || start == "" {
		return 0, 0, false
	}
	lo, ok1 := m.syms.address(start)
	hi, ok2 := m.syms.address(stop)
	if s := m.im.sectionAt(lo); m.im.Running() && (s == nil || !s.inFile() || hi > s.end()) {
		return 0, 0, false
	}
	return lo, hi, ok1 && ok2 && lo < hi
}

// relaTable is a table of relocations that the loader applies.
type relaTable struct {
	tableData
	symbols bool // its entries name symbols of .dynsym
}

// loaderTables reads the relocations that the loader applies, or that a kernel
// which can stand anywhere applies to itself.
func (m *tableReader) loaderTables() ([]relaTable, error) {
	im := m.im
	var all []relaTable
	for i := range im.sections {
		if s := &im.sections[i]; s.typ == elf.SHT_RELA && s.inMemory() {
			data, err := im.rawContents(s)
			if err != nil {
				return nil, err
			}
			names := int(s.link) < len(im.sections) && im.sections[s.link].typ == elf.SHT_DYNSYM
			all = append(all, relaTable{tableData{im.order, s.addr, data}, names})
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	tables, err := im.taggedTables([2]elf.DynTag{elf.DT_RELA, elf.DT_RELASZ}, [2]elf.DynTag{elf.DT_JMPREL, elf.DT_PLTRELSZ})
	if err != nil {
		return nil, err
	}
	if lo, hi, ok := m.area("__pi_rela_start", "__pi_rela_end"); ok {
		tables = append(tables, extent{lo, hi})
	}
	for _, e := range tables {
		data, err := im.Data(nil, e.lo, e.hi-e.lo)
		if err != nil {
			return nil, err
		}
		all = append(all, relaTable{tableData{im.order, e.lo, data}, true})
	}
	return all, nil
}

// dynamicRelocations returns the relocations that a kernel applies to itself:
// its addresses may be nowhere else in the file.
func (m *tableReader) dynamicRelocations() ([][]byte, error) {
	tables, err := m.loaderTables()
	all := make([][]byte, len(tables))
	for i := range tables {
		all[i] = tables[i].data
	}
	return all, err
}

// relocateTable gives the addresses in a table the values that they have where
// the file says that it stands.
func (m *tableReader) relocateTable(t *tableData) error {
	relas, err := m.relas()
	if err != nil {
		return err
	}
	relative, size := m.im.isa.Loader.Relative, uint64(len(t.data))
	for _, data := range relas {
		for ; len(data) >= relaSize; data = data[relaSize:] {
			off := t.order.u64(data) - t.addr
			if off >= size || off+8 > size {
				continue
			}
			if r := t.order.rela(data); r.typ == relative {
				t.order.put64(t.data[off:], r.addend)
			}
		}
	}
	return nil
}
