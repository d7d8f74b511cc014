package image

import "debug/elf"

// dynamicTags are the entries of the dynamic section.
type dynamicTags []dynamicTag

type dynamicTag struct {
	at, value uint64 // value stands at the address at
	tag       elf.DynTag
}

// value returns the first value of a tag, or 0.
func (tags dynamicTags) value(tag elf.DynTag) uint64 {
	for _, t := range tags {
		if t.tag == tag {
			return t.value
		}
	}
	return 0
}

// dynamicTags reads the dynamic section, which a file without sections has in a
// segment.
func (im *file) dynamicTags() (dynamicTags, error) {
	var e extent
	if s := im.sectionOfType(elf.SHT_DYNAMIC); s != nil && s.inMemory() {
		e = extent{s.addr, s.end()}
	} else if im.headers != nil && !im.hasSections() {
		for _, p := range im.headers.Progs {
			if p.Type == elf.PT_DYNAMIC {
				e = extent{p.Vaddr, p.Vaddr + p.Filesz}
			}
		}
	}
	if e.lo >= e.hi {
		return nil, nil
	}
	data, err := im.Data(nil, e.lo, e.hi-e.lo)
	if err != nil {
		return nil, err
	}
	const size = 16
	var tags dynamicTags
	t := tableData{im.order, e.lo, data}
	for off := 0; off+size <= len(data); off += size {
		tag := elf.DynTag(t.order.u64(data[off:]))
		if tag == elf.DT_NULL {
			break
		}
		tags = append(tags, dynamicTag{at: e.lo + uint64(off) + 8, value: t.order.u64(data[off+8:]), tag: tag})
	}
	return tags, nil
}

// taggedTables returns the tables whose address and size the dynamic section of
// a file without sections gives.
func (im *file) taggedTables(pairs ...[2]elf.DynTag) ([]extent, error) {
	if im.hasSections() {
		return nil, nil
	}
	tags, err := im.dynamicTags()
	if err != nil {
		return nil, err
	}
	var tables []extent
	for _, pair := range pairs {
		if lo, size := tags.value(pair[0]), tags.value(pair[1]); lo != 0 && size != 0 {
			tables = append(tables, extent{lo, lo + size})
		}
	}
	return tables, nil
}

// takeDynamic reads the symbols of the dynamic linker: .dynsym, or in a file
// without sections what the dynamic section says.
func (t *symtab) takeDynamic(im *file) error {
	if table := im.sectionOfType(elf.SHT_DYNSYM); table != nil || im.hasSections() {
		if table == nil {
			return nil
		}
		return t.take(im, table)
	}
	tags, err := im.dynamicTags()
	if err != nil {
		return err
	}
	table := im.tagged(tags, elf.DT_SYMTAB, symSize*im.dynamicSymbolCount(tags))
	names := im.tagged(tags, elf.DT_STRTAB, tags.value(elf.DT_STRSZ))
	if table == nil || names == nil {
		return nil
	}
	if err := t.read(im, table, names, nil); err != nil {
		return err
	}
	for i := range t.syms { // they count in sections that there are not
		if s := &t.syms[i]; s.sec != undefined && s.sec != absolute && s.typ() != elf.STT_TLS {
			s.sec = im.sectionIndexAt(s.addr)
		}
	}
	return nil
}

// tagged stands in for the section of size bytes at the address that a tag
// gives; nil where the file has no such bytes.
func (im *file) tagged(tags dynamicTags, tag elf.DynTag, size uint64) *section {
	addr := tags.value(tag)
	s := im.sectionAt(addr)
	if s == nil || !s.inFile() || size == 0 || size > s.end()-addr {
		return nil
	}
	return &section{name: tag.String(), typ: elf.SHT_PROGBITS, addr: addr, size: size, off: s.off + addr - s.addr}
}

// dynamicSymbolCount returns how many symbols a file has whose hash table tells
// [System V ABI, 5, Hash Table].
func (im *file) dynamicSymbolCount(tags dynamicTags) uint64 {
	for _, table := range []struct {
		tag   elf.DynTag
		count func(o byteOrder, data []byte) uint64
	}{
		{elf.DT_HASH, byteOrder.hashCount},
		{elf.DT_GNU_HASH, byteOrder.gnuHashCount},
	} {
		addr := tags.value(table.tag)
		if s := im.sectionAt(addr); addr != 0 && s != nil {
			if data, err := im.Data(nil, addr, s.end()-addr); err == nil {
				return table.count(im.order, data)
			}
		}
	}
	return 0
}

func (o byteOrder) hashCount(data []byte) uint64 {
	if len(data) < 8 {
		return 0
	}
	return uint64(o.u32(data[4:]))
}

// gnuHashCount counts the symbols of a GNU hash table: a header, a filter of
// words, the first symbol of each bucket, and after that a word for each
// symbol but the first ones, odd where a bucket ends. It is 0 for a table that
// does not end.
func (o byteOrder) gnuHashCount(data []byte) uint64 {
	const header = 16
	if len(data) < header {
		return 0
	}
	word := func(i uint64) uint64 { return uint64(o.u32(data[4*i:])) }
	size := uint64(len(data) / 4)
	buckets, first, filter := word(0), word(1), word(2)
	at := header/4 + 2*filter
	chains := at + buckets
	if chains > size {
		return 0
	}
	last := uint64(0)
	for ; at < chains; at++ {
		last = max(last, word(at))
	}
	if last < first {
		return first
	}
	for i := chains + last - first; i < size; i++ {
		if word(i)&1 != 0 {
			return first + i - chains + 1
		}
	}
	return 0
}
