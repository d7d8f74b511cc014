package image

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"sort"
	"sync"

	"xol/image/isa"
)

// file is an ELF file, or a bare kernel image, as its headers tell: its
// sections, at their addresses, and its bytes.
type file struct {
	r       io.ReaderAt
	size    int64
	raw     bool    // a bare kernel image
	memory  *Memory // a kernel that runs; nil for a file
	isas    isa.Set
	headers *elf.File // nil for a bare kernel image
	typ     elf.Type
	machine elf.Machine
	isa     *isa.Record
	order   byteOrder
	entry   uint64
	flags   uint32 // e_flags
	kind    Kind

	sections []section // by their index in the file
	byAddr   []int32   // those in memory, by address, without overlap
	text     []Range
	external uint64 // of a relocatable file: where stand-ins for undefined symbols start

	headless bool // no section headers: segments stand in
	// relocate returns the content of a section with its relocations applied.
	relocate func(s *section) ([]byte, error)
	// claims returns what a kernel says of itself.
	claims func() (banner string, config []byte)
}

// section is a section header, with the address where the section was laid.
// A file without section headers has one for each segment that is loaded.
type section struct {
	name string
	// module is that of a running kernel which has the section.
	module string
	index  int
	typ    elf.SectionType
	flags  elf.SectionFlag
	addr   uint64
	size   uint64 // bytes, in the file too unless SHT_NOBITS
	off    uint64 // in the file
	align  uint64
	link   uint32
	info   uint32
	// entsize is the size of the section's entries, 0 where it has none or
	// the linker did not care to say.
	entsize uint64
	relas   []int32 // of a relocatable file: the sections that relocate this one
	// relocated returns the content of a section with relocations, once.
	relocated func() ([]byte, error)
	blocks    []block     // of what the file has in memory, filled when read
	rooms     []blockRoom // for the data of blocks
}

func (s *section) end() uint64 { return s.addr + s.size }

func (s *section) alloc() bool { return s.flags&elf.SHF_ALLOC != 0 }

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

// sectionNamed returns the first section of that name, or nil.
func (im *file) sectionNamed(name string) *section {
	for i := range im.sections {
		if im.sections[i].name == name {
			return &im.sections[i]
		}
	}
	return nil
}

// sectionAt returns the section in memory that holds addr, or nil.
func (im *file) sectionAt(addr uint64) *section {
	i := sort.Search(len(im.byAddr), func(i int) bool { return im.sections[im.byAddr[i]].addr > addr }) - 1
	if i < 0 {
		return nil
	}
	if s := &im.sections[im.byAddr[i]]; addr-s.addr < s.size {
		return s
	}
	return nil
}

func (im *file) sectionOfType(typ elf.SectionType) *section {
	for i := range im.sections {
		if im.sections[i].typ == typ {
			return &im.sections[i]
		}
	}
	return nil
}

func (im *file) sectionIndexAt(addr uint64) uint32 {
	i := sort.Search(len(im.byAddr), func(i int) bool { return im.sections[im.byAddr[i]].addr > addr }) - 1
	if i < 0 || addr > im.sections[im.byAddr[i]].end() {
		return noSection
	}
	return uint32(im.byAddr[i])
}

// readAt fills b with the file's bytes at off. where says what they are.
func (im *file) readAt(b []byte, off int64, where string) error {
	n, err := im.r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case im.Running():
		return &FormatError{What: "cannot read the kernel's memory", Where: where, Err: err}
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return truncated(where)
	}
	return &FormatError{What: "cannot read", Where: where, Err: err}
}

// holds reports whether the file has size bytes at off.
func (im *file) holds(off, size uint64) bool {
	n := uint64(im.size)
	return off <= n && size <= n-off
}

// textAt returns the index of the text range that holds addr, or -1.
func (im *file) textAt(addr uint64) int {
	i := sort.Search(len(im.text), func(i int) bool { return im.text[i].Addr > addr }) - 1
	if i >= 0 && addr-im.text[i].Addr < im.text[i].Size {
		return i
	}
	return -1
}

// textStart returns where a section of text starts; all text where no name is
// given.
func (im *file) textStart(section string) (uint64, bool) {
	for i := range im.text {
		if section == "" || im.text[i].Section == section {
			return im.text[i].Addr, true
		}
	}
	return 0, false
}

// Machine returns the architecture that the file names, supported or not.
func (im *file) Machine() elf.Machine { return im.machine }

// ByteOrder returns the byte order of the file.
func (im *file) ByteOrder() binary.ByteOrder {
	if im.order == littleEndian {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

// ABI returns the version of the ppc64 ELF ABI: 1 with function descriptors,
// 2 with local entry points; 0 on other machines.
func (im *file) ABI() int {
	if im.isa.ABI == nil {
		return 0
	}
	return im.isa.ABI(im.flags, im.order == bigEndian, im.sectionNamed(".opd") != nil)
}

// TOC returns the TOC pointer of a ppc64 program: what r2 holds in its
// functions.
func (im *file) TOC() (addr uint64, ok bool) {
	toc := im.isa.TOC
	if toc == nil {
		return 0, false
	}
	for _, name := range toc.Linked {
		if s := im.sectionNamed(name); s != nil && s.alloc() {
			return s.addr + toc.Bias, true
		}
	}
	return 0, false
}

// localEntry returns the offset of a function's local entry point by its
// symbol.
func (im *file) localEntry(other byte) uint64 {
	if im.isa.LocalEntry == nil {
		return 0
	}
	return im.isa.LocalEntry(other)
}

// blockSize is how many bytes of a section are read at once. Functions are read
// one by one and side by side; a system call for each would cost more than
// decoding it.
const blockSize = 256 << 10

// block holds bytes of a section that have been read.
type block struct {
	once sync.Once
	data []byte
	err  error
}

// PositionIndependent reports whether the file's addresses are not those that
// it has when it runs: it is a shared object, or relocatable.
func (im *file) PositionIndependent() bool { return im.typ != elf.ET_EXEC }

// roomBlocks is for how many blocks there is room at a time.
const roomBlocks = 16

// blockRoom is memory for the data of roomBlocks blocks.
type blockRoom struct {
	once sync.Once
	data []byte
}

// room returns memory for block n.
func (s *section) room(n uint64) []byte {
	r := &s.rooms[n/roomBlocks]
	first := n / roomBlocks * roomBlocks * blockSize
	r.once.Do(func() { r.data = room[byte](int(min(roomBlocks*blockSize, s.size-first))) })
	off := n % roomBlocks * blockSize
	end := min(off+blockSize, uint64(len(r.data)))
	return r.data[off:end:end]
}
