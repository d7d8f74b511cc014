package usdt_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"xol/arch"
	"xol/internal/cputest"
	"xol/internal/isatest"
	"xol/machine"
	"xol/usdt"
)

// The addresses and the contents that the tests give memory.
const (
	data     = 0x10000
	word0    = 0x8899aabbccddeeff
	word1    = 0xfedcba9876543210
	counters = data + 0x20 // a symbol, 0x4000 lower in the file
	bias     = 0x4000
)

func symbols(name string) (uint64, bool) {
	return counters - bias, name == "counters"
}

// program returns a CPU whose registers are set by name.
func program(t testing.TB, isa arch.Prober, regs map[string]uint64) *cputest.CPU {
	t.Helper()
	cpu := cputest.New(isa.Registers(), isa.Name() == "ppc64", machine.Range{Lo: data, Hi: data + 0x1000})
	for i, w := range []uint64{word0, word1} {
		if err := errors.Join(cpu.WriteWord(data+8*uint64(i), w), cpu.WriteWord(counters+8*uint64(i), w)); err != nil {
			t.Fatal(err)
		}
	}
	for name, v := range regs {
		i := cpu.File.Index(name)
		if i < 0 {
			t.Fatalf("no register %s", name)
		}
		cpu.SetReg(i, v)
	}
	return cpu
}

type regs = map[string]uint64

