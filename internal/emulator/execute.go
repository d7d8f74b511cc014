//go:build unicorn

package emulator

import (
	"encoding/binary"
	"errors"

	"xol/decode"
	"xol/internal/unicorn"
	"xol/machine"
)

// Executor executes instructions that the engine does not know, and for which it
// raises the exception of an undefined one. It is used by one goroutine at a time.
type Executor interface {
	decode.Decoder
	// Undefined returns the address of an undefined instruction, where pc is
	// the program counter after its exception.
	Undefined(pc uint64) uint64
	// Knows reports whether Execute can execute inst.
	Knows(inst *decode.Inst) bool
	// Execute does what inst does. On an error nothing has changed: it is an
	// ExceptionError or one of the memory.
	Execute(inst *decode.Inst, r machine.WideRegisters, m machine.Memory) error
}

// ExceptionError is an exception that an executed instruction raises, by the
// engine's number.
type ExceptionError uint32

func (ExceptionError) Error() string { return "emulator: exception" }

// execute executes the undefined instruction at which the engine stopped, if it
// is one that the executor knows. Otherwise it returns how the run ended.
func (e *Emulator) execute(s machine.State) (event machine.Event, goOn bool) {
	pc := e.own.Undefined(e.file.Word(s, e.file.PC))
	var code [decode.MaxLen]byte
	err := e.mem.access(pc, code[:], machine.AccessFetch, func(dst, src []byte) { copy(dst, src) })
	if err != nil || e.own.Decode(&e.inst, code[:], pc) != nil || !e.own.Knows(&e.inst) {
		return machine.Event{Kind: machine.EventUndefined}, false
	}
	err = e.own.Execute(&e.inst, stateRegisters{e.file, s}, runMemory{e})
	if err == nil {
		return machine.Event{}, true
	}
	e.file.SetWord(s, e.file.PC, pc)
	var exception ExceptionError
	if errors.As(err, &exception) {
		return machine.Event{Kind: machine.EventException, Number: uint64(exception)}, false
	}
	return machine.Event{Kind: machine.EventFault}, false
}

// stateRegisters are those of a state.
type stateRegisters struct {
	file  *machine.File
	state machine.State
}

func (r stateRegisters) Reg(i int) uint64       { return r.file.Word(r.state, i) }
func (r stateRegisters) SetReg(i int, v uint64) { r.file.SetWord(r.state, i, v) }

func (r stateRegisters) Wide(i int) (low, high uint64) {
	value := r.file.Bytes(r.state, i)
	return binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[8:])
}

func (r stateRegisters) SetWide(i int, low, high uint64) {
	value := r.file.Bytes(r.state, i)
	binary.LittleEndian.PutUint64(value, low)
	binary.LittleEndian.PutUint64(value[8:], high)
}

// runMemory is the memory of a run, which appears where it is touched.
type runMemory struct{ e *Emulator }

func (m runMemory) Read(dst []byte, addr uint64) error {
	return m.e.mem.access(addr, dst, machine.AccessRead, func(dst, src []byte) { copy(dst, src) })
}

func (m runMemory) Write(addr uint64, src []byte) error {
	if err := m.e.mem.access(addr, src, machine.AccessWrite, func(_, _ []byte) {}); err != nil {
		return err
	}
	return m.e.mem.access(addr, src, machine.AccessWrite, func(src, dst []byte) { copy(dst, src) })
}

func (m runMemory) ReadWord(addr uint64) (uint64, error) {
	var b [8]byte
	err := m.Read(b[:], addr)
	return m.order().Uint64(b[:]), err
}

func (m runMemory) WriteWord(addr, value uint64) error {
	var b [8]byte
	m.order().PutUint64(b[:], value)
	return m.Write(addr, b[:])
}

func (m runMemory) order() binary.ByteOrder {
	if m.e.Arch == unicorn.PPC64 {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// access calls f with the parts of data and of the memory at addr that lie in one
// page each.
func (m *memory) access(addr uint64, data []byte, a machine.Access, f func(data, mem []byte)) error {
	for len(data) > 0 {
		pa, _, ok := m.translate(addr&^pageMask, a)
		if !ok {
			return errArena
		}
		mem := m.arena[pa+addr&pageMask : pa+unicorn.PageSize]
		n := min(len(data), len(mem))
		f(data[:n], mem[:n])
		data, addr = data[n:], addr+uint64(n)
	}
	return nil
}
