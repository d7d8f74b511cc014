package optcheck_test

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"xol/arch"
	"xol/classify"
	"xol/decode"
	"xol/optcheck"
	"xol/optcheck/flow"
)

func isaNamed(t testing.TB, name string) arch.ISA {
	t.Helper()
	isa, err := arch.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return isa
}

// bytesOf returns what hexadecimal digits with blanks mean.
func bytesOf(t testing.TB, digits string) []byte {
	t.Helper()
	code, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// function returns code as a function at addr, decoded and judged by the
// profile isa.
func function(isa arch.ISA, code []byte, addr uint64) *optcheck.Function {
	f := &classify.Func{Name: "f", Addr: addr, Code: code, Insts: decode.Sweep(isa, nil, code, addr)}
	return judged(isa, f)
}

func judged(isa arch.ISA, f *classify.Func) *optcheck.Function {
	profile, _ := isa.Profile(classify.ISA, classify.KernelOptions{})
	return &optcheck.Function{Func: f, Verdicts: profile.Func(nil, f)}
}

// memory is data in a program: bytes from an address on, and a word for each of
// pointers.
type memory struct {
	addr     uint64
	data     []byte
	pointers map[uint64]uint64
}

func (m *memory) Data(dst []byte, addr, size uint64) ([]byte, error) {
	if addr < m.addr || addr-m.addr > uint64(len(m.data)) || size > uint64(len(m.data))-(addr-m.addr) {
		return nil, errNotMapped
	}
	return append(dst[:0], m.data[addr-m.addr:][:size]...), nil
}

func (m *memory) Pointer(addr uint64) (uint64, bool) {
	target, ok := m.pointers[addr]
	return target, ok
}

func (m *memory) DataEnd(addr uint64) (uint64, bool) {
	return m.addr + uint64(len(m.data)), addr-m.addr < uint64(len(m.data))
}

type memoryError string

func (e memoryError) Error() string { return string(e) }

const errNotMapped = memoryError("not mapped")

// tabled is an architecture of which every indirect jump is the one given.
type tabled struct {
	arch.ISA
	order binary.ByteOrder
	jump  flow.Jump
}

func (a *tabled) ByteOrder() binary.ByteOrder { return a.order }

func (a *tabled) IndirectJump(*flow.Tracer, *classify.Func, int, flow.Memory) flow.Jump {
	return a.jump
}
