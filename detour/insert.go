package detour

import (
	"errors"

	"xol/decode"
	"xol/machine"
)

// ErrNoTimer: the ISA has no code that takes the time.
var ErrNoTimer = errors.New("taking the time inside the program is not supported on this instruction set")

// ErrInsertion: what is to be inserted makes no sense, such as a table of no entries.
var ErrInsertion = errors.New("invalid insertion")

// Inserter makes code that is put before a moved instruction. It counts or takes the
// time, in the program and without stopping it, and changes nothing else that the
// program can see: no register, no flag that is read later, and no memory but its own
// and, for a moment, what is below the red zone. It may be interrupted by a signal
// after any of its instructions, and calls nothing.
type Inserter interface {
	// InsertSize returns bounds of the code's size in bytes, at any address, for any
	// addresses that it works on and any Timer.Scale. It answers ErrNoTimer or
	// ErrInsertion.
	InsertSize(in *Insertion) (least, most int, err error)
	// InsertStack returns bounds of the bytes below the stack pointer that the code uses,
	// at any address, the red zone among them. Where a stack may be used up to its last
	// byte, as that of a goroutine in functions that do not check it, there is no room
	// for more than 0. Of what InsertSize refuses the bounds are 0.
	InsertStack(in *Insertion) (least, most int)
	// AppendInsertion appends the code, whose first byte stands at the address at. What
	// it works on may be anywhere; on amd64 it is shorter where that is within 2 GiB.
	// The address must have the alignment of code. It answers ErrNoTimer or
	// ErrInsertion, and returns code as it was then.
	AppendInsertion(code []byte, at uint64, in *Insertion) ([]byte, error)
	// Committed reports whether the insertion that starts with code, of which all has
	// been executed since, has done what it is for: has counted, or taken the time.
	// r is the thread's registers after that. A thread that is stopped in an insertion
	// is put back by Unwind; it has to execute the insertion again if Committed
	// answers false, and must not if it answers true.
	Committed(code []byte, r machine.Registers) bool
	// DeadFlags returns status flags, as bits of the flags register, whose values
	// before insts[i] no instruction can see: on every way from there they are
	// overwritten first. insts are in the order of addresses. What the answer takes
	// for granted is in opt. An ISA whose insertions have no use for it answers 0.
	DeadFlags(insts []decode.Inst, i int, opt LivenessOptions) uint64
	// SavesFlags reports whether a function saves all status flags. Such a one stands
	// outside of the calling convention: it returns to code that it has interrupted
	// with the flags that it came with, as runtime.asyncPreempt of Go does. An ISA
	// whose DeadFlags answers 0 answers false.
	SavesFlags(insts []decode.Inst) bool
}

// LivenessOptions say what may be relied on. The zero value relies on instructions
// alone: what is not known to be overwritten is live.
type LivenessOptions struct {
	// ABI says that code keeps to the calling convention, by which no status flag is
	// passed to a function or returned from one [System V ABI, AMD64 supplement,
	// 3.2.1]. Compilers do. Assembly that is called from assembly may not: libcrypto
	// of OpenSSL 3 reads flags after 90 of its calls. It must not be said of a function
	// of which SavesFlags is true.
	ABI bool
	// Entry says that the instruction is where a function starts, to which execution
	// comes by calls, and jumps in place of calls, only.
	Entry bool
}

// Action is what an insertion is for.
type Action uint8

const (
	// Count adds 1 to a word, atomically.
	Count Action = iota
	// StartTimer is for the entry of a function, before anything has changed the
	// stack pointer: it notes the time under the stack pointer.
	StartTimer
	// StopTimer is for the place before a return of the function, where the stack
	// pointer is as at its entry: it looks for what StartTimer has noted, forgets
	// it, and counts the time that has passed in the histogram.
	StopTimer
	// StopTimerAtJump is StopTimer before a jump out of the function. It may be one to
	// another part of it, where the stack pointer is another one: a time that is not
	// found does not count as missed. Before a conditional jump it stops the timer
	// whether or not the jump is taken, so there it belongs on the way that is.
	StopTimerAtJump
)

