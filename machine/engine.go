package machine

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"xol/decode"
)

// Part is code at an address.
type Part struct {
	Addr uint64
	Code []byte
}

// Range is the addresses [Lo, Hi).
type Range struct{ Lo, Hi uint64 }

// Holds reports whether the range holds addr.
func (r Range) Holds(addr uint64) bool { return addr-r.Lo < r.Hi-r.Lo }

// Write is an aligned 8-byte word of memory that a run changed.
type Write struct {
	Addr uint64
	Old  uint64 // in the order of bytes in memory, lowest address first
	New  uint64
}

// Compare orders writes by address.
func (w Write) Compare(o Write) int { return cmp.Compare(w.Addr, o.Addr) }

// AppendChanges appends the words that differ between two contents of the
// memory at addr.
func AppendChanges(writes []Write, addr uint64, before, after []byte) []Write {
	if bytes.Equal(before, after) {
		return writes
	}
	for i := 0; i+8 <= len(before); i += 8 {
		was, is := binary.BigEndian.Uint64(before[i:]), binary.BigEndian.Uint64(after[i:])
		if was != is {
			writes = append(writes, Write{addr + uint64(i), was, is})
		}
	}
	return writes
}

// Engine executes code from given states. Memory appears where it is touched;
// its contents depend only on its address and the run's seed (Fill).
// An Engine is used by one goroutine at a time.
type Engine interface {
	// Name returns "unicorn" or "cpu".
	Name() string
	// Skip says why the engine does not run an instruction, in the words of a
	// class of instructions; empty where it does.
	Skip(inst *decode.Inst) string
	// Load puts code into memory, for all runs to come, in place of what was
	// loaded before.
	Load(parts []Part) error
	// Run executes from in, whose program counter must be in one of the
	// parts, until the program counter is outside stay or steps instructions
	// are done. It fills out and returns what was written, sorted by address;
	// the slice is valid until the next Run.
	Run(out, in State, seed uint64, stay Range, steps int) (Event, []Write, error)
	// Close releases the engine.
	Close() error
}
