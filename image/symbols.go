package image

import (
	"cmp"
	"debug/elf"
	"fmt"
	"math"
	"strings"
	"sync"
	"unsafe"

	"xol/image/isa"
)

// namedFile is a file with its symbols.
type namedFile struct {
	file
	symbols   func() (*symtab, error)
	userTable []MapSymbol // of Options.Symbols
	// kernelNames returns the symbols that a kernel carries for itself, nil
	// where it has none.
	kernelNames func() ([]MapSymbol, error)
	// debugSymbols returns the separate debug file if it has symbols, nil where
	// there is none.
	debugSymbols func() (d *file, path string)
}

// readSymbols reads the symbols of the file, or takes those of
// Options.Symbols or of the kernel's own table.
func (im *namedFile) readSymbols() (*symtab, error) {
	t := &symtab{localEntry: im.localEntry, relocatable: im.typ == elf.ET_REL}
	if err := t.takeNames(im); err != nil {
		return nil, err
	}
	im.layExternals(t)
	if err := im.enterDescriptors(t); err != nil {
		return nil, err
	}
	t.byName = sync.OnceValue(t.indexNames)
	if im.kind == KindKernel { // whose tables lie between symbols
		go t.byName()
	}
	t.sort()
	return t, nil
}

// takeNames takes the symbols from where the file's best ones are.
func (t *symtab) takeNames(im *namedFile) error {
	if len(im.userTable) > 0 && im.typ != elf.ET_REL {
		t.source = namesOfUser
		t.takeMap(&im.file, im.userTable, im.userShift())
		return nil
	}
	if im.kind == KindKernel && im.sectionOfType(elf.SHT_SYMTAB) == nil {
		own, err := im.kernelNames()
		if err != nil || len(own) > 0 {
			t.source = namesOfKernel
			t.takeMap(&im.file, own, 0)
			return err
		}
	}
	if im.sectionOfType(elf.SHT_SYMTAB) == nil {
		if d, path := im.debugSymbols(); d != nil {
			return t.takeDebug(&im.file, d, path)
		}
	}
	return t.takeFile(im)
}

// takeFile reads .symtab, or the dynamic linker's symbols where there is none.
func (t *symtab) takeFile(im *namedFile) error {
	if table := im.sectionOfType(elf.SHT_SYMTAB); table != nil {
		return t.take(&im.file, table)
	}
	return t.takeDynamic(&im.file)
}

// take reads one table of symbols.
func (t *symtab) take(im *file, table *section) error {
	if int(table.link) >= len(im.sections) {
		return &FormatError{What: "no string table", Where: "section " + table.name}
	}
	names := &im.sections[table.link]
	if names.size > math.MaxUint32 {
		return &FormatError{What: "string table is too large", Where: "section " + names.name}
	}
	extended, err := im.extendedIndices(table)
	if err != nil {
		return err
	}
	return t.read(im, table, names, extended)
}

// read reads a table of symbols and their names. It is the largest part of a file
// that is always read, which is why several goroutines do it.
func (t *symtab) read(im *file, table, names *section, extended []byte) error {
	nameBytes := uint64(0)
	if names.inFile() {
		nameBytes = names.size
	}
	t.syms = room[symbol](int(table.size / symSize))
	half := len(t.syms) / 2
	var errs [3]error
	var reading sync.WaitGroup
	reading.Go(func() { errs[1] = t.decode(im, table, extended, 0, half, nameBytes) })
	reading.Go(func() { errs[2] = t.decode(im, table, extended, half, len(t.syms), nameBytes) })
	t.names, errs[0] = im.readString(names)
	reading.Wait()
	return cmp.Or(errs[:]...)
}

// decode reads the symbols from i up to end of a table, whose names have so many
// bytes, piece by piece.
func (t *symtab) decode(im *file, table *section, extended []byte, i, end int, nameBytes uint64) error {
	buf := make([]byte, min(end-i, 4096)*symSize)
	for i < end {
		part := buf[:min(len(buf), (end-i)*symSize)]
		if err := im.readAt(part, int64(table.off)+int64(i)*symSize, "section "+table.name); err != nil {
			return err
		}
		for ; len(part) >= symSize; part = part[symSize:] {
			t.syms[i] = im.symbol(part, extended, i)
			if uint64(t.syms[i].name) > nameBytes {
				return &FormatError{What: "name outside the string table", Where: fmt.Sprintf("symbol %d of section %s", i, table.name)}
			}
			i++
		}
	}
	return nil
}

