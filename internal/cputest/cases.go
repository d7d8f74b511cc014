package cputest

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"xol/decode"
	"xol/machine"
)

// ISA is what interprets.
type ISA interface {
	decode.Decoder
	Registers() *machine.File
	Interpret(inst *decode.Inst, r machine.Registers, m machine.Memory) (done bool, err error)
}

// Where the instructions of cases are, and memory.
const (
	Addr      = 0x401000
	MemoryLow = 0x1000
	MemoryTop = 1 << 47
)

// Words are words of memory by their addresses.
type Words map[uint64]uint64

// Regs are registers by their indices.
type Regs map[int]uint64

// Case is an instruction at Addr, and what becomes of registers and memory.
type Case struct {
	Name   string
	Code   string // hexadecimal, in the order of bytes
	Regs   Regs   // before; those left out are 0
	Memory Words  // likewise; those left out are anything
	// After holds the registers that changed. Where the program counter is left
	// out, it is that of the next instruction.
	After  Regs
	Stored Words // what changed in memory
	// Unknown and Fault are how the interpreter declines: registers and memory
	// are as before.
	Unknown, Fault bool
}

// Inst decodes the code of a case.
func Inst(t testing.TB, isa ISA, code string) (inst decode.Inst) {
	t.Helper()
	raw, err := hex.DecodeString(strings.ReplaceAll(code, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := isa.Decode(&inst, raw, Addr); err != nil || int(inst.Len) != len(raw) {
		t.Fatalf("%s: %d bytes, %v", code, inst.Len, err)
	}
	return inst
}

// Run tests the cases.
func Run(t *testing.T, isa ISA, bigEndian bool, cases []Case) {
	for i := range cases {
		t.Run(cases[i].Name, func(t *testing.T) { cases[i].run(t, isa, bigEndian) })
	}
}

// Before returns a CPU in the state that the case starts from.
func (k *Case) Before(t testing.TB, isa ISA, bigEndian bool) *CPU {
	t.Helper()
	c := New(isa.Registers(), bigEndian, machine.Range{Lo: MemoryLow, Hi: MemoryTop})
	c.set(t, k.Regs, k.Memory)
	c.SetReg(c.File.PC, Addr)
	return c
}

func (c *CPU) set(t testing.TB, regs Regs, words Words) {
	t.Helper()
	for i, v := range regs {
		c.SetReg(i, v)
	}
	for addr, v := range words {
		if err := c.WriteWord(addr, v); err != nil {
			t.Fatal(err)
		}
	}
}

func (k *Case) run(t *testing.T, isa ISA, bigEndian bool) {
	inst := Inst(t, isa, k.Code)
	c := k.Before(t, isa, bigEndian)
	want := c.Clone()
	if !k.Unknown && !k.Fault {
		want.SetReg(c.File.PC, inst.Next())
		want.set(t, k.After, k.Stored)
	}
	done, err := isa.Interpret(&inst, c, c)
	if done == (k.Unknown || k.Fault) || errors.Is(err, ErrLimit) != k.Fault {
		t.Errorf("done %v, error %v", done, err)
	}
	for _, what := range c.Differences(want.State, want.Writes()) {
		t.Error(what)
	}
}

// flat is registers and memory that cost nothing: every address is the same word.
type flat struct {
	regs [64]uint64
	word uint64
}

func (f *flat) Reg(i int) uint64                { return f.regs[i] }
func (f *flat) SetReg(i int, v uint64)          { f.regs[i] = v }
func (f *flat) Read([]byte, uint64) error       { return ErrLimit }
func (f *flat) Write(uint64, []byte) error      { return ErrLimit }
func (f *flat) ReadWord(uint64) (uint64, error) { return f.word, nil }
func (f *flat) WriteWord(_, value uint64) error { f.word = value; return nil }

// Benchmark times an interpreter, and fails where it allocates.
func Benchmark(b *testing.B, isa ISA, code string) {
	inst, f := Inst(b, isa, code), new(flat)
	b.ReportAllocs()
	for b.Loop() {
		if done, err := isa.Interpret(&inst, f, f); !done || err != nil {
			b.Fatal(done, err)
		}
	}
}

// Allocations returns how often interpreting allocates memory.
func Allocations(t testing.TB, isa ISA, code string) float64 {
	t.Helper()
	inst, f := Inst(t, isa, code), new(flat)
	return testing.AllocsPerRun(100, func() { _, _ = isa.Interpret(&inst, f, f) })
}

// Fuzz tries instructions of any bytes, with memory that ends early: where the
// interpreter declines nothing has changed, and it never panics.
func Fuzz(f *testing.F, isa ISA, bigEndian bool, seeds ...string) {
	for _, seed := range seeds {
		raw, err := hex.DecodeString(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, uint64(1))
	}
	file := isa.Registers()
	f.Fuzz(func(t *testing.T, code []byte, seed uint64) {
		var inst decode.Inst
		if isa.Decode(&inst, code, Addr) != nil {
			return
		}
		c := New(file, bigEndian, machine.Range{Lo: MemoryLow, Hi: MemoryTop})
		c.Seed = seed
		for i := range file.Registers {
			c.SetReg(i, machine.Interesting(machine.Mix(seed+uint64(i))))
		}
		before := c.Clone()
		done, err := isa.Interpret(&inst, c, c)
		if done && err != nil {
			t.Errorf("done, error %v", err)
		}
		if done {
			return
		}
		for _, what := range c.Differences(before.State, nil) {
			t.Error(what)
		}
	})
}
