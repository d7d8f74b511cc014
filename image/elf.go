package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sort"
	"sync"
)

// readHeaders reads the ELF header and the tables it speaks of.
func (im *file) readHeaders() error {
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
	im.headers, im.typ, im.machine, im.entry = f, f.Type, f.Machine, f.Entry
	im.isa = im.isas.Find(im.machine)
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
func (im *file) checkTables(hdr []byte) error {
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

// formatError turns an error of debug/elf into one of ours.
func formatError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return truncated("headers")
	}
	return &FormatError{What: "damaged ELF file", Err: err}
}

func (im *file) takeSections(f *elf.File) {
	im.sections = make([]section, len(f.Sections))
	for i, s := range f.Sections {
		im.sections[i] = section{
			name: s.Name, index: i, typ: s.Type, flags: s.Flags, addr: s.Addr,
			size: s.FileSize, off: s.Offset, align: s.Addralign, link: s.Link, info: s.Info, entsize: s.Entsize,
		}
	}
}

// takeSegments stands in for sections that a file does not have.
func (im *file) takeSegments(f *elf.File) {
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
func (im *file) checkSections() error {
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

// finishLayout gives every section its place and finds the text.
func (im *file) finishLayout() error {
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
			s.rooms = make([]blockRoom, (len(s.blocks)+roomBlocks-1)/roomBlocks)
		}
		if s.exec() {
			im.text = append(im.text, Range{Addr: s.addr, Size: s.size, Section: s.name})
		}
	}
	return nil
}

// dropOverlaps keeps of sections that overlap, which no linker makes, the
// first, so that every address belongs to one section at most.
func (im *file) dropOverlaps() {
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

// layRelocatable lays the sections of a relocatable file one after the other,
// text first.
func (im *file) layRelocatable() error {
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
func (im *file) linkRelocations() {
	for i := range im.sections {
		s := &im.sections[i]
		if s.typ == elf.SHT_RELA && int(s.info) < len(im.sections) && s.info > 0 {
			t := &im.sections[s.info]
			t.relas = append(t.relas, int32(i))
			t.relocated = sync.OnceValues(func() ([]byte, error) { return im.relocate(t) })
		}
	}
}
