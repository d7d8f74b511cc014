package machine

import (
	"encoding/binary"
	"errors"
)

// ErrClosed: the machine has been closed.
var ErrClosed = errors.New("machine: it has been closed")

// Machine is the abstract CPU set: CPUs of one ISA that share a memory and take
// turns. It is used by one goroutine at a time. Where it has been closed, whatever
// returns an error returns ErrClosed, there is no memory, and no CPU is running.
type Machine interface {
	// NumCPU returns the number of CPUs.
	NumCPU() int
	// CPU returns one of them, from 0.
	CPU(i int) CPU
	// ByteOrder returns the order of bytes in data.
	ByteOrder() binary.ByteOrder

	// Map gives the program zeroed memory at [addr, addr+size), in whole pages.
	Map(addr, size uint64, perm Perm) error
	// Unmap takes it away.
	Unmap(addr, size uint64) error
	// Memory is all there is, whatever the program may do with it, as the program
	// sees it: without patches. Code that is written, by the program as well, is
	// changed for every CPU, from its next instruction on.
	Memory
	// Patch has CPUs execute code in place of what is at addr, from the next
	// instruction on. The program reads what it has read before, and what it
	// stores there is not executed. Where code is what the program has there,
	// nothing is patched any more.
	Patch(addr uint64, code []byte) error
	// ReadText copies what CPUs execute at addr into dst: memory with its patches.
	ReadText(dst []byte, addr uint64) error
	// Guard has f of OnStore called for stores that change something in a range, or
	// no longer: as often as it was guarded. What is not there is left out.
	Guard(data Range, on bool) error
	// OnStore has f called when a program, or the host by Write, has stored to what
	// is guarded, before any CPU executes another instruction. The CPUs may be used as
	// after an Event. An error ends the run. f may be told more than is guarded.
	OnStore(f func(changed Range) error)
	// Perm returns what the program may do with the page that holds addr; 0
	// where there is none.
	Perm(addr uint64) Perm

	// Run has the CPUs that are running take turns until one of them, whose
	// number is returned, has an event, or until budget instructions ran; the
	// number is -1 then, and where no CPU is running.
	Run(budget int) (cpu int, ev Event, err error)

	// OnBreakpoint has f called with the CPU and address of every breakpoint,
	// while the machine runs: that costs a fraction of an Event. The CPU may be
	// used as after an EventBreakpoint. If f returns true the CPU goes on as f
	// left it, and there is no event. An error ends the run. Else f must have
	// left everything alone: the event follows.
	OnBreakpoint(f func(cpu int, addr uint64) (handled bool, err error))
	// OnCall has f called whenever a CPU comes to an address in gates by a call,
	// which costs less still: so the program calls the host. The CPU may be used
	// as after an Event, its program counter excepted: when f has returned, it
	// executes the instruction there. The same instructions have to be after
	// the gates once more, for the machine's own use. An error ends the run.
	OnCall(gates Range, f func(cpu int, addr uint64) error) error
	// OnClose has f called when the machine is closed, while there is still
	// memory. Where that happens in the middle of a run, the run ends with
	// ErrClosed.
	OnClose(f func()) error
}

// CPU is one CPU of a Machine, while it is stopped.
type CPU interface {
	Registers
	// Save and Restore copy all registers to and from a state of the ISA's
	// File.
	Save(dst State)
	Restore(src State)
	// SaveCore and RestoreCore copy the general registers, stack pointer,
	// program counter and flags only, which takes a fraction of the time.
	SaveCore(dst State)
	RestoreCore(src State)
	// Run runs this CPU alone until it has an event or budget instructions
	// ran.
	Run(budget int) (Event, error)
	// SingleStep has an EventStep follow every instruction, or no longer. It
	// is an error where the machine has no such exception.
	SingleStep(on bool) error
	// Call has the CPU call f when it runs next; it is running until f
	// returns.
	Call(f Function, args ...uint64) error
	// GiveUp ends that call, wherever it is: the CPU is not running, nothing is
	// left to be reported, there is no EventStep, and the program counter is
	// where it is when a function has returned.
	GiveUp() error
	// Result returns what a function that has returned returned.
	Result() uint64
	// Running reports whether the CPU takes part in Machine.Run.
	Running() bool
	// SetRunning makes it take part, or no longer.
	SetRunning(running bool)
}

// TaskSwitcher is a Machine whose CPUs keep more of a task than its registers.
type TaskSwitcher interface {
	Machine
	// SwitchTask has a CPU go on with another task. A reservation that an exclusive load
	// has made is lost, as where a kernel switches. What the CPU has left to do in the
	// task that it leaves is returned, and handed over as left when a CPU goes on with
	// that task; nil is nothing.
	SwitchTask(cpu int, left any) any
}

// Function is where a function starts, and what its descriptor holds where the
// ABI has descriptors.
type Function struct {
	Entry    uint64
	TOC, Env uint64 // of an ELFv1 descriptor
}

// Watcher is a Machine whose CPUs report accesses to data.
type Watcher interface {
	Machine
	// Watch has a CPU report accesses to the watched data by an EventWatch, in
	// place of what it watched before. The event comes where the ISA's debug
	// facility has it: after the instruction, or before it; then the
	// instruction is executed when the CPU runs on, and not reported again.
	Watch(cpu int, list []Watch) error
	// Watched returns what the last EventWatch of a CPU is about. It is valid
	// until the CPU runs on.
	Watched(cpu int) []Watched
}
