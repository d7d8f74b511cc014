package arm64

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/arch/arm64/arm64asm"

	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
)

// bytesOf returns words as they stand in memory.
func bytesOf(words ...uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func TestDecode(t *testing.T) {
	const (
		cond  = decode.Conditional
		has   = decode.HasTarget
		link  = decode.Link
		priv  = decode.Privileged
		pad   = decode.LandingPad
		load  = decode.LoadExclusive
		store = decode.StoreExclusive
	)
	tests := []struct {
		name   string
		word   uint32
		op     Op
		flow   decode.Flow
		props  decode.Props
		kind   decode.PCRelKind
		target uint64 // of an instruction at 0x10abc
	}{
		{"add", 0x8b020020, OpOther, decode.FlowNone, 0, 0, 0},
		{"adr", 0x10000040, OpADR, decode.FlowNone, has, decode.PCRelAddress, 0x10ac4},
		{"adr of an odd address", 0x70000040, OpADR, decode.FlowNone, has, decode.PCRelAddress, 0x10ac7},
		{"adr backward", 0x10ffffe0, OpADR, decode.FlowNone, has, decode.PCRelAddress, 0x10ab8},
		{"adr farthest", 0x10800000, OpADR, decode.FlowNone, has, decode.PCRelAddress, 0xffff_ffff_fff1_0abc},
		{"adrp", 0xb0000000, OpADRP, decode.FlowNone, has, decode.PCRelAddress, 0x11000},
		{"adrp of the same page", 0x90000000, OpADRP, decode.FlowNone, has, decode.PCRelAddress, 0x10000},
		{"adrp backward", 0xf0ffffe0, OpADRP, decode.FlowNone, has, decode.PCRelAddress, 0xf000},
		{"adrp farthest", 0x90800000, OpADRP, decode.FlowNone, has, decode.PCRelAddress, 0xffff_ffff_0001_0000},
		{"ldr w literal", 0x18000040, OpLoadLiteral, decode.FlowNone, has, decode.PCRelMemory, 0x10ac4},
		{"ldr x literal backward", 0x58ffffe0, OpLoadLiteral, decode.FlowNone, has, decode.PCRelMemory, 0x10ab8},
		{"ldrsw literal", 0x98000040, OpLoadLiteralSigned, decode.FlowNone, has, decode.PCRelMemory, 0x10ac4},
		{"ldr s literal", 0x1c000040, OpLoadLiteralSIMD, decode.FlowNone, has, decode.PCRelMemory, 0x10ac4},
		{"ldr d literal", 0x5c000040, OpLoadLiteralSIMD, decode.FlowNone, has, decode.PCRelMemory, 0x10ac4},
		{"ldr q literal", 0x9c800000, OpLoadLiteralSIMD, decode.FlowNone, has, decode.PCRelMemory, 0xffff_ffff_fff1_0abc},
		{"prfm literal", 0xd8000040, OpPrefetchLiteral, decode.FlowNone, has, decode.PCRelMemory, 0x10ac4},
		{"ldr of a register", 0xf9400020, OpOther, decode.FlowNone, 0, 0, 0},

		{"b", 0x14000001, OpB, decode.FlowJump, has, decode.PCRelBranch, 0x10ac0},
		{"b farthest", 0x16000000, OpB, decode.FlowJump, has, decode.PCRelBranch, 0xffff_ffff_f801_0abc},
		{"bl backward", 0x97ffffff, OpBL, decode.FlowCall, has | link, decode.PCRelBranch, 0x10ab8},
		{"b.eq", 0x54000040, OpBCond, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x10ac4},
		{"b.le backward", 0x54ffffed, OpBCond, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x10ab8},
		{"b.al", 0x5400004e, OpBCondAlways, decode.FlowJump, has, decode.PCRelBranch, 0x10ac4},
		{"b.nv", 0x5400004f, OpBCondAlways, decode.FlowJump, has, decode.PCRelBranch, 0x10ac4},
		{"bc.ne", 0x54000051, OpBCond, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x10ac4},
		{"bc.al", 0x5400005e, OpBCondAlways, decode.FlowJump, has, decode.PCRelBranch, 0x10ac4},
		{"cbz", 0xb4000040, OpCompareBranch, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x10ac4},
		{"cbnz backward", 0x35ffffe0, OpCompareBranch, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x10ab8},
		{"tbz", 0x36000040, OpTestBranch, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x10ac4},
		{"tbnz of a high bit, farthest", 0xb7fc0000, OpTestBranch, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x8abc},
		{"cbgt of registers", 0x74010040, OpCompareRegsBranch, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x10ac4},
		{"cbbhi", 0x74418040, OpCompareRegsBranch, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x10ac4},
		{"cbhne backward", 0x74e1ffe0, OpCompareRegsBranch, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x10ab8},
		{"cblt of a constant", 0xf5210040, OpCompareRegsBranch, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x10ac4},
		{"cbeq of a constant, farthest", 0x75c02000, OpCompareRegsBranch, decode.FlowJumpIf, has | cond, decode.PCRelBranch, 0x106bc},
		{"br", 0xd61f0200, OpBR, decode.FlowJumpIndirect, 0, 0, 0},
		{"blr", 0xd63f0200, OpBLR, decode.FlowCallIndirect, link, 0, 0},
		{"ret", 0xd65f03c0, OpRET, decode.FlowReturn, 0, 0, 0},
		{"ret x1", 0xd65f0020, OpRET, decode.FlowReturn, 0, 0, 0},
		{"braa", 0xd71f0a11, OpBRAuth, decode.FlowJumpIndirect, 0, 0, 0},
		{"brabz", 0xd61f0e1f, OpBRAuth, decode.FlowJumpIndirect, 0, 0, 0},
		{"blraa", 0xd73f0a11, OpBLRAuth, decode.FlowCallIndirect, link, 0, 0},
		{"blrabz", 0xd63f0e1f, OpBLRAuth, decode.FlowCallIndirect, link, 0, 0},
		{"retaa", 0xd65f0bff, OpRETAuth, decode.FlowReturn, 0, 0, 0},
		{"retabsppcr", 0xd65f0fe3, OpRETAuth, decode.FlowReturn, 0, 0, 0},
		{"retaasppc", 0x5500005f, OpReturnAuthPC, decode.FlowReturn, has, decode.PCRelAddress, 0x10ab4},
		{"autibsppc farthest", 0xf3bfffff, OpAuthPC, decode.FlowNone, has, decode.PCRelAddress, 0xffff_ffff_fffd_0ac0},
		{"paciasppc", 0xdac1a3fe, OpSignPCLandingPad, decode.FlowNone, pad, 0, 0},
		{"pacnbiasppc", 0xdac183fe, OpSignPC, decode.FlowNone, 0, 0, 0},
		{"eret", 0xd69f03e0, OpERET, decode.FlowReturn, priv, 0, 0},
		{"drps", 0xd6bf03e0, OpERET, decode.FlowReturn, priv, 0, 0},
		{"eretab", 0xd69f0fff, OpERETAuth, decode.FlowReturn, priv, 0, 0},
		{"tenter", 0xd4e00000, OpTriggerEnter, decode.FlowSyscall, 0, 0, 0},
		{"texit", 0xd6ff03e0, OpTriggerExit, decode.FlowReturn, 0, 0, 0},

		{"svc", 0xd4000001, OpSVC, decode.FlowSyscall, 0, 0, 0},
		{"hvc", 0xd4000022, OpHVC, decode.FlowSyscall, priv, 0, 0},
		{"smc", 0xd4000003, OpSMC, decode.FlowSyscall, priv, 0, 0},
		{"brk", 0xd4200080, OpBRK, decode.FlowTrap, 0, 0, 0},
		{"hlt", 0xd4400000, OpHLT, decode.FlowTrap, 0, 0, 0},
		{"dcps1", 0xd4a00001, OpDCPS, decode.FlowTrap, priv, 0, 0},
		{"udf", 0x0000ffff, OpUDF, decode.FlowTrap, 0, 0, 0},

		{"nop", 0xd503201f, OpHint, decode.FlowNone, 0, 0, 0},
		{"hint 127", 0xd5032fff, OpHint, decode.FlowNone, 0, 0, 0},
		{"bti", 0xd503241f, OpHint, decode.FlowNone, 0, 0, 0},
		{"bti c", 0xd503245f, OpLandingPad, decode.FlowNone, pad, 0, 0},
		{"bti j", 0xd503249f, OpLandingPad, decode.FlowNone, pad, 0, 0},
		{"bti jc", 0xd50324df, OpLandingPad, decode.FlowNone, pad, 0, 0},
		{"paciasp", 0xd503233f, OpLandingPad, decode.FlowNone, pad, 0, 0},
		{"pacibsp", 0xd503237f, OpLandingPad, decode.FlowNone, pad, 0, 0},
		{"autiasp", 0xd50323bf, OpHint, decode.FlowNone, 0, 0, 0},
		{"wfi", 0xd503207f, OpWait, decode.FlowHalt, 0, 0, 0},
		{"wfet", 0xd5031005, OpWait, decode.FlowHalt, 0, 0, 0},
		{"dsb sy", 0xd5033f9f, OpOther, decode.FlowNone, 0, 0, 0},
		{"msr daifset", 0xd50342df, OpState, decode.FlowNone, 0, 0, 0},
		{"msr pan", 0xd500419f, OpStatePrivileged, decode.FlowNone, priv, 0, 0},
		{"mrs tpidr_el0", 0xd53bd040, OpSystemRegister, decode.FlowNone, 0, 0, 0},
		{"mrs midr_el1", 0xd5380000, OpSystemRegister, decode.FlowNone, priv, 0, 0},
		{"msr vbar_el1", 0xd518c000, OpSystemRegister, decode.FlowNone, priv, 0, 0},
		{"dc zva", 0xd50b7420, OpSystem, decode.FlowNone, 0, 0, 0},
		{"tlbi vmalle1", 0xd508871f, OpSystem, decode.FlowNone, priv, 0, 0},
		{"ldgm", 0xd9e00020, OpPrivileged, decode.FlowNone, priv, 0, 0},

		{"ldxr", 0xc85f7c20, OpLoadExclusive, decode.FlowNone, load, 0, 0},
		{"ldaxrb", 0x085ffc20, OpLoadExclusive, decode.FlowNone, load, 0, 0},
		{"ldaxp", 0xc87f8420, OpLoadExclusive, decode.FlowNone, load, 0, 0},
		{"ldxr, bits that should be 1", 0xc8400020, OpLoadExclusive, decode.FlowNone, load, 0, 0},
		{"stxr", 0xc8027c20, OpStoreExclusive, decode.FlowNone, store, 0, 0},
		{"stlxrh", 0x4802fc20, OpStoreExclusive, decode.FlowNone, store, 0, 0},
		{"stlxp", 0xc8228420, OpStoreExclusive, decode.FlowNone, store, 0, 0},
		{"ldtxr", 0x895f7c20, OpLoadExclusive, decode.FlowNone, load, 0, 0},
		{"sttxr", 0x89027c20, OpStoreExclusive, decode.FlowNone, store, 0, 0},
		{"ldar", 0xc8dffc20, OpOther, decode.FlowNone, 0, 0, 0},
		{"stlr", 0xc89ffc20, OpOther, decode.FlowNone, 0, 0, 0},
		{"casal", 0xc8e2fc20, OpOther, decode.FlowNone, 0, 0, 0},
		{"casp", 0x48227c20, OpOther, decode.FlowNone, 0, 0, 0},
		{"ldadd", 0xf8220020, OpOther, decode.FlowNone, 0, 0, 0},
		{"clrex", 0xd5033f5f, OpCLREX, decode.FlowNone, 0, 0, 0},
		{"cpyfp", 0x19020420, OpMOPSPrologue, decode.FlowNone, 0, 0, 0},
		{"cpym", 0x1d420420, OpMOPSMain, decode.FlowNone, 0, 0, 0},
		{"sete", 0x19c28420, OpMOPSEpilogue, decode.FlowNone, 0, 0, 0},
		{"setgop", 0x1ddf0020, OpMOPSPrologue, decode.FlowNone, 0, 0, 0},
	}
	for _, test := range tests {
		var i decode.Inst
		if err := (ISA{}).Decode(&i, append(bytesOf(test.word), 0xff), 0x10abc); err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		want := decode.Inst{
			Addr: 0x10abc, Target: test.target, Detail: uint64(test.word), Op: uint16(test.op),
			Props: test.props, Flow: test.flow, Len: 4,
		}
		if test.kind != 0 {
			want.PCRel = decode.PCRel{Kind: test.kind, Width: 32}
		}
		copy(want.Raw[:], bytesOf(test.word))
		if i != want {
			t.Errorf("%s:\n got %+v\nwant %+v", test.name, i, want)
		}
		if OpOf(&i) != test.op || WordOf(&i) != test.word {
			t.Errorf("%s: OpOf %d, WordOf %#x", test.name, OpOf(&i), WordOf(&i))
		}
	}
}

// Addresses wrap around, and need not be aligned.
func TestDecodeAddresses(t *testing.T) {
	for _, c := range []struct {
		name   string
		word   uint32
		addr   uint64
		target uint64
	}{
		{"b over the end", 0x14000002, 0xffff_ffff_ffff_fffc, 4},
		{"b over the start", 0x17ffffff, 0, 0xffff_ffff_ffff_fffc},
		{"adr over the start", 0x10ffffe0, 1, 0xffff_ffff_ffff_fffd},
		{"adrp over the end", 0xb0000000, 0xffff_ffff_ffff_f004, 0},
		{"b at an odd address", 0x14000001, 0x1003, 0x1007},
		{"adrp at an odd address", 0x90000000, 0x1003, 0x1000},
	} {
		var i decode.Inst
		if err := (ISA{}).Decode(&i, bytesOf(c.word), c.addr); err != nil || i.Addr != c.addr || i.Target != c.target {
			t.Errorf("%s: got %+v, error %v", c.name, i, err)
		}
	}
}

// Unallocated encodings of Arm ARM chapter C4.
func TestDecodeInvalid(t *testing.T) {
	for _, c := range []struct {
		name string
		word uint32
	}{
		{"all ones", 0xffffffff},
		{"reserved, op0 = 0", 0x00010000},
		{"unallocated group 0001", 0x02000000},
		{"unallocated group 0011", 0x66000000},
		{"movz of a W register, shifted by 32", 0x52c00000},
		{"mov wide with opc 01", 0x32800000},
		{"bitfield with N that differs from sf", 0x53400000},
		{"bitfield of W from bit 32", 0x53200000},
		{"logical immediate of W with N", 0x12400000},
		{"logical immediate of all ones", 0x9240fc00},
		{"extr of W by 32", 0x13808000},
		{"add of W, shifted by 32", 0x0b028020},
		{"add, rotated", 0x0bc20020},
		{"add of an extended register, shifted by 5", 0x8b221420},
		{"2-source opcode 1", 0x9ac20420},
		{"crc32x of W", 0x1ac24c20},
		{"b.cond class, o1", 0x56000040},
		{"cb with an unused condition", 0x74810040},
		{"svc class with LL = 0", 0xd4000000},
		{"exception class 4", 0xd4800000},
		{"barrier of op2 0", 0xd503301f},
		{"msr of an immediate to no field", 0xd503401f},
		{"msr with op0 = 0", 0xd5000000},
		{"br with op4", 0xd61f0001},
		{"eret with register", 0xd69f0000},
		{"branch to register, opc 3", 0xd67f0000},
		{"ldr literal, V and opc 3", 0xdc000000},
		{"ldr, unscaled, of 64 bits, signed", 0xf8c00020},
		{"prefetch with write-back", 0xf8800420},
		{"atomic of o3 and opc 6", 0xf820e020},
		{"stnp of bytes", 0x68000020},
		{"ld1 of opcode 12", 0x0c40c020},
		{"casp of 4-byte pairs with Rt2", 0x08200020},
		{"fmov of an unused type", 0x1ea04020},
		{"fp compare, opcode2 1", 0x1e222021},
		{"vector add of 1d", 0x0ee28420},
		{"sqrdmlah of bytes", 0x2e028420},
	} {
		i := decode.Inst{Len: 4}
		err := (ISA{}).Decode(&i, bytesOf(c.word), 0x1000)
		if !errors.Is(err, decode.ErrInvalid) || i != (decode.Inst{Addr: 0x1000}) {
			t.Errorf("%s: error %v, %+v", c.name, err, i)
		}
	}
}

func TestDecodeTruncated(t *testing.T) {
	code := bytesOf(0xd503201f)
	for n := range code {
		i := decode.Inst{Len: 4}
		err := (ISA{}).Decode(&i, code[:n], 0x1000)
		if !errors.Is(err, decode.ErrTruncated) || i != (decode.Inst{Addr: 0x1000}) {
			t.Errorf("%d bytes: error %v, %+v", n, err, i)
		}
	}
}

const realList = "testdata/arm64-real.tsv.gz"

func TestDecodeReal(t *testing.T) { checkReal(t, realList) }

func TestDecodeRealComplete(t *testing.T) {
	checkReal(t, refdata.Full(t, "decode", "arm64-real.tsv.gz"))
}

// checkReal compares targets, kinds and mnemonics with a list of instructions
// from real programs.
func checkReal(t *testing.T, path string) {
	rows, err := refdata.Rows(path)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, row := range rows {
		addr, err1 := strconv.ParseUint(row[0], 16, 64)
		code, err2 := hex.DecodeString(row[1])
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		var i decode.Inst
		if err := (ISA{}).Decode(&i, code, addr); err != nil {
			t.Errorf("%s %s: %v", row[1], row[2], err)
			continue
		}
		got := "-"
		if i.PCRel.Kind != decode.PCRelNone {
			got = fmt.Sprintf("%c%x", i.PCRel.Kind.String()[0], i.Target)
		}
		kinds[got[:1]]++
		if got != row[3] {
			t.Errorf("%s %s: got %s, want %s", row[1], row[2], got, row[3])
		}
		if name, _, _ := strings.Cut((ISA{}).Text(&i, nil), " "); name != row[2] {
			t.Errorf("%s: got %s, want %s", row[1], name, row[2])
		}
	}
	t.Logf("%d rows, kinds of PC-relative operands: %v", len(rows), kinds)
}

func TestDecodeAllocs(t *testing.T) { archtest.CheckDecodeAllocs(t, ISA{}, realText(t)) }

// realText returns the instructions of a list as one text.
func realText(tb testing.TB) []byte { return archtest.RealText(tb, realList) }

// BenchmarkDecode decodes kernel code with this package and with arm64asm.
func BenchmarkDecode(b *testing.B) {
	text := archtest.KernelText(b, kernelList)
	text = text[:len(text)&^3]
	n := float64(len(text) / 4)
	var own, other float64 // ns per instruction
	b.Run("xol", func(b *testing.B) {
		b.ReportAllocs()
		var i decode.Inst
		for b.Loop() {
			for off := 0; off < len(text); off += 4 {
				_ = ISA{}.Decode(&i, text[off:], uint64(off))
			}
		}
		own = float64(b.Elapsed().Nanoseconds()) / float64(b.N) / n
		b.ReportMetric(own, "ns/inst")
	})
	b.Run("arm64asm", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for off := 0; off < len(text); off += 4 {
				_, _ = arm64asm.Decode(text[off : off+4])
			}
		}
		other = float64(b.Elapsed().Nanoseconds()) / float64(b.N) / n
		b.ReportMetric(other, "ns/inst")
		if own > 0 {
			b.ReportMetric(other/own, "ratio")
		}
	})
}

// FuzzDecode looks for panics in the decoder and the text, and for texts that
// contradict what is decoded.
func FuzzDecode(f *testing.F) {
	text := realText(f)
	for off := 0; off < len(text); off += 64 {
		f.Add(text[off:off+4], uint64(0x10000))
	}
	f.Add([]byte{1, 2, 3}, ^uint64(0))
	f.Fuzz(func(t *testing.T, code []byte, addr uint64) {
		var i decode.Inst
		err := (ISA{}).Decode(&i, code, addr)
		if (err == nil) != (i.Len == 4) || i.Addr != addr {
			t.Fatalf("%x: %+v, error %v", code, i, err)
		}
		if err == nil {
			checkText(t, &i)
			return
		}
		gap := decode.Inst{Addr: addr, Len: uint8(min(4, len(code))), Props: decode.Invalid}
		copy(gap.Raw[:], code[:gap.Len])
		if s := (ISA{}).Text(&gap, nil); !strings.HasPrefix(s, ".inst") && !strings.HasPrefix(s, ".byte") {
			t.Fatalf("%x: %s", code, s)
		}
	})
}

func TestTablesAreGenerated(t *testing.T) { archtest.CheckGenerated(t, "gen.go") }
