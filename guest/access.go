//go:build unicorn

package guest

import "xol/internal/unicorn"

// head is the start of a page as it was before an instruction.
type head struct {
	physical uint64
	bytes    [len(unicorn.MemoryAccess{}.Old)]byte
}

// heads returns those of the page that a CPU was kept from and of the one after, where
// an access may go on that starts in the page before.
func (c *CPU) heads() (heads [2]head) {
	for i := range heads {
		if p := c.m.memory.pages[c.fault.page+uint64(i)*PageSize]; p != nil {
			heads[i].physical = p.physical
			copy(heads[i].bytes[:], p.mem)
		}
	}
	return heads
}

// divide makes the accesses that the engine has shown those of the instruction, each
// in one page. The engine shows one that leaves a page as if the next one were after it
// in physical memory; and a load that it makes of two that are aligned, with these.
func (c *CPU) divide(shown []unicorn.MemoryAccess, heads [2]head) (made []unicorn.MemoryAccess) {
	for i := 0; i < len(shown); i++ {
		a := shown[i]
		if a.Addr%uint64(a.Size) == 0 {
			made = append(made, a)
			continue
		}
		next := c.m.following(a)
		if i+2 < len(shown) && isPair(shown[i:i+3], next) {
			i += 2
		}
		first := PageSize - a.Addr%PageSize
		if uint64(a.Size) <= first {
			made = append(made, a)
			continue
		}
		rest := unicorn.MemoryAccess{Addr: next, Size: a.Size - uint32(first), Write: a.Write}
		for _, h := range heads {
			if h.physical == next {
				rest.Old = h.bytes
			}
		}
		a.Size = uint32(first)
		made = append(made, a, rest)
	}
	return made
}

// isPair reports whether two aligned loads are what the engine makes of the one before
//
//	them.
func isPair(list []unicorn.MemoryAccess, next uint64) bool {
	a, size := list[0], uint64(list[0].Size)
	for _, b := range list[1:] {
		if b.Write+a.Write != 0 || b.Size != a.Size {
			return false
		}
	}
	return a.Addr%size != 0 && list[1].Addr == a.Addr-a.Addr%size && list[2].Addr == next
}

// following returns where the aligned data are after those in which an access starts.
func (m *Machine) following(a unicorn.MemoryAccess) uint64 {
	next := a.Addr - a.Addr%uint64(a.Size) + uint64(a.Size)
	if next%PageSize != 0 {
		return next
	}
	for at, p := range m.memory.pages {
		if p.physical != a.Addr-a.Addr%PageSize {
			continue
		}
		if q := m.memory.pages[at+PageSize]; q != nil {
			return q.physical
		}
	}
	return next
}
