package image

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
)

// Text returns the ranges of addresses that hold instructions, sorted. The
// caller must not change them.
func (im *file) Text() []Range { return im.text }

// Code returns size bytes of text at addr, with relocations applied. It uses
// dst's memory where that suffices. A range that does not lie in one section
// of text is a *NotTextError.
func (im *file) Code(dst []byte, addr, size uint64) ([]byte, error) {
	s := im.sectionAt(addr)
	if s == nil || !s.exec() {
		return nil, im.notText(addr)
	}
	if size > s.end()-addr {
		return nil, im.notText(s.end())
	}
	code, err := im.fromBlocks(dst, s, addr-s.addr, size)
	if err == nil && im.Running() && im.memory.Restore != nil {
		err = im.memory.Restore(code, addr)
	}
	return code, err
}

// fromBlocks returns size bytes at off of a section in memory, by way of its blocks.
func (im *file) fromBlocks(dst []byte, s *section, off, size uint64) ([]byte, error) {
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
func (im *file) block(s *section, n uint64) ([]byte, error) {
	b := &s.blocks[n]
	b.once.Do(func() {
		off := n * blockSize
		b.data, b.err = im.readPart(s.room(n), s, off, min(blockSize, s.size-off))
	})
	return b.data, b.err
}

// readPart reads size bytes at off of a section in memory, relocated.
func (im *file) readPart(dst []byte, s *section, off, size uint64) ([]byte, error) {
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

// Data returns size bytes of any section that is loaded into memory, with the
// relocations of a relocatable file applied. It uses dst's memory where that
// suffices. What the file leaves out because it starts as zero is an error.
func (im *file) Data(dst []byte, addr, size uint64) ([]byte, error) {
	const few = 4096 // it is likely that others close by are asked for
	s := im.sectionAt(addr)
	switch {
	case s == nil || !s.inFile() || size > s.end()-addr:
		return nil, &FormatError{What: "not in one section of the file", Where: fmt.Sprintf("%d bytes at %#x", size, addr)}
	case size <= few:
		return im.fromBlocks(dst, s, addr-s.addr, size)
	}
	return im.readPart(dst, s, addr-s.addr, size)
}

// contents returns all of a section, decompressed and relocated. The caller
// must not change it.
func (im *file) contents(s *section) ([]byte, error) {
	if s.relocated != nil {
		return s.relocated()
	}
	return im.rawContents(s)
}

// rawContents returns all of a section, decompressed but not relocated.
func (im *file) rawContents(s *section) ([]byte, error) {
	if !s.inFile() {
		return nil, nil
	}
	if s.flags&elf.SHF_COMPRESSED != 0 && !s.alloc() {
		return im.decompressed(s)
	}
	b := room[byte](int(s.size))
	return b, im.readAt(b, int64(s.off), "section "+s.name)
}

func (im *file) decompressed(s *section) ([]byte, error) {
	packed := im.headers.Sections[s.index]
	if packed.Size > uint64(unpackLimit(int64(s.size))) {
		return nil, &FormatError{Where: "section " + s.name, Err: ErrTooLarge}
	}
	b, err := packed.Data()
	if err != nil {
		return nil, &FormatError{What: "cannot decompress", Where: "section " + s.name, Err: err}
	}
	return b, nil
}

func (im *file) notText(addr uint64) *NotTextError {
	e := &NotTextError{Addr: addr, Text: im.text}
	if s := im.sectionAt(addr); s != nil {
		e.Section = s.name
	}
	return e
}

// DataEnd returns the address after the section that holds addr, or after
// the segment where the file has no sections; false where neither does.
func (im *file) DataEnd(addr uint64) (end uint64, ok bool) {
	if s := im.sectionAt(addr); s != nil {
		return s.end(), true
	}
	return 0, false
}

// Memory returns the ranges of addresses that the file takes in memory, sorted: of its
// text and its data, also of those that are zero at the start.
func (im *file) Memory() []Range {
	var ranges []Range
	for i := range im.sections {
		if s := &im.sections[i]; s.alloc() && s.size > 0 {
			ranges = append(ranges, Range{Addr: s.addr, Size: s.size, Section: s.name})
		}
	}
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Compare(a.Addr, b.Addr) })
	return ranges
}

// AddrOf returns the address of what stands at an offset in the file, of the
// sections that are in memory; ok is false where there is none.
func (im *file) AddrOf(off uint64) (addr uint64, ok bool) {
	for _, i := range im.byAddr {
		if s := &im.sections[i]; !im.Running() && s.inFile() && off >= s.off && off-s.off < s.size {
			return s.addr + off - s.off, true
		}
	}
	return 0, false
}

// OffsetOf returns where in the file the content of an address stands, of a
// packed file in what was unpacked; ok is false where it stands nowhere. It is
// the offset that Linux wants in uprobe_events.
func (im *file) OffsetOf(addr uint64) (off uint64, ok bool) {
	s := im.sectionAt(addr)
	if s == nil || !s.inFile() || im.Running() {
		return 0, false
	}
	return s.off + addr - s.addr, true
}
