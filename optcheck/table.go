package optcheck

import (
	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
	"xol/place"
)

// What is wrong with a table that an indirect jump seems to use. It makes the
// jump unresolved.
const (
	tableUnreadable = "its table cannot be read"
	tableOutside    = "its table holds what is no address of an instruction"
	tableEmpty      = "what seems to be its table holds no address of the function"
)

// maxEntries is more than any compiler's table has.
const maxEntries = 1 << 16

// readTable appends a landing for each entry of the table t that the jump at
// the address at uses. Where a comparison tells the number of entries, all of
// them have to be addresses of instructions. A mask only tells what is no
// entry any more: the compiler may know that not all indices occur. Then, and
// where nothing tells, the table goes on as long as entries lead into the
// function: one too many does no harm, one too few would.
func (p *Program) readTable(f *classify.Func, at uint64, t *flow.Table, dst place.Landings) (place.Landings, string) {
	if p.Memory == nil {
		return dst, tableUnreadable
	}
	r := tableReader{memory: p.Memory, order: p.Arch.ByteOrder(), table: t}
	base, sure := len(dst), len(dst)
	exact := t.Count != 0 && t.Bound != flow.BoundMask
	for n := 0; n < maxEntries && (t.Count == 0 || n < t.Count); n++ {
		target, ok := r.entry(n)
		if !ok {
			if exact {
				return dst, tableUnreadable
			}
			break
		}
		_, start := decode.Find(f.Insts, target)
		own := target-f.Addr < uint64(len(f.Code))
		if own && !start || !own && !p.Starts.covers(target) {
			if exact {
				return dst, tableOutside
			}
			break
		}
		dst = append(dst, place.Landing{Addr: target, From: at, Kind: place.LandSwitch})
		if own || exact {
			sure = len(dst)
		}
	}
	if sure == base {
		return dst, tableEmpty
	}
	return dst[:sure], ""
}

// tableReader reads a table's entries in order.
type tableReader struct {
	memory flow.Memory
	order  interface {
		Uint16([]byte) uint16
		Uint32([]byte) uint32
		Uint64([]byte) uint64
	}
	table *flow.Table
	block []byte // entries from first on
	first int
	buf   [64 * 8]byte
}

// entry returns the target of entry n.
func (r *tableReader) entry(n int) (target uint64, ok bool) {
	t := r.table
	at := t.Addr + uint64(n)*uint64(t.Width)
	if t.Width == 8 && t.Base == 0 {
		return r.memory.Pointer(at)
	}
	off := (n - r.first) * int(t.Width)
	if off < 0 || off+int(t.Width) > len(r.block) {
		if !r.read(at) {
			return 0, false
		}
		r.first, off = n, 0
	}
	v, ok := r.value(r.block[off:])
	return t.Base + v<<t.Shift, ok
}

// read fetches what stands at addr.
func (r *tableReader) read(addr uint64) bool {
	end, ok := r.memory.DataEnd(addr)
	if !ok || end-addr < uint64(r.table.Width) {
		return false
	}
	var err error
	r.block, err = r.memory.Data(r.buf[:0], addr, min(uint64(len(r.buf)), end-addr))
	return err == nil && len(r.block) >= int(r.table.Width)
}

// value returns the entry that b starts with.
func (r *tableReader) value(b []byte) (v uint64, ok bool) {
	switch r.table.Width {
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(r.order.Uint16(b))
	case 4:
		v = uint64(r.order.Uint32(b))
	case 8:
		v = r.order.Uint64(b)
	default:
		return 0, false
	}
	if r.table.Signed {
		unused := 64 - 8*uint(r.table.Width)
		v = uint64(int64(v<<unused) >> unused)
	}
	return v, true
}
