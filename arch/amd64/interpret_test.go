package amd64

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"xol/internal/cputest"
)

type (
	regs  = cputest.Regs
	words = cputest.Words
)

const (
	interpretAddr = cputest.Addr
	stack         = 0x7fff0000
	function      = 0x55550000
	other         = 0x66660000
)

func TestInterpret(t *testing.T) {
	cputest.Run(t, ISA{}, false, []cputest.Case{
		{Name: "jmp back to itself", Code: "ebfe", After: regs{RIP: interpretAddr}},
		{Name: "jmp, 32-bit displacement", Code: "e9fb0f0000", After: regs{RIP: interpretAddr + 0x1000}},
		{Name: "jmp with bnd", Code: "f2e9fa0f0000", After: regs{RIP: interpretAddr + 0x1000}},
		{Name: "jmpabs", Code: "d500a1 8877665544332211", After: regs{RIP: 0x1122334455667788}},
		{Name: "jmp, 16 bits or not", Code: "66e9fb0f0000", Unknown: true},
		{Name: "jmp, 64 bits in any case", Code: "6648e9f90f0000", After: regs{RIP: interpretAddr + 0x1000}},

		{Name: "call", Code: "e8fb0f0000", Regs: regs{RSP: stack},
			After: regs{RSP: stack - 8, RIP: interpretAddr + 0x1000}, Stored: words{stack - 8: interpretAddr + 5}},
		{Name: "call, stack across words", Code: "e8fb0f0000", Regs: regs{RSP: stack + 3},
			After: regs{RSP: stack - 5, RIP: interpretAddr + 0x1000}, Stored: words{stack - 5: interpretAddr + 5}},
		{Name: "call, no stack", Code: "e8fb0f0000", Regs: regs{RSP: cputest.MemoryLow + 7}, Fault: true},
		{Name: "call next", Code: "e800000000", Regs: regs{RSP: stack},
			After: regs{RSP: stack - 8}, Stored: words{stack - 8: interpretAddr + 5}},
		{Name: "call of a register", Code: "41ffd3", Regs: regs{R11: function, RSP: stack},
			After: regs{RSP: stack - 8, RIP: function}, Stored: words{stack - 8: interpretAddr + 3}},
		{Name: "call of the stack pointer", Code: "ffd4", Regs: regs{RSP: stack},
			After: regs{RSP: stack - 8, RIP: stack}, Stored: words{stack - 8: interpretAddr + 2}},
		{Name: "call through the stack, above what it pushes", Code: "ff542408", Regs: regs{RSP: stack},
			Memory: words{stack: other, stack + 8: function},
			After:  regs{RSP: stack - 8, RIP: function}, Stored: words{stack - 8: interpretAddr + 4}},
		{Name: "call through the stack, where it pushes", Code: "ff5424f8", Regs: regs{RSP: stack},
			Memory: words{stack - 8: function, stack - 16: other},
			After:  regs{RSP: stack - 8, RIP: function}, Stored: words{stack - 8: interpretAddr + 4}},
		{Name: "call with notrack", Code: "3effd0", Regs: regs{RAX: function, RSP: stack},
			After: regs{RSP: stack - 8, RIP: function}, Stored: words{stack - 8: interpretAddr + 3}},
		{Name: "call through memory, none there", Code: "ff10", Regs: regs{RSP: stack}, Fault: true},
		{Name: "call through memory, no stack", Code: "ff10", Regs: regs{RAX: stack, RSP: 8}, Memory: words{stack: function}, Fault: true},
		{Name: "call, 16 bits or not", Code: "66ffd0", Unknown: true},
		{Name: "call, 64 bits in any case", Code: "6648ffd0", Regs: regs{RAX: function, RSP: stack},
			After: regs{RSP: stack - 8, RIP: function}, Stored: words{stack - 8: interpretAddr + 4}},
		{Name: "far call", Code: "ff18", Unknown: true},

		{Name: "ret", Code: "c3", Regs: regs{RSP: stack}, Memory: words{stack: function}, After: regs{RSP: stack + 8, RIP: function}},
		{Name: "rep ret", Code: "f3c3", Regs: regs{RSP: stack}, Memory: words{stack: function}, After: regs{RSP: stack + 8, RIP: function}},
		{Name: "ret over arguments", Code: "c21080", Regs: regs{RSP: stack}, Memory: words{stack: function}, After: regs{RSP: stack + 0x8018, RIP: function}},
		{Name: "ret, no stack", Code: "c20800", Regs: regs{RSP: cputest.MemoryTop - 4}, Fault: true},
		{Name: "ret, 16 bits or not", Code: "66c3", Unknown: true},
		{Name: "ret, promoted", Code: "d500c3", Regs: regs{RSP: stack}, Memory: words{stack: function}, After: regs{RSP: stack + 8, RIP: function}},
		{Name: "far ret", Code: "cb", Unknown: true},
		{Name: "iretq", Code: "48cf", Unknown: true},
		{Name: "sysret", Code: "480f07", Unknown: true},
		{Name: "uiret", Code: "f30f01ec", Unknown: true},

		{Name: "jmp of a register", Code: "ffe4", Regs: regs{RSP: function}, After: regs{RIP: function}},
		{Name: "jmp of r16", Code: "d510ffe0", Unknown: true},
		{Name: "jmp through r31 as index", Code: "d522ff2425 00000000", Unknown: true},
		{Name: "jmp through memory", Code: "ff6310", Regs: regs{RBX: stack}, Memory: words{stack + 16: function}, After: regs{RIP: function}},
		{Name: "jmp, displacement below", Code: "41ff65f0", Regs: regs{R13: stack}, Memory: words{stack - 16: function}, After: regs{RIP: function}},
		{Name: "jmp through a table", Code: "ff24c500000070", Regs: regs{RAX: 3}, Memory: words{0x70000018: function}, After: regs{RIP: function}},
		{Name: "jmp through a table, r12 as index", Code: "42ff24e500000070", Regs: regs{R12: 3, RSP: 5, RBP: 7}, Memory: words{0x70000018: function}, After: regs{RIP: function}},
		{Name: "jmp, base and index", Code: "43ff648720", Regs: regs{R15: stack, R8: 4}, Memory: words{stack + 0x30: function}, After: regs{RIP: function}},
		{Name: "jmp, no index", Code: "ff2424", Regs: regs{RSP: stack}, Memory: words{stack: function}, After: regs{RIP: function}},
		{Name: "jmp, base rbp needs a displacement", Code: "ff640500", Regs: regs{RBP: stack, RAX: 8}, Memory: words{stack + 8: function}, After: regs{RIP: function}},
		{Name: "jmp, 32-bit absolute address above", Code: "ff2425f8ffffff", Fault: true},
		{Name: "jmp, relative to rip", Code: "ff25fa0f0000", Memory: words{interpretAddr + 0x1000: function}, After: regs{RIP: function}},
		{Name: "jmp, relative to eip", Code: "67ff25f9ffbfff", Memory: words{0x1000: function}, After: regs{RIP: function}},
		{Name: "jmp, relative to eip, below 0", Code: "67ff25e9efbfff", Memory: words{0xfffffff0: function}, After: regs{RIP: function}},
		{Name: "jmp, 32-bit address", Code: "67ff6008", Regs: regs{RAX: 0xffffffff_fffffff8}, Fault: true},
		{Name: "jmp, 32-bit address wraps", Code: "67ff6010", Regs: regs{RAX: 0x12345678_7ffffff0}, Memory: words{0x80000000: function}, After: regs{RIP: function}},
		{Name: "jmp in fs", Code: "64ff6008", Regs: regs{RAX: 0x100, FSBase: stack, GSBase: 1}, Memory: words{stack + 0x108: function}, After: regs{RIP: function}},
		{Name: "jmp in gs, absolute", Code: "65ff242528000000", Regs: regs{GSBase: stack, FSBase: 1}, Memory: words{stack + 0x28: function}, After: regs{RIP: function}},
		{Name: "jmp in gs, relative to rip", Code: "65ff25f90f0000", Regs: regs{GSBase: stack}, Memory: words{stack + interpretAddr + 0x1000: function}, After: regs{RIP: function}},
		{Name: "jmp in gs, below its base", Code: "65ff2425f8ffffff", Regs: regs{GSBase: stack}, Memory: words{stack - 8: function}, After: regs{RIP: function}},
		{Name: "jmp in gs, 32-bit address", Code: "6567ff60f8", Regs: regs{GSBase: stack, RAX: 1 << 32}, Memory: words{stack + 0xfffffff8: function}, After: regs{RIP: function}},
		{Name: "jmp, the last of two segments", Code: "6465ff20", Regs: regs{FSBase: 1, GSBase: stack}, Memory: words{stack: function}, After: regs{RIP: function}},
		{Name: "jmp, a segment without base after one that has", Code: "643eff20", Regs: regs{FSBase: stack}, Memory: words{stack: function}, After: regs{RIP: function}},
		{Name: "far jmp", Code: "ff28", Unknown: true},

		{Name: "loop, last round", Code: "e210", Regs: regs{RCX: 1}, After: regs{RCX: 0}},
		{Name: "loop from 0", Code: "e2f0", After: regs{RCX: 1<<64 - 1, RIP: interpretAddr - 14}},
		{Name: "loop, 32-bit count", Code: "67e210", Regs: regs{RCX: 7<<32 | 1}, After: regs{RCX: 0}},
		{Name: "loop, 32-bit count from 0", Code: "67e210", Regs: regs{RCX: 7 << 32}, After: regs{RCX: 1<<32 - 1, RIP: interpretAddr + 19}},
		{Name: "loop counts 64 bits", Code: "e210", Regs: regs{RCX: 1<<32 | 1}, After: regs{RCX: 1 << 32, RIP: interpretAddr + 18}},
		{Name: "loop, 16 bits or not", Code: "66e210", Unknown: true},
		{Name: "loope, equal", Code: "e110", Regs: regs{RCX: 2, RFLAGS: FlagZF}, After: regs{RCX: 1, RIP: interpretAddr + 18}},
		{Name: "loope, not equal", Code: "e110", Regs: regs{RCX: 2, RFLAGS: ^uint64(FlagZF)}, After: regs{RCX: 1}},
		{Name: "loope, last round", Code: "e110", Regs: regs{RCX: 1, RFLAGS: FlagZF}, After: regs{RCX: 0}},
		{Name: "loopne, not equal", Code: "e010", Regs: regs{RCX: 2}, After: regs{RCX: 1, RIP: interpretAddr + 18}},
		{Name: "loopne, equal", Code: "e010", Regs: regs{RCX: 2, RFLAGS: FlagZF}, After: regs{RCX: 1}},
		{Name: "loopne, equal or not", Code: "f3e010", Unknown: true},
		{Name: "loope, equal or not", Code: "f2e110", Unknown: true},
		{Name: "loope, both", Code: "f2f3e110", Unknown: true},
		{Name: "loopne twice", Code: "f2e010", Regs: regs{RCX: 2}, After: regs{RCX: 1, RIP: interpretAddr + 19}},
		{Name: "loope twice", Code: "f3e110", Regs: regs{RCX: 2}, After: regs{RCX: 1}},
		{Name: "loop with a repetition", Code: "f3e210", Regs: regs{RCX: 2}, After: regs{RCX: 1, RIP: interpretAddr + 19}},
		{Name: "jrcxz, 0", Code: "e310", After: regs{RIP: interpretAddr + 18}},
		{Name: "jrcxz, upper half", Code: "e310", Regs: regs{RCX: 1 << 32}},
		{Name: "jecxz, upper half", Code: "67e310", Regs: regs{RCX: 1 << 32}, After: regs{RIP: interpretAddr + 19}},
		{Name: "jecxz", Code: "67e310", Regs: regs{RCX: 1}},

		{Name: "jcc with a hint, near", Code: "3e0f84f90f0000", Regs: regs{RFLAGS: FlagZF}, After: regs{RIP: interpretAddr + 0x1000}},
		{Name: "jcc, 16 bits or not", Code: "660f84f90f0000", Unknown: true},
		{Name: "xbegin", Code: "c7f800000000", Unknown: true},
		{Name: "xabort", Code: "c6f800", Unknown: true},
		{Name: "syscall", Code: "0f05", Unknown: true},
		{Name: "int3", Code: "cc", Unknown: true},
		{Name: "push", Code: "50", Unknown: true},
		{Name: "push of memory", Code: "ff30", Unknown: true},
		{Name: "nop", Code: "90", Unknown: true},
	})
}

