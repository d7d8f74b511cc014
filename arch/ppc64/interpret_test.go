package ppc64

import (
	"encoding/hex"
	"slices"
	"testing"

	"xol/internal/cputest"
)

type registers = cputest.Regs

const (
	here     = cputest.Addr
	function = 0x55550000
)

// crBit is a bit of CR by its number.
func crBit(n int) uint64 { return 1 << (31 - n) }

// memoryOrder returns the bytes of an instruction word.
func (a ISA) memoryOrder(word uint32) string {
	b := []byte{byte(word >> 24), byte(word >> 16), byte(word >> 8), byte(word)}
	if a.LittleEndian {
		slices.Reverse(b)
	}
	return hex.EncodeToString(b)
}

var interpretCases = []struct {
	word uint32
	cputest.Case
}{
	{0x48000000, cputest.Case{Name: "b to itself", After: registers{PC: here}}},
	{0x4bfffff8, cputest.Case{Name: "b back", After: registers{PC: here - 8}}},
	{0x48001001, cputest.Case{Name: "bl", After: registers{LR: here + 4, PC: here + 0x1000}}},
	{0x48000102, cputest.Case{Name: "ba", After: registers{PC: 0x100}}},
	{0x48000103, cputest.Case{Name: "bla", After: registers{LR: here + 4, PC: 0x100}}},
	{0x4bfffffe, cputest.Case{Name: "ba, the upper end", After: registers{PC: ^uint64(3)}}},

	{0x41820008, cputest.Case{Name: "beq, equal", Regs: registers{CR: crBit(2)}, After: registers{PC: here + 8}}},
	{0x41820008, cputest.Case{Name: "beq, every other bit", Regs: registers{CR: 1<<32 - 1 - crBit(2)}}},
	{0x40820008, cputest.Case{Name: "bne, not equal", After: registers{PC: here + 8}}},
	{0x40820008, cputest.Case{Name: "bne, equal", Regs: registers{CR: crBit(2)}}},
	{0x419f0008, cputest.Case{Name: "bso cr7", Regs: registers{CR: crBit(31)}, After: registers{PC: here + 8}}},
	{0x41820009, cputest.Case{Name: "beql, equal", Regs: registers{CR: crBit(2)}, After: registers{LR: here + 4, PC: here + 8}}},
	{0x41820009, cputest.Case{Name: "beql links although not taken", After: registers{LR: here + 4}}},
	{0x429f0005, cputest.Case{Name: "bcl 20,31", Regs: registers{CTR: 1}, After: registers{LR: here + 4}}},
	{0x41820102, cputest.Case{Name: "beqa", Regs: registers{CR: crBit(2)}, After: registers{PC: 0x100}}},
	{0x4082ff03, cputest.Case{Name: "bnela, below 0", After: registers{LR: here + 4, PC: ^uint64(0xff)}}},
	{0x42800008, cputest.Case{Name: "bc 20, a bit that does not matter", After: registers{PC: here + 8}}},

	{0x4200fff8, cputest.Case{Name: "bdnz", Regs: registers{CTR: 2}, After: registers{CTR: 1, PC: here - 8}}},
	{0x4200fff8, cputest.Case{Name: "bdnz, last round", Regs: registers{CTR: 1}, After: registers{CTR: 0}}},
	{0x4200fff8, cputest.Case{Name: "bdnz from 0", After: registers{CTR: 1<<64 - 1, PC: here - 8}}},
	{0x4200fff8, cputest.Case{Name: "bdnz counts 64 bits", Regs: registers{CTR: 1<<32 | 1}, After: registers{CTR: 1 << 32, PC: here - 8}}},
	{0x43200008, cputest.Case{Name: "bdnz with a hint", Regs: registers{CTR: 2}, After: registers{CTR: 1, PC: here + 8}}},
	{0x42400008, cputest.Case{Name: "bdz", Regs: registers{CTR: 1}, After: registers{CTR: 0, PC: here + 8}}},
	{0x42400008, cputest.Case{Name: "bdz, not yet", Regs: registers{CTR: 2}, After: registers{CTR: 1}}},
	{0x41020008, cputest.Case{Name: "bdnzt, both", Regs: registers{CTR: 2, CR: crBit(2)}, After: registers{CTR: 1, PC: here + 8}}},
	{0x41020008, cputest.Case{Name: "bdnzt, the count only", Regs: registers{CTR: 2}, After: registers{CTR: 1}}},
	{0x41020008, cputest.Case{Name: "bdnzt, the bit only", Regs: registers{CTR: 1, CR: crBit(2)}, After: registers{CTR: 0}}},
	{0x40020008, cputest.Case{Name: "bdnzf", Regs: registers{CTR: 2}, After: registers{CTR: 1, PC: here + 8}}},
	{0x41420008, cputest.Case{Name: "bdzt", Regs: registers{CTR: 1, CR: crBit(2)}, After: registers{CTR: 0, PC: here + 8}}},
	{0x40420008, cputest.Case{Name: "bdzf", Regs: registers{CTR: 1}, After: registers{CTR: 0, PC: here + 8}}},

	{0x4e800020, cputest.Case{Name: "blr", Regs: registers{LR: function | 3}, After: registers{PC: function}}},
	{0x4e800021, cputest.Case{Name: "blrl", Regs: registers{LR: function}, After: registers{LR: here + 4, PC: function}}},
	{0x4d820020, cputest.Case{Name: "beqlr, not equal", Regs: registers{LR: function}}},
	{0x4c820021, cputest.Case{Name: "bnelrl, equal", Regs: registers{LR: function, CR: crBit(2)}, After: registers{LR: here + 4}}},
	{0x4e000020, cputest.Case{Name: "bdnzlr", Regs: registers{LR: function, CTR: 7}, After: registers{CTR: 6, PC: function}}},
	{0x4e400021, cputest.Case{Name: "bdzlrl", Regs: registers{LR: function, CTR: 1}, After: registers{CTR: 0, LR: here + 4, PC: function}}},
	{0x4e800420, cputest.Case{Name: "bctr", Regs: registers{CTR: function | 1}, After: registers{PC: function}}},
	{0x4e800421, cputest.Case{Name: "bctrl", Regs: registers{CTR: function}, After: registers{LR: here + 4, PC: function}}},
	{0x4d820420, cputest.Case{Name: "beqctr, equal", Regs: registers{CTR: function, CR: crBit(2)}, After: registers{PC: function}}},
	{0x4c820421, cputest.Case{Name: "bnectrl, equal", Regs: registers{CTR: function, CR: crBit(2)}, After: registers{LR: here + 4}}},
	{0x4e000420, cputest.Case{Name: "bdnzctr", Regs: registers{CTR: function}, Unknown: true}},
	{0x4e800460, cputest.Case{Name: "btar", Regs: registers{TAR: function}, After: registers{PC: function}}},
	{0x4d820461, cputest.Case{Name: "beqtarl, equal", Regs: registers{TAR: function, CR: crBit(2)}, After: registers{LR: here + 4, PC: function}}},
	{0x4e000460, cputest.Case{Name: "bdnztar", Regs: registers{TAR: function, CTR: 2}, After: registers{CTR: 1, PC: function}}},

	{0x4c600005, cputest.Case{Name: "addpcis", After: registers{R0 + 3: here + 4 + 0x10000}}},
	{0x4c7fffc5, cputest.Case{Name: "addpcis, below", After: registers{R0 + 3: here + 4 - 0x10000}}},
	{0x4c000004, cputest.Case{Name: "lnia r0", After: registers{R0: here + 4}}},

	{0x4c000024, cputest.Case{Name: "rfid", Unknown: true}},
	{0x4c000124, cputest.Case{Name: "rfebb", Unknown: true}},
	{0x44000002, cputest.Case{Name: "sc", Unknown: true}},
	{0x7fe00008, cputest.Case{Name: "trap", Unknown: true}},
	{0x60000000, cputest.Case{Name: "nop", Unknown: true}},
}

