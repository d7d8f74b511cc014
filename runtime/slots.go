package runtime

import (
	"cmp"
	"errors"
	"slices"
	"xol/machine"
	"xol/relocate"
)

const (
	// chunkSize is how much memory the allocator takes at a time, in bytes.
	chunkSize = 16 * pageSize
	// grain is what the sizes of blocks are multiples of, in bytes.
	grain = 8
)

// allocator hands out memory for copies of code: executable, never writable for
// the program, and in reach of the text that the copies are of. What is given
// back is used again.
type allocator struct {
	chunks []*chunk // sorted by address
	free   map[uint32][]uint64
}

// chunk is a run of pages.
type chunk struct {
	addr uint64
	used uint64 // bytes from the start that have been handed out
	live map[uint64]*site
	// taken says which grains are taken, of a chunk whose blocks are at addresses of
	// their users' choice; nil of any other.
	taken []bool
	// crowded counts for each kind of such addresses how often there was none.
	crowded [16]uint8
}

func (c *chunk) take(p *block, s *site) {
	p.addr = c.addr + c.used
	c.used += uint64(p.size)
	c.live[p.addr] = s
}

// find returns the index of the chunk at addr, or of the first one after it.
func (a *allocator) find(addr uint64) (int, bool) {
	return slices.BinarySearchFunc(a.chunks, addr, func(c *chunk, addr uint64) int { return cmp.Compare(c.addr, addr) })
}

// holding returns the chunk that addr is in; nil where it is in none.
func (a *allocator) holding(addr uint64) *chunk {
	i, found := a.find(addr)
	if !found {
		i--
	}
	if i < 0 || addr-a.chunks[i].addr >= chunkSize {
		return nil
	}
	return a.chunks[i]
}

// owner returns the site whose copy or detour buffer holds addr; nil where none
// does.
func (a *allocator) owner(addr uint64) *site {
	c := a.holding(addr)
	if c == nil {
		return nil
	}
	for at := addr &^ (grain - 1); at >= c.addr; at -= grain {
		s := c.live[at]
		if s == nil {
			continue
		}
		if s.step.holds(addr) || s.boosted.holds(addr) || s.jump.at(addr) != nil {
			return s
		}
		break
	}
	return nil
}

var errNoRoom = errors.New("runtime: no room for a copy in reach of the text")

// allocate returns a block for the site; ok is false where there is no room.
func (r *areas) allocate(s *site, size int) (p block, ok bool) {
	p.size = uint32(size+grain-1) &^ (grain - 1)
	if c := r.reuse(s, &p); c != nil {
		c.live[p.addr] = s
		return p, true
	}
	for _, c := range r.slots.chunks {
		if c.taken == nil && c.used+uint64(p.size) <= chunkSize && r.reaches(s.addr, c.addr) {
			c.take(&p, s)
			return p, true
		}
	}
	c := r.addChunk(s)
	if c == nil || uint64(p.size) > chunkSize {
		return block{}, false
	}
	c.take(&p, s)
	return p, true
}

// reuse finds a block of the size that was given back.
func (r *areas) reuse(s *site, p *block) *chunk {
	list := r.slots.free[p.size]
	for i := len(list) - 1; i >= 0; i-- {
		c := r.slots.holding(list[i])
		if c == nil || !r.reaches(s.addr, c.addr) {
			continue
		}
		p.addr = list[i]
		r.slots.free[p.size] = slices.Delete(list, i, i+1)
		return c
	}
	return nil
}

// reaches reports whether jumps lead from the text at addr to all of the chunk
// at another.
func (r *areas) reaches(addr, chunk uint64) bool {
	_, first := r.isa.JumpTo(addr, chunk)
	_, last := r.isa.JumpTo(addr, chunk+chunkSize-grain)
	return first == nil && last == nil
}

// addChunk maps a chunk after the text of the site's image, or before it.
func (r *areas) addChunk(s *site) *chunk {
	const tries = 1 << 14
	lo, hi := s.image.extent()
	above := (hi + 2*pageSize - 1) &^ (pageSize - 1)
	below := (lo-pageSize)&^(pageSize-1) - chunkSize
	for n := range uint64(tries) {
		for _, addr := range [...]uint64{above + n*chunkSize, below - n*chunkSize} {
			if c := r.mapChunk(s, addr); c != nil {
				return c
			}
		}
	}
	return nil
}

// mapChunk maps a chunk at addr; nil where that is out of the site's reach, or not
// free.
func (r *areas) mapChunk(s *site, addr uint64) *chunk {
	if !r.reaches(s.addr, addr) || r.mapOwn(addr, chunkSize, machine.PermRead|machine.PermExec) != nil {
		return nil
	}
	c := &chunk{addr: addr, live: map[uint64]*site{}}
	i, _ := r.slots.find(addr)
	r.slots.chunks = slices.Insert(r.slots.chunks, i, c)
	return c
}

// release gives a block back. No CPU may be in it any more.
func (r *areas) release(p block) {
	c := r.slots.holding(p.addr)
	if c == nil || p.size == 0 {
		return
	}
	delete(c.live, p.addr)
	if c.taken != nil {
		c.mark(p, false)
		return
	}
	if r.slots.free == nil {
		r.slots.free = map[uint32][]uint64{}
	}
	r.slots.free[p.size] = append(r.slots.free[p.size], p.addr)
}

// chunkFor returns the newest chunk in reach of a site; nil where none is.
func (r *areas) chunkFor(s *site) *chunk {
	for _, c := range slices.Backward(r.slots.chunks) {
		if c.taken == nil && r.reaches(s.addr, c.addr) {
			return c
		}
	}
	return nil
}

// fill writes code of n bytes into a new block. What it takes at most is seldom
// what it takes near the text: that is tried first.
func (r *areas) fill(s *site, most int, encode func(dst []byte, at uint64) (int, error)) (p block, n int, err error) {
	size := most
	if c := r.chunkFor(s); c != nil {
		if n, err := encode(r.buffer(most), c.addr); err == nil {
			size = n
		}
	}
	for {
		p, ok := r.allocate(s, size)
		if !ok {
			return block{}, 0, errNoRoom
		}
		code := r.buffer(int(p.size))
		if n, err = encode(code, p.addr); err == nil {
			err = r.m.Write(p.addr, code[:n])
		}
		if err == nil {
			return p, n, nil
		}
		r.release(p)
		if size == most || !errors.Is(err, relocate.ErrTooSmall) {
			return block{}, 0, err
		}
		size = most
	}
}
