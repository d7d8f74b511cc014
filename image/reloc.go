package image

import (
	"fmt"

	"xol/image/isa"
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

// howto returns what a type of relocation does; of an unknown one only that it
// fills 4 bytes.
func (im *file) howto(typ uint32) isa.Howto {
	if h, ok := im.isa.Relocations[typ]; ok {
		return h
	}
	return isa.Howto{Value: isa.Opaque, Field: isa.Data32}
}

// relocateSection returns the content of a section of a relocatable file.
func (im *namedFile) relocateSection(s *section) ([]byte, error) {
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
func (im *file) eachRela(s *section, size uint64, t *symtab, f func(r *rela, h *isa.Howto) error) error {
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
			if h.Value == isa.Nothing {
				continue
			}
			where := func() string { return fmt.Sprintf("entry %d of section %s", n, from.name) }
			if r.off > size || h.Field.Size > size-r.off {
				return &FormatError{What: "relocation outside its section", Where: where()}
			}
			if uint64(r.sym) >= uint64(len(t.syms)) {
				return &FormatError{What: "relocation against a symbol that does not exist", Where: where()}
			}
			if err := f(&r, &h); err != nil {
				return err
			}
		}
	}
	return nil
}

// applyRelocations fills the fields of a section's content.
func (im *file) applyRelocations(data []byte, s *section, t *symtab) error {
	return im.eachRela(s, uint64(len(data)), t, func(r *rela, h *isa.Howto) error {
		if h.Value != isa.Opaque {
			h.Fill(data[r.off:], t.relocated(r, h, s.addr+r.off), im.ByteOrder())
		}
		return nil
	})
}

// relocated computes the value of a relocation whose field stands at p.
func (t *symtab) relocated(r *rela, h *isa.Howto, p uint64) uint64 {
	const page = 1<<12 - 1
	sym := &t.syms[r.sym]
	s := sym.addr + r.addend
	if h.Field.Branch {
		if !sym.external() && h.Value == isa.RelativeS {
			s += t.localEntry(sym.other)
		}
	} else if d, ok := t.descriptors[r.sym]; ok {
		s = d + r.addend
	}
	g := t.got + uint64(r.sym)*gotEntrySize + r.addend
	switch h.Value {
	case isa.AbsoluteS:
		return s
	case isa.RelativeS:
		return s - p
	case isa.PageS:
		return s&^page - p&^page
	case isa.AbsoluteG:
		return g
	case isa.RelativeG:
		return g - p
	case isa.PageG:
		return g&^page - p&^page
	case isa.TOCRelativeS:
		return s - t.toc
	case isa.TOCRelativeG:
		return g - t.toc
	case isa.TOCBase:
		return t.toc
	case isa.SizeS:
		return sym.size + r.addend
	}
	return 0
}

// eachTextReloc calls f with every relocation of text and its address.
func (im *file) eachTextReloc(t *symtab, f func(addr uint64, r *rela, h *isa.Howto)) error {
	for i := range im.sections {
		s := &im.sections[i]
		if !s.exec() {
			continue
		}
		err := im.eachRela(s, s.size, t, func(r *rela, h *isa.Howto) error {
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
func (im *namedFile) eachDataReloc(f func(addr, size uint64)) error {
	if im.isa.ByteFields {
		return nil
	}
	t, err := im.symbols()
	if err != nil {
		return err
	}
	return im.eachTextReloc(t, func(addr uint64, r *rela, h *isa.Howto) {
		if _, known := im.isa.Relocations[r.typ]; known && h.Field.IsData() {
			f(addr, h.Field.Size)
		}
	})
}
