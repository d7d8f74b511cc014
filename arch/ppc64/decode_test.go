package ppc64

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/arch/ppc64/ppc64asm"

	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
)

// bytesOf returns a word, or a prefix and suffix, as it stands in memory.
func (a ISA) bytesOf(word uint64) []byte {
	var order binary.AppendByteOrder = binary.BigEndian
	if a.LittleEndian {
		order = binary.LittleEndian
	}
	var b []byte
	if word>>32 != 0 {
		b = order.AppendUint32(b, uint32(word>>32))
	}
	return order.AppendUint32(b, uint32(word))
}

var byteOrders = []ISA{{}, {LittleEndian: true}}

func TestDecode(t *testing.T) {
	const (
		cond = decode.Conditional
		has  = decode.HasTarget
		link = decode.Link
		priv = decode.Privileged
	)
	tests := []struct {
		name   string
		word   uint64
		op     Op
		flow   decode.Flow
		props  decode.Props
		kind   decode.PCRelKind
		target uint64 // of an instruction at 0x10000
	}{
		{"add", 0x7c642a14, OpOther, decode.FlowNone, 0, 0, 0},
		{"nop", 0x60000000, OpOther, decode.FlowNone, 0, 0, 0},
		{"b forward", 0x48000010, OpBranch, decode.FlowJump, has, decode.PCRelBranch, 0x10010},
		{"b backward", 0x4bfffff0, OpBranch, decode.FlowJump, has, decode.PCRelBranch, 0xfff0},
		{"b farthest", 0x4a000000, OpBranch, decode.FlowJump, has, decode.PCRelBranch, 0xffff_ffff_fe01_0000},
		{"bl", 0x48000101, OpBranch, decode.FlowCall, has | link, decode.PCRelBranch, 0x10100},
		{"ba", 0x48000102, OpBranch, decode.FlowJump, has, 0, 0x100},
		{"ba negative", 0x4bfffff2, OpBranch, decode.FlowJump, has, 0, 0xffff_ffff_ffff_fff0},
		{"bla", 0x48000103, OpBranch, decode.FlowCall, has | link, 0, 0x100},
		{"beq", 0x41820008, OpBranchCond, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x10008},
		{"bne backward", 0x4082fffc, OpBranchCond, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0xfffc},
		{"bdnz", 0x4200fff8, OpBranchCond, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0xfff8},
		{"beql", 0x41820009, OpBranchCond, decode.FlowCall, has | cond | link, decode.PCRelBranch, 0x10008},
		{"beqa", 0x4182000a, OpBranchCond, decode.FlowJumpIf, has | cond, 0, 8},
		{"bc always", 0x42800008, OpBranchCond, decode.FlowJump, has, decode.PCRelBranch, 0x10008},
		{"bc always, ignored bits set", 0x42e00008, OpBranchCond, decode.FlowJump, has, decode.PCRelBranch, 0x10008},
		{"bcl 20,31,$+4", 0x429f0005, OpBranchCond, decode.FlowCall, has | link, decode.PCRelBranch, 0x10004},
		{"blr", 0x4e800020, OpBranchLR, decode.FlowReturn, 0, 0, 0},
		{"beqlr", 0x4d820020, OpBranchLR, decode.FlowReturn, cond, 0, 0},
		{"bdnzlr", 0x4e000020, OpBranchLR, decode.FlowReturn, cond, 0, 0},
		{"blrl", 0x4e800021, OpBranchLR, decode.FlowCallIndirect, link, 0, 0},
		{"beqlrl", 0x4d820021, OpBranchLR, decode.FlowCallIndirect, link | cond, 0, 0},
		{"bctr", 0x4e800420, OpBranchCTR, decode.FlowJumpIndirect, 0, 0, 0},
		{"bctrl", 0x4e800421, OpBranchCTR, decode.FlowCallIndirect, link, 0, 0},
		{"bnectr", 0x4c820420, OpBranchCTR, decode.FlowJumpIndirect, cond, 0, 0},
		{"bctar", 0x4e800460, OpBranchTAR, decode.FlowJumpIndirect, 0, 0, 0},
		{"bctarl", 0x4e800461, OpBranchTAR, decode.FlowCallIndirect, link, 0, 0},
		{"sc", 0x44000002, OpSyscall, decode.FlowSyscall, 0, 0, 0},
		{"sc 1", 0x44000022, OpSyscall, decode.FlowSyscall, 0, 0, 0},
		{"scv 0", 0x44000001, OpSyscall, decode.FlowSyscall, 0, 0, 0},
		{"rfid", 0x4c000024, OpReturn, decode.FlowReturn, priv, 0, 0},
		{"hrfid", 0x4c000224, OpReturn, decode.FlowReturn, priv, 0, 0},
		{"rfscv", 0x4c0000a4, OpReturn, decode.FlowReturn, priv, 0, 0},
		{"urfid", 0x4c000264, OpReturn, decode.FlowReturn, priv, 0, 0},
		{"rfebb", 0x4c000924, OpReturn, decode.FlowReturn, 0, 0, 0},
		{"trap", 0x7fe00008, OpTrap, decode.FlowTrap, 0, 0, 0},
		{"twi 31", 0x0fe00000, OpTrap, decode.FlowTrap, 0, 0, 0},
		{"tweqi", 0x0c830000, OpTrap, decode.FlowTrap, cond, 0, 0},
		{"tdnei", 0x0b030000, OpTrap, decode.FlowTrap, cond, 0, 0},
		{"td", 0x7c832088, OpTrap, decode.FlowTrap, cond, 0, 0},
		{"stop", 0x4c0002e4, OpHalt, decode.FlowHalt, priv, 0, 0},
		{"nap", 0x4c000364, OpHalt, decode.FlowHalt, priv, 0, 0},
		{"wait", 0x7c00003c, OpHalt, decode.FlowHalt, 0, 0, 0},
		{"lwarx", 0x7c642828, OpLoadReserve, decode.FlowNone, decode.LoadExclusive, 0, 0},
		{"lqarx", 0x7cc42a28, OpLoadReserve, decode.FlowNone, decode.LoadExclusive, 0, 0},
		{"stdcx.", 0x7c6429ad, OpStoreConditional, decode.FlowNone, decode.StoreExclusive, 0, 0},
		{"stbcx.", 0x7c64256d, OpStoreConditional, decode.FlowNone, decode.StoreExclusive, 0, 0},
		{"mtmsrd", 0x7c610164, OpMoveMSR, decode.FlowNone, priv, 0, 0},
		{"mfmsr", 0x7c6000a6, OpOther, decode.FlowNone, priv, 0, 0},
		{"mflr", 0x7c0802a6, OpMoveSPR, decode.FlowNone, 0, 0, 0},
		{"mtctr", 0x7c0903a6, OpMoveSPR, decode.FlowNone, 0, 0, 0},
		{"mfsrr0", 0x7c1a02a6, OpMoveSPR, decode.FlowNone, priv, 0, 0},
		{"mtspr SPRG3", 0x7c7343a6, OpMoveSPR, decode.FlowNone, priv, 0, 0},
		{"mfspr USPRG3", 0x7c6342a6, OpMoveSPR, decode.FlowNone, 0, 0, 0},
		{"tlbie", 0x7ca02264, OpOther, decode.FlowNone, priv, 0, 0},
		{"addpcis", 0x4c600005, OpAddPCIS, decode.FlowNone, has, decode.PCRelAddress, 0x20004},
		{"addpcis, all parts", 0x4c610045, OpAddPCIS, decode.FlowNone, has, decode.PCRelAddress, 0x10004 + 0x43_0000},
		{"addpcis negative", 0x4c7fffc5, OpAddPCIS, decode.FlowNone, has, decode.PCRelAddress, 0x4},
		{"pla", 0x06100001_38600010, OpPCAddress, decode.FlowNone, has, decode.PCRelAddress, 0x20010},
		{"paddi", 0x06000001_38640010, OpOther, decode.FlowNone, 0, 0, 0},
		{"pld of PC", 0x04100000_e4600010, OpPCMemory, decode.FlowNone, has, decode.PCRelMemory, 0x10010},
		{"pld backward", 0x0413ffff_e460fff8, OpPCMemory, decode.FlowNone, has, decode.PCRelMemory, 0xfff8},
		{"pld farthest", 0x04120000_e4600000, OpPCMemory, decode.FlowNone, has, decode.PCRelMemory, 0xffff_fffe_0001_0000},
		{"pld of register", 0x04000000_e4610010, OpOther, decode.FlowNone, 0, 0, 0},
		{"pld absolute", 0x04000000_e4600010, OpOther, decode.FlowNone, 0, 0, 0},
		{"pstxvp of PC", 0x04100000_f8600010, OpPCMemory, decode.FlowNone, has, decode.PCRelMemory, 0x10010},
		{"plwz of PC", 0x06100000_80600010, OpPCMemory, decode.FlowNone, has, decode.PCRelMemory, 0x10010},
		{"xxspltiw", 0x05000000_80660000, OpOther, decode.FlowNone, 0, 0, 0},
		{"pnop", 0x07000000_00000000, OpPrefixedNop, decode.FlowNone, 0, 0, 0},
		{"pnop with nop", 0x07000000_60000000, OpPrefixedNop, decode.FlowNone, 0, 0, 0},
	}
	for _, test := range tests {
		for _, isa := range byteOrders {
			code := isa.bytesOf(test.word)
			var i decode.Inst
			if err := isa.Decode(&i, append(code, 0xff), 0x10000); err != nil {
				t.Errorf("%s, %s: %v", isa.Name(), test.name, err)
				continue
			}
			want := decode.Inst{
				Addr: 0x10000, Target: test.target, Detail: test.word, Op: uint16(test.op),
				Props: test.props, Flow: test.flow, Len: uint8(len(code)),
				PCRel: decode.PCRel{Kind: test.kind},
			}
			if test.kind != 0 {
				want.PCRel.Width = uint8(8 * len(code))
			}
			copy(want.Raw[:], code)
			if i != want {
				t.Errorf("%s, %s:\n got %+v\nwant %+v", isa.Name(), test.name, i, want)
			}
		}
	}
}

