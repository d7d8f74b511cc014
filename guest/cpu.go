//go:build unicorn

package guest

import (
	"errors"
	"fmt"

	"xol/internal/emulator"
	"xol/internal/unicorn"
	"xol/machine"
)

// CPU is one of a machine's CPUs.
type CPU struct {
	Index   int
	running bool // takes part in Machine.Run; Call sets it, and a return clears it

	m      *Machine
	engine *unicorn.Engine
	state  machine.State
	core   registerSet // read at every stop, and at a breakpoint where they are asked for
	wide   registerSet // read where they are asked for, and those that are hidden
	isCore []bool      // by register
	hidden *emulator.Hidden
	fault  struct { // the last access that no page allowed
		seen   bool
		page   uint64
		access machine.Access
	}
	early   [unicorn.Early]int // registers that a breakpoint shows at once
	own     execution          // of instructions that the engine does not know
	lengths []uint8
	watch   watch
	storing storing
	pending int   // offset in the engine's context of amd64's pending exception
	reserve int   // offset there of the address that an exclusive load has reserved
	err     error // that registers could not be reached
	failed  error // of what dealt with a breakpoint
}

// registerSet is a part of the registers that the engine shows.
type registerSet struct {
	links   []emulator.Link
	regs    *unicorn.Registers
	loaded  bool // into the state
	changed bool // in the state only
}

func newSet(links []emulator.Link) registerSet {
	ids := make([]int32, len(links))
	for i, l := range links {
		ids[i] = l.ID
	}
	return registerSet{links: links, regs: unicorn.NewRegisters(ids), loaded: true, changed: true}
}

// inFrame reports whether registers of a kind are in a trap's frame on every ISA.
func inFrame(k machine.Kind) bool {
	switch k {
	case machine.General, machine.StackPointer, machine.PC, machine.Flags:
		return true
	}
	return false
}