// TestInterpretConditions tries every condition with every combination of flags,
// against what the manual calls the conditions.
func TestInterpretConditions(t *testing.T) {
	type set struct{ o, c, z, s, p bool }
	conditions := [16]func(f set) bool{
		0x0: func(f set) bool { return f.o },
		0x1: func(f set) bool { return !f.o },
		0x2: func(f set) bool { return f.c },                // below
		0x3: func(f set) bool { return !f.c },               // above or equal
		0x4: func(f set) bool { return f.z },                // equal
		0x5: func(f set) bool { return !f.z },               // not equal
		0x6: func(f set) bool { return f.c || f.z },         // below or equal
		0x7: func(f set) bool { return !f.c && !f.z },       // above
		0x8: func(f set) bool { return f.s },                // negative
		0x9: func(f set) bool { return !f.s },               // not negative
		0xa: func(f set) bool { return f.p },                // even parity
		0xb: func(f set) bool { return !f.p },               // odd parity
		0xc: func(f set) bool { return f.s != f.o },         // less
		0xd: func(f set) bool { return f.s == f.o },         // greater or equal
		0xe: func(f set) bool { return f.z || f.s != f.o },  // less or equal
		0xf: func(f set) bool { return !f.z && f.s == f.o }, // greater
	}
	for cc, want := range conditions {
		for _, code := range []string{fmt.Sprintf("7%x40", cc), fmt.Sprintf("0f8%x40000000", cc)} {
			inst := cputest.Inst(t, ISA{}, code)
			for n := range uint64(32) {
				f := set{n&1 != 0, n&2 != 0, n&4 != 0, n&8 != 0, n&16 != 0}
				flags := n&1*FlagOF | n>>1&1*FlagCF | n>>2&1*FlagZF | n>>3&1*FlagSF | n>>4&1*FlagPF
				c := (&cputest.Case{Regs: regs{RFLAGS: flags}}).Before(t, ISA{}, false)
				pc := inst.Next()
				if want(f) {
					pc = inst.Target
				}
				if done, err := (ISA{}).Interpret(&inst, c, c); !done || err != nil || c.Reg(RIP) != pc || c.Reg(RFLAGS) != flags {
					t.Errorf("%s, flags %+v: to %#x, want %#x (%v, %v)", code, f, c.Reg(RIP), pc, done, err)
				}
			}
		}
	}
}

// interpreted are instructions of every kind.
var interpreted = map[string]string{
	"jcc": "7510", "call": "e8fb0f0000", "ret": "c3", "loop": "e2f0",
	"call through memory": "64ff54c310",
}

func TestInterpretAllocatesNothing(t *testing.T) {
	for name, code := range interpreted {
		if n := cputest.Allocations(t, ISA{}, code); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkInterpret(b *testing.B) {
	for name, code := range interpreted {
		b.Run(name, func(b *testing.B) { cputest.Benchmark(b, ISA{}, code) })
	}
}

func FuzzInterpret(f *testing.F) {
	cputest.Fuzz(f, ISA{}, false, slices.Collect(maps.Values(interpreted))...)
}
