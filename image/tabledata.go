package image

// tableData is the content of a table.
type tableData struct {
	order byteOrder
	addr  uint64
	data  []byte
}

// word returns the 4 bytes at off, widened with their sign.
func (t *tableData) word(off int) uint64 { return t.order.i32(t.data[off:]) }

// rel returns the address that the 4 bytes at off give relative to themselves.
func (t *tableData) rel(off int) uint64 { return t.addr + uint64(off) + t.word(off) }

// each calls f with the offset of every whole entry of size bytes.
func (t *tableData) each(size int, f func(off int)) {
	for off := 0; size > 0 && off+size <= len(t.data); off += size {
		f(off)
	}
}
