//go:build unicorn

// Package emulator runs code in Unicorn for package machine, on every ISA. What
// the engine runs wrongly, or not at all, is refused before it executes.
package emulator

import (
	"fmt"
	"slices"

	"xol/decode"
	"xol/internal/unicorn"
	"xol/machine"
)

// link ties a register of the machine.File to one of the engine's.
type link struct {
	index int   // in the File
	id    int32 // the engine's number
	size  int   // bytes that the engine holds, 16 at most
}

// constant is a register of the engine that has the same value in every run.
type constant struct {
	id    int32
	value uint64
}

// setup is what the emulator has to know of an ISA.
type setup struct {
	arch      unicorn.Arch
	links     []link // the program counter's among them
	constants []constant
	skip      func(*decode.Inst) string
	event     func(trap uint32) machine.Event
	blank     byte // fills memory that has no instructions, and ends what the engine translates
	hidden    bool // registers that only guest code reaches: see stub
}

var setups = map[string]func(*machine.File) setup{
	"amd64":   amd64Setup,
	"arm64":   arm64Setup,
	"ppc64":   func(f *machine.File) setup { return ppc64Setup(f, unicorn.PPC64) },
	"ppc64le": func(f *machine.File) setup { return ppc64Setup(f, unicorn.PPC64LE) },
}

// Emulator is a machine.Engine.
type Emulator struct {
	setup
	file   *machine.File
	pc     int32 // the engine's number
	engine *unicorn.Engine
	regs   *unicorn.Registers
	mem    *memory
	parts  []machine.Part
	stub   *stub // where hidden
}

// Open returns an emulator for the ISA of that name ("amd64", "arm64",
// "ppc64", "ppc64le") with its register file.
func Open(name string, file *machine.File) (*Emulator, error) {
	prepare, ok := setups[name]
	if !ok {
		return nil, fmt.Errorf("emulator: no ISA %s", name)
	}
	e := &Emulator{setup: prepare(file), file: file}
	mem, err := newMemory(e.blank)
	if err != nil {
		return nil, err
	}
	e.mem = mem
	if e.engine, err = unicorn.Open(e.arch, mem.translate); err != nil {
		return nil, closing(err, mem.close)
	}
	if err := e.engine.Map(0, mem.arena); err != nil {
		return nil, closing(err, e.engine.Close, mem.close)
	}
	e.regs = e.registers()
	if e.hidden {
		e.stub = newStub(e)
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
	for _, l := range e.links {
		ids = append(ids, l.id)
		if l.index == e.file.PC {
			e.pc = l.id
		}
	}
	for _, c := range e.constants {
		ids = append(ids, c.id)
	}
	return unicorn.NewRegisters(ids)
}

// Name returns "unicorn".
func (e *Emulator) Name() string { return "unicorn" }

// Skip says why the engine does not run inst.
func (e *Emulator) Skip(inst *decode.Inst) string { return e.skip(inst) }

// Close frees the engine and its memory.
func (e *Emulator) Close() error {
	if e.stub != nil {
		e.stub.regs.Free()
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
	e.mem.drop(func(p *page) bool { return !inStub(p.va) })
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
	if e.stub != nil {
		if err := e.stub.enter(e, in); err != nil {
			return machine.Event{}, nil, err
		}
	}
	e.setRegisters(in)
	stop, number, err := e.engine.Run(e.regs, e.pc, stay.Lo, stay.Hi, 1, steps)
	event := e.ended(stop, number, err)
	copy(out, in)
	e.getRegisters(out)
	if e.stub != nil {
		if err := e.stub.leave(e, out); err != nil {
			return event, nil, err
		}
	}
	return event, e.mem.changes(), nil
}

func (e *Emulator) setRegisters(s machine.State) {
	for i, l := range e.links {
		value := e.regs.Bytes(i)
		clear(value[:])
		copy(value[:l.size], e.file.Bytes(s, l.index))
	}
	for i, c := range e.constants {
		*e.regs.Word(len(e.links) + i) = c.value
	}
}

func (e *Emulator) getRegisters(s machine.State) {
	for i, l := range e.links {
		copy(e.file.Bytes(s, l.index), e.regs.Bytes(i)[:l.size])
	}
}

// ended translates how a run ended. An error without a stop is an access that
// the engine takes as an exception of the memory.
func (e *Emulator) ended(stop unicorn.Stop, number uint32, err error) machine.Event {
	switch {
	case stop == unicorn.StopInvalid || err == unicorn.ErrInvalid:
		return machine.Event{Kind: machine.EventInvalid}
	case stop == unicorn.StopTrap:
		return e.event(number)
	case stop == unicorn.StopSyscall:
		return machine.Event{Kind: machine.EventSyscall}
	case err != nil:
		return machine.Event{Kind: machine.EventFault}
	case stop == unicorn.StopSteps:
		return machine.Event{Kind: machine.EventSteps}
	}
	return machine.Event{Kind: machine.EventLeft}
}