func (m *Machine) openCPU(index int) (*CPU, error) {
	c := &CPU{Index: index, m: m, state: m.File.NewState()}
	var err error
	c.engine, err = unicorn.Open(m.model.Arch, func(va uint64, a machine.Access) (uint64, machine.Perm, bool) {
		pa, perm, ok := m.translate(c, va, a)
		if ok {
			perm, ok = c.watch.keep(va, a, perm)
		}
		if !ok {
			c.fault.seen, c.fault.page, c.fault.access = true, va, a
		}
		return pa, perm, ok
	})
	if err != nil {
		return nil, err
	}
	c.split()
	c.hidden = m.model.NewHidden(m.File)
	if m.model.NewExecutor != nil {
		c.own.executor = m.model.NewExecutor()
	}
	if err := c.prepare(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// split divides the registers, and gives those that must have one a value.
func (c *CPU) split() {
	var core, wide []emulator.Link
	c.isCore = make([]bool, len(c.m.File.Registers))
	for _, l := range c.m.model.Links {
		if inFrame(c.m.File.Registers[l.Index].Kind) {
			core = append(core, l)
			c.isCore[l.Index] = true
		} else {
			wide = append(wide, l)
		}
	}
	c.core, c.wide = newSet(core), newSet(wide)
	for i, r := range c.m.File.Registers {
		if r.Set != 0 {
			c.m.File.SetWord(c.state, i, r.Set)
		}
	}
	for i, v := range c.m.target.reset {
		c.m.File.SetWord(c.state, i, v)
	}
}

// prepare sets what no program sees, and shows the engine the memory there is.
func (c *CPU) prepare() error {
	if err := c.engine.Watch(c.m.ISA.Align(), c.m.opt.Exact); err != nil {
		return err
	}
	c.engine.Trace(c.m.opt.Trace != nil)
	c.handleBreakpoints()
	var ids []int32
	for _, k := range c.m.model.Constants {
		ids = append(ids, k.ID)
	}
	regs := unicorn.NewRegisters(ids)
	defer regs.Free()
	for i, k := range c.m.model.Constants {
		*regs.Word(i) = k.Value
	}
	if err := c.engine.Write(regs); err != nil {
		return err
	}
	for i, chunk := range c.m.memory.chunks {
		if err := c.engine.Map(uint64(i)*chunkSize, chunk); err != nil {
			return err
		}
	}
	return nil
}

func (c *CPU) close() error {
	if c.hidden != nil {
		c.hidden.Free()
	}
	c.core.regs.Free()
	c.wide.regs.Free()
	return c.engine.Close()
}

// Running reports whether the CPU takes part in Machine.Run: it has been called
// and has not returned.
func (c *CPU) Running() bool { return c.running }

// SetRunning has it take part, or no longer.
func (c *CPU) SetRunning(running bool) { c.running = running && !c.m.closed }

// Reg returns the low 64 bits of register i of the machine's File.
func (c *CPU) Reg(i int) uint64 {
	if !c.isCore[i] {
		c.load()
	} else if !c.core.loaded && !c.isEarly(i) {
		c.loadCore()
	}
	return c.m.File.Word(c.state, i)
}

// SetReg sets the low 64 bits of register i.
func (c *CPU) SetReg(i int, v uint64) {
	switch {
	case i == c.m.File.PC: // which every run is given
	case c.isCore[i]:
		c.loadCore()
		c.core.changed = true
	default:
		c.load()
		c.wide.changed = true
	}
	c.m.File.SetWord(c.state, i, v)
}

// PC returns the address of the next instruction.
func (c *CPU) PC() uint64 { return c.m.File.Word(c.state, c.m.File.PC) }

// SetPC has the CPU go on at addr.
func (c *CPU) SetPC(addr uint64) { c.m.File.SetWord(c.state, c.m.File.PC, addr) }

// Save copies all registers to dst, which has the size of the File.
func (c *CPU) Save(dst machine.State) {
	c.loadCore()
	c.load()
	copy(dst, c.state)
}

// Restore sets all registers from src.
func (c *CPU) Restore(src machine.State) {
	copy(c.state, src)
	c.core.changed, c.wide.changed = true, true
	c.core.loaded, c.wide.loaded = true, true
}

// SaveCore and RestoreCore are Save and Restore of the registers in a trap's
// frame only: general ones, stack pointer, program counter and flags. They are
// several times as fast.
func (c *CPU) SaveCore(dst machine.State) {
	c.loadCore()
	copy(dst, c.state)
}

// RestoreCore sets them from what SaveCore saved.
func (c *CPU) RestoreCore(src machine.State) {
	for _, l := range c.core.links {
		copy(c.m.File.Bytes(c.state, l.Index), c.m.File.Bytes(src, l.Index))
	}
	c.core.changed, c.core.loaded = true, true
}

// load reads the registers that are not read at every stop.
func (c *CPU) load() {
	if c.wide.loaded || c.err != nil || c.m.closed {
		return
	}
	c.wide.loaded = true
	if c.err = c.engine.Read(c.wide.regs); c.err != nil {
		return
	}
	c.get(&c.wide)
	if c.hidden != nil {
		c.loadCore()
		c.err = c.runHidden(c.hidden.Store)
		c.core.changed = true // the code that does it uses some
	}
}

func (c *CPU) hiddenData() []byte { return c.m.memory.pages[emulator.HiddenData].mem }

// store sets the registers that load reads.
func (c *CPU) store() error {
	c.put(&c.wide)
	if err := c.engine.Write(c.wide.regs); err != nil {
		return err
	}
	c.wide.changed = false
	if c.hidden == nil {
		return nil
	}
	c.core.changed = true
	return c.runHidden(c.hidden.Load)
}

// runHidden runs code that reaches hidden registers. It switches the exception
// after every instruction off.
func (c *CPU) runHidden(f func(*unicorn.Engine, []byte, machine.State) error) error {
	err := f(c.engine, c.hiddenData(), c.state)
	if err == nil && c.own.stepping {
		err = c.m.target.step(c, true)
	}
	return err
}

func (c *CPU) get(s *registerSet) {
	for i, l := range s.links {
		copy(c.m.File.Bytes(c.state, l.Index), s.regs.Bytes(i)[:l.Size])
	}
}

func (c *CPU) put(s *registerSet) {
	for i, l := range s.links {
		value := s.regs.Bytes(i)
		clear(value[:])
		copy(value[:l.Size], c.m.File.Bytes(c.state, l.Index))
	}
}

// Run runs this CPU alone until it has an event or budget instructions ran.
func (c *CPU) Run(budget int) (machine.Event, error) {
	_, ev, err := c.run(budget)
	return ev, err
}

// run returns how many instructions ran as well.
func (c *CPU) run(budget int) (ran int, ev machine.Event, err error) {
	if err := c.m.usable(); err != nil {
		return 0, machine.Event{}, err
	}
	c.m.runs++
	defer func() {
		if closed := c.m.ended(); closed != nil {
			err = closed
		}
	}()
	left := uint64(max(budget, 0))
	if c.reported() {
		left -= min(left, 1)
		if ev, more, err := c.watchFirst(); !more {
			return 1, ev, err
		}
	}
	for {
		stop, number, err := c.resume(left)
		if err != nil && !isExecution(err) {
			return 0, machine.Event{}, err
		}
		left = c.engine.Budget()
		ev, done, failed := c.stopped(stop, number, err)
		if done || failed != nil || c.m.closed {
			c.report()
			return budget - int(left), ev, failed
		}
	}
}

// isExecution reports whether an error of the engine is one of the program.
func isExecution(err error) bool { return err == unicorn.ErrInvalid || err == unicorn.ErrException }

func (c *CPU) resume(budget uint64) (unicorn.Stop, uint32, error) {
	if c.err != nil {
		return 0, 0, c.err
	}
	if c.wide.changed {
		if err := c.store(); err != nil {
			return 0, 0, err
		}
	}
	pc, write := c.PC(), c.core.changed
	if write {
		c.put(&c.core)
	}
	c.fault.seen, c.watch.denied, c.storing.denied = false, false, false
	stop, number, err := c.engine.Go(c.core.regs, write, pc, budget)
	c.get(&c.core)
	c.core.loaded, c.core.changed, c.wide.loaded = true, false, false
	return stop, number, err
}

// stopped turns a stop of the engine into an event, or prepares to go on.
func (c *CPU) stopped(stop unicorn.Stop, number uint32, err error) (ev machine.Event, done bool, failed error) {
	if addr, _ := c.engine.Block(); stopsInFront(stop) {
		c.SetPC(addr)
	}
	if err != nil {
		c.passGate() // its instruction was kept from memory
	}
	pc := c.PC()
	switch {
	case stop == unicorn.StopBlock:
		return c.allow(c.engine.Block())
	case stop == unicorn.StopRefused:
		_, _, r := c.m.check(pc, 1, c.lengths, c.own.executor)
		return r.event(), true, nil
	case stop == unicorn.StopTransfers:
		c.report()
		return machine.Event{}, false, nil
	case stop == unicorn.StopSteps:
		return machine.Event{Kind: machine.EventBudget, Addr: pc}, true, nil
	case stop == unicorn.StopTrap && c.failed != nil:
		failed, c.failed = c.failed, nil
		return machine.Event{}, false, failed
	case stop == unicorn.StopTrap:
		return c.trapped(number)
	case stop == unicorn.StopSyscall:
		c.m.target.syscall(c)
		return machine.Event{Kind: machine.EventSyscall, Addr: pc}, true, nil
	case stop == unicorn.StopInvalid || err == unicorn.ErrInvalid:
		return machine.Event{Kind: machine.EventUndefined, Addr: pc}, true, nil
	case err != nil && c.storing.denied:
		return c.storesText()
	case err != nil && c.watch.denied:
		return c.watched()
	case err != nil && !c.fault.seen:
		return machine.Event{Kind: machine.EventException, Addr: pc}, true, nil
	case err != nil:
		return machine.Event{Kind: machine.EventFault, Addr: pc, Access: c.fault.access, Page: c.fault.page}, true, nil
	case pc == ExitAddress:
		c.running = false
		return machine.Event{Kind: machine.EventReturned, Addr: pc}, true, nil
	}
	return machine.Event{Kind: machine.EventHalt, Addr: pc}, true, nil
}

// stopsInFront reports whether a stop is before a block or instruction of
// which the engine tells the address. Its program counter may be after then, at
// the branch that led there: running on from that would execute it twice.
func stopsInFront(stop unicorn.Stop) bool {
	switch stop {
	case unicorn.StopBlock, unicorn.StopRefused, unicorn.StopSteps, unicorn.StopTransfers:
		return true
	}
	return false
}

// allow lets a block run, up to what must not.
func (c *CPU) allow(addr, size uint64) (ev machine.Event, done bool, err error) {
	lengths, bad, r := c.m.check(addr, size, c.lengths, c.own.executor)
	c.lengths = lengths
	if bad == 0 {
		return r.event(), true, nil
	}
	if bad > 0 {
		if err := c.engine.Refuse(r.inst.Addr); err != nil {
			return machine.Event{}, false, err
		}
	}
	return machine.Event{}, false, c.engine.Allow(addr, size, lengths)
}

func (r *refusal) event() machine.Event {
	return machine.Event{Kind: r.kind, Addr: r.inst.Addr, Inst: r.inst, Reason: r.reason}
}

// report hands the recorded transfers on.
func (c *CPU) report() {
	if c.m.opt.Trace == nil {
		return
	}
	for _, t := range c.engine.Transfers() {
		c.m.opt.Trace(c.Index, t.From, t.To)
	}
}

// expect returns an error unless ev is of kind k, at addr.
func (c *CPU) expect(ev machine.Event, k machine.EventKind, addr uint64) error {
	if ev.Kind != k || ev.Addr != addr {
		return fmt.Errorf("%v at %#x, want %v at %#x", ev.Kind, ev.Addr, k, addr)
	}
	return nil
}
