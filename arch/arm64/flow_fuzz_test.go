package arm64

import (
	"errors"
	"math/rand/v2"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// flatMemory is data at one address.
type flatMemory struct {
	addr uint64
	data []byte
}

func (m flatMemory) DataEnd(addr uint64) (uint64, bool) {
	return m.addr + uint64(len(m.data)), addr-m.addr < uint64(len(m.data))
}

func (m flatMemory) Data(dst []byte, addr, size uint64) ([]byte, error) {
	if end, ok := m.DataEnd(addr); !ok || size > end-addr {
		return nil, errors.New("no such data")
	}
	return append(dst[:0], m.data[addr-m.addr:][:size]...), nil
}

func (m flatMemory) Pointer(addr uint64) (uint64, bool) { return addr + m.addr, addr&8 != 0 }

// sweepFunction returns code as a function.
func sweepFunction(code []byte, addr uint64) *classify.Func {
	return &classify.Func{Name: "f", Addr: addr, Code: code, Insts: decode.Sweep(ISA{}, nil, code, addr)}
}

// checkJump checks what holds of every answer.
func checkJump(t *testing.T, f *classify.Func, i int, jump flow.Jump) {
	t.Helper()
	table := &jump.Table
	if (jump.Kind == flow.JumpUnresolved) != (jump.What != "") {
		t.Fatalf("%v, but %q", jump.Kind, jump.What)
	}
	if jump.Kind != flow.JumpTable {
		if *table != (flow.Table{}) {
			t.Fatalf("%v with a table: %+v", jump.Kind, *table)
		}
		return
	}
	bounded := table.Bound != flow.BoundNone
	_, start := decode.Find(f.Insts, table.Check)
	if bounded != (table.Count != 0) || bounded != (table.Check != 0 || start && f.Addr == 0) || bounded && !start {
		t.Fatalf("instruction %d: %+v", i, *table)
	}
	switch table.Width {
	case 1, 2, 4, 8:
	default:
		t.Fatalf("entries of %d bytes", table.Width)
	}
	if table.Shift > 63 {
		t.Fatalf("entries are shifted by %d", table.Shift)
	}
}

// FuzzIndirectJump asks about every instruction of any code.
func FuzzIndirectJump(f *testing.F) {
	for _, name := range []string{"cases.elf", "gcc-O0.elf", "gcc-O2-bti.elf", "clang-O0.elf", "clang-O2.elf"} {
		eachFunction(f, openCompiled(f, name), func(fn *classify.Func) {
			f.Add(fn.Code, fn.Addr, fn.Addr+0x1000, fn.Code)
		})
	}
	f.Add([]byte{0x20, 0, 0x1f, 0xd6, 1}, uint64(1)<<63-2, uint64(0), []byte{})
	f.Fuzz(func(t *testing.T, code []byte, addr, dataAt uint64, data []byte) {
		fn := sweepFunction(code[:min(len(code), 1<<12)], addr)
		memory := flatMemory{dataAt, data}
		for i := -1; i <= len(fn.Insts); i++ {
			jump := ISA{}.IndirectJump(new(flow.Tracer), fn, i, memory)
			checkJump(t, fn, i, jump)
			if i >= 0 && i < len(fn.Insts) && fn.Insts[i].Flow == decode.FlowJumpIndirect && jump.What == flow.WhatNoJump {
				t.Fatalf("%08x is an indirect jump", WordOf(&fn.Insts[i]))
			}
			checkJump(t, fn, i, ISA{}.IndirectJump(new(flow.Tracer), fn, i, nil))
		}
	})
}

// TestMangledFunctions asks about functions of compilers with a few words that
// are something else.
func TestMangledFunctions(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	im := openCompiled(t, "gcc-O2.elf")
	jumps := 0
	eachFunction(t, im, func(f *classify.Func) {
		for range 200 {
			code := append([]byte(nil), f.Code...)
			for range 1 + r.IntN(4) {
				code[r.IntN(len(code))] ^= 1 << r.IntN(8)
			}
			fn := sweepFunction(code[:len(code)-r.IntN(4)], f.Addr)
			for i := range fn.Insts {
				if fn.Insts[i].Flow == decode.FlowJumpIndirect {
					checkJump(t, fn, i, ISA{}.IndirectJump(new(flow.Tracer), fn, i, im))
					jumps++
				}
			}
		}
	})
	if jumps < 1000 {
		t.Errorf("only %d jumps", jumps)
	}
}

// TestLongFunctions checks that the answer on a jump is the same in a long
// function.
func TestLongFunctions(t *testing.T) {
	im := openCompiled(t, "cases.elf")
	var code []byte
	eachFunction(t, im, func(f *classify.Func) {
		if f.Name == "compare_hi" {
			code = f.Code
		}
	})
	for _, count := range []int{100, 20_000} { // on each side
		var long []byte
		for range count {
			long = put(long, 0xd503201f)
		}
		nops := long
		long = append(append(long[:len(long):len(long)], code...), nops...)
		f := sweepFunction(long, 0x40_0000)
		jump := ISA{}.IndirectJump(new(flow.Tracer), f, indirectJump(f), nil)
		checkJump(t, f, indirectJump(f), jump)
		if jump.Kind != flow.JumpTable || jump.Table.Bound != flow.BoundCompare {
			t.Errorf("between %d nops: %+v", count, jump)
		}
	}
}

// BenchmarkIndirectJump finds the jumps of functions as they are compiled, and
// of one with 100,000 instructions.
func BenchmarkIndirectJump(b *testing.B) {
	var code []byte
	var functions []*classify.Func
	eachFunction(b, openCompiled(b, "gcc-O2.elf"), func(f *classify.Func) {
		functions = append(functions, f)
		code = append(code, f.Code...)
	})
	for len(code) < 400_000 {
		code = append(code, code...)
	}
	long := sweepFunction(code[:400_000], 0x40_0000)
	for _, c := range []struct {
		name      string
		functions []*classify.Func
	}{{"compiled", functions}, {"100,000 instructions", []*classify.Func{long}}} {
		b.Run(c.name, func(b *testing.B) {
			n, tracer := 0, new(flow.Tracer)
			for b.Loop() {
				for _, f := range c.functions {
					for i := range f.Insts {
						if f.Insts[i].Flow == decode.FlowJumpIndirect {
							ISA{}.IndirectJump(tracer, f, i, nil)
							n++
						}
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/jump")
		})
	}
}
