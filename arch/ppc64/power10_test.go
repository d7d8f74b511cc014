package ppc64

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"xol/decode"
	"xol/internal/cputest"
	"xol/machine"
)

// prefixedISA has Interpret execute prefixed instructions.
type prefixedISA struct{ ISA }

func (a prefixedISA) Interpret(inst *decode.Inst, r machine.Registers, m machine.Memory) (done bool, err error) {
	p := NewPower10(a.ISA)
	if !p.Knows(inst) {
		return false, nil
	}
	err = p.Execute(inst, r.(machine.WideRegisters), m)
	return err == nil, err
}

// Words before and after the operand of loads and stores.
const (
	prefixedData = 0x12340
	before       = 0x0102030405060708
	after        = 0x1112131415161718
)

var prefixedMemory = cputest.Words{prefixedData: before, prefixedData + 8: after}

// What the words show at 4 bytes after the first one's start, in big-endian
// order, is 05060708 11121314; in the other, 01020304 15161718.
var prefixedScalars = []struct {
	word uint64
	big  cputest.Case
	// little is what differs in little-endian order; nil where nothing does.
	little cputest.Regs
}{
	{0x06000001_38640010, cputest.Case{Name: "paddi", Regs: registers{R0 + 4: 5}, After: registers{R0 + 3: 0x10015}}, nil},
	{0x06000000_38600007, cputest.Case{Name: "pli", Regs: registers{R0: 5}, After: registers{R0 + 3: 7}}, nil},
	{0x0603ffff_3860fffe, cputest.Case{Name: "pli, negative", After: registers{R0 + 3: ^uint64(1)}}, nil},
	{0x06020000_38640000, cputest.Case{Name: "paddi, the lowest", Regs: registers{R0 + 4: 1}, After: registers{R0 + 3: 1<<64 - 1<<33 + 1}}, nil},
	{0x0601ffff_3864ffff, cputest.Case{Name: "paddi, the highest", Regs: registers{R0 + 4: 1}, After: registers{R0 + 3: 1 << 33}}, nil},
	{0x06100000_38600010, cputest.Case{Name: "pla", After: registers{R0 + 3: here + 0x10}}, nil},
	{0x0613ffff_3860fff8, cputest.Case{Name: "pla, below", After: registers{R0 + 3: here - 8}}, nil},

	{0x04000000_e4640004, cputest.Case{Name: "pld", Regs: registers{R0 + 4: prefixedData}, After: registers{R0 + 3: 0x0506070811121314}}, registers{R0 + 3: 0x1516171801020304}},
	{0x04000001_e4602344, cputest.Case{Name: "pld without base", Regs: registers{R0: 5}, After: registers{R0 + 3: 0x0506070811121314}}, registers{R0 + 3: 0x1516171801020304}},
	{0x0413ffc1_e4601340, cputest.Case{Name: "pld, relative", After: registers{R0 + 3: before}}, nil},
	{0x04020000_e4640000, cputest.Case{Name: "pld, the lowest displacement", Regs: registers{R0 + 4: prefixedData + 1<<33}, After: registers{R0 + 3: before}}, nil},
	{0x04000000_a4640004, cputest.Case{Name: "plwa", Regs: registers{R0 + 4: prefixedData}, After: registers{R0 + 3: 0x05060708}}, registers{R0 + 3: 0x01020304}},
	{0x06000000_80640004, cputest.Case{Name: "plwz", Regs: registers{R0 + 4: prefixedData}, After: registers{R0 + 3: 0x05060708}}, registers{R0 + 3: 0x01020304}},
	{0x06000000_a0640004, cputest.Case{Name: "plhz", Regs: registers{R0 + 4: prefixedData}, After: registers{R0 + 3: 0x0506}}, registers{R0 + 3: 0x0304}},
	{0x06000000_88640004, cputest.Case{Name: "plbz", Regs: registers{R0 + 4: prefixedData}, After: registers{R0 + 3: 5}}, registers{R0 + 3: 4}},
	{0x04000000_e0c40000, cputest.Case{Name: "plq", Regs: registers{R0 + 4: prefixedData}, After: registers{R0 + 6: before, R0 + 7: after}}, nil},

	{0x04000000_e4640000, cputest.Case{Name: "pld where nothing is", Regs: registers{R0 + 4: 8}, Fault: true}, nil},
	{0x04000000_f4640000, cputest.Case{Name: "pstd where nothing is", Regs: registers{R0 + 4: cputest.MemoryTop - 4}, Fault: true}, nil},
	{0x07000000_60000000, cputest.Case{Name: "pnop"}, nil},
	{0x7c620300, cputest.Case{Name: "setbc, set", Regs: registers{CR: crBit(2)}, After: registers{R0 + 3: 1}}, nil},
	{0x7c620300, cputest.Case{Name: "setbc, not set", Regs: registers{R0 + 3: 5, CR: 1<<32 - 1 - crBit(2)}, After: registers{R0 + 3: 0}}, nil},
	{0x7c620340, cputest.Case{Name: "setbcr, not set", Regs: registers{CR: 1<<32 - 1 - crBit(2)}, After: registers{R0 + 3: 1}}, nil},
	{0x7c620380, cputest.Case{Name: "setnbc, set", Regs: registers{CR: crBit(2)}, After: registers{R0 + 3: 1<<64 - 1}}, nil},
	{0x7c6203c0, cputest.Case{Name: "setnbcr, set", Regs: registers{R0 + 3: 5, CR: crBit(2)}, After: registers{R0 + 3: 0}}, nil},
	{0x7c8301b6, cputest.Case{Name: "brh", Regs: registers{R0 + 4: before}, After: registers{R0 + 3: 0x0201040306050807}}, nil},
	{0x7c830136, cputest.Case{Name: "brw", Regs: registers{R0 + 4: before}, After: registers{R0 + 3: 0x0403020108070605}}, nil},
	{0x7c830176, cputest.Case{Name: "brd", Regs: registers{R0 + 4: before}, After: registers{R0 + 3: 0x0807060504030201}}, nil},
	{0x0790f0ff_ec044018, cputest.Case{Name: "pmxvi8ger4", Unknown: true}, nil},
}

