package image

import (
	"debug/elf"
	"strings"
)

// linkageStubs returns the stubs through which a program calls what other
// files define. They have no symbols of their own; objdump's "printf@plt" is
// what they are called here. ppc64 has its stubs elsewhere in text.
func (im *Image) linkageStubs() []piece {
	if im.machine != elf.EM_X86_64 && im.machine != elf.EM_AARCH64 || im.typ == elf.ET_REL {
		return nil
	}
	var slots map[uint64]string
	var stubs []piece
	for i := range im.text {
		r := &im.text[i]
		if !strings.HasPrefix(r.Section, ".plt") {
			continue
		}
		if slots == nil {
			slots = im.slots(loaderTypesOf[im.machine].slots)
		}
		code, err := im.Code(nil, r.Addr, r.Size)
		if err != nil {
			continue
		}
		each := stubsX86
		if im.machine == elf.EM_AARCH64 {
			each = stubsARM64
		}
		each(code, r.Addr, im.sectionAt(r.Addr).entsize, func(addr, slot uint64) {
			if name, ok := slots[slot]; ok {
				stubs = append(stubs, piece{addr: addr, name: name + "@plt", source: FromPLT})
			}
		})
	}
	return stubs
}

// slots returns the names of the symbols whose addresses the loader puts into
// the global offset table, by the entry's address. What is damaged has none.
func (im *Image) slots(types [2]uint32) map[uint64]string {
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

// stubsX86 finds, in each entry of a table, the jump through memory that it
// ends with: FF 25 and a displacement.
func stubsX86(code []byte, addr, size uint64, f func(addr, slot uint64)) {
	const jump = 6
	if size < jump || size > 32 {
		size = 16
	}
	for ; uint64(len(code)) >= size; code, addr = code[size:], addr+size {
		for i := 0; i+jump <= int(size); i++ {
			if code[i] == 0xff && code[i+1] == 0x25 {
				f(addr, addr+uint64(i)+jump+littleEndian.i32(code[i+2:]))
				break
			}
		}
	}
}

// stubsARM64 finds the pairs of adrp x16 and ldr x17, [x16, …] that stubs
// start with, or have behind a bti c.
func stubsARM64(code []byte, addr, _ uint64, f func(addr, slot uint64)) {
	const (
		bti              = 0xd503245f
		adrp, adrpMask   = 0x90000010, 0x9f00001f
		ldr, ldrMask     = 0xf9400211, 0xffc003ff
		pageBits, ldrLog = 12, 3
	)
	for i := 0; i+8 <= len(code); i += 4 {
		a, l := littleEndian.u32(code[i:]), littleEndian.u32(code[i+4:])
		if a&adrpMask != adrp || l&ldrMask != ldr {
			continue
		}
		page := int64(int32(a<<8)>>13)<<2 | int64(a>>29&3)
		p := addr + uint64(i)
		slot := p&^(1<<pageBits-1) + uint64(page)<<pageBits + uint64(l>>10&0xfff)<<ldrLog
		if i >= 4 && littleEndian.u32(code[i-4:]) == bti {
			p -= 4
		}
		f(p, slot)
	}
}
