// Package cputest is a CPU for tests of what interprets instructions: a
// register file's values, and memory as engines have it, which appears where it
// is touched.
package cputest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"xol/machine"
)

// CPU implements machine.Registers and machine.Memory.
type CPU struct {
	File      *machine.File
	State     machine.State
	BigEndian bool
	Seed      uint64        // of memory's contents
	Limit     machine.Range // the addresses where memory may be; all where it is empty

	first, words map[uint64]uint64 // those that were set, by address; little-endian
}

// New returns a CPU whose registers are 0.
func New(f *machine.File, bigEndian bool, limit machine.Range) *CPU {
	return &CPU{
		File: f, State: f.NewState(), BigEndian: bigEndian, Limit: limit,
		first: map[uint64]uint64{}, words: map[uint64]uint64{},
	}
}

// Clone returns a copy.
func (c *CPU) Clone() *CPU {
	o := *c
	o.State, o.first, o.words = slices.Clone(c.State), maps.Clone(c.first), maps.Clone(c.words)
	return &o
}

// Reset sets all registers, and memory to what the seed makes of it.
func (c *CPU) Reset(s machine.State, seed uint64) {
	copy(c.State, s)
	c.Seed = seed
	clear(c.first)
	clear(c.words)
}

// Load puts code into memory; it counts as having been there.
func (c *CPU) Load(p machine.Part) error {
	err := c.Write(p.Addr, p.Code)
	maps.Copy(c.first, c.words)
	return err
}

// Reg returns the low 64 bits of a register.
func (c *CPU) Reg(i int) uint64 { return c.File.Word(c.State, i) }

// SetReg sets the low 64 bits of a register.
func (c *CPU) SetReg(i int, v uint64) { c.File.SetWord(c.State, i, v) }

// Wide returns both halves of a register of 16 bytes.
func (c *CPU) Wide(i int) (low, high uint64) {
	b := c.File.Bytes(c.State, i)
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
}

// SetWide sets them.
func (c *CPU) SetWide(i int, low, high uint64) {
	b := c.File.Bytes(c.State, i)
	binary.LittleEndian.PutUint64(b, low)
	binary.LittleEndian.PutUint64(b[8:], high)
}

// ErrLimit says that there is no memory at an address.
var ErrLimit = errors.New("no memory there")

func (c *CPU) check(addr uint64, size int) error {
	last := addr + uint64(size) - 1
	if c.Limit != (machine.Range{}) && !(c.Limit.Holds(addr) && c.Limit.Holds(last)) {
		return fmt.Errorf("%#x: %w", addr, ErrLimit)
	}
	return nil
}

// word returns the aligned word at addr.
func (c *CPU) word(addr uint64) uint64 {
	if w, ok := c.words[addr]; ok {
		return w
	}
	return machine.Word(addr, c.Seed)
}

func (c *CPU) load(addr uint64) byte { return byte(c.word(addr&^7) >> (addr & 7 * 8)) }

func (c *CPU) store(addr uint64, b byte) {
	at, shift := addr&^7, addr&7*8
	c.words[at] = c.word(at)&^(0xff<<shift) | uint64(b)<<shift
}

// Read copies memory at addr into dst.
func (c *CPU) Read(dst []byte, addr uint64) error {
	if err := c.check(addr, len(dst)); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = c.load(addr + uint64(i))
	}
	return nil
}

// Write copies src into memory at addr.
func (c *CPU) Write(addr uint64, src []byte) error {
	if err := c.check(addr, len(src)); err != nil {
		return err
	}
	for i, b := range src {
		c.store(addr+uint64(i), b)
	}
	return nil
}

// ReadWord returns the 8-byte number at addr.
func (c *CPU) ReadWord(addr uint64) (uint64, error) {
	var b [8]byte
	err := c.Read(b[:], addr)
	if c.BigEndian {
		return binary.BigEndian.Uint64(b[:]), err
	}
	return binary.LittleEndian.Uint64(b[:]), err
}

// WriteWord sets the 8-byte number at addr.
func (c *CPU) WriteWord(addr, v uint64) error {
	var b [8]byte
	if c.BigEndian {
		binary.BigEndian.PutUint64(b[:], v)
	} else {
		binary.LittleEndian.PutUint64(b[:], v)
	}
	return c.Write(addr, b[:])
}

// Writes returns the words of memory that changed, sorted by address.
func (c *CPU) Writes() (writes []machine.Write) {
	var before, after [8]byte
	for _, addr := range slices.Sorted(maps.Keys(c.words)) {
		was, ok := c.first[addr]
		if !ok {
			was = machine.Word(addr, c.Seed)
		}
		binary.LittleEndian.PutUint64(before[:], was)
		binary.LittleEndian.PutUint64(after[:], c.words[addr])
		writes = machine.AppendChanges(writes, addr, before[:], after[:])
	}
	return writes
}

// Differences says what is not as in another state: registers and memory.
func (c *CPU) Differences(state machine.State, writes []machine.Write) (what []string) {
	for i := range c.File.Registers {
		have, want := c.File.Bytes(c.State, i), c.File.Bytes(state, i)
		if !slices.Equal(have, want) {
			what = append(what, fmt.Sprintf("%s: % x, want % x", c.File.Registers[i].Name, have, want))
		}
	}
	if have := c.Writes(); !slices.Equal(have, writes) {
		what = append(what, fmt.Sprintf("written %x, want %x", have, writes))
	}
	return what
}
