//go:build unicorn

package guest

import (
	"encoding/binary"
	"errors"
	"slices"

	"xol/internal/unicorn"
	"xol/machine"
)

// watch is what stands in for the debug registers of a CPU, which the engine does
// not have: the pages of watched data are kept from the engine, so that every
// access to them stops it. The instruction is then executed by itself, and what
// it accesses recorded. Where the ISA reports an access before it is made, it is
// undone. Meanwhile the CPU's instructions are counted one by one (see
// Options.Exact).
type watch struct {
	list  []machine.Watch
	pages map[uint64]machine.WatchKind // watched accesses by page
	unit  machine.WatchUnit
	on    bool // there is something to watch

	denied bool // the last fault is no fault of the program
	open   bool // the pages are not kept from the engine at the moment
	unfinished
	hits  []machine.Watched
	saved []byte // the engine's context before an instruction
}

// unfinished is what the last EventWatch has left to do.
type unfinished struct {
	passed uint64
	pass   bool           // the instruction at passed has been reported
	also   *machine.Event // what the reported instruction has caused besides, at passed
	called bool           // a function is called meanwhile
}

var _ machine.Watcher = (*Machine)(nil)

// Watch has a CPU report accesses to the watched data, in place of what it
// watched before.
func (m *Machine) Watch(cpu int, list []machine.Watch) error {
	if err := m.usable(); err != nil {
		return err
	}
	c := m.CPUs[cpu]
	w := &c.watch
	w.unit, w.list, w.pages = m.ISA.WatchUnit(), slices.Clone(list), map[uint64]machine.WatchKind{}
	for _, one := range list {
		err := each(one.Addr, uint64(one.Len), func(at, _ uint64) error {
			w.pages[at&^pageMask] |= one.Kind
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := c.observe(len(list) > 0); err != nil {
		return err
	}
	return c.engine.FlushTLB()
}

// observe has the engine show accesses and stop after any instruction, in all code,
// or no longer.
func (c *CPU) observe(on bool) error {
	if on == c.watch.on {
		return nil
	}
	c.watch.on = on
	if err := errors.Join(c.engine.ObserveAccesses(on), c.engine.CountEach(on || c.m.opt.Exact)); err != nil {
		return err
	}
	for at, p := range c.m.memory.pages {
		if p.perm&machine.PermExec == 0 {
			continue
		}
		if err := c.engine.RemoveCache(at, at+PageSize); err != nil {
			return err
		}
	}
	return nil
}

// Watched returns what the last EventWatch of a CPU is about.
func (m *Machine) Watched(cpu int) []machine.Watched { return m.CPUs[cpu].watch.hits }

var watchKinds = [...]machine.WatchKind{machine.AccessRead: machine.WatchRead, machine.AccessWrite: machine.WatchWrite, machine.AccessFetch: 0}

// keep takes from the permissions of a page those that would hide watched
// accesses. ok is false where the engine must not have the page for access a.
func (w *watch) keep(va uint64, a machine.Access, perm machine.Perm) (left machine.Perm, ok bool) {
	kinds := w.pages[va]
	if w.open || kinds == 0 {
		return perm, true
	}
	if kinds&machine.WatchRead != 0 {
		perm &^= machine.PermRead
	}
	if kinds&machine.WatchWrite != 0 {
		perm &^= machine.PermWrite
	}
	w.denied = kinds&watchKinds[a] != 0
	return perm, !w.denied
}

// alone executes one instruction with the watched pages open.
func (c *CPU) alone() (machine.Event, error) {
	c.watch.open = true
	err := c.engine.FlushTLB()
	var ev machine.Event
	if err == nil {
		_, ev, err = c.run(1)
	}
	c.watch.open, c.watch.denied = false, false
	return ev, errors.Join(err, c.engine.FlushTLB())
}

// watched executes the instruction that was kept from a page, and says whether
// it accesses what is watched.
func (c *CPU) watched() (ev machine.Event, done bool, err error) {
	w := &c.watch
	pc, running, before, heads := c.PC(), c.running, c.m.contents(w.list), c.heads()
	var state machine.State
	if !w.unit.After {
		state = slices.Clone(c.state)
		context, err := c.engine.Context()
		if err != nil {
			return ev, true, err
		}
		w.saved = append(w.saved[:0], context...)
	}
	c.engine.RecordAccesses(true)
	ev, err = c.alone()
	c.engine.RecordAccesses(false)
	if err != nil {
		return ev, true, err
	}
	accesses, err := c.engine.Accesses()
	if err != nil {
		return ev, true, err
	}
	accesses = c.divide(accesses, heads)
	completed := ev.Kind == machine.EventBudget || ev.Kind == machine.EventStep || ev.Kind == machine.EventReturned
	if !completed || !w.find(c.m, accesses, before) {
		return ev, ev.Kind != machine.EventBudget, nil
	}
	if w.unit.After {
		if ev.Kind != machine.EventBudget {
			also := ev
			w.also, w.passed, c.running = &also, c.PC(), running
		}
		return machine.Event{Kind: machine.EventWatch, Addr: c.PC()}, true, nil
	}
	w.passed, w.pass, c.running = pc, true, running
	return machine.Event{Kind: machine.EventWatch, Addr: pc}, true, c.undo(accesses, state)
}

// undo takes back what an instruction did.
func (c *CPU) undo(accesses []unicorn.MemoryAccess, state machine.State) error {
	for _, a := range slices.Backward(accesses) {
		if a.Write != 0 {
			old := a.Old[:min(int(a.Size), len(a.Old))]
			copy(c.m.memory.chunks[a.Addr/chunkSize][a.Addr%chunkSize:], old)
			if err := c.m.restored(a.Addr, uint64(len(old))); err != nil {
				return err
			}
		}
	}
	current, err := c.engine.Context()
	if err != nil {
		return err
	}
	copy(current, c.watch.saved)
	copy(c.state, state)
	c.core.loaded, c.core.changed, c.wide.loaded, c.wide.changed = true, false, false, false
	return c.engine.SetContext()
}

// find notes which of the watched data were accessed, and reports whether any
// were.
func (w *watch) find(m *Machine, accesses []unicorn.MemoryAccess, before []uint64) bool {
	w.hits = w.hits[:0]
	var after []uint64
	for i, one := range w.list {
		p := m.memory.pages[one.Addr&^pageMask]
		if p == nil {
			continue
		}
		physical := one
		physical.Addr = p.physical + one.Addr&pageMask
		hit := machine.Watched{Index: i}
		for _, a := range accesses {
			kind := machine.WatchRead << a.Write
			if one.Kind&kind == 0 || !physical.Holds(a.Addr, int(a.Size)) {
				continue
			}
			if hit.Kind == 0 {
				hit.Addr, hit.Size = one.Addr+a.Addr-physical.Addr, int(a.Size)
			}
			hit.Kind |= kind
		}
		if hit.Kind == 0 {
			continue
		}
		if after == nil {
			after = m.contents(w.list)
		}
		hit.Old, hit.New = before[i], after[i]
		w.hits = append(w.hits, hit)
	}
	return len(w.hits) > 0
}

// reports notes an access that the host is about to make for the program, and
// says whether it is watched. src is what is written.
func (w *watch) reports(m *Machine, addr uint64, size int, kind machine.WatchKind, src []byte) bool {
	if w.open {
		return false
	}
	w.hits = w.hits[:0]
	for i, one := range w.list {
		if one.Kind&kind == 0 || !one.Holds(addr, size) {
			continue
		}
		old := m.number(one)
		w.hits = append(w.hits, machine.Watched{Index: i, Kind: kind, Addr: addr, Size: size, Old: old, New: m.replaced(one, addr, src)})
	}
	return len(w.hits) > 0
}

// replaced returns the value of watched data when src will have been written.
func (m *Machine) replaced(w machine.Watch, addr uint64, src []byte) uint64 {
	var b [8]byte
	if w.Len > len(b) || m.Read(b[:w.Len], w.Addr) != nil {
		return 0
	}
	for i := range b[:w.Len] {
		if at := w.Addr + uint64(i) - addr; at < uint64(len(src)) {
			b[i] = src[at]
		}
	}
	return m.fromBytes(b[:w.Len])
}

// contents returns the values of watched data.
func (m *Machine) contents(list []machine.Watch) []uint64 {
	values := make([]uint64, len(list))
	for i, one := range list {
		values[i] = m.number(one)
	}
	return values
}

// number returns watched data of up to 8 bytes as a number; 0 where there is no
// such.
func (m *Machine) number(w machine.Watch) uint64 { return m.replaced(w, 0, nil) }

// fromBytes makes a number of up to 8 bytes in the guest's order.
func (m *Machine) fromBytes(b []byte) (v uint64) {
	for i := range b {
		if m.Order == binary.ByteOrder(binary.BigEndian) {
			v = v<<8 | uint64(b[i])
		} else {
			v |= uint64(b[i]) << (8 * i)
		}
	}
	return v
}

// left reports whether the last EventWatch has left something to do.
func (u *unfinished) left() bool { return u.pass || u.also != nil }

// reported reports whether that is now: where a function is called in between, it is
// when the CPU has come back.
func (c *CPU) reported() bool {
	return c.watch.left() && (!c.watch.called || c.watch.passed == c.PC())
}

// watchFirst does what the last EventWatch has left to do. left is false where
// that is an event.
func (c *CPU) watchFirst() (ev machine.Event, left bool, err error) {
	w := &c.watch
	w.called = false
	if w.also != nil {
		ev, w.also = *w.also, nil
		c.running = c.running && ev.Kind != machine.EventReturned
		return ev, false, nil
	}
	pass := w.pass && w.passed == c.PC()
	w.pass = false
	if !pass {
		return ev, true, nil
	}
	ev, err = c.alone()
	return ev, err == nil && ev.Kind == machine.EventBudget, err
}
