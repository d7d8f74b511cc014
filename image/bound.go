package image

import (
	"debug/elf"
	"fmt"

	"xol/image/isa"
)

// fileBound is how large a file can be by its own headers, as far as its start
// has been seen.
type fileBound struct {
	isas     isa.Set
	size     int64 // bytes, with room for what may follow what headers speak of; 0: not known
	sections bool  // the section headers have been seen as well
}

// After what the headers of a kernel or module speak of, signatures and tables
// of relocations may follow.
const (
	tailSize  = 1 << 20 // bytes
	tailShare = 8       // one part of so many, in addition
)

func withTail(size int64) int64 { return size + size/tailShare + tailSize }

// check returns how large a file can be at most, 0 where that is not known
// yet. It returns ErrNotELF or ErrTooLarge for the start of a file that is none
// of ours, or that has become larger than its headers tell.
func (b *fileBound) check(start []byte) (int64, error) {
	if b.size == 0 {
		if len(start) < headSize {
			return 0, nil
		}
		size, ok := boundOf(start, b.isas)
		if !ok {
			return 0, ErrNotELF
		}
		b.size = size
	}
	if int64(len(start)) > b.size && isELF(start) && !b.sections {
		b.sections = true // sections may stand after their headers
		b.size = max(b.size, withTail(sectionsEnd(start)))
	}
	if int64(len(start)) > b.size {
		return 0, fmt.Errorf("%w: more than the %d bytes that its headers tell of", ErrTooLarge, b.size)
	}
	return b.size, nil
}

// boundOf returns how large a file can be that starts so; ok is false where it
// is neither an ELF file nor a kernel nor packed.
func boundOf(start []byte, isas isa.Set) (size int64, ok bool) {
	head := start[:headSize]
	if isELF(head) {
		return withTail(headersEnd(start)), true
	}
	if raw, _ := findRawKernel(head, maxUnpacked, isas); raw != nil {
		return withTail(int64(min(raw.size, maxUnpacked))), true
	}
	p, err := findPacking(nil, maxUnpacked, head, isas)
	switch {
	case err != nil:
		return maxUnpacked, true // what is wrong is said when it is unpacked
	case p == nil:
		return 0, false
	case p.container == "":
		return maxUnpacked, true // only compressed, once more
	}
	return withTail(p.off + p.size), true
}

// elfTable says where an ELF header has the place of a table, by class.
type elfTable struct{ off, entrySize, count int }

// tablesOf returns the tables of program and section headers, and the offsets
// of an entry's place in the file and size.
func tablesOf(start []byte) (word int, programs, sections elfTable, fileAt, sizeAt [2]int) {
	if elf.Class(start[elf.EI_CLASS]) == elf.ELFCLASS32 {
		return 4, elfTable{28, 42, 44}, elfTable{32, 46, 48}, [2]int{4, 16}, [2]int{16, 20}
	}
	return 8, elfTable{32, 54, 56}, elfTable{40, 58, 60}, [2]int{8, 24}, [2]int{32, 32}
}

// headersEnd returns where the file ends by its ELF header, and by its program
// headers where start has them.
func headersEnd(start []byte) int64 {
	order := byteOrder(elf.Data(start[elf.EI_DATA]) == elf.ELFDATA2MSB)
	word, programs, sections, fileAt, sizeAt := tablesOf(start)
	end := int64(ehdrSize)
	for _, t := range []elfTable{programs, sections} {
		off, size := t.place(start, order, word)
		end = max(end, addBounded(off, size))
	}
	return max(end, entriesEnd(start, order, word, programs, fileAt[0], sizeAt[0], nil))
}

// sectionsEnd returns where the last section ends, where start has the section
// headers.
func sectionsEnd(start []byte) int64 {
	order := byteOrder(elf.Data(start[elf.EI_DATA]) == elf.ELFDATA2MSB)
	word, _, sections, fileAt, sizeAt := tablesOf(start)
	inFile := func(entry []byte) bool { return elf.SectionType(order.u32(entry[4:])) != elf.SHT_NOBITS }
	return entriesEnd(start, order, word, sections, fileAt[1], sizeAt[1], inFile)
}

// place returns where a table is and how many bytes it has.
func (t elfTable) place(start []byte, order byteOrder, word int) (off, size int64) {
	entries := int64(order.u16(start[t.count:]))
	return fileWord(start[t.off:], order, word), entries * int64(order.u16(start[t.entrySize:]))
}

// entriesEnd returns the end of what the entries of a table that counts speak
// of, as far as start has them.
func entriesEnd(start []byte, order byteOrder, word int, t elfTable, fileAt, sizeAt int, counts func(entry []byte) bool) int64 {
	off, size := t.place(start, order, word)
	step := int64(order.u16(start[t.entrySize:]))
	end := int64(0)
	for ; step > int64(sizeAt+word) && size >= step && off <= int64(len(start))-step; off, size = off+step, size-step {
		if entry := start[off:][:step]; counts == nil || counts(entry) {
			end = max(end, addBounded(fileWord(entry[fileAt:], order, word), fileWord(entry[sizeAt:], order, word)))
		}
	}
	return end
}

// fileWord returns an offset or size in a file, at most maxUnpacked.
func fileWord(b []byte, order byteOrder, word int) int64 {
	if word == 4 {
		return min(int64(order.u32(b)), maxUnpacked)
	}
	return int64(min(order.u64(b), maxUnpacked))
}

func addBounded(a, b int64) int64 { return min(a+b, maxUnpacked) }
