package image

import (
	"debug/elf"
	"fmt"
	"hash/maphash"
	"math"
	"sort"
	"strings"
	"sync"

	"xol/image/isa"
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

func (s *symbol) typ() elf.SymType  { return elf.SymType(s.info & 15) }
func (s *symbol) bind() elf.SymBind { return elf.SymBind(s.info >> 4) }

// symtab is all symbols of a file.
type symtab struct {
	source nameSource
	syms   []symbol // in the file's order: relocations count on it
	names  string
	sorted []uint32 // indices of those that name an address, by address and index
	byName func() *nameIndex
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

// readSymbols reads the symbols of the file, or takes those of
// Options.Symbols or of the kernel's own table.
func (im *Image) readSymbols() (*symtab, error) {
	t := &symtab{localEntry: im.localEntry}
	if err := t.takeNames(im); err != nil {
		return nil, err
	}
	im.layExternals(t)
	if err := im.enterDescriptors(t); err != nil {
		return nil, err
	}
	t.sort(im)
	t.byName = sync.OnceValue(t.indexNames)
	return t, nil
}

// takeNames takes the symbols from where the file's best ones are.
func (t *symtab) takeNames(im *Image) error {
	if len(im.userTable) > 0 && im.typ != elf.ET_REL {
		t.source = namesOfUser
		t.takeMap(im, im.userTable, im.userShift())
		return nil
	}
	if im.kind == KindKernel && im.sectionOfType(elf.SHT_SYMTAB) == nil {
		own, err := im.kernelNames()
		if err != nil || len(own) > 0 {
			t.source = namesOfKernel
			t.takeMap(im, own, 0)
			return err
		}
	}
	if im.sectionOfType(elf.SHT_SYMTAB) == nil {
		if d, _ := im.debug(); d != nil && d.sectionOfType(elf.SHT_SYMTAB) != nil {
			return t.takeDebug(im, d)
		}
	}
	return t.takeFile(im)
}

// takeFile reads .symtab, or the dynamic linker's symbols where there is none.
func (t *symtab) takeFile(im *Image) error {
	if table := im.sectionOfType(elf.SHT_SYMTAB); table != nil {
		return t.take(im, table)
	}
	return t.takeDynamic(im)
}

// take reads one table of symbols.
func (t *symtab) take(im *Image, table *section) error {
	if int(table.link) >= len(im.sections) {
		return &FormatError{What: "no string table", Where: "section " + table.name}
	}
	names := &im.sections[table.link]
	if names.size > math.MaxUint32 {
		return &FormatError{What: "string table is too large", Where: "section " + names.name}
	}
	var err error
	if t.names, err = im.readString(names); err != nil {
		return err
	}
	extended, err := im.extendedIndices(table)
	if err != nil {
		return err
	}
	return t.decode(im, table, extended)
}

// decode reads a table of symbols piece by piece: it is the largest part of a
// file that is always read.
func (t *symtab) decode(im *Image, table *section, extended []byte) error {
	t.syms = make([]symbol, table.size/symSize)
	buf := make([]byte, min(table.size, 4096*symSize))
	for i := 0; i < len(t.syms); {
		part := buf[:min(len(buf), (len(t.syms)-i)*symSize)]
		if err := im.readAt(part, int64(table.off)+int64(i)*symSize, "section "+table.name); err != nil {
			return err
		}
		for ; len(part) >= symSize; part = part[symSize:] {
			t.syms[i] = im.symbol(part, extended, i)
			if uint64(t.syms[i].name) > uint64(len(t.names)) {
				return &FormatError{What: "name outside the string table", Where: fmt.Sprintf("symbol %d of section %s", i, table.name)}
			}
			i++
		}
	}
	return nil
}

// readString returns the content of a section as a string.
func (im *Image) readString(s *section) (string, error) {
	if !s.inFile() {
		return "", nil
	}
	var b strings.Builder
	b.Grow(int(s.size))
	buf := make([]byte, min(s.size, 128<<10))
	for off := uint64(0); off < s.size; off += uint64(len(buf)) {
		buf = buf[:min(uint64(len(buf)), s.size-off)]
		if err := im.readAt(buf, int64(s.off+off), "section "+s.name); err != nil {
			return "", err
		}
		b.Write(buf)
	}
	return b.String(), nil
}

func (im *Image) sectionOfType(typ elf.SectionType) *section {
	for i := range im.sections {
		if im.sections[i].typ == typ {
			return &im.sections[i]
		}
	}
	return nil
}

// extendedIndices returns the section indices of symbols that do not fit into
// 16 bits; nil where all do.
func (im *Image) extendedIndices(table *section) ([]byte, error) {
	for i := range im.sections {
		s := &im.sections[i]
		if s.typ == elf.SHT_SYMTAB_SHNDX && int(s.link) < len(im.sections) && &im.sections[s.link] == table {
			return im.rawContents(s)
		}
	}
	return nil, nil
}

// symbol decodes entry i of a symbol table.
func (im *Image) symbol(b, extended []byte, i int) symbol {
	s := symbol{
		name: im.order.u32(b), info: b[4], other: b[5],
		sec: uint32(im.order.u16(b[6:])), addr: im.order.u64(b[8:]), size: im.order.u64(b[16:]),
	}
	switch elf.SectionIndex(s.sec) {
	case elf.SHN_UNDEF:
		s.sec = undefined
		return s
	case elf.SHN_ABS:
		s.sec = absolute
		return s
	case elf.SHN_COMMON:
		s.sec = common
		return s
	case elf.SHN_XINDEX:
		s.sec = noSection
		if 4*i+4 <= len(extended) {
			s.sec = im.order.u32(extended[4*i:])
		}
	}
	if int64(s.sec) >= int64(len(im.sections)) || !im.sections[s.sec].alloc() || s.typ() == elf.STT_TLS {
		s.sec = noSection
	} else if im.typ == elf.ET_REL {
		s.addr += im.sections[s.sec].addr
	}
	return s
}

// takeMap takes the symbols of a list, moved by shift.
func (t *symtab) takeMap(im *Image, list []mapSymbol, shift uint64) {
	size := 1
	for i := range list {
		size += len(list[i].Name) + 1
	}
	var names strings.Builder
	names.Grow(size)
	names.WriteByte(0)
	t.syms = make([]symbol, 0, len(list))
	for i := range list {
		u := &list[i]
		if names.Len()+len(u.Name) >= math.MaxUint32 {
			break
		}
		s := symbol{addr: u.Addr + shift, size: u.Size, name: uint32(names.Len()), info: userInfo(u.Type), sec: absolute}
		if u.Type|0x20 != 'a' || t.source == namesOfKernel { // kallsyms calls absolute what only does not move
			s.sec = im.sectionIndexAt(s.addr)
		}
		names.WriteString(u.Name)
		names.WriteByte(0)
		t.syms = append(t.syms, s)
	}
	t.names = names.String()
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// userInfo translates nm's letter into an ELF symbol's binding and type.
func userInfo(letter byte) byte {
	bind, typ := elf.STB_LOCAL, elf.STT_NOTYPE
	if isUpper(letter) {
		bind = elf.STB_GLOBAL
	}
	switch letter | 0x20 {
	case 'w', 'v':
		bind = elf.STB_WEAK
	case 't':
		typ = elf.STT_FUNC
	case 'i':
		typ = elf.STT_GNU_IFUNC
	}
	return byte(bind)<<4 | byte(typ)
}

// userShift returns how far the symbols of Options.Symbols must be moved: the
// addresses of a running kernel may be randomized.
func (im *Image) userShift() uint64 {
	start, ok := im.textStart("")
	text, named := findSymbol(im.userTable, "_text")
	if !ok || !named {
		return 0
	}
	return start - text.Addr
}

func (im *Image) sectionIndexAt(addr uint64) uint32 {
	i := sort.Search(len(im.byAddr), func(i int) bool { return im.sections[im.byAddr[i]].addr > addr }) - 1
	if i < 0 || addr > im.sections[im.byAddr[i]].end() {
		return noSection
	}
	return uint32(im.byAddr[i])
}

// The room that stand-ins take.
const (
	externalSize = 16
	gotEntrySize = 8
)

// layExternals gives stand-in addresses to the symbols that a relocatable file
// does not define.
func (im *Image) layExternals(t *symtab) {
	if im.typ != elf.ET_REL {
		return
	}
	toc := im.isa.TOC
	if toc != nil {
		t.toc = im.tocBase(toc)
	}
	addr := im.external
	for i := range t.syms {
		s := &t.syms[i]
		switch {
		case toc != nil && s.sec == undefined && t.name(s) == toc.Symbol:
			s.addr, s.sec = t.toc, noSection
		case s.external() && s.name != 0:
			s.addr, s.size = addr, externalSize
			addr += externalSize
		}
	}
	t.got = addr
}

// tocBase returns what the symbol of the table of contents means before
// linking.
func (im *Image) tocBase(toc *isa.TOC) uint64 {
	for _, name := range toc.Object {
		if s := im.sectionNamed(name); s != nil {
			return s.addr&^(toc.Align-1) + toc.Bias
		}
	}
	return im.external + toc.Bias
}

// external reports whether the file does not say where the symbol is.
func (s *symbol) external() bool { return s.sec == undefined || s.sec == common }

// in reports whether the symbol belongs to a section.
func (s *symbol) in(sec *section, im *Image) bool {
	return uint64(s.sec) < uint64(len(im.sections)) && &im.sections[s.sec] == sec
}

// enterDescriptors moves the symbols of function descriptors to the code that
// these describe [64-bit PowerPC ELF ABI Supplement 1.9, 3.2.5].
func (im *Image) enterDescriptors(t *symtab) error {
	opd := im.sectionNamed(".opd")
	if opd == nil || im.ABI() != 1 {
		return nil
	}
	data, err := im.rawContents(opd)
	if err == nil && im.typ == elf.ET_REL {
		err = im.applyRelocations(data, opd, t)
	}
	if err != nil {
		return err
	}
	t.descriptors = make(map[uint32]uint64)
	for i := range t.syms {
		s := &t.syms[i]
		if !s.in(opd, im) || s.typ() != elf.STT_FUNC && s.typ() != elf.STT_GNU_IFUNC && t.source == namesOfFile {
			continue // a linker script's symbol for the end of what stands before
		}
		if off := s.addr - opd.addr; off < uint64(len(data)) && off+8 <= uint64(len(data)) {
			t.descriptors[uint32(i)] = s.addr
			s.addr = im.order.u64(data[off:])
		}
	}
	return nil
}

// CodeOf returns the code that a function pointer means: what it points at, or
// what the descriptor there says (ppc64 ELFv1).
func (im *Image) CodeOf(addr uint64) uint64 { return im.codeOf(addr) }

// codeOf returns the code that a function pointer means: what it points at, or
// what the descriptor there says.
func (im *Image) codeOf(addr uint64) uint64 {
	s := im.sectionAt(addr)
	if s == nil || s.name != ".opd" || im.ABI() != 1 {
		return addr
	}
	b, err := im.Data(nil, addr, 8)
	if err != nil {
		return addr
	}
	return im.order.u64(b)
}

// sort lists the symbols that name an address.
func (t *symtab) sort(im *Image) {
	type entry struct {
		addr  uint64
		index uint32
	}
	entries := make([]entry, 0, len(t.syms))
	for i := range t.syms {
		if s := &t.syms[i]; t.namesAddress(s, im.typ == elf.ET_REL) {
			entries = append(entries, entry{s.addr, uint32(i)})
		}
	}
	radixSort(entries, func(e *entry) uint64 { return e.addr })
	t.sorted = make([]uint32, len(entries))
	for i, e := range entries {
		t.sorted[i] = e.index
	}
}

func (t *symtab) namesAddress(s *symbol, relocatable bool) bool {
	switch s.sec {
	case noSection, absolute:
		return false
	case undefined, common:
		return relocatable && s.name != 0
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

// nameIndex finds symbols by name.
type nameIndex struct {
	seed  maphash.Seed
	heads []uint32 // by hash; index of a symbol + 1
	next  []uint32 // by symbol; likewise
}

func (t *symtab) indexNames() *nameIndex {
	size := 1
	for size < len(t.sorted) {
		size *= 2
	}
	x := &nameIndex{seed: maphash.MakeSeed(), heads: make([]uint32, size), next: make([]uint32, len(t.syms))}
	for k := len(t.sorted) - 1; k >= 0; k-- { // so that each chain is in the order of addresses
		i := t.sorted[k]
		h := maphash.String(x.seed, t.name(&t.syms[i])) & uint64(size-1)
		x.next[i] = x.heads[h]
		x.heads[h] = i + 1
	}
	return x
}

// each calls f with all symbols of that name, by address, until it returns
// false.
func (t *symtab) each(name string, f func(s *symbol) bool) {
	x := t.byName()
	for i := x.heads[maphash.String(x.seed, name)&uint64(len(x.heads)-1)]; i != 0; i = x.next[i-1] {
		if s := &t.syms[i-1]; t.name(s) == name && !f(s) {
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