func TestPrefixedGeneral(t *testing.T) {
	for _, isa := range byteOrders {
		t.Run(isa.Name(), func(t *testing.T) {
			var list []cputest.Case
			for _, c := range prefixedScalars {
				k := c.big
				k.Code, k.Memory = fmt.Sprintf("%x", isa.bytesOf(c.word)), prefixedMemory
				if isa.LittleEndian && c.little != nil {
					k.After = c.little
				}
				list = append(list, k)
			}
			cputest.Run(t, prefixedISA{isa}, !isa.LittleEndian, list)
		})
	}
}

// prefixedCPU returns a CPU with r4 at the words.
func prefixedCPU(t *testing.T, isa ISA) *cputest.CPU {
	t.Helper()
	start := cputest.Case{Regs: registers{R0 + 4: prefixedData}, Memory: prefixedMemory}
	return start.Before(t, prefixedISA{isa}, !isa.LittleEndian)
}

func execute(t *testing.T, isa ISA, c *cputest.CPU, word uint64) {
	t.Helper()
	inst := cputest.Inst(t, isa, fmt.Sprintf("%x", isa.bytesOf(word)))
	if err := NewPower10(isa).Execute(&inst, c, c); err != nil {
		t.Fatal(err)
	}
	if pc := c.Reg(PC); pc != here+8 {
		t.Errorf("program counter %#x", pc)
	}
}

