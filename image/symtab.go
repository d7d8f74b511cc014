package image

import (
	"cmp"
	"debug/elf"
	"hash/maphash"
	"math"
	"slices"
	"sort"
	"strings"
)

// symbol is one entry of a symbol table. Its name lies in symtab.names.
type symbol struct {
	addr  uint64 // as laid out
	size  uint64
	name  uint32 // offset
	sec   uint32 // section index; one of the no… constants where it is in none
	info  byte
	other byte
}

// Where symbols are that are in no section in memory.
const (
	noSection uint32 = math.MaxUint32 - iota
	undefined
	absolute
	common
)

func (s *symbol) typ() elf.SymType { return elf.SymType(s.info & 15) }

func (s *symbol) bind() elf.SymBind { return elf.SymBind(s.info >> 4) }

// external reports whether the file does not say where the symbol is.
func (s *symbol) external() bool { return s.sec == undefined || s.sec == common }

// in reports whether the symbol belongs to a section.
func (s *symbol) in(sec *section, im *file) bool {
	return uint64(s.sec) < uint64(len(im.sections)) && &im.sections[s.sec] == sec
}

// nameSource says where the symbols of a file come from.
type nameSource uint8

const (
	namesOfFile   nameSource = iota // .symtab, or the dynamic linker's
	namesOfUser                     // Options.Symbols
	namesOfKernel                   // kallsyms in the image
)

// symtab is all symbols of a file.
type symtab struct {
	source nameSource
	// relocatable says that symbols which the file does not define have addresses,
	// too.
	relocatable bool
	syms        []symbol // in the file's order: relocations count on it
	names       string
	sorted      []uint32 // indices of those that name an address, by address and index
	byName      func() *nameIndex
	// descriptors holds the addresses of function descriptors (ppc64 ELFv1)
	// by symbol: the symbols themselves stand at the code.
	descriptors map[uint32]uint64
	// got is where stand-ins for the entries of the global offset table are,
	// one for each symbol; relocatable files have no table yet.
	got uint64
	toc uint64 // ppc64: what r2 holds
	// localEntry is that of the ISA.
	localEntry func(other byte) uint64
}

func (t *symtab) name(s *symbol) string {
	n := t.names[s.name:]
	if end := strings.IndexByte(n, 0); end >= 0 {
		n = n[:end]
	}
	return n
}

// sort lists the symbols that name an address.
func (t *symtab) sort() {
	t.sorted = make([]uint32, 0, len(t.syms))
	for i := range t.syms {
		if t.namesAddress(&t.syms[i]) {
			t.sorted = append(t.sorted, uint32(i))
		}
	}
	t.sorted = radixSorted(t.sorted, func(i *uint32) uint64 { return t.syms[*i].addr })
}

func (t *symtab) namesAddress(s *symbol) bool {
	switch s.sec {
	case noSection, absolute:
		return false
	case undefined, common:
		return t.relocatable && s.name != 0
	}
	typ := s.typ()
	return typ != elf.STT_SECTION && typ != elf.STT_FILE && int(s.name) < len(t.names) && t.names[s.name] != 0
}

// upTo returns how many of the sorted symbols have an address of at most addr.
func (t *symtab) upTo(addr uint64) int {
	return sort.Search(len(t.sorted), func(i int) bool { return t.syms[t.sorted[i]].addr > addr })
}

// startsAt reports whether a symbol names addr.
func (t *symtab) startsAt(addr uint64) bool {
	for i := t.upTo(addr) - 1; i >= 0 && t.syms[t.sorted[i]].addr == addr; i-- {
		if !isMapping(t.name(&t.syms[t.sorted[i]])) {
			return true
		}
	}
	return false
}

// below returns how many of the sorted symbols have an address below addr.
func (t *symtab) below(addr uint64) int {
	return sort.Search(len(t.sorted), func(i int) bool { return t.syms[t.sorted[i]].addr >= addr })
}

// anyIFunc reports whether any symbol of a group is of type STT_GNU_IFUNC.
func (t *symtab) anyIFunc(group []uint32) bool {
	for _, i := range group {
		if t.syms[i].typ() == elf.STT_GNU_IFUNC {
			return true
		}
	}
	return false
}

// nameIndex finds symbols by name.
type nameIndex struct {
	seed  maphash.Seed
	heads []uint32 // by hash; index of a symbol + 1
	next  []uint32 // by symbol; likewise
}

// indexNames goes through the symbols as the file has them: names that follow each
// other are read faster.
func (t *symtab) indexNames() *nameIndex {
	size := 1
	for size < len(t.sorted) {
		size *= 2
	}
	x := &nameIndex{seed: maphash.MakeSeed(), heads: make([]uint32, size), next: make([]uint32, len(t.syms))}
	clear(x.heads) // a page that is read before it is written faults twice
	for i := range t.syms {
		s := &t.syms[i]
		if !t.namesAddress(s) {
			continue
		}
		h := maphash.String(x.seed, t.name(s)) & uint64(size-1)
		x.next[i] = x.heads[h]
		x.heads[h] = uint32(i) + 1
	}
	return x
}

// each calls f with all symbols of that name, by address, until it returns
// false.
func (t *symtab) each(name string, f func(s *symbol) bool) {
	x := t.byName()
	var buf [8]uint32
	found := buf[:0]
	for i := x.heads[maphash.String(x.seed, name)&uint64(len(x.heads)-1)]; i != 0; i = x.next[i-1] {
		if t.name(&t.syms[i-1]) == name {
			found = append(found, i-1)
		}
	}
	slices.SortFunc(found, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(t.syms[a].addr, t.syms[b].addr), cmp.Compare(a, b))
	})
	for _, i := range found {
		if !f(&t.syms[i]) {
			return
		}
	}
}

// address returns the address of the first symbol of that name.
func (t *symtab) address(name string) (addr uint64, ok bool) {
	t.each(name, func(s *symbol) bool {
		addr, ok = s.addr, true
		return false
	})
	return addr, ok
}

// isMapping reports whether a symbol marks where code and data start in text:
// $x and $d, with or without a suffix [ELF for the Arm 64-bit Architecture,
// Mapping symbols].
func isMapping(name string) bool {
	return len(name) >= 2 && name[0] == '$' && (name[1] == 'x' || name[1] == 'd' || name[1] == 'a' || name[1] == 't') &&
		(len(name) == 2 || name[2] == '.')
}

// isLocalLabel reports whether an assembler's own label was kept.
func isLocalLabel(name string) bool { return strings.HasPrefix(name, ".L") }

// The room that stand-ins take.
const (
	externalSize = 16
	gotEntrySize = 8
)

// MapSymbol is one line of a symbol map.
type MapSymbol struct {
	Name   string
	Module string // of a kernel that runs; empty for the kernel's own
	Addr   uint64
	Size   uint64 // bytes; 0 where the file does not say
	Type   byte   // nm's letter: 't', 'T', 'w', 'D' …
}

func findSymbol(syms []MapSymbol, name string) (MapSymbol, bool) {
	i := slices.IndexFunc(syms, func(s MapSymbol) bool { return s.Name == name })
	if i < 0 {
		return MapSymbol{}, false
	}
	return syms[i], true
}

// moveSymbols adds shift to the addresses that are not absolute.
func moveSymbols(syms []MapSymbol, shift uint64) {
	for i := range syms {
		if syms[i].Type != 'A' {
			syms[i].Addr += shift
		}
	}
}

// last puts what holds after what does not.
func last(b bool) int {
	if b {
		return 1
	}
	return 0
}