func TestInterpret(t *testing.T) {
	for _, isa := range byteOrders {
		t.Run(isa.Name(), func(t *testing.T) {
			list := make([]cputest.Case, len(interpretCases))
			for i, c := range interpretCases {
				list[i] = c.Case
				list[i].Code = isa.memoryOrder(c.word)
			}
			cputest.Run(t, isa, !isa.LittleEndian, list)
		})
	}
}

// interpreted are instructions of every kind.
var interpreted = map[string]uint32{
	"b": 0x48001000, "bne": 0x40820008, "bdnzt": 0x41020008, "blr": 0x4e800020, "bctrl": 0x4e800421, "addpcis": 0x4c600005,
}

func TestInterpretAllocatesNothing(t *testing.T) {
	for name, word := range interpreted {
		if n := cputest.Allocations(t, ISA{}, ISA{}.memoryOrder(word)); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkInterpret(b *testing.B) {
	for name, word := range interpreted {
		b.Run(name, func(b *testing.B) { cputest.Benchmark(b, ISA{}, ISA{}.memoryOrder(word)) })
	}
}

func FuzzInterpret(f *testing.F) {
	var seeds []string
	for _, word := range interpreted {
		seeds = append(seeds, ISA{}.memoryOrder(word))
	}
	cputest.Fuzz(f, ISA{}, true, seeds...)
}
