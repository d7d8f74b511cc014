package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sort"
	"strings"
	"sync"
)

// byteOrder is a byte order whose methods the compiler can inline.
type byteOrder bool

const (
	littleEndian byteOrder = false
	bigEndian    byteOrder = true
)

func (o byteOrder) u16(b []byte) uint16 {
	v := binary.LittleEndian.Uint16(b)
	if o == bigEndian {
		v = bits.ReverseBytes16(v)
	}
	return v
}

func (o byteOrder) u32(b []byte) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if o == bigEndian {
		v = bits.ReverseBytes32(v)
	}
	return v
}

func (o byteOrder) u64(b []byte) uint64 {
	v := binary.LittleEndian.Uint64(b)
	if o == bigEndian {
		v = bits.ReverseBytes64(v)
	}
	return v
}

// i32 widens with the sign.
func (o byteOrder) i32(b []byte) uint64 { return uint64(int64(int32(o.u32(b)))) }

func (o byteOrder) put32(b []byte, v uint32) {
	if o == bigEndian {
		v = bits.ReverseBytes32(v)
	}
	binary.LittleEndian.PutUint32(b, v)
}

func (o byteOrder) put64(b []byte, v uint64) {
	if o == bigEndian {
		v = bits.ReverseBytes64(v)
	}
	binary.LittleEndian.PutUint64(b, v)
}

// section is a section header, with the address where the section was laid.
// A file without section headers has one for each segment that is loaded.
type section struct {
	name  string
	index int
	typ   elf.SectionType
	flags elf.SectionFlag
	addr  uint64
	size  uint64 // bytes, in the file too unless SHT_NOBITS
	off   uint64 // in the file
	align uint64
	link  uint32
	info  uint32
	// entsize is the size of the section's entries, 0 where it has none or
	// the linker did not care to say.
	entsize uint64
	relas   []int32 // of a relocatable file: the sections that relocate this one
	// relocated returns the content of a section with relocations, once.
	relocated func() ([]byte, error)
	blocks    []block // of what the file has in memory, filled when read
}

func (s *section) end() uint64  { return s.addr + s.size }
func (s *section) alloc() bool  { return s.flags&elf.SHF_ALLOC != 0 }
func (s *section) inFile() bool { return s.typ != elf.SHT_NOBITS && s.typ != elf.SHT_NULL }

// inMemory reports whether the section takes room in the address space. What
// each thread has its own copy of does not.
func (s *section) inMemory() bool {
	return s.alloc() && s.size > 0 && (s.typ != elf.SHT_NOBITS || s.flags&elf.SHF_TLS == 0)
}

func (s *section) exec() bool {
	return s.inMemory() && s.inFile() && s.flags&elf.SHF_EXECINSTR != 0
}

const (
	ehdrSize = 64
	shdrSize = 64
	phdrSize = 56
	symSize  = 24
	relaSize = 24
)

// readHeaders reads the ELF header and the tables it speaks of.
func (im *Image) readHeaders() error {
	hdr := make([]byte, min(ehdrSize, im.size))
	if err := im.readAt(hdr, 0, "ELF header"); err != nil {
		return err
	}
	if !bytes.HasPrefix(hdr, []byte(elf.ELFMAG)) {
		return ErrNotELF
	}
	if len(hdr) < ehdrSize {
		return truncated("ELF header")
	}
	if elf.Class(hdr[elf.EI_CLASS]) == elf.ELFCLASS32 {
		return ErrClass
	}
	im.order = byteOrder(elf.Data(hdr[elf.EI_DATA]) == elf.ELFDATA2MSB)
	if err := im.checkTables(hdr); err != nil {
		return err
	}
	f, err := elf.NewFile(im.r)
	if err != nil {
		return formatError(err)
	}
	im.file, im.typ, im.machine, im.entry = f, f.Type, f.Machine, f.Entry
	im.isa = im.opt.isas().Find(im.machine)
	im.flags = im.order.u32(hdr[48:])
	switch im.typ {
	case elf.ET_EXEC, elf.ET_DYN, elf.ET_REL:
	default:
		return &TypeError{im.typ}
	}
	if len(f.Sections) > 1 {
		im.takeSections(f)
	} else {
		im.takeSegments(f)
	}
	return im.checkSections()
}

