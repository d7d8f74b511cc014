//go:build unicorn

package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"

	"xol/internal/unicorn"
	"xol/runtime"
)

// PageSize is the granularity of memory, in bytes.
const PageSize = unicorn.PageSize

const pageMask = PageSize - 1

// chunkSize is how much memory is taken from the host at a time, in bytes. The
// host provides it where it is touched.
const chunkSize = 32 << 20

// page is one page of the guest's address space.
type page struct {
	mem      []byte
	physical uint64
	perm     runtime.Perm
	// fetched holds the code without the words on which the engine crashes;
	// nil where there are none. It is looked for where scanned is not set.
	fetched *page
	scanned bool
}

// memory is the address space that all CPUs share.
type memory struct {
	pages  map[uint64]*page // by address
	recent [8]recentPage    // by the low bits of the page's number
	free   []page           // used before
	chunks [][]byte
	taken  uint64 // bytes of the chunks
}

// recentPage is a page that was looked for.
type recentPage struct {
	addr uint64
	*page
}

// at returns the page that holds addr; nil where there is none.
func (m *memory) at(addr uint64) *page {
	addr &^= pageMask
	r := &m.recent[addr/PageSize%uint64(len(m.recent))]
	if r.addr != addr || r.page == nil {
		*r = recentPage{addr, m.pages[addr]}
	}
	return r.page
}

var (
	// ErrUnmapped: there is no memory at an address.
	ErrUnmapped = errors.New("no memory at the address")
	// ErrMapped: there is memory at an address already.
	ErrMapped = errors.New("memory at the address already")
)

func unmapped(addr uint64) error { return fmt.Errorf("%#x: %w", addr, ErrUnmapped) }

// each calls f with the parts of [addr, addr+size) that lie in one page each.
func each(addr, size uint64, f func(addr, size uint64) error) error {
	for size > 0 {
		n := min(size, PageSize-addr&pageMask)
		if err := f(addr, n); err != nil {
			return err
		}
		addr, size = addr+n, size-n
	}
	return nil
}

// Map gives the guest zeroed memory at [addr, addr+size), which is widened to
// whole pages.
func (m *Machine) Map(addr, size uint64, perm runtime.Perm) error {
	lo, hi := addr&^pageMask, (addr+size+pageMask)&^pageMask
	for at := lo; at != hi; at += PageSize {
		if m.memory.pages[at] != nil {
			return fmt.Errorf("%#x: %w", at, ErrMapped)
		}
	}
	for at := lo; at != hi; at += PageSize {
		p, err := m.takePage()
		if err != nil {
			return err
		}
		p.perm = perm
		m.memory.pages[at] = &p
	}
	return nil
}

func (m *Machine) takePage() (page, error) {
	if n := len(m.memory.free); n > 0 {
		p := m.memory.free[n-1]
		m.memory.free = m.memory.free[:n-1]
		clear(p.mem)
		return page{mem: p.mem, physical: p.physical}, nil
	}
	if m.memory.taken == uint64(len(m.memory.chunks))*chunkSize {
		if err := m.addChunk(); err != nil {
			return page{}, err
		}
	}
	at := m.memory.taken
	m.memory.taken += PageSize
	mem := m.memory.chunks[at/chunkSize][at%chunkSize:][:PageSize:PageSize]
	return page{mem: mem, physical: at}, nil
}

