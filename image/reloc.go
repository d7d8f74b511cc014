package image

import (
	"debug/elf"
	"fmt"

	"xol/place"
)

// rela is one entry of a table of relocations.
type rela struct {
	off    uint64 // in a relocatable file from the section's start, else an address
	addend uint64
	typ    uint32
	sym    uint32
}

func (o byteOrder) rela(b []byte) rela {
	info := o.u64(b[8:])
	return rela{off: o.u64(b), addend: o.u64(b[16:]), typ: uint32(info), sym: uint32(info >> 32)}
}

// value says what a relocation computes, in the terms of the ABIs: S is the
// symbol's address, A the addend, P the place's address, G that of the
// symbol's entry in the global offset table.
type value uint8

const (
	opaque       value = iota // what only the linker knows: the field keeps its bytes
	nothing                   // a note to the linker
	absoluteS                 // S + A
	relativeS                 // S + A - P
	pageS                     // Page(S + A) - Page(P)
	absoluteG                 // G + A
	relativeG                 // G + A - P
	pageG                     // Page(G + A) - Page(P)
	tocRelativeS              // S + A - TOC
	tocRelativeG              // G + A - TOC
	tocBase                   // TOC
	sizeS                     // the symbol's size + A
)

// field says which bits a relocation fills.
type field uint8

const (
	data8 field = iota // whole bytes, in the file's byte order
	data16
	data32
	data64
	armBranch26 // b, bl
	armBranch19 // b.cond, cbz, ldr literal
	armBranch14 // tbz
	armAddr21   // adr, adrp
	armImm12    // add, ldr, str; counted in units of the access
	armImm16    // movz, movk
	ppcHalf     // the lower half of an instruction
	ppcHalfDS   // likewise, its last 2 bits belong to the opcode
	ppcBranch24 // b, bl
	ppcBranch14 // bc
	ppcPrefix34 // a prefixed instruction
)

// fieldSizes are the bytes that a relocation speaks of, from its offset.
var fieldSizes = [...]uint64{
	data8: 1, data16: 2, data32: 4, data64: 8,
	armBranch26: 4, armBranch19: 4, armBranch14: 4, armAddr21: 4, armImm12: 4, armImm16: 4,
	ppcHalf: 2, ppcHalfDS: 2, ppcBranch24: 4, ppcBranch14: 4, ppcPrefix34: 8,
}

// howto is what a type of relocation does.
type howto struct {
	value value
	field field
	shift uint8 // the value's lowest bits that the field leaves out
	round bool  // the field makes up for a lower part that is taken as signed
}

var howtos = map[elf.Machine]map[uint32]howto{
	elf.EM_X86_64:  howtosX86,
	elf.EM_AARCH64: howtosARM64,
	elf.EM_PPC64:   howtosPPC64,
}

// howto returns what a type of relocation does; of an unknown one only that it
// fills 4 bytes.
func (im *Image) howto(typ uint32) howto {
	if h, ok := howtos[im.machine][typ]; ok {
		return h
	}
	return howto{opaque, data32, 0, false}
}

// relocate returns the content of a section of a relocatable file.
func (im *Image) relocate(s *section) ([]byte, error) {
	t, err := im.symbols()
	if err != nil {
		return nil, err
	}
	data, err := im.rawContents(s)
	if err != nil {
		return nil, err
	}
	return data, im.applyRelocations(data, s, t)
}