func TestPrefixedSignExtension(t *testing.T) {
	for _, isa := range byteOrders {
		for word, want := range map[uint64]uint64{
			0x04000000_a4640000: 0xffffffff_8182_8384, // plwa
			0x06000000_80640000: 0x8182_8384,          // plwz
			0x06000000_a8640000: 0xffffffff_ffff_8182, // plha
			0x06000000_a0640000: 0x8182,               // plhz
		} {
			c := prefixedCPU(t, isa)
			data := []byte{0x81, 0x82, 0x83, 0x84}
			if isa.LittleEndian {
				data = []byte{0x84, 0x83, 0x82, 0x81}
				if want&0xffff == 0x8182 {
					data = []byte{0x82, 0x81}
				}
			}
			if err := c.Write(prefixedData, data); err != nil {
				t.Fatal(err)
			}
			execute(t, isa, c, word)
			if got := c.Reg(R0 + 3); got != want {
				t.Errorf("%s, %#x: %#x, want %#x", isa.Name(), word, got, want)
			}
		}
	}
}

func TestPrefixedStores(t *testing.T) {
	for _, c := range []struct {
		name        string
		word        uint64
		big, little string // 16 bytes at the words
	}{
		{"pstb", 0x06000000_98640004, "01020304" + "a8" + "060708" + "1112131415161718", "08070605" + "a8" + "030201" + "1817161514131211"},
		{"psth", 0x06000000_b0640004, "01020304" + "a7a8" + "0708" + "1112131415161718", "08070605" + "a8a7" + "0201" + "1817161514131211"},
		{"pstw", 0x06000000_90640004, "01020304" + "a5a6a7a8" + "1112131415161718", "08070605" + "a8a7a6a5" + "1817161514131211"},
		{"pstd", 0x04000000_f4640004, "01020304" + "a1a2a3a4a5a6a7a8" + "15161718", "08070605" + "a8a7a6a5a4a3a2a1" + "14131211"},
		{"pstq", 0x04000000_f0c40000, "a1a2a3a4a5a6a7a8" + "b1b2b3b4b5b6b7b8", "a8a7a6a5a4a3a2a1" + "b8b7b6b5b4b3b2b1"},
		{"pstfd", 0x06000000_d8640000, "3ff8000000000000" + "1112131415161718", "000000000000f83f" + "1817161514131211"},
		{"pstfs", 0x06000000_d0640000, "3fc00000" + "05060708" + "1112131415161718", "0000c03f" + "04030201" + "1817161514131211"},
		{"pstxsd", 0x04000000_b8640000, "3ff8000000000000" + "1112131415161718", "000000000000f83f" + "1817161514131211"},
		{"pstxssp", 0x04000000_bc640000, "3fc00000" + "05060708" + "1112131415161718", "0000c03f" + "04030201" + "1817161514131211"},
		{"pstxv vs3", 0x04000000_d8640000, "3ff8000000000000" + "c1c2c3c4c5c6c7c8", "c8c7c6c5c4c3c2c1" + "000000000000f83f"},
		{"pstxv vs35", 0x04000000_dc640000, "3ff8000000000000" + "c1c2c3c4c5c6c7c8", "c8c7c6c5c4c3c2c1" + "000000000000f83f"},
	} {
		for _, isa := range byteOrders {
			cpu := prefixedCPU(t, isa)
			for _, r := range []int{R0 + 3, R0 + 6} {
				cpu.SetReg(r, 0xa1a2a3a4a5a6a7a8)
				cpu.SetReg(R0+7, 0xb1b2b3b4b5b6b7b8)
			}
			for _, r := range []int{VSR0 + 3, vr0 + 3} {
				cpu.SetWide(r, math.Float64bits(1.5), 0xc1c2c3c4c5c6c7c8)
			}
			execute(t, isa, cpu, c.word)
			var got [16]byte
			if err := cpu.Read(got[:], prefixedData); err != nil {
				t.Fatal(err)
			}
			want := c.big
			if isa.LittleEndian {
				want = c.little
			}
			if text := fmt.Sprintf("%x", got); text != want {
				t.Errorf("%s, %s: %s, want %s", isa.Name(), c.name, text, want)
			}
		}
	}
}