func TestDecodeInvalid(t *testing.T) {
	tests := []struct {
		name string
		word uint64
	}{
		{"zero", 0},
		{"opcode 5", 0x14000000},
		{"opcode 22", 0x58000000},
		{"opcode 31 without meaning", 0x7c000002},
		{"reserved field of mfmsr", 0x7c6300a6},
		{"reserved bit of lwzx", 0x7c64282f},
		{"ldu of its own base", 0xe8630009},
		{"stwu without base", 0x94600008},
		{"lq of an odd register", 0xe0640000},
		{"lmw of its own base", 0xb8640000},
		{"mtocrf of two fields", 0x7c709120},
		{"ger on its own accumulator", 0xec0000d8},
		{"future: xvsubuhm", 0xf3ffccd8},
		{"PC-relative pld with base", 0x04100000_e4640010},
		{"pla with base", 0x06100001_38640010},
		{"8LS prefix before addi", 0x04000000_38640010},
		{"MLS prefix before std", 0x06000000_f8640010},
		{"reserved bits of a prefix", 0x04040000_e4640010},
		{"prefix before prefix", 0x06000000_06000000},
		{"pnop with b", 0x07000000_48000010},
		{"pnop with blr", 0x07000000_4e800020},
		{"pnop with rfebb", 0x07000000_4c000924},
		{"pnop with attn", 0x07000000_00000200},
	}
	for _, test := range tests {
		for _, isa := range byteOrders {
			i := decode.Inst{Len: 4}
			err := isa.Decode(&i, isa.bytesOf(test.word), 0x10000)
			if !errors.Is(err, decode.ErrInvalid) || i.Len != 0 {
				t.Errorf("%s, %s: error %v, length %d", isa.Name(), test.name, err, i.Len)
			}
		}
	}
}

