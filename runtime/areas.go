package runtime

import (
	"errors"

	"xol/machine"
)

// areas are the runtime's own memory in the guest: copies and detour buffers, stubs,
// counts.
type areas struct {
	texts
	slots      allocator
	stubs      stubs
	counters   counterPages
	gateCalled func(cpu int, addr uint64) error // has the calls that gates get handled
}

// mapOwn maps memory of the runtime's own, where the program will not have any.
func (r *areas) mapOwn(addr, size uint64, perm machine.Perm) error {
	overlaps := func(lo, hi uint64) bool { return lo < addr+size && addr < hi }
	for _, reserved := range r.opt.Reserved {
		if overlaps(reserved.Lo, reserved.Hi) {
			return errReserved
		}
	}
	for _, im := range r.images {
		for i := range im.memory {
			if m := &im.memory[i]; overlaps(m.Addr&^(pageSize-1), m.End()) {
				return errReserved
			}
		}
	}
	return r.m.Map(addr, size, perm)
}

// owns reports whether addr is in memory of the runtime's own.
func (r *areas) owns(addr uint64) bool {
	return r.slots.holding(addr) != nil || r.stubs.holds(addr) || r.counters.holds(addr)
}

// own reports whether pc is in a copy or a stub.
func (r *areas) own(pc uint64) bool { return r.slots.owner(pc) != nil || r.stubs.holds(pc) }

// clean takes from a copy of the memory what the runtime has put there. There are no
// patches in a copy.
func (r *areas) clean(m machine.Machine) error {
	var errs []error
	for _, c := range r.slots.chunks {
		errs = append(errs, m.Unmap(c.addr, chunkSize))
	}
	for _, page := range r.counters.pages {
		errs = append(errs, m.Unmap(page, pageSize))
	}
	if r.stubs.page != 0 {
		errs = append(errs, m.Unmap(r.stubs.page, pageSize))
	}
	return errors.Join(errs...)
}

var errReserved = errors.New("runtime: the addresses are reserved")