func TestPrefixedVectors(t *testing.T) {
	type wide [2]uint64
	const ones = 0x3fc000003fc00000 // two singles of 1.5
	for _, c := range []struct {
		name string
		word uint64
		reg  int
		want wide
	}{
		{"plfd", 0x06000000_c8640020, VSR0 + 3, wide{ones, 0}},
		{"plfs", 0x06000000_c0640020, VSR0 + 3, wide{0x3ff8000000000000, 0}},
		{"plxsd", 0x04000000_a8640020, vr0 + 3, wide{ones, 0}},
		{"plxssp", 0x04000000_ac640020, vr0 + 3, wide{0x3ff8000000000000, 0}},
		{"xxspltiw vs35", 0x05001234_80675678, vr0 + 3, wide{0x1234567812345678, 0x1234567812345678}},
		{"xxspltidp vs3", 0x05003fc0_80640000, VSR0 + 3, wide{0x3ff8000000000000, 0x3ff8000000000000}},
		{"xxsplti32dx vs3,0", 0x05001234_80605678, VSR0 + 3, wide{0x1234567803030303, 0x1234567803030303}},
		{"xxsplti32dx vs3,1", 0x05001234_80625678, VSR0 + 3, wide{0x0303030312345678, 0x0303030312345678}},
		// The operands are vs4, vs5 and vs6.
		{"xxblendvb", 0x05000000_84642980, VSR0 + 3, wide{0xb4a4a4a4a4b4a4a4, 0xa4a4a4a4a4a4a4b4}},
		{"xxblendvh", 0x05000000_84642990, VSR0 + 3, wide{0xb4b4a4a4a4a4a4a4, 0xa4a4a4a4a4a4a4a4}},
		{"xxblendvw", 0x05000000_846429a0, VSR0 + 3, wide{0xb4b4b4b4a4a4a4a4, 0xa4a4a4a4a4a4a4a4}},
		{"xxblendvd", 0x05000000_846429b0, VSR0 + 3, wide{0xb4b4b4b4b4b4b4b4, 0xa4a4a4a4a4a4a4a4}},
		{"xxeval, and of all", 0x05000001_88642990, VSR0 + 3, wide{0x8000000000800000, 0x0000000000000080}},
		{"xxeval, nor of all", 0x05000080_88642990, VSR0 + 3, wide{0x4b4b4b4b4b4b4b0a, 0x4b4b4b4b4b4b4b4b}},
		{"xxeval, a", 0x0500000f_88642990, VSR0 + 3, wide{0xa4a4a4a4a4a4a4a4, 0xa4a4a4a4a4a4a4a4}},
		{"xxpermx, of the first 32", 0x05000000_88642980, VSR0 + 3, wide{0x00a4a4a4a400a400, 0xa4a4a4a4a4a4a400}},
		{"xxpermx, of the fifth 32", 0x05000004_88642980, VSR0 + 3, wide{0xa400000000a40000, 0xa4}},
	} {
		for _, isa := range byteOrders {
			cpu := prefixedCPU(t, isa)
			if err := cpu.WriteWord(prefixedData+0x20, ones); err != nil {
				t.Fatal(err)
			}
			cpu.SetWide(c.reg, 0x0303030303030303, 0x0303030303030303)
			cpu.SetWide(VSR0+4, 0xa4a4a4a4a4a4a4a4, 0xa4a4a4a4a4a4a4a4)
			cpu.SetWide(VSR0+5, 0xb4b4b4b4b4b4b4b4, 0xb4b4b4b4b4b4b4b4)
			cpu.SetWide(VSR0+6, 0x8000000000800041, 0x0000000000000080)
			execute(t, isa, cpu, c.word)
			low, high := cpu.Wide(c.reg)
			if got := (wide{low, high}); got != c.want {
				t.Errorf("%s, %s: %#x, want %#x", isa.Name(), c.name, got, c.want)
			}
		}
	}
}

