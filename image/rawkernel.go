package image

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"sort"
	"strings"
)

// layRaw stands in for the headers that a bare kernel image lacks: its
// addresses are told by the symbols around its parts.
func (im *namedFile) layRaw(raw *rawKernel) error {
	im.typ, im.machine, im.isa = elf.ET_EXEC, raw.machine, im.isas.Find(raw.machine)
	im.order = byteOrder(raw.order == binary.ByteOrder(binary.BigEndian))
	base, syms, err := im.rawNames()
	if err != nil {
		return err
	}
	at := make(map[string]uint64)
	for i := range syms {
		if s := &syms[i]; strings.HasPrefix(s.Name, "_") {
			at[s.Name] = s.Addr
		}
	}
	im.sections = []section{{}}
	pos := base
	add := func(name string, end uint64, flags elf.SectionFlag) {
		end = min(end, base+uint64(im.size))
		if end > pos && pos >= base {
			im.sections = append(im.sections, section{
				name: name, typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | flags, addr: pos, size: end - pos, off: pos - base,
			})
			pos = end
		}
	}
	add(".head.text", at["_stext"], elf.SHF_EXECINSTR)
	add(".text", at["_etext"], elf.SHF_EXECINSTR)
	add(".data", at["_sinittext"], 0)
	add(".init.text", at["_einittext"], elf.SHF_EXECINSTR)
	add(".data.init", at["__exittext_begin"], 0)
	add(".exit.text", at["__exittext_end"], elf.SHF_EXECINSTR)
	add(".data.rest", base+uint64(im.size), 0)
	return nil
}

// rawNames returns where a bare kernel image starts and the symbols that say
// where its parts are: its own, else those of Options.Symbols.
func (im *namedFile) rawNames() (base uint64, syms []MapSymbol, err error) {
	file := make([]byte, im.size)
	if err := im.readAt(file, 0, "kernel image"); err != nil {
		return 0, nil, err
	}
	if k := findKallsyms(file, im.order); k != nil {
		own := k.symbols()
		if base, shift, ok := im.rawBase(k, own, file); ok {
			moveSymbols(own, shift)
			im.kernelNames = func() ([]MapSymbol, error) { return own, nil }
			return base, own, nil
		}
	}
	if len(im.userTable) == 0 {
		return 0, nil, ErrNoSymbols
	}
	text, ok := findSymbol(im.userTable, "_text")
	if !ok {
		return 0, nil, &FormatError{What: "the symbols lack _text, which says where the image starts", Where: "symbols"}
	}
	return text.Addr, im.userTable, nil
}

// rawBase returns the address where a bare kernel image starts, with the
// symbols of its own table, of which those that are not absolute count from
// the relative base or from the start of the image.
func (im *file) rawBase(k *kallsyms, syms []MapSymbol, file []byte) (base, shift uint64, ok bool) {
	text, named := findSymbol(syms, "_text")
	switch {
	case k.addressing == addressPlaced:
		base, ok = voteForBase(syms, file, im.order)
		return base, base, ok
	case k.addressing == addressWhole:
		return text.Addr, 0, named
	}
	shift = im.order.u64(k.data[k.base:])
	if shift == 0 {
		return im.relocatedBase(k.base, file)
	}
	if named {
		return shift + text.Addr, shift, true
	}
	return shift&^(imageAlign-1) + textOffset(file), shift, true
}

// imageAlign is what arm64 kernels are aligned to, but for the offset in their
// header [Documentation/arch/arm64/booting.rst].
const imageAlign = 2 << 20

// textOffset reads the offset from the header of a bare arm64 kernel.
func textOffset(file []byte) uint64 { return binary.LittleEndian.Uint64(file[8:]) % imageAlign }

// relocatedBase looks for the relocation that gives the relative base its
// value, at offset at: its offset tells where the image starts, its addend is
// the base.
func (im *file) relocatedBase(at int, file []byte) (base, shift uint64, ok bool) {
	const page = 1 << 12
	order, relative := im.order, uint64(im.isa.Loader.Relative)
	for off := 0; off+relaSize <= len(file); off += 8 {
		if order.u64(file[off+8:]) != relative {
			continue
		}
		base, shift = order.u64(file[off:])-uint64(at), order.u64(file[off+16:])
		if base%imageAlign == textOffset(file) && shift%page == 0 && shift >= base && shift-base < uint64(len(file)) {
			return base, shift, true
		}
	}
	return 0, 0, false
}

// voteForBase finds the address of a bare kernel image by what looks like
// pointers in it: most of those to text lead to symbols. The addresses of syms
// are offsets in the image.
func voteForBase(syms []MapSymbol, file []byte, order byteOrder) (base uint64, ok bool) {
	const sample, fewest, fewestNear = 1 << 12, 64, 8
	offsets := make([]uint64, 0, len(syms))
	for i := range syms {
		if syms[i].Type|0x20 == 't' {
			offsets = append(offsets, syms[i].Addr)
		}
	}
	slices.Sort(offsets)
	var pointers []uint64
	for off := 0; off+8 <= len(file); off += 8 {
		if p := order.u64(file[off:]); p>>48 == 0xffff && p<<16 != 0 && p%4 == 0 {
			pointers = append(pointers, p)
		}
	}
	pointers = evenSample(pointers, sample)
	near := make(map[uint64]int) // pointers by the place that an image could have before them
	for _, p := range pointers {
		near[(p-textOffset(file))&^(imageAlign-1)+textOffset(file)]++
	}
	best := 0
	for b, n := range near {
		if n < fewestNear {
			continue
		}
		if n = pointersTo(pointers, b, offsets); n > best || n == best && b < base {
			base, best = b, n
		}
	}
	return base, best >= fewest
}

// pointersTo counts the pointers that lead to one of the sorted offsets from
// base.
func pointersTo(pointers []uint64, base uint64, offsets []uint64) int {
	n := 0
	for _, p := range pointers {
		off := p - base
		if i := sort.Search(len(offsets), func(i int) bool { return offsets[i] >= off }); i < len(offsets) && offsets[i] == off {
			n++
		}
	}
	return n
}