// readString returns the content of a section as a string.
func (im *file) readString(s *section) (string, error) {
	if !s.inFile() {
		return "", nil
	}
	b := room[byte](int(s.size))
	if err := im.readAt(b, int64(s.off), "section "+s.name); err != nil {
		return "", err
	}
	return unsafe.String(unsafe.SliceData(b), len(b)), nil
}

// extendedIndices returns the section indices of symbols that do not fit into
// 16 bits; nil where all do.
func (im *file) extendedIndices(table *section) ([]byte, error) {
	for i := range im.sections {
		s := &im.sections[i]
		if s.typ == elf.SHT_SYMTAB_SHNDX && int(s.link) < len(im.sections) && &im.sections[s.link] == table {
			return im.rawContents(s)
		}
	}
	return nil, nil
}

// symbol decodes entry i of a symbol table.
func (im *file) symbol(b, extended []byte, i int) symbol {
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
func (t *symtab) takeMap(im *file, list []MapSymbol, shift uint64) {
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
func (im *namedFile) userShift() uint64 {
	start, ok := im.textStart("")
	text, named := findSymbol(im.userTable, "_text")
	if !ok || !named {
		return 0
	}
	return start - text.Addr
}

// layExternals gives stand-in addresses to the symbols that a relocatable file
// does not define.
func (im *file) layExternals(t *symtab) {
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
func (im *file) tocBase(toc *isa.TOC) uint64 {
	for _, name := range toc.Object {
		if s := im.sectionNamed(name); s != nil {
			return s.addr&^(toc.Align-1) + toc.Bias
		}
	}
	return im.external + toc.Bias
}

// enterDescriptors moves the symbols of function descriptors to the code that
// these describe [64-bit PowerPC ELF ABI Supplement 1.9, 3.2.5].
func (im *namedFile) enterDescriptors(t *symtab) error {
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
		if !s.in(opd, &im.file) || s.typ() != elf.STT_FUNC && s.typ() != elf.STT_GNU_IFUNC && t.source == namesOfFile {
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
func (im *file) CodeOf(addr uint64) uint64 {
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

// takeDebug takes the symbols of a debug file, whose sections are those of im
// by their addresses.
func (t *symtab) takeDebug(im, d *file, path string) error {
	if err := t.take(d, d.sectionOfType(elf.SHT_SYMTAB)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for i := range t.syms {
		if s := &t.syms[i]; int64(s.sec) < int64(len(d.sections)) {
			s.sec = im.sectionIndexAt(s.addr)
		}
	}
	return nil
}

// SymbolCount returns how many symbols of the file have that name, of functions and of
// data; 0 where there are none or the table cannot be read.
func (im *namedFile) SymbolCount(name string) (n int) {
	t, err := im.symbols()
	if err != nil {
		return 0
	}
	t.each(name, func(s *symbol) bool {
		if !s.external() {
			n++
		}
		return true
	})
	return n
}

// SymbolCountIn returns how many symbols of that name a module of a running kernel
// has, or the kernel itself where module is empty.
func (im *namedFile) SymbolCountIn(module, name string) (n int) {
	t, err := im.symbols()
	if err != nil {
		return 0
	}
	t.each(name, func(s *symbol) bool {
		if !s.external() && int64(s.sec) < int64(len(im.sections)) && im.sections[s.sec].module == module {
			n++
		}
		return true
	})
	return n
}

// SymbolAddress returns the address of a symbol that the file defines.
func (im *namedFile) SymbolAddress(name string) (addr uint64, ok bool) {
	t, err := im.symbols()
	if err != nil {
		return 0, false
	}
	t.each(name, func(s *symbol) bool {
		addr, ok = s.addr, !s.external()
		return !ok
	})
	return addr, ok
}
