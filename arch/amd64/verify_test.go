package amd64

import (
	"testing"

	"xol/decode"
	"xol/machine"
)

// Classes that engines leave out, by the manuals' descriptions.
func TestExecutionClasses(t *testing.T) {
	const none = ""
	for _, c := range []struct{ name, code, class string }{
		{"nop", "90", none},
		{"rdtsc", "0f31", "volatile"},
		{"rdtscp", "0f01f9", "volatile"},
		{"rdpmc", "0f33", "volatile"},
		{"cpuid", "0fa2", "volatile"},
		{"rdrand", "480fc7f0", "volatile"},
		{"rdseed", "0fc7f8", "volatile"},
		{"rdpid", "f30fc7f8", "volatile"},
		{"cmpxchg16b", "480fc70b", none},
		{"sgdt", "0f0103", "volatile"},
		{"sldt", "0f00c0", "volatile"},
		{"smsw", "0f01e0", "volatile"},
		{"xgetbv", "0f01d0", "volatile"},
		{"rdpkru", "0f01ee", "volatile"},
		{"tpause", "660faef3", "volatile"},
		{"clwb", "660fae33", none},
		{"xsaveopt", "0fae33", none},
		{"mfence", "0faef0", none},
		{"VEX of the same map and opcode", "c5f8ae1b", none},
		{"mov to a segment register", "8ed8", "segmented"},
		{"mov from one", "8cd8", none},
		{"pop %fs", "0fa1", "segmented"},
		{"push %fs", "0fa0", none},
		{"lss", "0fb223", "segmented"},
		{"far return", "cb", "segmented"},
		{"far return over bytes", "ca0800", "segmented"},
		{"near return", "c3", none},
		{"iretq", "48cf", "segmented"},
		{"far call", "ff1b", "segmented"},
		{"far jump", "ff2b", "segmented"},
		{"near jump", "ffe3", none},
		{"lar", "0f02c0", "segmented"},
		{"verw", "0f00e8", "segmented"},
		{"popf", "9d", "flags"},
		{"pushf", "9c", none},
	} {
		inst := sweepHex(t, c.code, moveFrom)[0]
		if len(inst.Bytes()) != len(c.code)/2 || inst.Has(decode.Invalid) {
			t.Errorf("%s: %s does not decode", c.name, c.code)
		}
		for class, is := range map[string]bool{
			"volatile": Volatile(&inst), "segmented": Segmented(&inst), "flags": LoadsSystemFlags(&inst),
		} {
			if is != (class == c.class) {
				t.Errorf("%s: %s is %t", c.name, class, is)
			}
		}
	}
}