func (m *Machine) addChunk() error {
	chunk, err := unix.Mmap(-1, 0, chunkSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	physical := uint64(len(m.memory.chunks)) * chunkSize
	m.memory.chunks = append(m.memory.chunks, chunk)
	for _, c := range m.CPUs {
		if err := c.engine.Map(physical, chunk); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) close() error {
	var errs []error
	for _, c := range m.chunks {
		errs = append(errs, unix.Munmap(c))
	}
	m.chunks = nil
	return errors.Join(errs...)
}

// Unmap takes the pages of [addr, addr+size) from the guest. Those that it does
// not have are left out.
func (m *Machine) Unmap(addr, size uint64) error {
	return m.change(addr, size, func(at uint64, p *page) {
		m.memory.free = append(m.memory.free, *p)
		if p.fetched != nil {
			m.memory.free = append(m.memory.free, *p.fetched)
		}
		delete(m.memory.pages, at)
		clear(m.memory.recent[:])
	})
}

// Protect changes what the guest may do with the pages of [addr, addr+size).
func (m *Machine) Protect(addr, size uint64, perm runtime.Perm) error {
	return m.change(addr, size, func(_ uint64, p *page) { p.perm = perm })
}

// change calls f with every page of [addr, addr+size) that there is, and has the
// engines forget what they know of it.
func (m *Machine) change(addr, size uint64, f func(at uint64, p *page)) error {
	for at := addr &^ pageMask; at < addr+size; at += PageSize {
		p := m.memory.pages[at]
		if p == nil {
			continue
		}
		if p.perm&runtime.PermExec != 0 {
			if err := m.forget(at, PageSize); err != nil {
				return err
			}
		}
		f(at, p)
	}
	return m.flushTLB()
}

// forget has every engine translate the code at [addr, addr+size), which lies in
// one page, anew.
func (m *Machine) forget(addr, size uint64) error {
	for _, c := range m.CPUs {
		if err := c.engine.RemoveCache(addr, addr+size); err != nil {
			return err
		}
	}
	return nil
}

// Read copies memory at addr into dst.
func (m *Machine) Read(dst []byte, addr uint64) error {
	return each(addr, uint64(len(dst)), func(at, size uint64) error {
		p := m.memory.at(at)
		if p == nil {
			return unmapped(at)
		}
		dst = dst[copy(dst[:size], p.mem[at&pageMask:]):]
		return nil
	})
}

// Write copies src into memory at addr. Code that changes is changed for every
// CPU, from the next instruction on.
func (m *Machine) Write(addr uint64, src []byte) error {
	return each(addr, uint64(len(src)), func(at, size uint64) error {
		p := m.memory.at(at)
		if p == nil {
			return unmapped(at)
		}
		src = src[copy(p.mem[at&pageMask:], src[:size]):]
		if p.perm&runtime.PermExec == 0 {
			return nil
		}
		if err := m.rescan(p, at, size); err != nil {
			return err
		}
		return m.forget(at, size)
	})
}

// rescan has a page that changed at addr looked through again when it is fetched
// from, unless it was harmless and still is. What was translated from where its
// code has been so far would be found there again.
func (m *Machine) rescan(p *page, addr, size uint64) error {
	if m.model.Lethal == nil || !p.scanned || p.fetched == nil && !m.lethal(p, addr&pageMask, size) {
		return nil
	}
	if err := m.forget(addr&^pageMask, PageSize); err != nil {
		return err
	}
	if p.scanned = false; p.fetched != nil {
		m.memory.free = append(m.memory.free, *p.fetched)
		p.fetched = nil
	}
	return m.flushTLB()
}

func (m *Machine) flushTLB() error {
	for _, c := range m.CPUs {
		if err := c.engine.FlushTLB(); err != nil {
			return err
		}
	}
	return nil
}

// Perm returns what the guest may do with the page that holds addr; 0 where it
// has none.
func (m *Machine) Perm(addr uint64) runtime.Perm {
	if p := m.memory.at(addr); p != nil {
		return p.perm
	}
	return 0
}

// ReadWord returns the 8-byte word at addr, in the guest's byte order.
func (m *Machine) ReadWord(addr uint64) (uint64, error) {
	if offset := addr & pageMask; offset <= PageSize-8 {
		if p := m.memory.at(addr); p != nil {
			return m.swap(binary.LittleEndian.Uint64(p.mem[offset:])), nil
		}
	}
	var b [8]byte
	err := m.Read(b[:], addr)
	return m.swap(binary.LittleEndian.Uint64(b[:])), err
}

// WriteWord sets the 8-byte word at addr, in the guest's byte order.
func (m *Machine) WriteWord(addr, value uint64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], m.swap(value))
	return m.Write(addr, b[:])
}

// swap makes a little-endian number one of the guest's byte order. Through
// Order, the bytes would have to be on the heap.
func (m *Machine) swap(v uint64) uint64 {
	if m.Order == binary.ByteOrder(binary.BigEndian) {
		return bits.ReverseBytes64(v)
	}
	return v
}

// permOf is the permission that an access needs.
var permOf = [...]runtime.Perm{
	unicorn.Read: runtime.PermRead, unicorn.Write: runtime.PermWrite, unicorn.Fetch: runtime.PermExec,
}

// accessOf are the engine's kinds of access.
var accessOf = [...]runtime.Access{
	unicorn.Read: runtime.AccessRead, unicorn.Write: runtime.AccessWrite, unicorn.Fetch: runtime.AccessFetch,
}

// enginePerms are the engine's permissions for a page of each Perm. One page is
// filled for all that may be done with it, lest the engine ask again and again.
func enginePerms(p runtime.Perm) (e unicorn.Perm) {
	for _, pair := range [...]struct {
		perm   runtime.Perm
		engine unicorn.Perm
	}{
		{runtime.PermRead, unicorn.PermRead},
		{runtime.PermWrite, unicorn.PermWrite},
		{runtime.PermExec, unicorn.PermExec},
	} {
		if p&pair.perm != 0 {
			e |= pair.engine
		}
	}
	return e
}

// translate finds the page at va for an engine.
func (m *Machine) translate(va uint64, access unicorn.Access) (uint64, unicorn.Perm, bool) {
	p := m.memory.pages[va]
	if p == nil || p.perm&permOf[access] == 0 {
		return 0, 0, false
	}
	if m.model.Lethal != nil && p.perm&runtime.PermExec != 0 {
		if !p.scanned {
			m.scan(p)
		}
		if p.fetched != nil {
			return p.apart(access)
		}
	}
	return p.physical, enginePerms(p.perm), true
}

// apart translates a page whose code is not fetched from where its data are.
func (p *page) apart(access unicorn.Access) (uint64, unicorn.Perm, bool) {
	if access == unicorn.Fetch {
		return p.fetched.physical, unicorn.PermExec, true
	}
	return p.physical, enginePerms(p.perm &^ runtime.PermExec), true
}

// lethal reports whether the engine crashes on one of a page's words that have
// bytes in [offset, offset+size).
func (m *Machine) lethal(p *page, offset, size uint64) bool {
	for i := offset &^ 3; i < offset+size; i += 4 {
		if m.model.Lethal(m.Order.Uint32(p.mem[i:])) {
			return true
		}
	}
	return false
}

// scan looks for words on which the engine crashes, as it would also where they
// only follow what is executed. Words of 0 are undefined instructions.
func (m *Machine) scan(p *page) {
	p.scanned = true
	for i := 0; i < PageSize; i += 4 {
		if !m.model.Lethal(m.Order.Uint32(p.mem[i:])) {
			continue
		}
		if p.fetched == nil {
			f, err := m.takePage()
			if err != nil {
				p.perm &^= runtime.PermExec // nothing of it can run safely
				return
			}
			copy(f.mem, p.mem)
			p.fetched = &f
		}
		clear(p.fetched.mem[i : i+4])
	}
}
