package arm64

import (
	"testing"

	"xol/machine"
)

func set(regs ...int) (s uint32) {
	for _, r := range regs {
		s |= 1 << r
	}
	return s
}

// TestResults checks that what an instruction writes is found, and that
// immediates are not taken for registers where that would cost many.
func TestResults(t *testing.T) {
	for _, c := range []struct {
		name     string
		word     uint32
		writes   uint32 // must be among the results
		leaves   uint32 // must not
		operands uint32 // must be among the operands
	}{
		{"add x1, x2, x3", 0x8b030041, set(1), set(2, 3), set(1, 2, 3)},
		{"madd x1, x2, x3, x4", 0x9b031041, set(1), set(2, 3, 4), set(1, 2, 3, 4)},
		{"mov x1, #0xffff", 0xd29fffe1, set(1), set(31, 7), set(1)},
		{"ldr x1, [x2, #0xff8]", 0xf947fc41, set(1), set(2, 31), set(1, 2)},
		{"ldr x1, [x2], #8", 0xf8408441, set(1, 2), set(0, 8), set(1, 2)},
		{"ldp x1, x3, [x2, #16]!", 0xa9c10c41, set(1, 2, 3), 0, set(1, 2, 3)},
		{"ldr x1, [x2, x3]", 0xf8636841, set(1), 0, set(1, 2, 3)},
		{"stxr w4, x1, [x2]", 0xc8047c41, set(4), 0, set(1, 2, 4)},
		{"ldxp x1, x3, [x2]", 0xc87f0c41, set(1, 3), 0, set(1, 2, 3)},
		{"casp x4, x5, x6, x7, [x2]", 0x48247c46, set(4, 5), 0, set(2, 4, 5, 6, 7)},
		{"swp x4, x1, [x2]", 0xf8248041, set(1), 0, set(1, 2, 4)},
		{"ld64b x8, [x2]", 0xf83fd048, set(8, 9, 10, 11, 12, 13, 14, 15), 0, set(2, 8, 15)},
		{"st64bv x4, x8, [x2]", 0xf824b048, set(4), 0, set(2, 4, 8, 15)},
		{"ld1 {v0.16b}, [x2], x3", 0x4cc37040, set(2), 0, set(2, 3)},
		{"fmov x1, d2", 0x9e660041, set(1), 0, set(1)},
		{"mrs x1, nzcv", 0xd53b4201, set(1), 0, set(1)},
		{"mrrs x2, x3, par_el1", 0xd5787402, set(2, 3), 0, set(2, 3)},
		{"pacia1716", 0xd503211f, set(17), set(0), set(16, 17)},
		{"pacia171615", 0xdac18bfe, set(17), 0, set(15, 16, 17)},
		{"chkfeat x16", 0xd503251f, set(16), 0, set(16)},
		{"svc #0", 0xd4000001, set(0), set(19, 29), set(0)},
		{"adrp x1", 0xb0000101, set(1), set(8), set(1)},
		{"cbz x3", 0xb4000203, 0, set(3, 16), set(3)},
		{"ldr x5, literal", 0x58000205, set(5), set(16), set(5)},
	} {
		inst := &sweepWords(t, moveFrom, c.word)[0]
		results, operands := resultsOf(inst), operandsOf(inst)
		if results&c.writes != c.writes || results&c.leaves != 0 {
			t.Errorf("%s: results %#x", c.name, results)
		}
		if operands&c.operands != c.operands || operands&results&^(1<<31) != results&^(1<<31) {
			t.Errorf("%s: operands %#x, results %#x", c.name, operands, results)
		}
		if dead := (ISA{}).DeadRegisters(inst); dead&operands != 0 || dead>>30 != 0 || dead == 0 {
			t.Errorf("%s: dead %#x", c.name, dead)
		}
	}
}

func TestVolatile(t *testing.T) {
	for _, c := range []struct {
		name string
		word uint32
		want bool
	}{
		{"mrs x0, cntvct_el0", 0xd53be040, true},
		{"mrs x0, rndr", 0xd53b2400, true},
		{"mrs x0, dczid_el0", 0xd53b00e0, true},
		{"mrs x0, nzcv", 0xd53b4200, false},
		{"mrs x0, fpcr", 0xd53b4400, false},
		{"mrs x0, fpsr", 0xd53b4420, false},
		{"mrs x0, tpidr_el0", 0xd53bd040, false},
		{"msr nzcv, x0", 0xd51b4200, false},
		{"add x1, x1, #1", 0x91000421, false},
	} {
		if got := Volatile(&sweepWords(t, moveFrom, c.word)[0]); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestRegistersAndStack(t *testing.T) {
	f := Registers()
	if f.SP != SP || f.PC != PC || f.Registers[NZCV].Kind != machine.Flags || f.Index("x30") != X0+linkRegister || f.Index("v31") != V0+31 {
		t.Errorf("%+v", f)
	}
	if lo, hi := (ISA{}).StackScratch(0x1000); hi != 0x1000 || lo >= hi {
		t.Errorf("scratch from %#x to %#x: arm64 has no red zone", lo, hi)
	}
}
