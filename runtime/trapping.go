package runtime

import (
	"bytes"
	"errors"
	"slices"

	"xol/decode"
	"xol/relocate"
)

// A jump that replaces several instructions must not be landed in. The evidence says
// that nothing does; what it cannot foresee traps: the jump's displacement, which is where
// the buffer stands, is chosen so that its bytes are traps where instructions start.

// startsInside returns the offsets of the instructions of a region that start inside the
// jump. There are none where instructions are words.
func (r *areas) startsInside(s *site, insts []decode.Inst) (offsets []int) {
	if r.isa.Traps() == nil {
		return nil
	}
	for i := range insts {
		if off := int(insts[i].Addr - s.addr); off > 0 && off < r.isa.JumpLen() {
			offsets = append(offsets, off)
		}
	}
	return offsets
}

// fillTrapping is fill for a buffer that stands where the jump to it traps at all
// offsets inside. The entry is where the code starts in the block.
func (r *areas) fillTrapping(s *site, inside []int, most int, encode func(dst []byte, at uint64) (int, error)) (p block, entry uint64, err error) {
	f := trapFinder{site: s, inside: inside, traps: r.isa.Traps(), origin: s.addr + uint64(r.isa.JumpLen())}
	for _, c := range r.slots.chunks {
		if c.taken == nil || c.crowded[f.kind()] >= crowd || !f.suits(c.addr, chunkSize) || !r.reaches(s.addr, c.addr) {
			continue
		}
		p, entry, err = r.fillIn(c, &f, most, encode)
		switch {
		case err == nil:
			return p, entry, nil
		case errors.Is(err, errNoRoom):
			c.crowded[f.kind()]++
		}
	}
	tries := mostTries
	for disp := range f.distances {
		if tries--; tries < 0 {
			break
		}
		addr := (f.origin + uint64(disp)) &^ (pageSize - 1)
		if (addr < f.origin) != (disp < 0) {
			continue
		}
		if _, err := encode(r.buffer(most), addr); err != nil {
			continue
		}
		if c := r.mapChunk(s, addr); c != nil {
			c.taken = make([]bool, chunkSize/grain)
			return r.fillIn(c, &f, most, encode)
		}
	}
	return block{}, 0, errNoRoom
}

// fillIn writes code of at most size bytes into a chunk. What it takes there is tried
// before.
func (r *areas) fillIn(c *chunk, f *trapFinder, most int, encode func(dst []byte, at uint64) (int, error)) (p block, entry uint64, err error) {
	size, err := encode(r.buffer(most), c.addr)
	if err != nil {
		return p, 0, err
	}
	for {
		entry, ok := f.find(c, size)
		if !ok {
			return p, 0, errNoRoom
		}
		code := r.buffer(size)
		n, err := encode(code, entry)
		if err == nil {
			p.addr = entry &^ (grain - 1)
			p.size = uint32((entry + uint64(n) - p.addr + grain - 1) &^ (grain - 1))
			c.mark(p, true)
			c.live[p.addr] = f.site
			return p, entry, r.m.Write(entry, code[:n])
		}
		if size == most || !errors.Is(err, relocate.ErrTooSmall) {
			return p, 0, err
		}
		size = most
	}
}

// mostTries is how many distances are tried. Memory may be taken there, or what the
// code refers to out of reach.
const mostTries = 1 << 13

// crowd is how often nothing is found in a chunk before it is not looked through any
// more, until a block of it is free again.
const crowd = 8

// mark notes that a block is taken, or free.
func (c *chunk) mark(p block, taken bool) {
	first := (p.addr - c.addr) / grain
	for i := range uint64(p.size) / grain {
		c.taken[first+i] = taken
	}
	if !taken {
		c.crowded = [len(c.crowded)]uint8{}
	}
}

// trapFinder finds addresses of buffers to which a jump traps at all offsets inside.
// The jump is an opcode of one byte and a displacement of four, the lowest first, from
// origin.
type trapFinder struct {
	site   *site
	inside []int
	traps  []byte
	origin uint64
}

// allows reports whether the byte of the displacement at an offset of the jump may be b.
func (f *trapFinder) allows(offset int, b byte) bool {
	return !slices.Contains(f.inside, offset) || bytes.IndexByte(f.traps, b) >= 0
}

// kind tells offsets apart.
func (f *trapFinder) kind() (k uint8) {
	for _, off := range f.inside {
		k |= 1 << off >> 1
	}
	return k
}

// suits reports whether some addresses in [addr, addr+size) have the upper half of the
// displacement right.
func (f *trapFinder) suits(addr, size uint64) bool {
	for _, at := range [...]uint64{addr, addr + size - 1} {
		if d := uint32(at - f.origin); f.allows(3, byte(d>>16)) && f.allows(4, byte(d>>24)) {
			return true
		}
	}
	return false
}

// distances yields displacements of chunks whose upper half is right, the nearest of
// each kind first.
func (f *trapFinder) distances(yield func(disp int64) bool) {
	every := make([]byte, 0, 256)
	for b := range 128 {
		every = append(every, byte(b+2), byte(1-b)) // upwards and downwards
	}
	choices := func(offset int) []byte {
		if slices.Contains(f.inside, offset) {
			return f.traps
		}
		return every
	}
	for _, high := range choices(4) {
		for _, low := range choices(3) {
			if !yield(int64(int32(uint32(high)<<24 | uint32(low)<<16))) {
				return
			}
		}
	}
}

// find returns an address in a chunk for a buffer of size bytes.
func (f *trapFinder) find(c *chunk, size int) (uint64, bool) {
	end := c.addr + chunkSize - uint64(size)
	for at := c.addr; at <= end; {
		d := uint32(at - f.origin)
		switch {
		case !f.allows(3, byte(d>>16)) || !f.allows(4, byte(d>>24)):
			at += 1<<16 - uint64(d&0xffff)
		case !f.allows(2, byte(d>>8)):
			at += 1<<8 - uint64(d&0xff)
		case !f.allows(1, byte(d)):
			at++
		default:
			free, next := c.free(at, size)
			if free {
				return at, true
			}
			at = max(next, at+1)
		}
	}
	return 0, false
}

// free reports whether a chunk has room for size bytes at addr; where it has not, next
// is the first address that may have.
func (c *chunk) free(addr uint64, size int) (free bool, next uint64) {
	first, last := (addr-c.addr)/grain, (addr-c.addr+uint64(size)-1)/grain
	for i := last + 1; i > first; i-- {
		if c.taken[i-1] {
			return false, c.addr + i*grain
		}
	}
	return true, 0
}