// eachRela calls f with every relocation of a section that holds size bytes,
// until f returns an error.
func (im *Image) eachRela(s *section, size uint64, t *symtab, f func(r *rela, h howto) error) error {
	for _, i := range s.relas {
		from := &im.sections[i]
		table, err := im.rawContents(from)
		if err != nil {
			return err
		}
		for n := 0; len(table) >= relaSize; n++ {
			r := im.order.rela(table)
			table = table[relaSize:]
			h := im.howto(r.typ)
			if h.value == nothing {
				continue
			}
			where := func() string { return fmt.Sprintf("entry %d of section %s", n, from.name) }
			if r.off > size || fieldSizes[h.field] > size-r.off {
				return &FormatError{What: "relocation outside its section", Where: where()}
			}
			if uint64(r.sym) >= uint64(len(t.syms)) {
				return &FormatError{What: "relocation against a symbol that does not exist", Where: where()}
			}
			if err := f(&r, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// applyRelocations fills the fields of a section's content.
func (im *Image) applyRelocations(data []byte, s *section, t *symtab) error {
	return im.eachRela(s, uint64(len(data)), t, func(r *rela, h howto) error {
		if h.value != opaque {
			h.fill(data[r.off:], t.relocated(r, h, s.addr+r.off), im.order)
		}
		return nil
	})
}

// relocated computes the value of a relocation whose field stands at p.
func (t *symtab) relocated(r *rela, h howto, p uint64) uint64 {
	const page = 1<<12 - 1
	sym := &t.syms[r.sym]
	s := sym.addr + r.addend
	if h.field == ppcBranch24 || h.field == ppcBranch14 {
		if !sym.external() && h.value == relativeS {
			s += localEntry(sym.other)
		}
	} else if d, ok := t.descriptors[r.sym]; ok {
		s = d + r.addend
	}
	g := t.got + uint64(r.sym)*gotEntrySize + r.addend
	switch h.value {
	case absoluteS:
		return s
	case relativeS:
		return s - p
	case pageS:
		return s&^page - p&^page
	case absoluteG:
		return g
	case relativeG:
		return g - p
	case pageG:
		return g&^page - p&^page
	case tocRelativeS:
		return s - t.toc
	case tocRelativeG:
		return g - t.toc
	case tocBase:
		return t.toc
	case sizeS:
		return sym.size + r.addend
	}
	return 0
}

// fill puts a value into the field that b starts with.
func (h howto) fill(b []byte, v uint64, order byteOrder) {
	if h.round {
		v += 1 << (h.shift - 1)
	}
	if h.field == armImm12 {
		v &= 1<<12 - 1 // of the address; the shift is by the access
	}
	v = uint64(int64(v) >> h.shift)
	insert := func(order byteOrder, value, mask uint32) {
		order.put32(b, order.u32(b)&^mask|value&mask)
	}
	w := uint32(v)
	switch h.field {
	case data8:
		b[0] = byte(v)
	case data16, ppcHalf:
		order.put16(b, uint16(v))
	case data32:
		order.put32(b, w)
	case data64:
		order.put64(b, v)
	case armBranch26:
		insert(littleEndian, w>>2, 0x03ffffff)
	case armBranch19:
		insert(littleEndian, w>>2<<5, 0x00ffffe0)
	case armBranch14:
		insert(littleEndian, w>>2<<5, 0x0007ffe0)
	case armAddr21:
		insert(littleEndian, w>>2<<5&0x00ffffe0|w<<29, 0x60ffffe0)
	case armImm12:
		insert(littleEndian, w<<10, 0x003ffc00)
	case armImm16:
		insert(littleEndian, w<<5, 0x001fffe0)
	case ppcHalfDS:
		order.put16(b, order.u16(b)&3|uint16(v)&^3)
	case ppcBranch24:
		insert(order, w, 0x03fffffc)
	case ppcBranch14:
		insert(order, w, 0x0000fffc)
	case ppcPrefix34:
		insert(order, uint32(v>>16), 0x0003ffff)
		order.put32(b[4:], order.u32(b[4:])&0xffff0000|w&0xffff)
	}
}

// relocations marks the bytes of text that relocations fill.
func (m *marker) relocations() error {
	err := m.im.eachTextReloc(m.syms, func(addr uint64, r *rela, h howto) {
		kind := place.Reloc
		if m.syms.syms[r.sym].external() {
			kind = place.ExternalReloc
		}
		m.add(addr, fieldSizes[h.field], kind)
	})
	if err != nil {
		return err
	}
	return m.im.eachDataReloc(func(addr, size uint64) { m.add(addr, size, place.Data) })
}

// eachTextReloc calls f with every relocation of text and its address.
func (im *Image) eachTextReloc(t *symtab, f func(addr uint64, r *rela, h howto)) error {
	for i := range im.sections {
		s := &im.sections[i]
		if !s.exec() {
			continue
		}
		err := im.eachRela(s, s.size, t, func(r *rela, h howto) error {
			f(s.addr+r.off, r, h)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachDataReloc calls f with every range in text that a relocation fills with
// data: what it fills is not part of an instruction. Only where instructions
// have no fields of whole bytes can that be told.
func (im *Image) eachDataReloc(f func(addr, size uint64)) error {
	if im.machine != elf.EM_AARCH64 && im.machine != elf.EM_PPC64 {
		return nil
	}
	t, err := im.symbols()
	if err != nil {
		return err
	}
	return im.eachTextReloc(t, func(addr uint64, r *rela, h howto) {
		if _, known := howtos[im.machine][r.typ]; known && h.field <= data64 {
			f(addr, fieldSizes[h.field])
		}
	})
}

// loaderTypes are the relocations that the loader applies to whole words,
// besides those that put a symbol's address there in any file.
type loaderTypes struct {
	relative uint32    // adds to an address how far the file was moved
	slots    [2]uint32 // of the global offset table: the address of a symbol
	resolved [2]uint32 // what the function at an address returns
}

var loaderTypesOf = map[elf.Machine]loaderTypes{
	elf.EM_X86_64: {
		relative: uint32(elf.R_X86_64_RELATIVE),
		slots:    [2]uint32{uint32(elf.R_X86_64_JMP_SLOT), uint32(elf.R_X86_64_GLOB_DAT)},
		resolved: [2]uint32{uint32(elf.R_X86_64_IRELATIVE), uint32(elf.R_X86_64_IRELATIVE)},
	},
	elf.EM_AARCH64: {
		relative: uint32(elf.R_AARCH64_RELATIVE),
		slots:    [2]uint32{uint32(elf.R_AARCH64_JUMP_SLOT), uint32(elf.R_AARCH64_GLOB_DAT)},
		resolved: [2]uint32{uint32(elf.R_AARCH64_IRELATIVE), uint32(elf.R_AARCH64_IRELATIVE)},
	},
	elf.EM_PPC64: {
		relative: uint32(elf.R_PPC64_RELATIVE),
		slots:    [2]uint32{uint32(elf.R_PPC64_JMP_SLOT), uint32(elf.R_PPC64_GLOB_DAT)},
		resolved: [2]uint32{uint32(elf.R_PPC64_IRELATIVE), uint32(elf.R_PPC64_JMP_IREL)},
	},
}

// relaTable is a table of relocations that the loader applies.
type relaTable struct {
	tableData
	symbols bool // its entries name symbols of .dynsym
}

// loaderTables reads the relocations that the loader applies, or that a kernel
// which can stand anywhere applies to itself.
func (m *marker) loaderTables() ([]relaTable, error) {
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
func (m *marker) dynamicRelocations() ([][]byte, error) {
	tables, err := m.loaderTables()
	all := make([][]byte, len(tables))
	for i := range tables {
		all[i] = tables[i].data
	}
	return all, err
}

// relocateTable gives the addresses in a table the values that they have where
// the file says that it stands.
func (m *marker) relocateTable(t *tableData) error {
	relas, err := m.relas()
	if err != nil {
		return err
	}
	relative, size := loaderTypesOf[m.im.machine].relative, uint64(len(t.data))
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
