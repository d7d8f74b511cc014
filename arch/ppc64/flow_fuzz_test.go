package ppc64

import (
	"encoding/binary"
	"errors"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/optcheck/flow"
)

// endlessMemory has data everywhere: at each address, the address.
type endlessMemory struct{ order binary.ByteOrder }

func (m endlessMemory) Data(_ []byte, addr, size uint64) ([]byte, error) {
	if size > 1<<20 {
		return nil, errors.New("too much")
	}
	dst := make([]byte, size+8)
	for i := uint64(0); i < size; i += 8 {
		m.order.PutUint64(dst[i:], addr+i)
	}
	return dst[:size], nil
}

func (endlessMemory) Pointer(addr uint64) (uint64, bool) { return addr, addr&4 == 0 }
func (endlessMemory) DataEnd(addr uint64) (uint64, bool) { return addr | 0xfff, addr >= 0x1000 }
func (endlessMemory) TOC() (uint64, bool)                { return 0x10008000, true }

// FuzzIndirectJump checks that any code gets an answer that can be used.
func FuzzIndirectJump(f *testing.F) {
	for _, order := range []string{"le", "be"} {
		x, _ := newFixture(f, "cases-"+order)
		for _, c := range tableCases {
			f.Add(x.functions[c.name].Code, x.isa().LittleEndian, true)
		}
	}
	for _, x := range fixtures(f) {
		for _, name := range []string{"machine", "pressed", "labels"} {
			f.Add(x.functions[name].Code, x.isa().LittleEndian, false)
		}
	}
	f.Fuzz(func(t *testing.T, code []byte, littleEndian, remember bool) {
		isa := ISA{LittleEndian: littleEndian}
		const at = 0x10000000
		fn := &classify.Func{Addr: at, Code: code, Insts: decode.Sweep(isa, nil, code, at)}
		var mem flow.Memory
		if remember {
			mem = endlessMemory{isa.ByteOrder()}
		}
		for i := range fn.Insts {
			if fn.Insts[i].Flow == decode.FlowJumpIndirect {
				checkJump(t, isa.IndirectJump(new(flow.Tracer), fn, i, mem))
			}
		}
	})
}

func checkJump(t *testing.T, j flow.Jump) {
	t.Helper()
	table := &j.Table
	switch j.Kind {
	case flow.JumpUnresolved:
		if j.What == "" {
			t.Error("unresolved without a reason")
		}
	case flow.JumpTable:
		if table.Width != 4 && table.Width != 8 || table.Shift > 63 {
			t.Errorf("entries of %d bytes, shifted by %d", table.Width, table.Shift)
		}
		if bounded := table.Bound != flow.BoundNone; bounded != (table.Count > 0) || bounded != (table.Check != 0) || table.Count > 1<<16 {
			t.Errorf("%d entries, checked at %#x, bound %d", table.Count, table.Check, table.Bound)
		}
	}
}

// BenchmarkIndirectJump takes the jumps of the compilers' functions.
func BenchmarkIndirectJump(b *testing.B) {
	x, _ := newFixture(b, "le-gcc-O2")
	var functions []*classify.Func
	var at []int
	for _, f := range x.functions {
		for i := range f.Insts {
			if f.Insts[i].Flow == decode.FlowJumpIndirect {
				functions, at = append(functions, f), append(at, i)
			}
		}
	}
	tracer := new(flow.Tracer)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		k := n % len(at)
		x.isa().IndirectJump(tracer, functions[k], at[k], x)
	}
}

// BenchmarkLargeFunction has a jump at the end of a function of 100,000
// instructions, whose table is known from its start.
func BenchmarkLargeFunction(b *testing.B) {
	x, _ := newFixture(b, "cases-le")
	f := *x.functions["hoisted"]
	const nops = 100000
	start := 4 * wordSize // after what forms the address
	filler := make([]byte, 0, nops*wordSize)
	for n := range nops {
		word := uint64(insnNop)
		if n%8 == 7 { // bne $+8, so that paths meet
			word = 0x40820008
		}
		filler = append(filler, x.isa().bytesOf(word)...)
	}
	f.Code = append(append(append([]byte{}, f.Code[:start]...), filler...), f.Code[start:]...)
	f.Insts = decode.Sweep(x.isa(), nil, f.Code, f.Addr)
	i := lastIndirect(&f)
	b.ReportAllocs()
	for b.Loop() {
		x.isa().IndirectJump(new(flow.Tracer), &f, i, x)
	}
}