// By the Intel SDM, volume 1, appendix A, and the instructions' pages.
func TestUndefinedFlags(t *testing.T) {
	const (
		all   = FlagCF | FlagPF | FlagAF | FlagZF | FlagSF | FlagOF
		mul   = FlagPF | FlagAF | FlagZF | FlagSF
		scan  = FlagPF | FlagAF | FlagSF | FlagOF
		shift = FlagAF | FlagOF
	)
	for _, c := range []struct {
		name, code string
		want       uint64
	}{
		{"add", "01c8", 0}, {"adc", "4883d001", 0}, {"cmp", "83f801", 0}, {"inc", "ffc0", 0},
		{"and", "21c8", FlagAF}, {"and, immediate", "83e001", FlagAF}, {"or", "0c01", FlagAF}, {"xor", "80f101", FlagAF},
		{"test", "84c0", FlagAF}, {"test, immediate", "f7c001000000", FlagAF}, {"not", "f7d0", 0}, {"neg", "f7d8", 0},
		{"mul", "f7e1", mul}, {"imul", "0fafc1", mul}, {"imul, immediate", "6bc103", mul}, {"imul, one operand", "f6e9", mul},
		{"div", "f7f1", all}, {"idiv", "48f7f9", all},
		{"shl", "c1e003", shift}, {"shl by one", "d1e0", FlagAF}, {"sar by cl", "d3f8", shift}, {"shld", "0fa4c103", shift},
		{"bsf", "0fbcc1", scan | FlagCF}, {"bsr", "0fbdc1", scan | FlagCF}, {"bt", "0fa3c8", scan}, {"bts, immediate", "0fbae803", scan},
		{"popcnt", "f30fb8c1", 0}, {"mov", "89c8", 0}, {"cmov", "0f44c1", 0}, {"setc", "0f92c0", 0},
		{"andn", "c4e270f2c2", FlagPF | FlagAF}, {"blsr", "c4e278f3c9", FlagPF | FlagAF}, {"bzhi", "c4e270f5c2", FlagPF | FlagAF},
		{"bextr", "c4e270f7c2", FlagPF | FlagAF | FlagSF}, {"pdep", "c4e273f5c2", 0}, {"sarx", "c4e272f7c2", 0}, {"mulx", "c4e27bf6c1", 0},
		{"vpor", "c5f1ebc2", 0},
	} {
		inst := sweepHex(t, c.code, moveFrom)[0]
		if inst.Has(decode.Invalid) {
			t.Errorf("%s: %s does not decode", c.name, c.code)
		}
		if got := (ISA{}).UndefinedFlags(&inst); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

func TestPrepare(t *testing.T) {
	f := Registers()
	for _, c := range []struct {
		name, code string
		register   int
		want       uint64 // of a register of ones
	}{
		{"rep movs", "f348a5", RCX, maxRepetitions},
		{"repne scas", "f2ae", RCX, maxRepetitions},
		{"movs without rep", "48a5", RCX, 1<<64 - 1},
		{"pause, no repetition", "f390", RCX, 1<<64 - 1},
		{"div: the quotient fits", "48f7f1", RDX, 0},
		{"idiv of a byte", "f6f9", RAX, 0x7f},
		{"mul", "48f7e1", RDX, 1<<64 - 1},
		{"another map", "0fa5c8", RCX, 1<<64 - 1},
	} {
		s := f.NewState()
		f.SetWord(s, c.register, 1<<64-1)
		inst := sweepHex(t, c.code, moveFrom)[0]
		ISA{}.Prepare(&inst, f, s)
		if got := f.Word(s, c.register); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

// Loops meet the counts at which they end, and those of the other width.
func TestPrepareLoops(t *testing.T) {
	f := Registers()
	s := f.NewState()
	inst := sweepHex(t, "e300", moveFrom)[0]
	seen := map[uint64]int{}
	for i := range uint64(100) {
		f.SetWord(s, RCX, 0x1000+i)
		ISA{}.Prepare(&inst, f, s)
		seen[f.Word(s, RCX)]++
	}
	if len(seen) < 30 || seen[0] == 0 || seen[1] == 0 || seen[1<<32] == 0 || seen[1<<32|1] == 0 {
		t.Error(seen)
	}
}

// The red zone is kept, and scratch is bounded [System V ABI, AMD64 supplement,
// 3.2.2].
func TestStackScratch(t *testing.T) {
	lo, hi := ISA{}.StackScratch(0x10000)
	if hi != 0x10000-128 || lo >= hi || hi-lo > 128 {
		t.Errorf("%#x to %#x", lo, hi)
	}
}

func TestRegisterFile(t *testing.T) {
	f := ISA{}.Registers()
	if f.PC != RIP || f.SP != RSP {
		t.Errorf("program counter %d, stack pointer %d", f.PC, f.SP)
	}
	for name, index := range map[string]int{
		"rax": RAX, "rsp": RSP, "r15": R15, "rip": RIP, "rflags": RFLAGS, "fs_base": FSBase, "gs_base": GSBase,
		"mxcsr": MXCSR, "fcw": FCW, "fsw": FSW, "ftw": FTW, "st0": ST0, "st7": ST0 + 7,
		"zmm0": ZMM0, "zmm31": ZMM0 + 31, "k0": K0, "k7": K0 + 7,
	} {
		if f.Index(name) != index {
			t.Errorf("%s is register %d, not %d", name, f.Index(name), index)
		}
	}
	for name, want := range map[string]struct {
		kind machine.Kind
		size int
	}{
		"rbx": {machine.General, 8}, "rsp": {machine.StackPointer, 8}, "rip": {machine.PC, 8}, "rflags": {machine.Flags, 8},
		"mxcsr": {machine.Control, 4}, "st3": {machine.Float, 10}, "zmm9": {machine.Vector, 64}, "k1": {machine.Mask, 8},
	} {
		if r := f.Registers[f.Index(name)]; r.Kind != want.kind || r.Size != want.size {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
