//go:build unicorn

package guest

import (
	"bytes"
	"xol/machine"
)

// text is where a page's code is fetched from, where that is not where its data
// are: the program may write the page, it has patches, or words on which the
// engine crashes. So loads and stores find what is the program's, and the engine,
// which would see its own stores only, finds none of them in code.
type text struct {
	mem      []byte
	physical uint64
	patched  [PageSize / 64]uint64 // a bit for each byte that is not the program's
}

func (t *text) isPatched(offset uint64) bool { return t.patched[offset/64]>>(offset%64)&1 != 0 }

func (t *text) setPatched(offset uint64, on bool) {
	t.patched[offset/64] &^= 1 << (offset % 64)
	if on {
		t.patched[offset/64] |= 1 << (offset % 64)
	}
}

// kept reports whether stores to a page are kept from the engine: what is stored may
// be executed, or somebody has to be told.
func (p *page) kept() bool { return p.coded || p.guards > 0 }

// translateText translates an address for a CPU in a page that is executed, or
// guarded. Stores to it and fetches from it have to ask in turn.
func (m *Machine) translateText(c *CPU, p *page, va uint64, access machine.Access) (uint64, machine.Perm, bool) {
	if access == machine.AccessFetch {
		if !m.prepareText(c, p) {
			return 0, 0, false
		}
		if p.text != nil {
			return p.text.physical, machine.PermExec, true
		}
		return p.physical, p.perm, true
	}
	perm := p.perm
	if p.text != nil || p.perm&machine.PermWrite != 0 || m.lethalIn(p) {
		perm &^= machine.PermExec
	}
	if p.kept() && !c.storing.opens(va) {
		perm &^= machine.PermWrite
	}
	if perm&access.Perm() == 0 {
		c.storing.denied = true
		return 0, 0, false
	}
	p.loose = p.loose || perm&machine.PermWrite != 0
	return p.physical, perm, true
}

// prepareText readies a page for a fetch. Nothing of it can run safely where that
// fails.
func (m *Machine) prepareText(c *CPU, p *page) bool {
	writable := p.perm&machine.PermWrite != 0
	if p.text == nil && (writable || m.lethalIn(p)) {
		if m.split(p) != nil {
			return false
		}
	}
	if p.loose {
		for _, other := range m.CPUs {
			if other != c && other.engine.FlushTLB() != nil {
				return false
			}
		}
		if p.text != nil {
			m.update(p, 0, PageSize)
		}
		// The engine's own entry is replaced; where its pages are smaller, that of a
		// part. Another CPU's fetch may find others.
		p.loose = writable
	}
	p.coded = p.coded || writable
	return true
}

// lethalIn reports whether a page has words on which the engine crashes, as it would
// also where they only follow what is executed.
func (m *Machine) lethalIn(p *page) bool {
	if m.model.Lethal == nil || p.harmless {
		return false
	}
	p.harmless = !m.lethal(p.mem)
	return !p.harmless
}

// lethal reports whether the engine crashes on one of the aligned words.
func (m *Machine) lethal(code []byte) bool {
	for i := 0; i < len(code); i += 4 {
		if m.model.Lethal(m.Order.Uint32(code[i:])) {
			return true
		}
	}
	return false
}

// split has a page's code fetched from elsewhere than where its data are. Engines that
// have translated some of it have to forget it before.
func (m *Machine) split(p *page) error {
	from, err := m.takePage()
	if err != nil {
		return err
	}
	p.text = &text{mem: from.mem, physical: from.physical}
	m.update(p, 0, PageSize)
	return nil
}

// update makes [offset, offset+size) of a page's text what its data are, but for
// patches and for words on which the engine crashes: those are undefined, of 0.
func (m *Machine) update(p *page, offset, size uint64) {
	t := p.text
	for i, end := offset, offset+size; i < end; {
		next := min(i&^63+64, end)
		if t.patched[i/64] == 0 {
			copy(t.mem[i:next], p.mem[i:next])
			i = next
		}
		for ; i < next; i++ {
			if !t.isPatched(i) {
				t.mem[i] = p.mem[i]
			}
		}
	}
	if m.model.Lethal == nil {
		return
	}
	for i := offset &^ 3; i < offset+size; i += 4 {
		if m.model.Lethal(m.Order.Uint32(t.mem[i:])) {
			clear(t.mem[i : i+4])
		}
	}
}

// changed has CPUs see that size bytes at addr, which are in page p, are others now.
func (m *Machine) changed(p *page, addr, size uint64) error {
	if p.perm&machine.PermExec != 0 {
		if err := m.changedCode(p, addr, size); err != nil {
			return err
		}
	} else {
		p.loose = true
	}
	if p.guards == 0 || m.onStore == nil {
		return nil
	}
	return m.onStore(machine.Range{Lo: addr, Hi: addr + size})
}

func (m *Machine) changedCode(p *page, addr, size uint64) error {
	offset := addr & pageMask
	switch {
	case p.perm&machine.PermWrite != 0 && !p.coded:
		p.loose = true
		return nil
	case p.text != nil:
		m.update(p, offset, size)
	case m.model.Lethal != nil && p.harmless:
		if p.harmless = !m.lethal(p.mem[offset&^3 : (offset+size+3)&^3]); !p.harmless {
			return m.relocateText(addr&^pageMask, func() error { return nil })
		}
	}
	return m.forget(addr, size)
}