// checkTables finds out whether the header's tables lie within the file.
func (im *Image) checkTables(hdr []byte) error {
	phoff, shoff := im.order.u64(hdr[32:]), im.order.u64(hdr[40:])
	phnum, shnum := uint64(im.order.u16(hdr[56:])), uint64(im.order.u16(hdr[60:]))
	if phnum > 0 && !im.holds(phoff, phnum*phdrSize) {
		return truncated(fmt.Sprintf("program headers at %#x", phoff))
	}
	if shoff > 0 && !im.holds(shoff, max(shnum, 1)*shdrSize) {
		return truncated(fmt.Sprintf("section headers at %#x", shoff))
	}
	return nil
}

// holds reports whether the file has size bytes at off.
func (im *Image) holds(off, size uint64) bool {
	n := uint64(im.size)
	return off <= n && size <= n-off
}

// formatError turns an error of debug/elf into one of ours.
func formatError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return truncated("headers")
	}
	return &FormatError{What: "damaged ELF file", Err: err}
}

func (im *Image) takeSections(f *elf.File) {
	im.sections = make([]section, len(f.Sections))
	for i, s := range f.Sections {
		im.sections[i] = section{
			name: s.Name, index: i, typ: s.Type, flags: s.Flags, addr: s.Addr,
			size: s.FileSize, off: s.Offset, align: s.Addralign, link: s.Link, info: s.Info, entsize: s.Entsize,
		}
	}
}

// takeSegments stands in for sections that a file does not have.
func (im *Image) takeSegments(f *elf.File) {
	im.headless = true
	im.sections = make([]section, 1, 1+len(f.Progs)) // index 0 is no section
	for i, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		flags := elf.SHF_ALLOC
		if p.Flags&elf.PF_X != 0 {
			flags |= elf.SHF_EXECINSTR
		}
		im.sections = append(im.sections, section{
			name: fmt.Sprintf("segment%d", i), typ: elf.SHT_PROGBITS, flags: flags,
			addr: p.Vaddr, size: p.Filesz, off: p.Off,
		})
	}
}

// checkSections finds out whether the sections lie within the file and the
// address space. Together they may not be much larger than the file, as
// sections are that share their bytes: all that is read is read once for each.
func (im *Image) checkSections() error {
	total := uint64(0)
	for i := range im.sections {
		s := &im.sections[i]
		if s.inFile() && !im.holds(s.off, s.size) {
			return truncated("section " + s.name)
		}
		if s.inFile() {
			total += s.size
		}
		if total > 2*uint64(im.size) {
			return &FormatError{What: "sections overlap", Where: "section " + s.name}
		}
		if s.alloc() && s.addr+s.size < s.addr {
			return &FormatError{What: "section goes beyond the end of the address space", Where: "section " + s.name}
		}
	}
	return nil
}

// The names of sections that only modules and only kernels have.
var (
	moduleSections = []string{".modinfo", ".gnu.linkonce.this_module"}
	kernelSections = []string{"__ksymtab", "__param", "__ex_table"}
)

func (im *Image) findKind() Kind {
	has := func(name string) bool { return im.sectionNamed(name) != nil }
	switch {
	case im.format.Raw != nil:
		return KindKernel
	case im.typ == elf.ET_REL && slices.ContainsFunc(moduleSections, has):
		return KindModule
	case im.typ == elf.ET_REL:
		return KindObject
	case slices.ContainsFunc(kernelSections, has) && has(".init.text"):
		return KindKernel
	case im.headless && slices.ContainsFunc(im.sections, func(s section) bool { return s.exec() && int64(s.addr) < 0 }):
		return KindKernel // it is in the kernel's half of the addresses
	}
	return KindProgram
}

// sectionNamed returns the first section of that name, or nil.
func (im *Image) sectionNamed(name string) *section {
	for i := range im.sections {
		if im.sections[i].name == name {
			return &im.sections[i]
		}
	}
	return nil
}

