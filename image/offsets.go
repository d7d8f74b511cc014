package image

// AddrOf returns the address of what stands at an offset in the file, of the
// sections that are in memory; ok is false where there is none.
func (im *Image) AddrOf(off uint64) (addr uint64, ok bool) { return im.addrOf(off) }

// OffsetOf returns where in the file the content of an address stands, of a
// packed file in what was unpacked; ok is false where it stands nowhere. It is
// the offset that Linux wants in uprobe_events.
func (im *Image) OffsetOf(addr uint64) (off uint64, ok bool) {
	s := im.sectionAt(addr)
	if s == nil || !s.inFile() {
		return 0, false
	}
	return s.off + addr - s.addr, true
}