// evalCases are arguments with their values, as the assemblers' manuals have
// the operands. On ppc64 both byte orders have them.
var evalCases = map[string][]struct {
	arg  string
	regs regs
	want uint64
}{
	"amd64": {
		{"8@%rdi", regs{"rdi": word0}, word0},
		{"-4@%eax", regs{"rax": word0}, 0xffffffffccddeeff},
		{"4@%eax", regs{"rax": word0}, 0xccddeeff},
		{"-8@%eax", regs{"rax": word0}, 0xffffffffccddeeff},
		{"2@%dx", regs{"rdx": word0}, 0xeeff},
		{"-1@%cl", regs{"rcx": word0}, 0xffffffffffffffff},
		{"1@%ah", regs{"rax": word0}, 0xee},
		{"-2@%bh", regs{"rbx": word0}, 0xffffffffffffffee},
		{"1@%sil", regs{"rsi": word0}, 0xff},
		{"1@%r15b", regs{"r15": word0}, 0xff},
		{"4@%r8d", regs{"r8": word0}, 0xccddeeff},
		{"2@%r10w", regs{"r10": word0}, 0xeeff},
		{"4@%ebp", regs{"rbp": word0}, 0xccddeeff},
		{"%rax", regs{"rax": word0}, word0},
		{"4@$5", nil, 5},
		{"-4@$-5", nil, 0xfffffffffffffffb},
		{"4@$-5", nil, 0xfffffffb},
		{"4@$0x10", nil, 16},
		{"4@$010", nil, 8},
		{"8@$counters", nil, counters},
		{"8@-8(%rbp)", regs{"rbp": data + 8}, word0},
		{"-4@4(%rsp)", regs{"rsp": data}, 0xffffffff8899aabb},
		{"2@(%rax)", regs{"rax": data + 2}, 0xccdd},
		{"1@(%rax,%rbx,4)", regs{"rax": data, "rbx": 2}, 0x10},
		{"1@(%rax,%rbx)", regs{"rax": data, "rbx": 1}, 0xee},
		{"8@-4+16(,%rcx,8)", regs{"rcx": (data - 4) / 8}, 0x76543210_8899aabb},
		{"8@counters(%rip)", nil, word0},
		{"-8@8+counters(%rip)", nil, word1},
		{"8@counters+8(%rip)", nil, word1},
		{"8@counters", nil, word0},
		{"8@counters(,%rax,8)", regs{"rax": 1}, word1},
		{"8@16(%rip)", regs{"rip": data - 8}, word1},
		{"8@65536", nil, word0},
		{"8@%fs:-16", regs{"fs_base": data + 16}, word0},
		{"8@%gs:8(%rax)", regs{"gs_base": data, "rax": 0}, word1},
		{"8f@%xmm3", regs{"zmm3": word0}, word0},
		{"4f@%xmm15", regs{"zmm15": word0}, 0xccddeeff},
		{"4f@4(%rax)", regs{"rax": data}, 0x8899aabb},
	},
	"arm64": {
		{"8@x0", regs{"x0": word0}, word0},
		{"-4@x0", regs{"x0": word0}, 0xffffffffccddeeff},
		{"8@w7", regs{"x7": word0}, 0xccddeeff},
		{"1@x30", regs{"x30": word0}, 0xff},
		{"8@lr", regs{"x30": word0}, word0},
		{"8@fp", regs{"x29": word0}, word0},
		{"8@sp", regs{"sp": word0}, word0},
		{"8@xzr", nil, 0},
		{"4@5", nil, 5},
		{"-4@-5", nil, 0xfffffffffffffffb},
		{"4@#5", nil, 5},
		{"8@[x1]", regs{"x1": data}, word0},
		{"8@[sp, 8]", regs{"sp": data}, word1},
		{"8@[sp,#8]", regs{"sp": data}, word1},
		{"-4@[x29, -4]", regs{"x29": data + 8}, 0xffffffff8899aabb},
		{"8@[x0, x1]", regs{"x0": data, "x1": 8}, word1},
		{"8@[x0, x1, lsl 3]", regs{"x0": data, "x1": 1}, word1},
		{"8@[x0, x1, lsl #3]", regs{"x0": data, "x1": 1}, word1},
		{"8@[x0, w1, sxtw 2]", regs{"x0": data + 8, "x1": 0xfffffffe}, word0},
		{"8@[x0, w1, sxtw]", regs{"x0": data + 8, "x1": 0xfffffff8}, word0},
		{"8@[x0, w1, uxtw 3]", regs{"x0": data, "x1": 0xff_00000001}, word1},
		{"8@[x0, #:lo12:counters]", regs{"x0": data}, word0},
		{"8@[x0, :lo12:counters+8]", regs{"x0": data}, word1},
		{"8f@d3", regs{"v3": word0}, word0},
		{"4f@s3", regs{"v3": word0}, 0xccddeeff},
		{"8f@v31", regs{"v31": word0}, word0},
	},
	"ppc64": {
		{"8@3", regs{"r3": word0}, word0},
		{"-4@%r3", regs{"r3": word0}, 0xffffffffccddeeff},
		{"2@r31", regs{"r31": word0}, 0xeeff},
		{"8@0", regs{"r0": word0}, word0},
		{"8@%lr", regs{"lr": word0}, word0},
		{"8@ctr", regs{"ctr": word0}, word0},
		{"4@i5", nil, 5},
		{"-4@i-5", nil, 0xfffffffffffffffb},
		{"8@8(31)", regs{"r31": data}, word1},
		{"8@-8(%r9)", regs{"r9": data + 8}, word0},
		{"8@(9)", regs{"r9": data}, word0},
		{"8@0(9)", regs{"r9": data}, word0},
		{"8@9,10", regs{"r9": data, "r10": 8}, word1},
		{"8@0,9", regs{"r0": 8, "r9": data}, word0},
		{"8f@%f1", regs{"vs1": math.Float64bits(1.5)}, math.Float64bits(1.5)},
		{"4f@%f1", regs{"vs1": math.Float64bits(1.5)}, uint64(math.Float32bits(1.5))},
		{"8f@%vs34", regs{"vs34": word0}, word0},
	},
}