// finishLayout gives every section its place and finds the text.
func (im *Image) finishLayout() error {
	im.kind = im.findKind()
	if im.typ == elf.ET_REL {
		if err := im.layRelocatable(); err != nil {
			return err
		}
	}
	for i := range im.sections {
		if im.sections[i].inMemory() {
			im.byAddr = append(im.byAddr, int32(i))
		}
	}
	sort.SliceStable(im.byAddr, func(i, j int) bool {
		return im.sections[im.byAddr[i]].addr < im.sections[im.byAddr[j]].addr
	})
	im.dropOverlaps()
	for _, i := range im.byAddr {
		s := &im.sections[i]
		if s.inFile() {
			s.blocks = make([]block, (s.size+blockSize-1)/blockSize)
		}
		if s.exec() {
			im.text = append(im.text, Range{Addr: s.addr, Size: s.size, Section: s.name})
		}
	}
	return nil
}

// dropOverlaps keeps of sections that overlap, which no linker makes, the
// first, so that every address belongs to one section at most.
func (im *Image) dropOverlaps() {
	end := uint64(0)
	im.byAddr = slices.DeleteFunc(im.byAddr, func(i int32) bool {
		s := &im.sections[i]
		if s.addr < end {
			s.flags &^= elf.SHF_ALLOC
			return true
		}
		end = s.end()
		return false
	})
}

const (
	// relocatableBase is where the first section of a relocatable file is
	// laid: low, so that all branches reach, and not at 0, which means
	// nothing.
	relocatableBase = 0x100000

	// sectionGap keeps a symbol at the end of a section apart from the next
	// section.
	sectionGap = 16
	maxAlign   = 1 << 16
	maxAddr    = 1 << 47
)

// layRelocatable lays the sections of a relocatable file one behind the other,
// text first.
func (im *Image) layRelocatable() error {
	addr := uint64(relocatableBase)
	for _, exec := range []bool{true, false} {
		for i := range im.sections {
			s := &im.sections[i]
			if !s.alloc() || (s.flags&elf.SHF_EXECINSTR != 0) != exec {
				continue
			}
			align := min(max(s.align, 1), maxAlign)
			if bits.OnesCount64(align) != 1 || s.size > maxAddr-addr {
				return &FormatError{What: "section does not fit into memory", Where: "section " + s.name}
			}
			s.addr = (addr + align - 1) &^ (align - 1)
			addr = s.end() + sectionGap
		}
	}
	im.linkRelocations()
	const page = 1 << 12
	im.external = (addr + page - 1) &^ (page - 1)
	return nil
}

// linkRelocations tells each section which others relocate it.
func (im *Image) linkRelocations() {
	for i := range im.sections {
		s := &im.sections[i]
		if s.typ == elf.SHT_RELA && int(s.info) < len(im.sections) && s.info > 0 {
			t := &im.sections[s.info]
			t.relas = append(t.relas, int32(i))
			t.relocated = sync.OnceValues(func() ([]byte, error) { return im.relocate(t) })
		}
	}
}

// readAt fills b with the file's bytes at off. where says what they are.
func (im *Image) readAt(b []byte, off int64, where string) error {
	n, err := im.r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return truncated(where)
	}
	return &FormatError{What: "cannot read", Where: where, Err: err}
}

// sectionAt returns the section in memory that holds addr, or nil.
func (im *Image) sectionAt(addr uint64) *section {
	i := sort.Search(len(im.byAddr), func(i int) bool { return im.sections[im.byAddr[i]].addr > addr }) - 1
	if i < 0 {
		return nil
	}
	if s := &im.sections[im.byAddr[i]]; addr-s.addr < s.size {
		return s
	}
	return nil
}

// layRaw stands in for the headers that a bare kernel image lacks: its
// addresses are told by the symbols around its parts.
func (im *Image) layRaw(raw *RawKernel) error {
	im.typ, im.machine, im.isa = elf.ET_EXEC, raw.Machine, im.opt.isas().Find(raw.Machine)
	im.order = byteOrder(raw.Order == binary.ByteOrder(binary.BigEndian))
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
func (im *Image) rawNames() (base uint64, syms []mapSymbol, err error) {
	file := make([]byte, im.size)
	if err := im.readAt(file, 0, "kernel image"); err != nil {
		return 0, nil, err
	}
	if k := findKallsyms(file, im.order); k != nil {
		own := k.symbols()
		if base, shift, ok := im.rawBase(k, own, file); ok {
			moveSymbols(own, shift)
			im.kernelNames = func() ([]mapSymbol, error) { return own, nil }
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
