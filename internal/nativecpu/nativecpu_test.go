//go:build linux && amd64

package nativecpu

import (
	"bytes"
	"encoding/hex"
	"testing"

	"xol/arch/amd64"
	"xol/decode"
	"xol/internal/skip"
	"xol/machine"
)

const (
	codeAt = 0x2a00_0000_1000
	dataAt = 0x1230_0000_0000
)

func open(t *testing.T) (*CPU, *machine.File) {
	t.Helper()
	f := amd64.Registers()
	c, err := Open(f)
	if err != nil {
		skip.Missing(t, "the right to trace a process", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, f
}

func start(f *machine.File) machine.State {
	s := f.NewState()
	f.SetWord(s, amd64.RIP, codeAt)
	f.SetWord(s, amd64.RSP, 0x0e00_0000_0000)
	f.SetWord(s, amd64.RFLAGS, 0x202)
	f.SetWord(s, amd64.MXCSR, 0x1f80)
	f.SetWord(s, amd64.FCW, 0x37f)
	f.SetWord(s, amd64.FTW, 0xffff)
	f.SetWord(s, amd64.RBX, dataAt)
	return s
}

// Seeds of the memory's contents.
const seed = 7

func TestRun(t *testing.T) {
	word := machine.Word(dataAt, seed)
	for _, c := range []struct {
		name, code string
		event      machine.EventKind
		pc         uint64 // after codeAt
		register   int
		value      uint64
		writes     int
	}{
		{"arithmetic", "4883c02a", machine.EventLeft, 4, amd64.RAX, 42, 0},
		{"a load from memory that appears", "488b03", machine.EventLeft, 3, amd64.RAX, word, 0},
		{"a store", "488903", machine.EventLeft, 3, amd64.RAX, 0, 1},
		{"a push", "53", machine.EventLeft, 1, amd64.RSP, 0x0e00_0000_0000 - 8, 1},
		{"a jump to far away", "eb7e", machine.EventLeft, 0x80, amd64.RAX, 0, 0},
		{"a jump into data", "ffe3", machine.EventLeft, (1<<64 - codeAt + dataAt), amd64.RAX, 0, 0},
		{"a breakpoint", "cc", machine.EventException, 1, amd64.RAX, 0, 0},
		{"a division by zero", "48f7f1", machine.EventException, 0, amd64.RAX, 0, 0},
		{"not an instruction", "0f0b", machine.EventUndefined, 0, amd64.RAX, 0, 0},
		{"an address that no process has", "488b042500000080", machine.EventFault, 0, amd64.RAX, 0, 0},
		{"a system call that is not made", "0f05", machine.EventLeft, 2, amd64.RCX, codeAt + 2, 0},
		{"a repetition", "b903000000f348ab", machine.EventFault, 5, amd64.RCX, 3, 0},
		{"a loop without end", "eb02eb0090ebfd", machine.EventBudget, 4, amd64.RAX, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cpu, f := open(t)
			code, err := hex.DecodeString(c.code)
			if err != nil {
				t.Fatal(err)
			}
			if err := cpu.Load([]machine.Part{{Addr: codeAt, Code: code}}); err != nil {
				t.Fatal(err)
			}
			out := f.NewState()
			for round := range 3 {
				event, writes, err := cpu.Run(out, start(f), seed, machine.Range{Lo: codeAt, Hi: codeAt + uint64(len(code))}, 100)
				if err != nil {
					t.Fatal(err)
				}
				if event.Kind != c.event || len(writes) != c.writes {
					t.Errorf("round %d: %v, %d writes", round, event.Kind, len(writes))
				}
				if c.event != machine.EventBudget {
					if pc := f.Word(out, amd64.RIP); pc != codeAt+c.pc {
						t.Errorf("round %d: pc %#x", round, pc)
					}
				}
				if v := f.Word(out, c.register); v != c.value {
					t.Errorf("round %d: %s = %#x, want %#x", round, f.Registers[c.register].Name, v, c.value)
				}
			}
		})
	}
}

func TestVectorsAreSetAndRead(t *testing.T) {
	cpu, f := open(t)
	code := []byte{0xc5, 0xf5, 0xfc, 0xc2} // vpaddb %ymm2,%ymm1,%ymm0
	if err := cpu.Load([]machine.Part{{Addr: codeAt, Code: code}}); err != nil {
		t.Fatal(err)
	}
	in, out := start(f), f.NewState()
	for i := range f.Bytes(in, amd64.ZMM0+1) {
		f.Bytes(in, amd64.ZMM0+1)[i] = byte(i)
		f.Bytes(in, amd64.ZMM0+2)[i] = 1
		f.Bytes(in, amd64.ZMM0+9)[i] = byte(0xf0 ^ i)
	}
	event, _, err := cpu.Run(out, in, seed, machine.Range{Lo: codeAt, Hi: codeAt + 4}, 10)
	if err != nil {
		t.Fatal(err)
	}
	if event.Kind == machine.EventUndefined {
		skip.Missing(t, "AVX2")
	}
	for i, b := range f.Bytes(out, amd64.ZMM0) {
		want := byte(0)
		if i < 32 {
			want = byte(i + 1)
		}
		if b != want {
			t.Fatalf("byte %d of zmm0 is %#x, want %#x", i, b, want)
		}
	}
	for i, b := range f.Bytes(out, amd64.ZMM0+9)[:32] {
		if b != byte(0xf0^i) {
			t.Fatalf("byte %d of zmm9 is %#x", i, b)
		}
	}
}

func TestContentsDependOnTheSeed(t *testing.T) {
	cpu, f := open(t)
	code := []byte{0x48, 0x8b, 0x03} // mov (%rbx),%rax
	if err := cpu.Load([]machine.Part{{Addr: codeAt, Code: code}}); err != nil {
		t.Fatal(err)
	}
	out := f.NewState()
	for _, seed := range []uint64{1, 2, 1, 3} {
		if _, _, err := cpu.Run(out, start(f), seed, machine.Range{Lo: codeAt, Hi: codeAt + 3}, 10); err != nil {
			t.Fatal(err)
		}
		if got, want := f.Word(out, amd64.RAX), machine.Word(dataAt, seed); got != want {
			t.Errorf("seed %d: %#x, want %#x", seed, got, want)
		}
	}
}

// A run that leaves for another part is over there: it must not go on in it and
// come back.
func TestOtherPartsDoNotExecute(t *testing.T) {
	cpu, f := open(t)
	const otherAt = codeAt + 0x5000
	here := []byte{0xff, 0xc0, 0xe9, 0xf9, 0x4f, 0, 0} // inc %eax; jmp otherAt
	other := []byte{0xff, 0xc0, 0xff, 0xc0}
	if err := cpu.Load([]machine.Part{{Addr: codeAt, Code: here}, {Addr: otherAt, Code: other}}); err != nil {
		t.Fatal(err)
	}
	out := f.NewState()
	for _, c := range []struct {
		name     string
		from     uint64
		stay     machine.Range
		pc, eaxs uint64
	}{
		{"first", codeAt, machine.Range{Lo: codeAt, Hi: codeAt + uint64(len(here))}, otherAt, 1},
		{"second", otherAt, machine.Range{Lo: otherAt, Hi: otherAt + uint64(len(other))}, otherAt + 4, 2},
		{"first again", codeAt, machine.Range{Lo: codeAt, Hi: codeAt + uint64(len(here))}, otherAt, 1},
	} {
		in := start(f)
		f.SetWord(in, amd64.RIP, c.from)
		event, writes, err := cpu.Run(out, in, seed, c.stay, 10)
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind != machine.EventLeft || f.Word(out, amd64.RIP) != c.pc || f.Word(out, amd64.RAX) != c.eaxs || len(writes) != 0 {
			t.Errorf("%s: %v at %#x, rax %d, %d writes", c.name, event.Kind, f.Word(out, amd64.RIP), f.Word(out, amd64.RAX), len(writes))
		}
	}
}

// Code and data may cross from one page to the next.
func TestPages(t *testing.T) {
	cpu, f := open(t)
	const at = codeAt + pageSize - 2
	code := []byte{0x48, 0x89, 0x83, 0xfc, 0x0f, 0, 0} // mov %rax,0xffc(%rbx)
	if err := cpu.Load([]machine.Part{{Addr: at, Code: code}}); err != nil {
		t.Fatal(err)
	}
	in, out := start(f), f.NewState()
	f.SetWord(in, amd64.RIP, at)
	f.SetWord(in, amd64.RAX, 0x1122334455667788)
	for range 2 {
		event, writes, err := cpu.Run(out, in, seed, machine.Range{Lo: at, Hi: at + uint64(len(code))}, 10)
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind != machine.EventLeft || f.Word(out, amd64.RIP) != at+uint64(len(code)) {
			t.Fatalf("%v at %#x", event.Kind, f.Word(out, amd64.RIP))
		}
		if len(writes) != 2 || writes[0].Addr != dataAt+pageSize-8 || writes[1].Addr != dataAt+pageSize ||
			writes[0].New&0xffffffff != 0x88776655 || writes[1].New>>32 != 0x44332211 {
			t.Errorf("%x", writes)
		}
	}
}

func TestX87RegistersAreSetAndRead(t *testing.T) {
	cpu, f := open(t)
	code := []byte{0xd9, 0xc9} // fxch %st(1)
	if err := cpu.Load([]machine.Part{{Addr: codeAt, Code: code}}); err != nil {
		t.Fatal(err)
	}
	in, out := start(f), f.NewState()
	f.SetWord(in, amd64.FTW, 0xfff0) // two in use
	one, two := []byte{0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f}, []byte{0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0x40}
	copy(f.Bytes(in, amd64.ST0), one)
	copy(f.Bytes(in, amd64.ST0+1), two)
	if _, _, err := cpu.Run(out, in, seed, machine.Range{Lo: codeAt, Hi: codeAt + 2}, 10); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(f.Bytes(out, amd64.ST0), two) || !bytes.Equal(f.Bytes(out, amd64.ST0+1), one) || f.Word(out, amd64.FTW) != 0xfff0 {
		t.Errorf("% x, % x, tags %#x", f.Bytes(out, amd64.ST0), f.Bytes(out, amd64.ST0+1), f.Word(out, amd64.FTW))
	}
}

// Memory does not appear without end.
func TestTooManyPages(t *testing.T) {
	cpu, f := open(t)
	code := []byte{0x48, 0x89, 0xdf, 0xb9, 0, 0, 1, 0, 0xf3, 0x48, 0xab} // mov %rbx,%rdi; mov $0x10000,%ecx; rep stos
	if err := cpu.Load([]machine.Part{{Addr: codeAt, Code: code}}); err != nil {
		t.Fatal(err)
	}
	event, _, err := cpu.Run(f.NewState(), start(f), seed, machine.Range{Lo: codeAt, Hi: codeAt + uint64(len(code))}, 10)
	if err != nil || event.Kind != machine.EventBudget {
		t.Errorf("%v, %v", event.Kind, err)
	}
}

// A far jump may leave 64-bit mode; the next run is in it again.
func TestFarJumpToAnotherMode(t *testing.T) {
	cpu, f := open(t)
	code := []byte{0x6a, 0x23, 0x6a, 0x40, 0x48, 0xcb, 0x90} // push $0x23; push $0x40; lretq; nop
	if err := cpu.Load([]machine.Part{{Addr: codeAt, Code: code}}); err != nil {
		t.Fatal(err)
	}
	out := f.NewState()
	for range 3 {
		in := start(f)
		f.SetWord(in, amd64.R15, 0x1122334455667788)
		event, _, err := cpu.Run(out, in, seed, machine.Range{Lo: codeAt, Hi: codeAt + uint64(len(code))}, 10)
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind != machine.EventLeft || f.Word(out, amd64.RIP) != 0x40 || f.Word(out, amd64.R15) != 0x1122334455667788 {
			t.Errorf("%v at %#x, r15 %#x", event.Kind, f.Word(out, amd64.RIP), f.Word(out, amd64.R15))
		}
	}
}

func TestSkip(t *testing.T) {
	cpu, _ := open(t)
	for _, c := range []struct{ name, code, reason string }{
		{"anything", "4801c8", ""},
		{"privileged", "f4", "privileged"},
		{"clock", "0f31", "results that vary: clocks, random numbers, CPU identity"},
		{"popf", "9d", "popf with random flags"},
		{"branch to itself", "ebfe", "branches to themselves"},
		{"branch into itself", "ebff", "branches to themselves"},
		{"branch", "eb00", ""},
	} {
		code, err := hex.DecodeString(c.code)
		if err != nil {
			t.Fatal(err)
		}
		var inst decode.Inst
		if err := (amd64.ISA{}).Decode(&inst, code, codeAt); err != nil {
			t.Fatal(err)
		}
		if got := cpu.Skip(&inst); got != c.reason {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
