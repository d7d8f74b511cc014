package image

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Memory is a kernel that runs, as others of its interfaces than a file tell: its
// text is that which is executed, at the addresses where it is.
type Memory struct {
	Machine elf.Machine
	Order   binary.ByteOrder
	Banner  string // what the kernel says first when it starts
	// Read fills b with what stands at addr. It may be called concurrently.
	Read func(b []byte, addr uint64) error
	// Restore puts back into code, the text at addr, what probes have overwritten. It
	// may be nil, and may be called concurrently.
	Restore func(code []byte, addr uint64) error
	// Sections are the pieces of it, which do not overlap.
	Sections []MemorySection
	// Symbols are those of the kernel and its modules, in the order of
	// /proc/kallsyms.
	Symbols []MapSymbol
	// Blacklist are the ranges in which the kernel forbids kprobes, and FtraceSites
	// the addresses of the instructions that ftrace patches.
	Blacklist   []Range
	FtraceSites []uint64
	// FtraceNames are the functions with a site, in the order of addresses, where the
	// kernel tells no more of them.
	FtraceNames []FunctionName
	// Missing is what is not known of these, and of the tables in the sections.
	Missing Missing
}

// FunctionName is the name of a function of a kernel or a module.
type FunctionName struct {
	Name   string
	Module string // empty for the kernel's own
}

// MemorySection is a piece of a kernel's address space.
type MemorySection struct {
	Name       string // as a file calls it: ".text", "__jump_table"
	Module     string // that it belongs to; empty for the kernel's own
	Addr, Size uint64
	Exec       bool
	Unread     bool // its content is gone: text reads as zero, data is none
}

// layMemory stands in for the headers of a file.
func (im *file) layMemory() error {
	m := im.memory
	im.typ, im.machine, im.isa = elf.ET_EXEC, m.Machine, im.isas.Find(m.Machine)
	im.order = byteOrder(m.Order == binary.ByteOrder(binary.BigEndian))
	if len(m.Sections) == 0 {
		return &FormatError{What: "no section", Where: "memory"}
	}
	base := slices.MinFunc(m.Sections, func(a, b MemorySection) int { return cmp.Compare(a.Addr, b.Addr) }).Addr
	im.sections = make([]section, 1, 1+len(m.Sections)) // index 0 is no section
	for i := range m.Sections {
		s := &m.Sections[i]
		if s.Addr+s.Size < s.Addr || s.Addr+s.Size-base > math.MaxInt64 {
			return &FormatError{What: "section goes beyond the end of the address space", Where: "section " + s.Name}
		}
		own := section{name: s.Name, module: s.Module, typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, addr: s.Addr, size: s.Size, off: s.Addr - base}
		if s.Exec {
			own.flags |= elf.SHF_EXECINSTR
		} else if s.Unread {
			own.typ = elf.SHT_NOBITS
		}
		im.sections = append(im.sections, own)
	}
	im.r = &memoryReader{m, base}
	return nil
}

// memoryReader reads memory by its distance from an address.
type memoryReader struct {
	*Memory
	base uint64
}

var errUnmapped = errors.New("not in memory")

// ReadAt implements io.ReaderAt for what lies in one section.
func (r *memoryReader) ReadAt(b []byte, off int64) (int, error) {
	addr := r.base + uint64(off)
	i := slices.IndexFunc(r.Sections, func(s MemorySection) bool { return addr-s.Addr < s.Size })
	switch {
	case len(b) == 0:
		return 0, nil
	case i < 0:
		return 0, errUnmapped
	case uint64(len(b)) > r.Sections[i].Size-(addr-r.Sections[i].Addr):
		return 0, io.ErrUnexpectedEOF
	case r.Sections[i].Unread:
		clear(b)
		return len(b), nil
	}
	if err := r.Read(b, addr); err != nil {
		return 0, fmt.Errorf("%#x: %w", addr, err)
	}
	return len(b), nil
}

// Running reports whether the image is a kernel that runs: its text is that which is
// executed now.
func (im *file) Running() bool { return im.memory != nil }

// ModuleOf returns the module of a running kernel that has an address; empty for
// the kernel's own.
func (im *file) ModuleOf(addr uint64) string {
	if s := im.sectionAt(addr); s != nil {
		return s.module
	}
	return ""
}
