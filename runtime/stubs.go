package runtime

// stubs is code of the runtime's own in the guest: what detour buffers call.
type stubs struct {
	page       uint64 // 0 where there is none yet
	hostCall   uint64 // leaves the guest, for handlers in Go
	behindCall uint64 // where the guest goes on
	mirrorEnd  uint64 // where the mirror functions of jprobes end

	entryCall   uint64 // as hostCall, for the stubs of patchable entries
	behindEntry uint64
}

func (s *stubs) holds(addr uint64) bool { return s.page != 0 && addr-s.page < pageSize }

// makeStubs puts the stubs near the text of an image, once.
func (r *Runtime) makeStubs(im *Image) error {
	if r.stubs.page != 0 {
		return nil
	}
	_, hi := im.extent()
	page := (hi + pageSize - 1) &^ (pageSize - 1)
	for n := 0; r.putStubs(page) != nil; n++ {
		if n == 1<<16 {
			return errNoRoom
		}
		page += pageSize
	}
	return nil
}

// putStubs puts the stubs into a page that is not there yet.
func (r *Runtime) putStubs(page uint64) error {
	if err := r.m.Map(page, pageSize, PermRead|PermExec); err != nil {
		return err
	}
	trap := r.isa.Breakpoint(r.opt.Kernel)
	code := append(append([]byte(nil), trap...), r.isa.ReturnInst()...)
	for offset, code := range map[uint64][]byte{
		0: code, entryOffset: code, mirrorOffset: trap,
	} {
		if err := r.m.Write(page+offset, code); err != nil {
			return err
		}
	}
	r.stubs = stubs{
		page: page, hostCall: page, behindCall: page + uint64(len(trap)),
		mirrorEnd: page + mirrorOffset,
		entryCall: page + entryOffset, behindEntry: page + entryOffset + uint64(len(trap)),
	}
	return nil
}

// Offsets of the stubs behind the first one in their page.
const (
	entryOffset      = 32
	mirrorOffset     = 96
	trampolineOffset = 128
)

// counterPages are pages of the guest's memory that hold counts.
type counterPages struct {
	pages []uint64
	free  []uint64
}

const counterSize = 8

// countersBase is where the first page of counts is. At a rounder address it
// would share the engine's TLB entry with pages that programs like to use.
const countersBase = 0x7c00_0005_b000

// take returns the address of a count that is 0.
func (c *counterPages) take(r *Runtime) (uint64, error) {
	if len(c.free) == 0 {
		page := uint64(countersBase) + uint64(len(c.pages))*pageSize
		if err := r.m.Map(page, pageSize, PermRead|PermWrite); err != nil {
			return 0, err
		}
		c.pages = append(c.pages, page)
		for at := page + pageSize; at > page; at -= counterSize {
			c.free = append(c.free, at-counterSize)
		}
	}
	addr := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	return addr, r.m.WriteWord(addr, 0)
}

// giveBack takes the count of a probe, which keeps its value in Hits.
func (c *counterPages) giveBack(p *Probe) {
	c.free = append(c.free, p.counter)
	p.counter = 0
}

func (c *counterPages) add(r *Runtime, p *Probe) {
	v, _ := r.m.ReadWord(p.counter)
	_ = r.m.WriteWord(p.counter, v+1)
}

func (c *counterPages) holds(addr uint64) bool {
	return addr >= countersBase && addr < countersBase+uint64(len(c.pages))*pageSize
}
