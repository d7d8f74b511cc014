package arm64

import (
	"encoding/hex"
	"testing"

	"xol/internal/cputest"
)

type (
	regs  = cputest.Regs
	words = cputest.Words
)

const (
	here     = cputest.Addr
	function = 0x55550000
)

// memoryOrder returns the bytes of an instruction word.
func memoryOrder(word uint32) string {
	return hex.EncodeToString([]byte{byte(word), byte(word >> 8), byte(word >> 16), byte(word >> 24)})
}

func TestInterpret(t *testing.T) {
	cases := []struct {
		word uint32
		cputest.Case
	}{
		{0x14000000, cputest.Case{Name: "b to itself", After: regs{PC: here}}},
		{0x17fffffe, cputest.Case{Name: "b back", After: regs{PC: here - 8}}},
		{0x94000400, cputest.Case{Name: "bl", After: regs{X0 + 30: here + 4, PC: here + 0x1000}}},

		{0xb4000083, cputest.Case{Name: "cbz x3, 0", After: regs{PC: here + 16}}},
		{0xb4000083, cputest.Case{Name: "cbz x3, upper half", Regs: regs{X0 + 3: 1 << 32}}},
		{0x34000083, cputest.Case{Name: "cbz w3, upper half", Regs: regs{X0 + 3: 1 << 32}, After: regs{PC: here + 16}}},
		{0x35000083, cputest.Case{Name: "cbnz w3, upper half", Regs: regs{X0 + 3: 1 << 32}}},
		{0xb5ffff83, cputest.Case{Name: "cbnz x3, upper half", Regs: regs{X0 + 3: 1 << 32}, After: regs{PC: here - 16}}},
		{0xb400009f, cputest.Case{Name: "cbz xzr", Regs: regs{SP: 1}, After: regs{PC: here + 16}}},
		{0x3500009f, cputest.Case{Name: "cbnz wzr", Regs: regs{SP: 1}}},
		{0xb6080083, cputest.Case{Name: "tbz x3, #33, set", Regs: regs{X0 + 3: 1 << 33}}},
		{0xb6080083, cputest.Case{Name: "tbz x3, #33, the others set", Regs: regs{X0 + 3: ^uint64(1 << 33)}, After: regs{PC: here + 16}}},
		{0x37f80083, cputest.Case{Name: "tbnz w3, #31", Regs: regs{X0 + 3: 1 << 31}, After: regs{PC: here + 16}}},
		{0xb7ffff83, cputest.Case{Name: "tbnz x3, #63, back", Regs: regs{X0 + 3: 1 << 63}, After: regs{PC: here - 16}}},
		{0x3628005f, cputest.Case{Name: "tbz wzr, #5", Regs: regs{SP: 1 << 5}, After: regs{PC: here + 8}}},

		{0xd61f00a0, cputest.Case{Name: "br x5", Regs: regs{X0 + 5: function}, After: regs{PC: function}}},
		{0xd61f03e0, cputest.Case{Name: "br xzr", Regs: regs{SP: function}, After: regs{PC: 0}}},
		{0xd63f00a0, cputest.Case{Name: "blr x5", Regs: regs{X0 + 5: function}, After: regs{X0 + 30: here + 4, PC: function}}},
		{0xd63f03c0, cputest.Case{Name: "blr x30", Regs: regs{X0 + 30: function}, After: regs{X0 + 30: here + 4, PC: function}}},
		{0xd65f03c0, cputest.Case{Name: "ret", Regs: regs{X0 + 30: function}, After: regs{PC: function}}},
		{0xd65f0120, cputest.Case{Name: "ret x9", Regs: regs{X0 + 9: function, X0 + 30: 1}, After: regs{PC: function}}},

		{0x300091a7, cputest.Case{Name: "adr", After: regs{X0 + 7: here + 0x1235}}},
		{0x70ff6e47, cputest.Case{Name: "adr below", After: regs{X0 + 7: here - 0x1235}}},
		{0x1000003f, cputest.Case{Name: "adr of xzr"}},
		{0xb0091a27, cputest.Case{Name: "adrp", After: regs{X0 + 7: here&^0xfff + 0x12345000}}},
		{0xf0ffffe7, cputest.Case{Name: "adrp below", After: regs{X0 + 7: here&^0xfff - 0x1000}}},
		{0x18000047, cputest.Case{Name: "ldr w7, lower half", Regs: regs{X0 + 7: 1<<64 - 1},
			Memory: words{here + 8: 0x89abcdef_81234567}, After: regs{X0 + 7: 0x81234567}}},
		{0x18000067, cputest.Case{Name: "ldr w7, upper half", Regs: regs{X0 + 7: 1<<64 - 1},
			Memory: words{here + 8: 0x89abcdef_01234567}, After: regs{X0 + 7: 0x89abcdef}}},
		{0x58000047, cputest.Case{Name: "ldr x7", Memory: words{here + 8: 0x89abcdef_01234567}, After: regs{X0 + 7: 0x89abcdef_01234567}}},
		{0x58000067, cputest.Case{Name: "ldr x7, across doublewords", Memory: words{here + 12: 0x89abcdef_01234567}, After: regs{X0 + 7: 0x89abcdef_01234567}}},
		{0x58ffffa7, cputest.Case{Name: "ldr x7, below", Memory: words{here - 12: 0x89abcdef_01234567}, After: regs{X0 + 7: 0x89abcdef_01234567}}},
		{0x5800005f, cputest.Case{Name: "ldr xzr"}},
		{0x98000047, cputest.Case{Name: "ldrsw, lower half, negative", Memory: words{here + 8: 0x01234567_89abcdef}, After: regs{X0 + 7: 0xffffffff_89abcdef}}},
		{0x98000067, cputest.Case{Name: "ldrsw, upper half, positive", Memory: words{here + 8: 0x01234567_89abcdef}, After: regs{X0 + 7: 0x01234567}}},

		{0x9c000087, cputest.Case{Name: "ldr q7", Unknown: true}},
		{0xd8000080, cputest.Case{Name: "prfm", Unknown: true}},
		{0xd65f0bff, cputest.Case{Name: "retaa", Unknown: true}},
		{0xd61f087f, cputest.Case{Name: "braaz", Unknown: true}},
		{0xd73f0864, cputest.Case{Name: "blraa", Unknown: true}},
		{0xd69f03e0, cputest.Case{Name: "eret", Unknown: true}},
		{0xd4000001, cputest.Case{Name: "svc", Unknown: true}},
		{0xd4200020, cputest.Case{Name: "brk", Unknown: true}},
		{0xd503201f, cputest.Case{Name: "nop", Unknown: true}},
	}
	list := make([]cputest.Case, len(cases))
	for i, c := range cases {
		list[i] = c.Case
		list[i].Code = memoryOrder(c.word)
	}
	cputest.Run(t, ISA{}, false, list)
}

