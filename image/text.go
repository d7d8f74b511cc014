package image

import (
	"debug/elf"
	"fmt"
	"sort"
	"sync"
)

// Range is a range of addresses in one section.
type Range struct {
	Addr, Size uint64
	Section    string
}

// End returns the address behind the range.
func (r Range) End() uint64 { return r.Addr + r.Size }

// Text returns the ranges of addresses that hold instructions, sorted. The
// caller must not change them.
func (im *Image) Text() []Range { return im.text }

// textAt returns the index of the text range that holds addr, or -1.
func (im *Image) textAt(addr uint64) int {
	i := sort.Search(len(im.text), func(i int) bool { return im.text[i].Addr > addr }) - 1
	if i >= 0 && addr-im.text[i].Addr < im.text[i].Size {
		return i
	}
	return -1
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

// Code returns size bytes of text at addr, with relocations applied. It uses
// dst's memory where that suffices. A range that does not lie in one section
// of text is a *NotTextError.
func (im *Image) Code(dst []byte, addr, size uint64) ([]byte, error) {
	s := im.sectionAt(addr)
	if s == nil || !s.exec() {
		return nil, im.notText(addr)
	}
	off := addr - s.addr
	if size > s.size-off {
		return nil, im.notText(s.end())
	}
	dst = dst[:0]
	for size > 0 {
		part, err := im.block(s, off/blockSize)
		if err != nil {
			return nil, err
		}
		part = part[off%blockSize:]
		part = part[:min(uint64(len(part)), size)]
		dst = append(dst, part...)
		off += uint64(len(part))
		size -= uint64(len(part))
	}
	return dst, nil
}

// block returns block n of a section.
func (im *Image) block(s *section, n uint64) ([]byte, error) {
	b := &s.blocks[n]
	b.once.Do(func() {
		addr := s.addr + n*blockSize
		b.data, b.err = im.Data(nil, addr, min(blockSize, s.end()-addr))
	})
	return b.data, b.err
}

// Data returns size bytes of any section that is loaded into memory, with the
// relocations of a relocatable file applied. It uses dst's memory where that
// suffices. What the file leaves out because it starts as zero is an error.
func (im *Image) Data(dst []byte, addr, size uint64) ([]byte, error) {
	s := im.sectionAt(addr)
	if s == nil || !s.inFile() || size > s.end()-addr {
		return nil, &FormatError{What: "not in one section of the file", Where: fmt.Sprintf("%d bytes at %#x", size, addr)}
	}
	off := addr - s.addr
	if s.relocated != nil {
		data, err := s.relocated()
		if err != nil {
			return nil, err
		}
		return append(dst[:0], data[off:off+size]...), nil
	}
	if uint64(cap(dst)) < size {
		dst = make([]byte, size)
	}
	dst = dst[:size]
	return dst, im.readAt(dst, int64(s.off+off), "section "+s.name)
}

// contents returns all of a section, decompressed and relocated. The caller
// must not change it.
func (im *Image) contents(s *section) ([]byte, error) {
	if s.relocated != nil {
		return s.relocated()
	}
	return im.rawContents(s)
}

// rawContents returns all of a section, decompressed but not relocated.
func (im *Image) rawContents(s *section) ([]byte, error) {
	if !s.inFile() {
		return nil, nil
	}
	if s.flags&elf.SHF_COMPRESSED != 0 && !s.alloc() {
		return im.decompressed(s)
	}
	b := make([]byte, s.size)
	return b, im.readAt(b, int64(s.off), "section "+s.name)
}

func (im *Image) decompressed(s *section) ([]byte, error) {
	packed := im.file.Sections[s.index]
	if packed.Size > uint64(unpackLimit(int64(s.size))) {
		return nil, &FormatError{Where: "section " + s.name, Err: ErrTooLarge}
	}
	b, err := packed.Data()
	if err != nil {
		return nil, &FormatError{What: "cannot decompress", Where: "section " + s.name, Err: err}
	}
	return b, nil
}

// addrOf is the inverse of OffsetOf.
func (im *Image) addrOf(off uint64) (uint64, bool) {
	for _, i := range im.byAddr {
		if s := &im.sections[i]; s.inFile() && off >= s.off && off-s.off < s.size {
			return s.addr + off - s.off, true
		}
	}
	return 0, false
}

func (im *Image) notText(addr uint64) *NotTextError {
	e := &NotTextError{Addr: addr, Text: im.text}
	if s := im.sectionAt(addr); s != nil {
		e.Section = s.name
	}
	return e
}