// singles are numbers in both formats.
var singles = []struct {
	name   string
	single uint32
	double uint64
}{
	{"0", 0, 0},
	{"-0", 1 << 31, 1 << 63},
	{"1.5", 0x3fc00000, 0x3ff8000000000000},
	{"-2", 0xc0000000, 0xc000000000000000},
	{"the smallest", 1, 0x36a0000000000000},
	{"the largest denormalized", 0x007fffff, 0x380fffffc0000000},
	{"the smallest normalized", 0x00800000, 0x3810000000000000},
	{"the largest", 0x7f7fffff, 0x47efffffe0000000},
	{"infinity", 0x7f800000, 0x7ff0000000000000},
	{"quiet NaN", 0x7fc00001, 0x7ff8000020000000},
	{"signaling NaN", 0xff800001, 0xfff0000020000000},
}

func TestSinglesAndDoubles(t *testing.T) {
	for _, c := range singles {
		if got := toDouble(c.single); got != c.double {
			t.Errorf("%s: double %#x, want %#x", c.name, got, c.double)
		}
		if got := toSingle(c.double); got != c.single {
			t.Errorf("%s: single %#x, want %#x", c.name, got, c.single)
		}
	}
	for bits := uint64(0); bits < 1<<32; bits += 65537 {
		if f := math.Float32frombits(uint32(bits)); f == f && toDouble(uint32(bits)) != math.Float64bits(float64(f)) {
			t.Errorf("%#x: double %#x, want %#x", bits, toDouble(uint32(bits)), math.Float64bits(float64(f)))
		}
	}
	// Bits that a single has not are cut off.
	for double, want := range map[uint64]uint32{0x3ff80000_1fffffff: 0x3fc00000, 0x380fffff_ffffffff: 0x007fffff, 0x36700000_00000000: 0} {
		if got := toSingle(double); got != want {
			t.Errorf("%#x: single %#x, want %#x", double, got, want)
		}
	}
}

func TestPrefixedAcrossABoundary(t *testing.T) {
	isa := ISA{}
	cpu := prefixedCPU(t, isa)
	before := cpu.Clone()
	var inst decode.Inst
	if err := isa.Decode(&inst, isa.bytesOf(0x06000001_38640010), 0x103c); err != nil {
		t.Fatal(err)
	}
	if err := NewPower10(isa).Execute(&inst, cpu, cpu); !errors.Is(err, ErrBoundary) {
		t.Error(err)
	}
	for _, what := range cpu.Differences(before.State, before.Writes()) {
		t.Error(what)
	}
}

func TestPrefixedAllocatesNothing(t *testing.T) {
	isa := ISA{}
	p, cpu := NewPower10(isa), prefixedCPU(t, isa)
	for _, word := range []uint64{0x06000001_38640010, 0x04000000_e4640004, 0x04000000_f4640000, 0x06000000_c0640020, 0x05001234_80675678} {
		inst := cputest.Inst(t, isa, fmt.Sprintf("%x", isa.bytesOf(word)))
		if n := testing.AllocsPerRun(100, func() { _ = p.Execute(&inst, cpu, nowhere{}) }); n != 0 {
			t.Errorf("%#x: %v allocations", word, n)
		}
	}
}

// nowhere is memory that keeps nothing.
type nowhere struct{}

func (nowhere) Read([]byte, uint64) error       { return nil }
func (nowhere) Write(uint64, []byte) error      { return nil }
func (nowhere) ReadWord(uint64) (uint64, error) { return 0, nil }
func (nowhere) WriteWord(uint64, uint64) error  { return nil }

func FuzzPrefixed(f *testing.F) {
	var seeds []string
	for _, c := range prefixedScalars {
		seeds = append(seeds, fmt.Sprintf("%x", ISA{}.bytesOf(c.word)))
	}
	cputest.Fuzz(f, prefixedISA{}, true, seeds...)
}
