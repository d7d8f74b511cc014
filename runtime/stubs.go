package runtime

import (
	"bytes"

	"xol/machine"
)

// stubs is a page of code of the runtime's own in the guest.
type stubs struct {
	page uint64 // 0 where there is none yet
}

// Offsets in the page. The gates are functions that only return, each a room long:
// calls of them are those of the host. The same follows once more. All else in
// the page are breakpoints: so is the end of mirror functions, and what is around the
// trampoline.
const (
	gateRoom         = 16
	gates            = 2
	mirrorOffset     = 96
	trampolineOffset = 128
)

// hostCall is what detour buffers call.
func (s *stubs) hostCall() uint64 { return s.page }

// entryCall is what the stubs of patchable entries call.
func (s *stubs) entryCall() uint64 { return s.page + gateRoom }

func (s *stubs) gates() machine.Range { return machine.Range{Lo: s.page, Hi: s.page + gates*gateRoom} }

// mirrorEnd is where the mirror functions of jprobes end.
func (s *stubs) mirrorEnd() uint64 { return s.page + mirrorOffset }

func (s *stubs) holds(addr uint64) bool { return s.page != 0 && addr-s.page < pageSize }

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
func (c *counterPages) take(r *areas) (uint64, error) {
	if len(c.free) == 0 {
		page := uint64(countersBase) + uint64(len(c.pages))*pageSize
		if err := r.mapOwn(page, pageSize, machine.PermRead|machine.PermWrite); err != nil {
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

// giveBack has a count used again.
func (c *counterPages) giveBack(addr uint64) { c.free = append(c.free, addr) }

func (c *counterPages) add(r *target, p *probe) {
	v, _ := r.m.ReadWord(p.counter)
	_ = r.m.WriteWord(p.counter, v+1)
}

func (c *counterPages) holds(addr uint64) bool {
	return addr >= countersBase && addr < countersBase+uint64(len(c.pages))*pageSize
}

// makeStubs puts the stubs near the text of an image, once.
func (r *areas) makeStubs(im *Module) error {
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
func (r *areas) putStubs(page uint64) error {
	if err := r.mapOwn(page, pageSize, machine.PermRead|machine.PermExec); err != nil {
		return err
	}
	trap := r.isa.Breakpoint(r.opt.Kernel)
	if err := r.m.Write(page, bytes.Repeat(trap, pageSize/len(trap))); err != nil {
		return err
	}
	for i := range uint64(2 * gates) {
		if err := r.m.Write(page+i*gateRoom, r.isa.ReturnInst()); err != nil {
			return err
		}
	}
	r.stubs.page = page
	return r.m.OnCall(r.stubs.gates(), r.gateCalled)
}

// of returns how often a probe was hit.
func (c *counterPages) of(r *target, p *probe) uint64 {
	if p.counter == 0 {
		return p.hits
	}
	v, _ := r.m.ReadWord(p.counter)
	return p.hits + v
}
