// Package workload calls the functions of the programs in testdata/guest with
// random arguments, and knows what they have to return: Go's own library, or
// the same in Go, says so.
package workload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Memory is a guest's memory.
type Memory interface {
	Read(dst []byte, addr uint64) error
	Write(addr uint64, src []byte) error
}

// Buffer is memory for the arguments of one call at a time.
type Buffer struct {
	Memory
	Order binary.ByteOrder
	Addr  uint64 // of Size bytes
}

// Size is that of a Buffer, in bytes.
const Size = 16 << 10

// Call is a call that is ready to be made.
type Call struct {
	Function string
	Args     []uint64
	// Check says what is wrong with what the function returned and left in the
	// buffer.
	Check func(result uint64) error
}

// Workload makes calls of a function.
type Workload struct {
	Name string // of the function
	New  func(b *Buffer, r *rand.Rand) (Call, error)
}

// All returns the workloads. Calls of them may run at the same time on several
// CPUs.
func All() []Workload {
	return []Workload{
		{"memmove", moving}, {"memset", setting}, {"length", measuring}, {"compare", comparing},
		{"find", finding}, {"number", reading},
		{"sort_words", sorting("sort_words")}, {"heap_sort", sorting("heap_sort")},
		{"crc32", summing("crc32")}, {"crc32_bitwise", summing("crc32_bitwise")}, {"sha256", hashing},
		{"format", formatting},
		{"run_switch", running("run_switch")}, {"run_goto", running("run_goto")}, {"run_offsets", running("run_offsets")},
		{"classes", counting}, {"days", dating},
		{"unwind", unwinding}, {"unwind_builtin", unwindingBuiltin},
	}
}

// wants returns a Check for a function that only returns something.
func wants(want uint64) func(uint64) error {
	return func(got uint64) error {
		if got != want {
			return fmt.Errorf("returned %#x, want %#x", got, want)
		}
		return nil
	}
}

// leaves returns a Check for a function that leaves want at addr.
func (b *Buffer) leaves(addr uint64, want []byte) func(uint64) error {
	return func(uint64) error {
		got := make([]byte, len(want))
		if err := b.Read(got, addr); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("left %q, want %q", got, want)
		}
		return nil
	}
}

// both returns a Check of what is returned and left.
func both(a, b func(uint64) error) func(uint64) error {
	return func(result uint64) error {
		if err := a(result); err != nil {
			return err
		}
		return b(result)
	}
}

// random returns up to n random bytes.
func random(r *rand.Rand, n int) []byte {
	data := make([]byte, r.IntN(n+1))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// word returns up to n of the first letters of the alphabet.
func word(r *rand.Rand, n, letters int) string {
	s := make([]byte, r.IntN(n+1))
	for i := range s {
		s[i] = 'a' + byte(r.IntN(letters))
	}
	return string(s)
}
