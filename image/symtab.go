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
	t.sorted = room[uint32](len(t.syms))[:0]
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
func anyIFunc(group []symbol) bool {
	for i := range group {
		if group[i].typ() == elf.STT_GNU_IFUNC {
			return true
		}
	}
	return false
}

// atATime is how many symbols are handled at a time where each is somewhere else in
// memory: it is waited for once then, not for each of them.
const atATime = 64

// ascending goes through symbols in the order of their addresses.
type ascending struct {
	t       *symtab
	ahead   []uint32 // indices of those that are not fetched yet
	fetched []symbol
	taken   int  // of these
	read    byte // made of what was read ahead, for it to be read
}

// ascending returns those that name an address in [lo, hi).
func (t *symtab) ascending(lo, hi uint64) ascending {
	return ascending{t: t, ahead: t.sorted[t.below(lo):t.below(hi)], fetched: make([]symbol, 0, 2*atATime)}
}

// group returns the symbols at the next address; none where there is no further one.
// They are valid until the next call.
func (a *ascending) group() []symbol {
	n := 0
	for {
		group := a.fetched[a.taken:]
		for n < len(group) && group[n].addr == group[0].addr {
			n++
		}
		if n < len(group) || !a.fetch() {
			break
		}
	}
	a.taken += n
	return a.fetched[a.taken-n : a.taken]
}

// fetch gets some more symbols, and where their names start, and reports whether
// there were any.
func (a *ascending) fetch() bool {
	part := a.ahead[:min(len(a.ahead), atATime)]
	a.ahead = a.ahead[len(part):]
	kept := copy(a.fetched, a.fetched[a.taken:])
	a.fetched, a.taken = a.fetched[:kept], 0
	for _, i := range part {
		a.fetched = append(a.fetched, a.t.syms[i])
	}
	for i := range a.fetched[kept:] {
		if name := a.fetched[kept+i].name; uint64(name) < uint64(len(a.t.names)) {
			a.read ^= a.t.names[name]
		}
	}
	return len(part) > 0
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
	for size < len(t.syms) {
		size *= 2
	}
	x := &nameIndex{seed: maphash.MakeSeed(), heads: room[uint32](size), next: room[uint32](len(t.syms))}
	clear(x.heads) // a page that is read before it is written faults twice
	var hashes [atATime]uint32
	var which [atATime]uint32
	for i := 0; i < len(t.syms); {
		n := 0
		for ; i < len(t.syms) && n < atATime; i++ {
			if s := &t.syms[i]; t.namesAddress(s) {
				hashes[n], which[n] = uint32(maphash.String(x.seed, t.name(s)))&uint32(size-1), uint32(i)
				n++
			}
		}
		for k, h := range hashes[:n] {
			x.next[which[k]] = x.heads[h]
			x.heads[h] = which[k] + 1
		}
	}
	return x
}

// each calls f with all symbols of that name, by address, until it returns
// false.
func (t *symtab) each(name string, f func(s *symbol) bool) {
	x := t.byName()
	var buf [8]uint32
	found := buf[:0]
	for i := x.heads[uint32(maphash.String(x.seed, name))&uint32(len(x.heads)-1)]; i != 0; i = x.next[i-1] {
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