func TestEval(t *testing.T) {
	for _, name := range arch.Names() {
		isa, err := isatest.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range evalCases[strings.TrimSuffix(name, "le")] {
			t.Run(name+" "+c.arg, func(t *testing.T) {
				args, err := usdt.Parse(isa, c.arg, symbols)
				if err != nil || len(args) != 1 {
					t.Fatalf("%d arguments, %v", len(args), err)
				}
				cpu := program(t, isa, c.regs)
				got, err := args[0].Eval(cpu, cpu, bias)
				if err != nil || got != c.want {
					t.Errorf("%#x, %v, want %#x", got, err, c.want)
				}
			})
		}
	}
}

// TestEvalSizesInMemory loads every size in either byte order.
func TestEvalSizesInMemory(t *testing.T) {
	for _, c := range []struct {
		isa, base string
		want      [4]uint64 // of 1, 2, 4 and 8 bytes
	}{
		{"amd64", "(%rax)", [4]uint64{0xff, 0xeeff, 0xccddeeff, word0}},
		{"arm64", "[x0]", [4]uint64{0xff, 0xeeff, 0xccddeeff, word0}},
		{"ppc64le", "0(3)", [4]uint64{0xff, 0xeeff, 0xccddeeff, word0}},
		{"ppc64", "0(3)", [4]uint64{0x88, 0x8899, 0x8899aabb, word0}},
	} {
		isa, err := isatest.Named(c.isa)
		if err != nil {
			t.Fatal(err)
		}
		args, err := usdt.Parse(isa, fmt.Sprintf("1@%[1]s 2@%[1]s 4@%[1]s 8@%[1]s", c.base), nil)
		if err != nil || len(args) != len(c.want) {
			t.Fatalf("%s: %d arguments, %v", c.isa, len(args), err)
		}
		cpu := program(t, isa, nil)
		cpu.SetReg(isa.Convention().Result, data)
		for i := range args {
			if got, err := args[i].Eval(cpu, cpu, 0); err != nil || got != c.want[i] {
				t.Errorf("%s: %s is %#x, %v, want %#x", c.isa, args[i].Text, got, err, c.want[i])
			}
		}
	}
}