func TestDecodeTruncated(t *testing.T) {
	for _, word := range []uint64{0x60000000, 0x06100001_38600010, 0x07000000_00000000} {
		for _, isa := range byteOrders {
			code := isa.bytesOf(word)
			for n := range code {
				i := decode.Inst{Len: 4}
				err := isa.Decode(&i, code[:n], 0)
				if !errors.Is(err, decode.ErrTruncated) || i.Len != 0 {
					t.Errorf("%s: first %d bytes of %x: error %v, length %d", isa.Name(), n, word, err, i.Len)
				}
			}
		}
	}
}

// listErrors are the rows of the lists of real instructions that are wrong, by
// their bytes.
var listErrors = map[string]string{
	"8527124f": "addpcis has a PC-relative result, which objdump does not show",
	"d8cccff3": "xvsubuhm is in no published Power ISA; the word is data in text",
}

// listed returns what a list of real instructions says about i. The lists come
// from objdump's output and have its limits: the target of an absolute branch
// stands there as that of a relative one and is cut to 32 bits, although the
// CPU sign-extends it, and an address that is computed looks like one that is
// accessed.
func listed(i *decode.Inst) string {
	target, branch := i.BranchTarget()
	switch {
	case branch && i.PCRel.Kind == decode.PCRelNone:
		return "b" + strconv.FormatUint(target&0xffff_ffff, 16)
	case branch:
		return "b" + strconv.FormatUint(target, 16)
	case i.PCRel.Kind != decode.PCRelNone:
		return "m" + strconv.FormatUint(i.Target, 16)
	}
	return "-"
}

// checkReal compares lengths, targets and mnemonics with a list of real
// instructions.
func checkReal(t *testing.T, isa ISA, path string) {
	rows, err := refdata.Rows(path)
	if err != nil {
		t.Fatal(err)
	}
	targets := 0
	for _, row := range rows {
		addr, err1 := strconv.ParseUint(row[0], 16, 64)
		code, err2 := hex.DecodeString(row[1])
		if err1 != nil || err2 != nil {
			t.Fatalf("bad row %q", row)
		}
		var i decode.Inst
		err := isa.Decode(&i, code, addr)
		got := listed(&i)
		if got != "-" {
			targets++
		}
		name, _, _ := strings.Cut(isa.Text(&i, nil), " ")
		switch reason := listErrors[row[1]]; {
		case reason != "":
			if err == nil && got == row[3] {
				t.Errorf("%s %s: agrees with the list, although %s", row[0], row[1], reason)
			}
		case err != nil:
			t.Errorf("%s %s %s: %v", row[0], row[1], row[2], err)
		case got != row[3] || int(i.Len) != len(code) || name != row[2]:
			t.Errorf("%s %s: %s %s, length %d; want %s %s, %d", row[0], row[1], name, got, i.Len, row[2], row[3], len(code))
		}
	}
	t.Logf("%d instructions, %d with a target", len(rows), targets)
}

