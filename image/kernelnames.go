package image

import (
	"cmp"
	"slices"
)

// readKernelNames returns the symbols that a kernel carries for itself, at
// their addresses, in the order of kallsyms; nil where it has none.
func (im *file) readKernelNames() ([]MapSymbol, error) {
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

// kernelShift returns what is to be added to the symbols of k, which stands in
// data at addr. The relative base may be left to the boot loader's
// relocations; then the places of sections tell.
func (im *file) kernelShift(k *kallsyms, syms []MapSymbol, addr uint64) (uint64, bool) {
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
func (im *file) likelyShifts(syms []MapSymbol) []uint64 {
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
