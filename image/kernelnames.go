package image

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
)

// nameSource says where the symbols of a file come from.
type nameSource uint8

const (
	namesOfFile   nameSource = iota // .symtab, or the dynamic linker's
	namesOfUser                     // Options.Symbols
	namesOfKernel                   // kallsyms in the image
)

// readKernelNames returns the symbols that a kernel carries for itself, at
// their addresses, in the order of kallsyms; nil where it has none.
func (im *Image) readKernelNames() ([]mapSymbol, error) {
	if im.kind != KindKernel {
		return nil, nil
	}
	var candidates []*section
	for _, i := range im.byAddr {
		if s := &im.sections[i]; s.inFile() && (!s.exec() || im.headless) {
			candidates = append(candidates, s)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *section) int { // where all kernels have it comes first
		return cmp.Compare(last(a.name != ".rodata"), last(b.name != ".rodata"))
	})
	for _, s := range candidates {
		data, err := im.rawContents(s)
		if err != nil {
			return nil, err
		}
		k := findKallsyms(data, im.order)
		if k == nil {
			continue
		}
		syms := k.symbols()
		if shift, ok := im.kernelShift(k, syms, s.addr); ok {
			moveSymbols(syms, shift)
			return syms, nil
		}
	}
	return nil, nil
}

// moveSymbols adds shift to the addresses that are not absolute.
func moveSymbols(syms []mapSymbol, shift uint64) {
	for i := range syms {
		if syms[i].Type != 'A' {
			syms[i].Addr += shift
		}
	}
}

// kernelShift returns what is to be added to the symbols of k, which stands in
// data at addr. The relative base may be left to the boot loader's
// relocations; then the places of sections tell.
func (im *Image) kernelShift(k *kallsyms, syms []mapSymbol, addr uint64) (uint64, bool) {
	var shifts []uint64
	switch {
	case k.addressing == addressPlaced:
		shifts = append(shifts, addr)
	case k.addressing == addressWhole:
		shifts = append(shifts, 0)
	case k.base >= 0 && im.order.u64(k.data[k.base:]) != 0:
		shifts = append(shifts, im.order.u64(k.data[k.base:]))
	default:
		shifts = im.likelyShifts(syms)
	}
	for _, shift := range shifts {
		if im.symbolsFit(syms, shift) == nil {
			return shift, true
		}
	}
	return 0, false
}

// sectionAnchors are symbols that stand at the start of a section.
var sectionAnchors = []struct{ symbol, section string }{
	{"_text", ""}, // of all text
	{"_stext", ".text"},
	{"_stext", ""},
	{"_sinittext", ".init.text"},
}

// likelyShifts returns how far symbols would have to be moved for each of the
// anchors to stand where it belongs.
func (im *Image) likelyShifts(syms []mapSymbol) []uint64 {
	var shifts []uint64
	for _, a := range sectionAnchors {
		sym, ok := findSymbol(syms, a.symbol)
		at, known := im.textStart(a.section)
		if ok && known {
			shifts = append(shifts, at-sym.Addr)
		}
	}
	return shifts
}

// textStart returns where a section of text starts; all text where no name is
// given.
func (im *Image) textStart(section string) (uint64, bool) {
	for i := range im.text {
		if section == "" || im.text[i].Section == section {
			return im.text[i].Addr, true
		}
	}
	return 0, false
}

func findSymbol(syms []mapSymbol, name string) (mapSymbol, bool) {
	i := slices.IndexFunc(syms, func(s mapSymbol) bool { return s.Name == name })
	if i < 0 {
		return mapSymbol{}, false
	}
	return syms[i], true
}

// rawBase returns the address where a bare kernel image starts, with the
// symbols of its own table, of which those that are not absolute count from
// the relative base or from the start of the image.
func (im *Image) rawBase(k *kallsyms, syms []mapSymbol, file []byte) (base, shift uint64, ok bool) {
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
func (im *Image) relocatedBase(at int, file []byte) (base, shift uint64, ok bool) {
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
func voteForBase(syms []mapSymbol, file []byte, order byteOrder) (base uint64, ok bool) {
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
	pointers = spread(pointers, sample)
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

// spread returns at most n of list, evenly.
func spread(list []uint64, n int) []uint64 {
	if len(list) <= n {
		return list
	}
	some := make([]uint64, n)
	for i := range some {
		some[i] = list[i*len(list)/n]
	}
	return some
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