func TestDecodeReal(t *testing.T) {
	for _, isa := range byteOrders {
		t.Run(isa.Name(), func(t *testing.T) {
			checkReal(t, isa, realList(isa))
		})
		t.Run(isa.Name()+"/full", func(t *testing.T) {
			checkReal(t, isa, refdata.Full(t, "decode", isa.Name()+"-real.tsv.gz"))
		})
	}
}

// realList is the sample of real instructions.
func realList(isa ISA) string { return filepath.Join("testdata", isa.Name()+"-real.tsv.gz") }

// realText returns them in one.
func realText(tb testing.TB, isa ISA) []byte { return archtest.RealText(tb, realList(isa)) }

func TestDecodeAllocs(t *testing.T) {
	isa := ISA{LittleEndian: true}
	archtest.CheckDecodeAllocs(t, isa, realText(t, isa))
}

func FuzzDecode(f *testing.F) {
	for _, isa := range byteOrders {
		text := realText(f, isa)
		for i := 0; i+8 < len(text) && i < 4000; i += 40 {
			f.Add(text[i:i+8], uint64(0x10000), isa.LittleEndian)
		}
	}
	f.Fuzz(func(t *testing.T, code []byte, addr uint64, little bool) {
		isa := ISA{LittleEndian: little}
		var i decode.Inst
		err := isa.Decode(&i, code, addr)
		if err != nil {
			if !errors.Is(err, decode.ErrInvalid) && !errors.Is(err, decode.ErrTruncated) || i.Len != 0 {
				t.Fatalf("% x: error %v, length %d", code, err, i.Len)
			}
			if errors.Is(err, decode.ErrTruncated) && len(code) >= 8 {
				t.Fatalf("% x: truncated", code)
			}
			return
		}
		if i.Len != 4 && i.Len != 8 || string(i.Bytes()) != string(code[:i.Len]) || i.Addr != addr {
			t.Fatalf("% x: %+v", code, i)
		}
		if i.PCRel.Kind != 0 && !i.Has(decode.HasTarget) || i.Flow == decode.FlowJumpIf && !i.Has(decode.Conditional) {
			t.Fatalf("% x: %+v", code, i)
		}
		other := ISA{LittleEndian: !little}
		var o decode.Inst
		if err := other.Decode(&o, other.bytesOf(i.Detail), addr); err != nil {
			t.Fatalf("% x: only in one byte order: %v", code, err)
		}
		o.Raw = i.Raw
		if o != i || other.Text(&o, nil) != isa.Text(&i, nil) {
			t.Fatalf("% x: byte orders differ:\n%+v\n%+v", code, i, o)
		}
	})
}

// BenchmarkDecode decodes the same text, once of kernel functions and once of
// the rarest instructions, with this package and with ppc64asm.
func BenchmarkDecode(b *testing.B) {
	isa := ISA{LittleEndian: true}
	for _, text := range []struct {
		name string
		code []byte
	}{{"kernel", archtest.KernelText(b, kernelList)}, {"rare", realText(b, isa)}} {
		insts := float64(len(decode.Sweep(isa, nil, text.code, 0)))
		var own float64
		b.Run(text.name+"/xol", func(b *testing.B) {
			b.ReportAllocs()
			var inst decode.Inst
			for b.Loop() {
				for rest := text.code; len(rest) > 0; rest = rest[max(inst.Len, 4):] {
					_ = isa.Decode(&inst, rest, 0)
				}
			}
			own = float64(b.Elapsed().Nanoseconds()) / float64(b.N) / insts
			b.ReportMetric(own, "ns/inst")
		})
		b.Run(text.name+"/ppc64asm", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for rest := text.code; len(rest) > 0; {
					inst, _ := ppc64asm.Decode(rest, binary.LittleEndian)
					rest = rest[max(inst.Len, 4):]
				}
			}
			other := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / insts
			b.ReportMetric(other, "ns/inst")
			if own > 0 {
				b.ReportMetric(other/own, "times-xol")
			}
		})
	}
}

func TestTablesAreGenerated(t *testing.T) { archtest.CheckGenerated(t, "gen.go") }