func TestInterpretLiteralMissing(t *testing.T) {
	for name, word := range map[string]uint32{"ldr w7": 0x18000047, "ldr x7": 0x58000047, "ldrsw x7": 0x98000047} {
		inst := cputest.Inst(t, ISA{}, memoryOrder(word))
		c := (&cputest.Case{}).Before(t, ISA{}, false)
		c.Limit.Hi = here + 8
		before := c.Clone()
		if done, err := (ISA{}).Interpret(&inst, c, c); done || err == nil {
			t.Errorf("%s: %v, %v", name, done, err)
		}
		for _, what := range c.Differences(before.State, nil) {
			t.Errorf("%s: %s", name, what)
		}
	}
}

// TestInterpretConditions tries every condition with every combination of flags,
// against what the manual calls the conditions.
func TestInterpretConditions(t *testing.T) {
	conditions := [16]func(n, z, c, v bool) bool{
		0x0: func(n, z, c, v bool) bool { return z },            // equal
		0x1: func(n, z, c, v bool) bool { return !z },           // not equal
		0x2: func(n, z, c, v bool) bool { return c },            // carry, unsigned higher or same
		0x3: func(n, z, c, v bool) bool { return !c },           // unsigned lower
		0x4: func(n, z, c, v bool) bool { return n },            // minus
		0x5: func(n, z, c, v bool) bool { return !n },           // plus or zero
		0x6: func(n, z, c, v bool) bool { return v },            // overflow
		0x7: func(n, z, c, v bool) bool { return !v },           // no overflow
		0x8: func(n, z, c, v bool) bool { return c && !z },      // unsigned higher
		0x9: func(n, z, c, v bool) bool { return !c || z },      // unsigned lower or same
		0xa: func(n, z, c, v bool) bool { return n == v },       // greater or equal
		0xb: func(n, z, c, v bool) bool { return n != v },       // less
		0xc: func(n, z, c, v bool) bool { return !z && n == v }, // greater
		0xd: func(n, z, c, v bool) bool { return z || n != v },  // less or equal
		0xe: func(n, z, c, v bool) bool { return true },
		0xf: func(n, z, c, v bool) bool { return true },
	}
	for cond, want := range conditions {
		for _, form := range []uint32{0x54000200, 0x54000210} { // b.cond, bc.cond
			inst := cputest.Inst(t, ISA{}, memoryOrder(form|uint32(cond)))
			for f := range uint64(16) {
				c := (&cputest.Case{Regs: regs{NZCV: f << 28}}).Before(t, ISA{}, false)
				pc := uint64(here + 4)
				if want(f&8 != 0, f&4 != 0, f&2 != 0, f&1 != 0) {
					pc = here + 64
				}
				if done, err := (ISA{}).Interpret(&inst, c, c); !done || err != nil || c.Reg(PC) != pc || c.Reg(NZCV) != f<<28 {
					t.Errorf("condition %x, flags %04b: to %#x, want %#x (%v, %v)", cond, f, c.Reg(PC), pc, done, err)
				}
			}
		}
	}
}

// interpreted are instructions of every kind.
var interpreted = map[string]uint32{
	"b.cond": 0x54000041, "cbz": 0xb4000083, "tbz": 0xb6080083, "bl": 0x94000400, "ret": 0xd65f03c0,
	"adrp": 0x90000007, "ldr": 0x58000047, "ldrsw": 0x98000047,
}

func TestInterpretAllocatesNothing(t *testing.T) {
	for name, word := range interpreted {
		if n := cputest.Allocations(t, ISA{}, memoryOrder(word)); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkInterpret(b *testing.B) {
	for name, word := range interpreted {
		b.Run(name, func(b *testing.B) { cputest.Benchmark(b, ISA{}, memoryOrder(word)) })
	}
}

func FuzzInterpret(f *testing.F) {
	var seeds []string
	for _, word := range interpreted {
		seeds = append(seeds, memoryOrder(word))
	}
	cputest.Fuzz(f, ISA{}, false, seeds...)
}
