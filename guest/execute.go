//go:build unicorn

package guest

import (
	"encoding/binary"
	"errors"

	"xol/decode"
	"xol/internal/emulator"
	"xol/machine"
)

// execution is what a CPU needs to execute instructions that the engine does not
// know.
type execution struct {
	executor emulator.Executor // nil where the engine does it all
	code     [decode.MaxLen]byte
	inst     decode.Inst
	stepping bool // an exception follows every instruction
}

var _ machine.WideRegisters = (*CPU)(nil)

// Wide returns the halves of register i of the machine's File, which is 16 bytes
// wide.
func (c *CPU) Wide(i int) (low, high uint64) {
	c.load()
	value := c.m.File.Bytes(c.state, i)
	return binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[8:])
}

// SetWide sets them.
func (c *CPU) SetWide(i int, low, high uint64) {
	c.load()
	c.wide.changed = true
	value := c.m.File.Bytes(c.state, i)
	binary.LittleEndian.PutUint64(value, low)
	binary.LittleEndian.PutUint64(value[8:], high)
}

// trapped turns an exception of the engine into an event, or executes the
// instruction that the engine does not know, but has counted.
func (c *CPU) trapped(number uint32) (ev machine.Event, done bool, err error) {
	ev = c.m.target.trap(c, number)
	switch {
	case ev.Kind != machine.EventUndefined || c.own.executor == nil || !c.decode(ev.Addr):
		return ev, true, nil
	case !c.own.executor.Knows(&c.own.inst):
		ev.Kind, ev.Inst, ev.Reason = machine.EventRefused, c.own.inst, "the engine does not know it"
		return ev, true, nil
	}
	if err = c.own.executor.Execute(&c.own.inst, c, programMemory{c}); err != nil {
		ev, err = c.notExecuted(ev.Addr, err)
		return ev, true, err
	}
	if c.own.stepping {
		return machine.Event{Kind: machine.EventStep, Addr: c.PC()}, true, c.err
	}
	return machine.Event{}, false, c.err
}

// notExecuted says why the instruction at addr was not executed.
func (c *CPU) notExecuted(addr uint64, err error) (machine.Event, error) {
	var exception emulator.ExceptionError
	switch {
	case errors.Is(err, errWatched):
		c.watch.passed, c.watch.pass = addr, true
		return machine.Event{Kind: machine.EventWatch, Addr: addr}, nil
	case errors.Is(err, errAccess):
		return machine.Event{Kind: machine.EventFault, Addr: addr, Access: c.fault.access, Page: c.fault.page}, nil
	case errors.As(err, &exception):
		return machine.Event{Kind: machine.EventException, Addr: addr, Number: uint64(exception)}, nil
	}
	return machine.Event{}, errors.Join(err, c.err)
}

// decode reports whether there is an instruction at addr.
func (c *CPU) decode(addr uint64) bool {
	n := c.m.readSome(c.own.code[:], addr)
	return c.m.ISA.Decode(&c.own.inst, c.own.code[:n], addr) == nil
}

// programMemory is memory as the program on a CPU may use it. Where it may not,
// the CPU has the fault.
type programMemory struct{ c *CPU }

var (
	errAccess  = errors.New("guest: access not allowed")
	errWatched = errors.New("guest: access is watched")
)

func (p programMemory) check(addr, size uint64, a machine.Access, perm machine.Perm) error {
	return each(addr, size, func(at, _ uint64) error {
		if p.c.m.Perm(at)&perm != 0 {
			return nil
		}
		p.c.fault.access, p.c.fault.page = a, at&^pageMask
		return errAccess
	})
}

func (p programMemory) Read(dst []byte, addr uint64) error {
	if err := p.check(addr, uint64(len(dst)), machine.AccessRead, machine.PermRead); err != nil {
		return err
	}
	if p.c.watch.reports(p.c.m, addr, len(dst), machine.WatchRead, nil) {
		return errWatched
	}
	return p.c.m.Read(dst, addr)
}

func (p programMemory) Write(addr uint64, src []byte) error {
	if err := p.check(addr, uint64(len(src)), machine.AccessWrite, machine.PermWrite); err != nil {
		return err
	}
	if p.c.watch.reports(p.c.m, addr, len(src), machine.WatchWrite, src) {
		return errWatched
	}
	return p.c.m.Write(addr, src)
}

func (p programMemory) ReadWord(addr uint64) (uint64, error) {
	var b [8]byte
	if err := p.Read(b[:], addr); err != nil {
		return 0, err
	}
	return p.c.m.fromBytes(b[:]), nil
}

func (p programMemory) WriteWord(addr, value uint64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], p.c.m.swap(value))
	return p.Write(addr, b[:])
}