// relocateText has f change where a page's code is fetched from. What was translated
// from there would be found again.
func (m *Machine) relocateText(page uint64, f func() error) error {
	if err := m.forget(page, PageSize); err != nil { // which looks for the code
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return m.flushTLB()
}

// Patch has CPUs execute code at addr, from the next instruction on. What the program
// reads there stays what it is. What it stores there is not executed, until it is
// patched over what is patched.
func (m *Machine) Patch(addr uint64, code []byte) error {
	return m.eachPage(addr, uint64(len(code)), func(p *page, at, size uint64) error {
		if p.text == nil {
			if err := m.relocateText(at&^pageMask, func() error { return m.split(p) }); err != nil {
				return err
			}
		}
		for i := range size {
			offset := at&pageMask + i
			p.text.mem[offset] = code[i]
			p.text.setPatched(offset, code[i] != p.mem[offset])
		}
		code = code[size:]
		return m.forget(at, size)
	})
}

// ReadText copies what CPUs execute at addr into dst: memory, with what is patched.
func (m *Machine) ReadText(dst []byte, addr uint64) error {
	return m.eachPage(addr, uint64(len(dst)), func(p *page, at, size uint64) error {
		offset := at & pageMask
		copy(dst[:size], p.mem[offset:])
		for i := range size {
			if p.text != nil && p.text.isPatched(offset+i) {
				dst[i] = p.text.mem[offset+i]
			}
		}
		dst = dst[size:]
		return nil
	})
}

// OnStore has f called after every store to what is guarded (see machine.Machine).
func (m *Machine) OnStore(f func(changed machine.Range) error) { m.onStore = f }

// Guard has stores to addresses shown to what OnStore has set, or no longer (see
// machine.Machine).
func (m *Machine) Guard(data machine.Range, on bool) error {
	if err := m.usable(); err != nil {
		return err
	}
	flush := false
	err := each(data.Lo, data.Hi-data.Lo, func(at, _ uint64) error {
		p := m.memory.at(at)
		switch {
		case p == nil: // nothing can be stored there
		case !on:
			p.guards = max(p.guards-1, 0) // it may be another page now
		default:
			p.guards++
			flush = flush || p.guards == 1 && p.perm&machine.PermWrite != 0
		}
		return nil
	})
	if err != nil || !flush {
		return err
	}
	return m.flushTLB()
}

// storing is a store of a CPU to text.
type storing struct {
	denied bool     // the last fault is none of the program, but this
	open   []uint64 // pages that the instruction may store to
	before [][]byte // what they held
	again  bool     // it needs another page
}

func (s *storing) opens(page uint64) bool {
	for _, p := range s.open {
		if p == page {
			return true
		}
	}
	return false
}

// storesText carries out a store that was kept from a page, or lets it be made.
func (c *CPU) storesText() (ev machine.Event, done bool, err error) {
	addr := c.fault.page
	p, s := c.m.memory.at(addr), &c.storing
	if len(s.open) > 0 { // by the instruction that alone executes
		c.openText(addr, p)
		s.again = true
		return machine.Event{Kind: machine.EventBudget, Addr: c.PC()}, true, nil
	}
	if pc := c.PC(); p.guards == 0 && pc&^pageMask != addr && (pc+maxInstruction)&^pageMask != addr {
		return ev, false, c.m.giveUp(p, addr)
	}
	return c.storeAlone(addr, p)
}

const maxInstruction = 15 // bytes

// giveUp has a page's code forgotten: stores there run freely until it is fetched from
// again.
func (m *Machine) giveUp(p *page, addr uint64) error {
	return m.relocateText(addr, func() error { p.coded = false; return nil })
}

func (c *CPU) openText(addr uint64, p *page) {
	c.storing.open = append(c.storing.open, addr)
	c.storing.before = append(c.storing.before, bytes.Clone(p.mem))
}

// storeAlone executes the instruction that stores by itself, and has all CPUs see
// what it has changed.
func (c *CPU) storeAlone(addr uint64, p *page) (ev machine.Event, done bool, err error) {
	s := &c.storing
	c.openText(addr, p)
	for s.again = true; s.again && err == nil; {
		s.again = false
		if err = c.engine.FlushTLB(); err == nil {
			ev, err = c.one()
		}
	}
	open, before := s.open, s.before
	s.open, s.before, s.again = nil, nil, false
	if flushErr := c.engine.FlushTLB(); err == nil {
		err = flushErr
	}
	for i := 0; i < len(open) && err == nil; i++ {
		err = c.m.stored(open[i], before[i])
	}
	return ev, ev.Kind != machine.EventBudget, err
}

// stored has CPUs see what in a page is not as it was before.
func (m *Machine) stored(addr uint64, before []byte) error {
	p := m.memory.at(addr)
	if p == nil {
		return nil
	}
	first, last := 0, PageSize
	for first < last && p.mem[first] == before[first] {
		first++
	}
	for last > first && p.mem[last-1] == before[last-1] {
		last--
	}
	if first == last {
		return nil
	}
	return m.changed(p, addr+uint64(first), uint64(last-first))
}

// restored has CPUs see what an undone store had changed at a physical address.
func (m *Machine) restored(physical, size uint64) error {
	for at, p := range m.memory.pages {
		if p.physical == physical-physical%PageSize && p.kept() {
			return m.changed(p, at+physical%PageSize, min(size, PageSize-physical%PageSize))
		}
	}
	return nil
}

// one executes one instruction.
func (c *CPU) one() (ev machine.Event, err error) {
	if !c.m.opt.Exact && !c.watch.on {
		if err := c.countHere(true); err != nil {
			return ev, err
		}
		defer func() {
			if countErr := c.countHere(false); err == nil {
				err = countErr
			}
		}()
	}
	_, ev, err = c.run(1)
	return ev, err
}

// countHere has instructions counted one by one, or no longer, in code that is
// translated where the CPU is.
func (c *CPU) countHere(on bool) error {
	pc := c.PC()
	if err := c.engine.CountEach(on); err != nil {
		return err
	}
	return c.engine.RemoveCache(pc, pc+1)
}