// Insertion is code to insert, before its address is known.
type Insertion struct {
	Action Action
	// Counter is the address of the word that Count adds to: 8 bytes, aligned to that.
	Counter uint64
	// Timer is what the other actions work on.
	Timer Timer
	// NoRedZone says that nothing below the stack pointer has to be kept. Kernel says
	// that the code runs in kernel mode; on amd64 it implies NoRedZone. (See
	// relocate.Options.)
	NoRedZone, Kernel bool
	// DeadFlags are status flags that need not be kept, as bits of the flags register.
	DeadFlags uint64
}

// Timer is where the code that takes the time keeps it. All of the memory is 0 before
// the first use. Calls are found by the stack pointer at the function's entry, which no
// two live calls of a process have in common, so that one table serves all functions
// and threads, recursion and coroutines too. A forked child has the same stack pointers:
// the table must be in private memory. A call that is left without a return, by longjmp
// or an exception, leaves its entry in the table until it is overwritten, by the next
// call at the same stack pointer or by one that finds no other room.
type Timer struct {
	// Table is the address of the table: TableSize bytes, aligned to 64.
	Table uint64
	// SlotBits is the binary logarithm of the number of entries, from 3 to 24; 0 means
	// DefaultSlotBits.
	SlotBits uint8
	// Histogram is the address of a Histogram, aligned to 64. It also tells
	// functions apart: each has its own.
	Histogram uint64
	// Scale turns ticks of the CPU's clock into the unit of the histogram: units in a
	// tick, times 2^32. 0 leaves ticks.
	Scale uint64
}

// DefaultSlotBits is the binary logarithm of the number of entries of a table for which
// nothing else is asked: 4096 calls may be open at a time.
const DefaultSlotBits = 12

// Bounds of Timer.SlotBits.
const (
	minSlotBits = 3
	maxSlotBits = 24
)

// TimerWindow is the number of entries at which a call may be, from the one that its
// stack pointer chooses.
const TimerWindow = 8

// TimerEntry is an entry of the table.
type TimerEntry struct {
	StackPointer uint64 // at the function's entry; 0 where the entry is free
	Start        uint64 // the time at the entry, in ticks
	Histogram    uint64 // the function's
	_            uint64
}

// TimerEntrySize is the size of a TimerEntry in bytes.
const TimerEntrySize = 32

// Slots returns the binary logarithm of the number of entries; or ErrInsertion.
func (t *Timer) Slots() (bits int, err error) {
	switch {
	case t.SlotBits == 0:
		return DefaultSlotBits, nil
	case t.SlotBits < minSlotBits || t.SlotBits > maxSlotBits:
		return 0, ErrInsertion
	}
	return int(t.SlotBits), nil
}

// TableSize returns the size of the table in bytes; or ErrInsertion. The entries at
// which the last of them go on when it is taken are among it.
func (t *Timer) TableSize() (int, error) {
	bits, err := t.Slots()
	if err != nil {
		return 0, err
	}
	return (1<<bits + TimerWindow) * TimerEntrySize, nil
}

// Histogram is what the times of a function are counted in, as it lies in the program's
// memory: words that code in the program adds to atomically.
type Histogram struct {
	// Buckets counts the calls that took from 2^i to less than 2^(i+1) units; those
	// below one unit are in the first.
	Buckets [64]uint64
	// Missed counts the returns of calls whose start was not in the table: they began
	// before the insertion did, or others needed the room.
	Missed uint64
	// Jumps counts what StopTimerAtJump did not find.
	Jumps uint64

	_ [6]uint64 // the first is written to, and stays 0
}

// HistogramSize is the size of a Histogram in bytes, a multiple of 64.
const HistogramSize = 72 * 8

// Words of a Histogram after its buckets, for the ISAs' own use.
const (
	HistogramMissed = 64
	HistogramJumps  = 65
	HistogramNone   = 66
)
