//go:build unicorn

package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"

	"xol/internal/unicorn"
	"xol/machine"
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
	perm     machine.Perm
	text     *text // nil where code is fetched from where the data are
	harmless bool  // it has no words on which the engine crashes
	coded    bool  // the program may write it, and an engine has translated some of it
	loose    bool  // the program may have written it since its text was made
	guards   int   // of those who have to be told of stores
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

// eachPage calls f with the pages of [addr, addr+size), and with the parts of the range
// in them.
func (m *Machine) eachPage(addr, size uint64, f func(p *page, addr, size uint64) error) error {
	if err := m.usable(); err != nil {
		return err
	}
	return each(addr, size, func(at, n uint64) error {
		p := m.memory.at(at)
		if p == nil {
			return unmapped(at)
		}
		return f(p, at, n)
	})
}

// Map gives the guest zeroed memory at [addr, addr+size), which is widened to
// whole pages.
func (m *Machine) Map(addr, size uint64, perm machine.Perm) error {
	if err := m.usable(); err != nil {
		return err
	}
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
	*m = memory{}
	return errors.Join(errs...)
}

// Unmap takes the pages of [addr, addr+size) from the guest. Those that it does
// not have are left out.
func (m *Machine) Unmap(addr, size uint64) error {
	return m.change(addr, size, func(at uint64, p *page) {
		m.memory.free = append(m.memory.free, *p)
		if p.text != nil {
			m.memory.free = append(m.memory.free, page{mem: p.text.mem, physical: p.text.physical})
		}
		delete(m.memory.pages, at)
		clear(m.memory.recent[:])
	})
}

// Protect changes what the guest may do with the pages of [addr, addr+size).
func (m *Machine) Protect(addr, size uint64, perm machine.Perm) error {
	return m.change(addr, size, func(_ uint64, p *page) {
		p.perm, p.coded, p.loose, p.harmless = perm, false, true, false
	})
}

// change calls f with every page of [addr, addr+size) that there is, and has the
// engines forget what they know of it.
func (m *Machine) change(addr, size uint64, f func(at uint64, p *page)) error {
	if err := m.usable(); err != nil {
		return err
	}
	for at := addr &^ pageMask; at < addr+size; at += PageSize {
		p := m.memory.pages[at]
		if p == nil {
			continue
		}
		if p.perm&machine.PermExec != 0 {
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
	return m.eachPage(addr, uint64(len(dst)), func(p *page, at, size uint64) error {
		dst = dst[copy(dst[:size], p.mem[at&pageMask:]):]
		return nil
	})
}

// Write copies src into memory at addr. Code that changes is changed for every
// CPU, from the next instruction on.
func (m *Machine) Write(addr uint64, src []byte) error {
	return m.eachPage(addr, uint64(len(src)), func(p *page, at, size uint64) error {
		src = src[copy(p.mem[at&pageMask:], src[:size]):]
		return m.changed(p, at, size)
	})
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
func (m *Machine) Perm(addr uint64) machine.Perm {
	if p := m.memory.at(addr); p != nil && !m.closed {
		return p.perm
	}
	return 0
}

// ReadWord returns the 8-byte word at addr, in the guest's byte order.
func (m *Machine) ReadWord(addr uint64) (uint64, error) {
	if offset := addr & pageMask; offset <= PageSize-8 && !m.closed {
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

// translate finds the page at va for the engine of a CPU.
func (m *Machine) translate(c *CPU, va uint64, access machine.Access) (uint64, machine.Perm, bool) {
	p := m.memory.pages[va]
	if p == nil || p.perm&access.Perm() == 0 {
		return 0, 0, false
	}
	if p.perm&machine.PermExec != 0 || p.guards > 0 {
		return m.translateText(c, p, va, access)
	}
	return p.physical, p.perm, true
}
