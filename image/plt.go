package image

import (
	"debug/elf"
	"strings"
)

// linkageStubs returns the stubs through which a program calls what other
// files define. They have no symbols of their own; objdump's "printf@plt" is
// what they are called here.
func (im *file) linkageStubs() []candidate {
	if im.isa.Stubs == nil || im.typ == elf.ET_REL {
		return nil
	}
	var slots map[uint64]string
	var stubs []candidate
	for i := range im.text {
		r := &im.text[i]
		if !strings.HasPrefix(r.Section, ".plt") {
			continue
		}
		if slots == nil {
			slots = im.slots(im.isa.Loader.Slots)
		}
		code, err := im.Code(nil, r.Addr, r.Size)
		if err != nil {
			continue
		}
		im.isa.Stubs(code, r.Addr, im.sectionAt(r.Addr).entsize, func(addr, slot uint64) {
			if name, ok := slots[slot]; ok {
				stubs = append(stubs, candidate{addr: addr, name: name + "@plt", source: FromPLT})
			}
		})
	}
	return stubs
}

// slots returns the names of the symbols whose addresses the loader puts into
// the global offset table, by the entry's address. What is damaged has none.
func (im *file) slots(types [2]uint32) map[uint64]string {
	slots := make(map[uint64]string)
	symbols := im.sectionOfType(elf.SHT_DYNSYM)
	if symbols == nil {
		return slots
	}
	var t symtab
	if err := t.take(im, symbols); err != nil {
		return slots
	}
	for i := range im.sections {
		s := &im.sections[i]
		if s.typ != elf.SHT_RELA || !s.inMemory() || int(s.link) != symbols.index {
			continue
		}
		data, err := im.rawContents(s)
		if err != nil {
			continue
		}
		for ; len(data) >= relaSize; data = data[relaSize:] {
			r := im.order.rela(data)
			if (r.typ == types[0] || r.typ == types[1]) && r.sym != 0 && uint64(r.sym) < uint64(len(t.syms)) {
				slots[r.off] = t.name(&t.syms[r.sym])
			}
		}
	}
	return slots
}
