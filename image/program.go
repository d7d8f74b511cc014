package image

import (
	"sort"
	"sync"
)

// program is a file with what its symbols and relocations tell: its functions,
// and the words that hold addresses.
type program struct {
	namedFile
	extents  [2]func() ([]Function, error) // by Extent
	pointers func() (*pointers, error)
	goFuncs  func() []goFunc
}

// remember sets up what is found out when it is first asked for.
func (im *program) remember() {
	for e := range im.extents {
		im.extents[e] = sync.OnceValues(func() ([]Function, error) { return im.listFunctions(Extent(e)) })
	}
	im.pointers = sync.OnceValues(im.readPointers)
	im.goFuncs = sync.OnceValue(func() []goFunc {
		fns, _ := im.readGoFunctions() // what is damaged has none
		return fns
	})
}

// Functions returns the functions of the file, sorted by address, without
// overlap. Of several symbols at one address, one is taken: in a kernel the
// one that kallsyms reports.
//
// Text that belongs to no symbol is divided by .gopclntab, the procedure
// linkage table, .eh_frame and the entry point, and what remains is named after
// its section. Padding is left
// out, and so is .altinstr_replacement, which never runs in place. Bytes that
// a symbol in text calls data are in no function with ExtentSymbol.
//
// The caller must not change the list.
func (im *program) Functions(e Extent) ([]Function, error) {
	return im.extents[min(e, ExtentNext)]()
}

// IsGo reports whether addr is in a function that the program's own table (.gopclntab)
// names: one that Go's tools have made, which may stand beside those of other languages.
func (im *program) IsGo(addr uint64) bool {
	fns := im.goFuncs()
	i := sort.Search(len(fns), func(i int) bool { return fns[i].hi > addr })
	return i < len(fns) && fns[i].lo <= addr
}

// Pointer returns the address that the 8-byte word at addr holds when the
// program runs, as far as it is an address in the file: that of a symbol that
// the file defines, that which the loader only moves along with the file, or
// what the file holds there itself where it is not position-independent. It is
// false where there is no such word, and where its value depends on other files
// or on code that runs.
func (im *program) Pointer(addr uint64) (target uint64, ok bool) {
	p, _ := im.pointers() // what is damaged has none
	if i, found := p.find(addr); found {
		target = p.list[i].target
	} else if im.holdsAddresses() {
		target, _ = im.word(addr)
	}
	if target == 0 || im.sectionAt(target) == nil {
		return 0, false
	}
	return target, true
}
