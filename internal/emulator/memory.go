//go:build unicorn

package emulator

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"xol/internal/unicorn"
	"xol/machine"
)

// Memory appears where it is touched, out of an arena of this many pages. No
// instruction touches more than a few.
const arenaPages = 64

const pageMask = unicorn.PageSize - 1

// page is one page of guest memory.
type page struct {
	va     uint64
	frame  int    // in the arena
	fetch  int    // likewise, for fetches of instructions
	lo, hi int    // what of the page parts fill
	seed   uint64 // that the rest comes from
	code   bool   // stays from run to run
	seen   bool   // more than fetched from: only then its contents matter
}

// Where there is no part, there is nothing to fetch either but the byte blank.
// The engine translates all that it finds after an instruction and where a
// branch goes to, and what is no instruction can make it crash.
const blankFrame = 0

// memory is the guest's memory: the arena, with a copy of each page as it was
// before the run.
type memory struct {
	blank    byte
	arena    []byte
	pristine []byte
	pages    []page
	free     []int
	seed     uint64
	writes   []machine.Write
}

var errArena = errors.New("the code touches too many pages")

func newMemory(blank byte) (*memory, error) {
	arena, err := unix.Mmap(-1, 0, arenaPages*unicorn.PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	m := &memory{blank: blank, arena: arena, pristine: make([]byte, len(arena))}
	for i := range arenaPages {
		if i != blankFrame {
			m.free = append(m.free, i)
		}
	}
	m.erase(blankFrame)
	return m, nil
}

// erase leaves no instruction in a frame.
func (m *memory) erase(frame int) {
	contents := m.contents(frame)
	for i := range contents {
		contents[i] = m.blank
	}
}

func (m *memory) close() error { return unix.Munmap(m.arena) }

func (m *memory) contents(frame int) []byte {
	return m.arena[frame*unicorn.PageSize:][:unicorn.PageSize]
}

func (m *memory) before(frame int) []byte {
	return m.pristine[frame*unicorn.PageSize:][:unicorn.PageSize]
}

// translate finds or makes the page of va.
func (m *memory) translate(va uint64, access machine.Access) (uint64, machine.Perm, bool) {
	if access == machine.AccessFetch {
		frame := blankFrame
		if p := m.find(va &^ pageMask); p != nil {
			frame = p.fetch
		}
		return uint64(frame) * unicorn.PageSize, machine.PermExec, true
	}
	p := m.page(va&^pageMask, false)
	if p == nil {
		return 0, 0, false
	}
	if !p.seen && p.fetch != blankFrame {
		m.fill(p)
	}
	p.seen = true
	return uint64(p.frame) * unicorn.PageSize, machine.PermRead | machine.PermWrite, true
}

func (m *memory) find(va uint64) *page {
	for i := range m.pages {
		if m.pages[i].va == va {
			return &m.pages[i]
		}
	}
	return nil
}

func (m *memory) page(va uint64, code bool) *page {
	if p := m.find(va); p != nil {
		return p
	}
	frame, ok := m.take()
	if !ok {
		return nil
	}
	m.pages = append(m.pages, page{va: va, frame: frame, fetch: blankFrame, code: code})
	p := &m.pages[len(m.pages)-1]
	if !code {
		m.fill(p)
	}
	return p
}

// fill gives p the contents that the run's seed makes, around the parts.
func (m *memory) fill(p *page) {
	p.seed = m.seed
	machine.Fill(m.contents(p.frame), p.va, p.seed)
	copy(m.contents(p.frame)[p.lo:p.hi], m.contents(p.fetch)[p.lo:p.hi])
	copy(m.before(p.frame), m.contents(p.frame))
}

// take returns a frame that is not in use.
func (m *memory) take() (frame int, ok bool) {
	if len(m.free) == 0 {
		return 0, false
	}
	frame = m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	return frame, true
}

// codePage returns the page of va with a frame to fetch from.
func (m *memory) codePage(va uint64) *page {
	p := m.page(va, true)
	if p == nil || p.fetch != blankFrame {
		return p
	}
	frame, ok := m.take()
	if !ok {
		return nil
	}
	m.erase(frame)
	p.fetch, p.lo = frame, unicorn.PageSize
	return p
}

// drop forgets the pages for which out holds and reports whether there were
// any.
func (m *memory) drop(out func(*page) bool) bool {
	kept := m.pages[:0]
	for i := range m.pages {
		if out(&m.pages[i]) {
			m.free = append(m.free, m.pages[i].frame)
			if m.pages[i].fetch != blankFrame {
				m.free = append(m.free, m.pages[i].fetch)
			}
		} else {
			kept = append(kept, m.pages[i])
		}
	}
	dropped := len(kept) < len(m.pages)
	m.pages = kept
	return dropped
}

// reset makes memory what it is before a run of the given seed, and reports
// whether translations changed.
func (m *memory) reset(seed uint64) bool {
	m.seed = seed
	changed := m.drop(func(p *page) bool { return !p.code && p.seed != seed })
	for i := range m.pages {
		p := &m.pages[i]
		switch {
		case !p.seen:
		case p.fetch != blankFrame && p.seed != seed:
			m.fill(p)
		default:
			copy(m.contents(p.frame), m.before(p.frame))
		}
	}
	return changed
}

// put makes code part of memory.
func (m *memory) put(part machine.Part) error {
	code, va := part.Code, part.Addr
	for len(code) > 0 {
		p := m.codePage(va &^ pageMask)
		if p == nil {
			return errArena
		}
		start := int(va & pageMask)
		n := copy(m.contents(p.frame)[start:], code)
		copy(m.contents(p.fetch)[start:], code)
		copy(m.before(p.frame), m.contents(p.frame))
		p.lo, p.hi = min(p.lo, start), max(p.hi, start+n)
		code, va = code[n:], va+uint64(n)
	}
	return nil
}

// changes returns the words that a run changed, sorted by address.
func (m *memory) changes() []machine.Write {
	m.writes = m.writes[:0]
	for i := range m.pages {
		p := &m.pages[i]
		m.writes = machine.AppendChanges(m.writes, p.va, m.before(p.frame), m.contents(p.frame))
	}
	slices.SortFunc(m.writes, machine.Write.Compare)
	return m.writes
}
