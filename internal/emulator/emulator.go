//go:build unicorn

package emulator

import (
	"slices"

	"xol/decode"
	"xol/internal/unicorn"
	"xol/machine"
)

// Emulator is a machine.Engine.
type Emulator struct {
	Model
	file   *machine.File
	pc     int32 // the engine's number
	engine *unicorn.Engine
	regs   *unicorn.Registers
	mem    *memory
	parts  []machine.Part
	hidden *Hidden     // nil where the host reaches every register
	own    Executor    // nil where the engine does it all
	inst   decode.Inst // that own executes
}

// Open returns an emulator for the ISA of that name ("amd64", "arm64",
// "ppc64", "ppc64le") with its register file.
func Open(name string, file *machine.File) (*Emulator, error) {
	model, err := ModelOf(name, file)
	if err != nil {
		return nil, err
	}
	e := &Emulator{Model: model, file: file}
	mem, err := newMemory(e.blank)
	if err != nil {
		return nil, err
	}
	e.mem = mem
	if e.engine, err = unicorn.Open(e.Arch, mem.translate); err != nil {
		return nil, closing(err, mem.close)
	}
	if err := e.engine.Map(0, mem.arena); err != nil {
		return nil, closing(err, e.engine.Close, mem.close)
	}
	if e.pends != nil {
		if _, err := e.engine.Context(); err != nil {
			return nil, closing(err, e.engine.Close, mem.close)
		}
	}
	e.regs = e.registers()
	e.hidden = e.NewHidden(file)
	if e.NewExecutor != nil {
		e.own = e.NewExecutor()
	}
	return e, nil
}

func closing(err error, steps ...func() error) error {
	for _, step := range steps {
		step()
	}
	return err
}

// registers allots memory for the linked and the constant registers.
func (e *Emulator) registers() *unicorn.Registers {
	var ids []int32
	for _, l := range e.Links {
		ids = append(ids, l.ID)
		if l.Index == e.file.PC {
			e.pc = l.ID
		}
	}
	for _, c := range e.Constants {
		ids = append(ids, c.ID)
	}
	return unicorn.NewRegisters(ids)
}

// Name returns "unicorn".
func (e *Emulator) Name() string { return "unicorn" }

// Skip says why the engine does not run inst.
func (e *Emulator) Skip(inst *decode.Inst) string {
	if e.own == nil || !e.own.Knows(inst) {
		if reason := e.Defect(inst); reason != "" {
			return reason
		}
	}
	return e.skip(inst)
}

// Close frees the engine and its memory.
func (e *Emulator) Close() error {
	if e.hidden != nil {
		e.hidden.Free()
	}
	e.regs.Free()
	err := e.engine.Close()
	if unmapped := e.mem.close(); err == nil {
		err = unmapped
	}
	return err
}

// Load puts parts into memory.
func (e *Emulator) Load(parts []machine.Part) error {
	if err := e.forget(e.parts); err != nil {
		return err
	}
	e.mem.drop(func(p *page) bool { return !isHidden(p.va) })
	if err := e.engine.FlushTLB(); err != nil {
		return err
	}
	e.parts = e.parts[:0]
	for _, p := range parts {
		if err := e.mem.put(p); err != nil {
			return err
		}
		e.parts = append(e.parts, machine.Part{Addr: p.Addr, Code: slices.Clone(p.Code)})
	}
	return e.forget(parts)
}

// forget drops what the engine translated from parts, page by page: the engine
// takes what follows in one page to follow in memory.
func (e *Emulator) forget(parts []machine.Part) error {
	for _, p := range parts {
		end := p.Addr + uint64(len(p.Code))
		for lo := p.Addr; lo < end; {
			hi := min(end, lo&^pageMask+unicorn.PageSize)
			if err := e.engine.RemoveCache(lo, hi); err != nil {
				return err
			}
			lo = hi
		}
	}
	return nil
}

// Run executes code; see machine.Engine.
func (e *Emulator) Run(out, in machine.State, seed uint64, stay machine.Range, steps int) (machine.Event, []machine.Write, error) {
	if e.mem.reset(seed) {
		if err := e.engine.FlushTLB(); err != nil {
			return machine.Event{}, nil, err
		}
	}
	copy(out, in)
	for {
		event, left, err := e.runEngine(out, stay, steps)
		if err != nil {
			return event, nil, err
		}
		if event.Kind == machine.EventUndefined && e.own != nil {
			var goOn bool
			if event, goOn = e.execute(out); goOn {
				steps = left
				continue
			}
		}
		return event, e.mem.changes(), nil
	}
}

// runEngine executes code up to an event, and returns how many of the steps are
// left.
func (e *Emulator) runEngine(s machine.State, stay machine.Range, steps int) (machine.Event, int, error) {
	if e.hidden != nil {
		if err := e.enter(s); err != nil {
			return machine.Event{}, 0, err
		}
	}
	e.setRegisters(s)
	stop, number, err := e.engine.Run(e.regs, e.pc, stay.Lo, stay.Hi, 1, steps)
	event, left := e.ended(stop, number, err), e.engine.Left()
	e.getRegisters(s)
	if stop == unicorn.StopTrap && e.pends != nil && e.pends(number) {
		// The state of an engine that has run nothing yet: no exception pends.
		if err := e.engine.SetContext(); err != nil {
			return event, left, err
		}
	}
	if e.hidden != nil {
		return event, left, e.leave(s)
	}
	return event, left, nil
}

func (e *Emulator) setRegisters(s machine.State) {
	for i, l := range e.Links {
		value := e.regs.Bytes(i)
		clear(value[:])
		copy(value[:l.Size], e.file.Bytes(s, l.Index))
	}
	for i, c := range e.Constants {
		*e.regs.Word(len(e.Links) + i) = c.Value
	}
}

func (e *Emulator) getRegisters(s machine.State) {
	for i, l := range e.Links {
		copy(e.file.Bytes(s, l.Index), e.regs.Bytes(i)[:l.Size])
	}
}

// ended translates how a run ended. An error without a stop is an access that
// the engine takes as an exception of the memory.
func (e *Emulator) ended(stop unicorn.Stop, number uint32, err error) machine.Event {
	switch {
	case stop == unicorn.StopInvalid || err == unicorn.ErrInvalid:
		return machine.Event{Kind: machine.EventUndefined}
	case stop == unicorn.StopTrap:
		return e.event(number)
	case stop == unicorn.StopSyscall:
		return machine.Event{Kind: machine.EventSyscall}
	case err != nil:
		return machine.Event{Kind: machine.EventFault}
	case stop == unicorn.StopSteps:
		return machine.Event{Kind: machine.EventBudget}
	}
	return machine.Event{Kind: machine.EventLeft}
}