func TestEvalWithoutMemory(t *testing.T) {
	isa, err := isatest.Named("amd64")
	if err != nil {
		t.Fatal(err)
	}
	args, err := usdt.Parse(isa, "4@(%rax) 8@(%rax)", nil)
	if err != nil {
		t.Fatal(err)
	}
	cpu := program(t, isa, nil)
	for i := range args {
		if _, err := args[i].Eval(cpu, cpu, 0); !errors.Is(err, cputest.ErrLimit) {
			t.Errorf("%s: %v", args[i].Text, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ isa, arg, want string }{
		{"amd64", "3@%rax", "size"},
		{"amd64", "@%rax", "size"},
		{"amd64", "16@%xmm0", "size"},
		{"amd64", "-8f@%xmm0", "floating-point"},
		{"amd64", "2f@%xmm0", "floating-point"},
		{"amd64", "8@", "no operand"},
		{"amd64", "8@%", `no symbol "%"`},
		{"amd64", "8@%rzx", "not a register"},
		{"amd64", "8@%r16", "not a register"},
		{"amd64", "8@%r7", "not a register"},
		{"amd64", "8@%r08", "not a register"},
		{"amd64", "1@%axl", "not a register"},
		{"amd64", "1@%sih", "not a register"},
		{"amd64", "8@(%rax", "does not end"},
		{"amd64", "8@(%rax)x", "does not end"},
		{"amd64", "8@(%eax)", "cannot be part"},
		{"amd64", "8@()", "cannot be part"},
		{"amd64", "8@(%rax,%rsp)", "cannot be part"},
		{"amd64", "8@(%rax,%rip)", "cannot be part"},
		{"amd64", "8@(%rax,%rbx,3)", "scale"},
		{"amd64", "8@(%rax,%rbx,4,5)", "base, an index"},
		{"amd64", "8@nowhere(%rip)", "no symbol"},
		{"amd64", "8@-counters(%rip)", "plain address"},
		{"amd64", "8@counters+counters(%rip)", "plain address"},
		{"amd64", "8@8+(%rax)", "sign without"},
		{"amd64", "8@0x(%rax)", "number"},
		{"amd64", "8@1_0(%rax)", "number"},
		{"amd64", "8@99999999999999999999", "64 bits"},
		{"amd64", "8@%es:8", "%fs"},
		{"amd64", "8@%fs:", "no address"},
		{"arm64", "8@x31", "neither a register"},
		{"arm64", "8@%x0", "neither a register"},
		{"arm64", "8@[x0", "does not end"},
		{"arm64", "8@[w0]", "base"},
		{"arm64", "8@[xzr]", "base"},
		{"arm64", "8@[x0, x1, ror 3]", "ror"},
		{"arm64", "8@[x0, w1]", "does not go"},
		{"arm64", "8@[x0, x1, sxtw]", "does not go"},
		{"arm64", "8@[x0, x1, lsl 5]", "shift"},
		{"arm64", "8@[x0, 8, lsl 3]", "not a base"},
		{"arm64", "8@[x0, :lo12:nowhere]", "no symbol"},
		{"arm64", "8@[x0, sp]", "cannot be an index"},
		{"ppc64", "8@32", "neither a register"},
		{"ppc64", "8@i", "number"},
		{"ppc64", "8@8(32)", "cannot be part"},
		{"ppc64", "8@8(3", "does not end"},
		{"ppc64", "8@x(3)", "number"},
		{"ppc64", "8@3,%f1", "cannot be part"},
		{"ppc64", "8@%f32", "neither a register"},
	} {
		isa, err := isatest.Named(c.isa)
		if err != nil {
			t.Fatal(err)
		}
		_, err = usdt.Parse(isa, c.arg, symbols)
		var wrong *usdt.Error
		if !errors.As(err, &wrong) || wrong.Arg != c.arg || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q in it", c.isa, c.arg, err, c.want)
		}
	}
}

func TestSplit(t *testing.T) {
	got := usdt.Split(" 8@[sp, 24]\t-4@x0  8@-8( %rbp ) ")
	if want := "8@[sp, 24]|-4@x0|8@-8( %rbp )"; strings.Join(got, "|") != want {
		t.Errorf("%q", got)
	}
}

// FuzzParse evaluates whatever can be parsed.
func FuzzParse(f *testing.F) {
	for i, name := range arch.Names() {
		for _, c := range evalCases[strings.TrimSuffix(name, "le")] {
			f.Add(c.arg, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		isa, err := isatest.Named(arch.Names()[int(which)%len(arch.Names())])
		if err != nil {
			t.Fatal(err)
		}
		args, err := usdt.Parse(isa, text, symbols)
		var wrong *usdt.Error
		if err != nil && !errors.As(err, &wrong) {
			t.Errorf("%q: error of type %T", text, err)
		}
		cpu := program(t, isa, nil)
		for i := range args {
			v, err := args[i].Eval(cpu, cpu, bias)
			if bits := 8 * args[i].Size; err == nil && !args[i].Signed && bits < 64 && v>>bits != 0 {
				t.Errorf("%q: %#x has more than %d bits", args[i].Text, v, bits)
			}
		}
	})
}

func ExampleParse() {
	isa, _ := isatest.Named("amd64")
	args, err := usdt.Parse(isa, "8@%rdi -4@-4(%rbp)", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	cpu := cputest.New(isa.Registers(), false, machine.Range{})
	cpu.SetReg(cpu.File.Index("rdi"), 42)
	cpu.SetReg(cpu.File.Index("rbp"), 0x7000)
	_ = cpu.Write(0x6ffc, []byte{0xfe, 0xff, 0xff, 0xff})
	for i := range args {
		v, err := args[i].Eval(cpu, cpu, 0)
		fmt.Println(args[i].Text, int64(v), err)
	}
	// Output:
	// 8@%rdi 42 <nil>
	// -4@-4(%rbp) -2 <nil>
}
