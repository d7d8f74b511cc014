package amd64

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
)

// wrongRows are the rows of the reference lists that are wrong.
var wrongRows = map[string]string{
	// AL is a register: LOCK raises #UD. The bytes are data in text, which
	// objdump does not tell.
	"f01400": "LOCK without a memory operand",

	// Zydis 4.1.1 does not know APX. LLVM 19 takes neither EVEX.W1 together
	// with 66, where W wins (as REX.W does), nor with SETcc, which ignores
	// W, nor the alias /1 of CTEST. Later versions, and XED, do.
	"62f4fd08130d111111111111111111": "APX: ADC with 66 and W1",
	"62f4fd0841c9111111111111111111": "APX: CFCMOVNO with 66 and W1",
	"62f4fd08432d111111111111111111": "APX: CFCMOVAE with 66 and W1",
	"62f4fd08480d111111111111111111": "APX: CFCMOVS with 66 and W1",
	"62f4fd08482d111111111111111111": "APX: CFCMOVS with 66 and W1",
	"62f4fd084a0d111111111111111111": "APX: CFCMOVP with 66 and W1",
	"62f4fd084ebc881111111111111111": "APX: CFCMOVLE with 66 and W1",
	"62f4fd0c3994881111111111111111": "APX: CCMP with 66 and W1",
	"62f4fd183394881111111111111111": "APX: XOR with 66 and W1",
	"62f4ff0847e9111111111111111111": "APX: SETA with W1",
	"62f4ff1842f1111111111111111111": "APX: SETZUB with W1",
	"62f47c08f68c881111111111111111": "APX: CTEST /1",

	// LLVM 19 loses a 66 before REX2 with W1.
	"66d5886c4c88111111111111111111": "REX2: PUNPCKLQDQ",
	"66d5887cb488111111111111111111": "REX2: HADDPD",
	"66d5887d5488111111111111111111": "REX2: HSUBPD",
	"66d588d00425111111111111111111": "REX2: ADDSUBPD",
	"66d588d03d11111111111111111111": "REX2: ADDSUBPD",
	"66d588d07c88111111111111111111": "REX2: ADDSUBPD",
	"66d588d6a488111111111111111111": "REX2: MOVQ",
	"66d588d62c25111111111111111111": "REX2: MOVQ",
	"66d588e6d911111111111111111111": "REX2: CVTTPD2DQ",
}

// rows calls f for each row of a list.
func rows(t testing.TB, path string, f func(columns []string)) {
	t.Helper()
	list, err := refdata.Rows(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatalf("%s is empty", path)
	}
	for _, columns := range list {
		f(columns)
	}
}

// checkList compares lengths with those of a list.
func checkList(t *testing.T, path string) {
	rows(t, path, func(columns []string) {
		if wrongRows[columns[0]] != "" {
			return
		}
		code := unhex(t, columns[0])
		var inst decode.Inst
		err := ISA{}.Decode(&inst, code, 0x401000)
		if want := columns[1]; strconv.Itoa(int(inst.Len)) != want {
			t.Errorf("%s: length %d (%v), want %s", columns[0], inst.Len, err, want)
		}
		if (err == nil) != (inst.Len > 0) {
			t.Errorf("%s: length %d with error %v", columns[0], inst.Len, err)
		}
	})
}

func TestDecodeLength(t *testing.T) {
	t.Run("reference lists", func(t *testing.T) { checkList(t, "testdata/decode-lists.tsv.gz") })
	t.Run("processor", func(t *testing.T) { checkList(t, "testdata/decode-cpu.tsv.gz") })
}

func TestDecodeLengthInFull(t *testing.T) {
	for _, name := range []string{"amd64-sweep.tsv.gz", "amd64-real.tsv.gz"} {
		t.Run(name, func(t *testing.T) {
			checkList(t, refdata.Full(t, "decode", name))
		})
	}
}

// The rows that are taken for wrong must be in dispute: Decode differs.
func TestDecodeWrongRows(t *testing.T) {
	for row, reason := range wrongRows {
		var inst decode.Inst
		err := ISA{}.Decode(&inst, unhex(t, row), 0)
		if row == "f01400" {
			if !errors.Is(err, decode.ErrInvalid) {
				t.Errorf("%s (%s): %v", row, reason, err)
			}
		} else if err != nil {
			t.Errorf("%s (%s): %v", row, reason, err)
		}
	}
}

// APX instructions as assemblers write them: the length is that of the bytes.
func TestDecodeAPX(t *testing.T) {
	for name, code := range map[string]string{
		"add r18, r16, r17":             "62 ec ec 10 03 c1",
		"{nf} add r17, r16":             "62 ec fc 0c 01 c1",
		"{nf} add r18, r16, r17":        "62 ec ec 14 03 c1",
		"add r17, [r16+123], 127":       "62 fc f4 10 83 40 7b 7f",
		"{evex} adc r9, 123":            "62 d4 fd 08 83 d1 7b",
		"{evex} adc bl, 123":            "62 f4 fc 08 80 d3 7b",
		"ccmpo {dfv=} r17, r16":         "62 ec 84 00 3b c8",
		"ctestb {dfv=of} word, 1234":    "62 d4 45 02 f7 44 80 7b d2 04",
		"ctestb {dfv=of} qword, 123456": "62 d4 c4 02 f7 44 80 7b 40 e2 01 00",
		"cfcmovb r25w, r21w, r17w":      "62 ec 35 14 42 e9",
		"cfcmovb [mem], r17w":           "62 8c 79 0c 42 8c ac 23 01 00 00",
		"setzuo al":                     "62 f4 7f 18 40 c0",
		"movbe r17w, r16w":              "62 ec 7d 08 60 c8",
		"push2 rdi, rax":                "62 f4 44 18 ff f0",
		"pop2 r31, r24":                 "62 dc 04 10 8f c0",
		"invpcid r9, [mem]":             "62 74 fe 08 f2 4c 98 7b",
		"cmpbexadd [mem], r22d, r18d":   "62 8a 69 00 e6 b4 ac 23 01 00 00",
		"bzhi r23, [mem], r19":          "62 8a e0 00 f5 bc ac 23 01 00 00",
		"mulx r18, r17, r16":            "62 ea f7 00 f6 d0",
		"vaddps with r16 and r17":       "62 f9 7c 48 58 04 08",
		"vextractf32x4 [r16+r17], 1":    "62 fb 79 48 19 04 08 01",
		"mov r16d, 1":                   "d5 10 b8 01 00 00 00",
		"movsxd r17, r16d":              "d5 58 63 c8",
		"popcnt r17d, r16d":             "f3 d5 d0 b8 c8",
		"imul r18d, [r16+r17]":          "d5 f0 af 14 08",
		"lea eax, [r20]":                "d5 10 8d 04 24",
		"jmpabs 0x102030405060708":      "d5 00 a1 08 07 06 05 04 03 02 01",
	} {
		var inst decode.Inst
		code := unhex(t, code)
		if err := (ISA{}).Decode(&inst, code, 0); err != nil || int(inst.Len) != len(code) {
			t.Errorf("%s (% x): length %d, error %v", name, code, inst.Len, err)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, test := range []struct {
		name, code string
		want       error
	}{
		{"nothing", "", decode.ErrTruncated},
		{"opcode missing", "48", decode.ErrTruncated},
		{"prefixes only", "66 67 2e f0", decode.ErrTruncated},
		{"14 prefixes", strings.Repeat("66", 14), decode.ErrTruncated},
		{"15 prefixes", strings.Repeat("66", 15), decode.ErrTooLong},
		{"15 prefixes and more", strings.Repeat("66", 15) + "90", decode.ErrTooLong},
		{"add of 16 bytes", "64 67 f0 66 48 81 84 24 11 22 33 44 55 66 77 88", decode.ErrTooLong},
		{"mov of 16 bytes", "66 66 66 66 66 66 48 b8 11 22 33 44 55 66 77 88", decode.ErrTooLong},
		{"ModRM missing", "8b", decode.ErrTruncated},
		{"SIB missing", "8b 04", decode.ErrTruncated},
		{"displacement missing", "8b 04 25 11 22 33", decode.ErrTruncated},
		{"immediate missing", "c8 11 22", decode.ErrTruncated},
		{"group without ModRM", "0f ba", decode.ErrTruncated},
		{"REX2 mov to cr without ModRM", "d5 b8 20", decode.ErrTruncated},
		{"3DNow! without opcode", "0f 0f c1", decode.ErrTruncated},
		{"VEX without payload", "c4 e2", decode.ErrTruncated},
		{"EVEX without opcode", "62 f1 7c 48", decode.ErrTruncated},
		{"push es", "06", decode.ErrInvalid},
		{"aam", "d4 0a", decode.ErrInvalid},
		{"pusha", "60", decode.ErrInvalid},
		{"far call", "9a 11 22 33 44 55 66", decode.ErrInvalid},
		{"far jmp", "ea 11 22 33 44 55 66", decode.ErrInvalid},
		{"into", "ce", decode.ErrInvalid},
		{"salc", "d6", decode.ErrInvalid},
		{"group 82", "82 c0 01", decode.ErrInvalid},
		{"lea of a register", "8d c0", decode.ErrInvalid},
		{"lea of a register, prefixed", "66 8d c0", decode.ErrInvalid},
		{"mov to cs", "8e c8", decode.ErrInvalid},
		{"mov to cr1", "0f 22 c8", decode.ErrInvalid},
		{"mov to cr16", "d5 c0 22 c0", decode.ErrInvalid},
		{"mov to dr8", "44 0f 23 c0", decode.ErrInvalid},
		{"lock nop", "f0 90", decode.ErrInvalid},
		{"lock add of registers", "f0 01 c0", decode.ErrInvalid},
		{"lock mov", "f0 89 00", decode.ErrInvalid},
		{"lock cmp", "f0 80 38 01", decode.ErrInvalid},
		{"66 before VEX", "66 c5 f8 77", decode.ErrInvalid},
		{"REX before VEX", "48 c5 f8 77", decode.ErrInvalid},
		{"REX before REX2", "48 d5 00 90", decode.ErrInvalid},
		{"vvvv where none is", "c5 e8 77 00", decode.ErrInvalid},
		{"VEX map 4", "c4 e4 79 10 c1", decode.ErrInvalid},
		{"EVEX map 0", "62 f0 7c 48 10 c1", decode.ErrInvalid},
		{"EVEX.L'L 3", "62 f1 7c 68 58 c1", decode.ErrInvalid},
		{"EVEX.z with k0", "62 f1 7c c8 58 c1", decode.ErrInvalid},
		{"EVEX.z of memory", "62 f1 7c c9 11 00", decode.ErrInvalid},
		{"EVEX.b of a load", "62 f1 7c 58 10 00", decode.ErrInvalid},
		{"gather with k0", "62 f2 7d 48 90 04 08", decode.ErrInvalid},
		{"gather without SIB", "62 f2 7d 49 90 00", decode.ErrInvalid},
		{"gather into its index", "62 f2 7d 49 90 04 00", decode.ErrInvalid},
		{"gather into its mask", "c4 e2 71 90 0c 10", decode.ErrInvalid},
		{"tdpbf16ps of equal tiles", "c4 e2 72 5c c0", decode.ErrInvalid},
		{"vfmulcph onto a source", "62 f6 76 48 d6 c8", decode.ErrInvalid},
		{"XOP with pp", "8f e9 79 80 c1", decode.ErrInvalid},
		{"3DNow! 00", "0f 0f c1 00", decode.ErrInvalid},
		{"REX2 jcc", "d5 00 70 00", decode.ErrInvalid},
		{"REX2 xsave", "d5 80 ae 20", decode.ErrInvalid},
		{"jmpabs with 66", "66 d5 00 a1 01 00 00 00 00 00 00 00", decode.ErrInvalid},
		{"push2 rsp", "62 f4 44 18 ff f4", decode.ErrInvalid},
		{"pop2 of one register", "62 f4 44 18 8f c7", decode.ErrInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			inst := decode.Inst{Len: 3, Target: 1, Raw: [16]byte{1}}
			err := ISA{}.Decode(&inst, unhex(t, test.code), 0x401000)
			if err != test.want {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if want := (decode.Inst{Addr: 0x401000}); inst != want {
				t.Errorf("inst is %+v", inst)
			}
		})
	}
}

func TestDecodeTooLongIsInvalid(t *testing.T) {
	var inst decode.Inst
	err := ISA{}.Decode(&inst, bytes.Repeat([]byte{0x66}, 20), 0)
	if !errors.Is(err, decode.ErrTooLong) || !errors.Is(err, decode.ErrInvalid) {
		t.Error(err)
	}
}

// Every part of an instruction that is not all of it is cut off.
func TestDecodeTruncated(t *testing.T) {
	for _, path := range []string{"testdata/decode-lists.tsv.gz", "testdata/decode-cpu.tsv.gz"} {
		rows(t, path, func(columns []string) {
			code := unhex(t, columns[0])
			var inst decode.Inst
			if (ISA{}).Decode(&inst, code, 0) != nil {
				return
			}
			for n := range int(inst.Len) {
				var part decode.Inst
				if err := (ISA{}).Decode(&part, code[:n], 0); err != decode.ErrTruncated || part.Len != 0 {
					t.Fatalf("%x: length %d, error %v", code[:n], part.Len, err)
				}
			}
		})
	}
}

func TestDecodeTargets(t *testing.T) {
	kinds := map[string]decode.PCRelKind{"b": decode.PCRelBranch, "m": decode.PCRelMemory, "a": decode.PCRelAddress}
	rows(t, "testdata/decode-targets.tsv.gz", func(columns []string) {
		addr, _ := strconv.ParseUint(columns[0], 16, 64)
		target, _ := strconv.ParseUint(columns[3], 16, 64)
		code := unhex(t, columns[1])
		var inst decode.Inst
		if err := (ISA{}).Decode(&inst, code, addr); err != nil {
			t.Fatalf("%x: %v", code, err)
		}
		if inst.PCRel.Kind != kinds[columns[2]] || !inst.Has(decode.HasTarget) || inst.Target != target {
			t.Errorf("%x at %#x: %v of %#x, want %s of %#x", code, addr, inst.PCRel.Kind, inst.Target, columns[2], target)
		}
		// The field and the target must say the same.
		value := signExtended(inst.Raw[inst.PCRel.Offset:][:inst.PCRel.Width/8])
		if inst.Next()+value != target {
			t.Errorf("%x: the field at %d, of %d bits, is not that of the target", code, inst.PCRel.Offset, inst.PCRel.Width)
		}
	})
}

func signExtended(field []byte) uint64 {
	v := uint64(0)
	if field[len(field)-1] >= 0x80 {
		v = ^uint64(0)
	}
	for i := len(field) - 1; i >= 0; i-- {
		v = v<<8 | uint64(field[i])
	}
	return v
}

// What the list of targets does not hold: GNU objdump 2.40 prints no truncated
// EIP-relative address, takes branches with 66 as AMD does, and does not know
// JMPABS.
func TestDecodeTargetsBeyondObjdump(t *testing.T) {
	const addr = 0xffffffff81000000
	for _, test := range []struct {
		name, code string
		target     uint64
		pcrel      decode.PCRel
	}{
		{"eip-relative mov", "67 8b 05 00 00 00 01", 0x82000007, decode.PCRel{Kind: decode.PCRelMemory, Offset: 3, Width: 32}},
		{"eip-relative lea", "67 48 8d 05 f8 ff ff ff", 0x81000000, decode.PCRel{Kind: decode.PCRelAddress, Offset: 4, Width: 32}},
		{"eip-relative VEX", "67 c5 fc 58 05 00 00 00 7f", 0x9, decode.PCRel{Kind: decode.PCRelMemory, Offset: 5, Width: 32}},
		{"eip-relative EVEX", "67 62 f1 7c 48 58 05 00 00 00 00", 0x8100000b, decode.PCRel{Kind: decode.PCRelMemory, Offset: 7, Width: 32}},
		{"eip-relative 3DNow!", "67 0f 0f 05 00 00 00 00 b4", 0x81000009, decode.PCRel{Kind: decode.PCRelMemory, Offset: 4, Width: 32}},
		{"eip-relative REX2", "67 d5 48 8b 05 00 00 00 00", 0x81000009, decode.PCRel{Kind: decode.PCRelMemory, Offset: 5, Width: 32}},
		{"67 call", "67 e8 00 00 00 00", addr + 6, decode.PCRel{Kind: decode.PCRelBranch, Offset: 2, Width: 32}},
		{"66 call", "66 e8 10 00 00 00", addr + 0x16, decode.PCRel{Kind: decode.PCRelBranch, Offset: 2, Width: 32}},
		{"66 jmp", "66 e9 f0 ff ff ff", addr - 10, decode.PCRel{Kind: decode.PCRelBranch, Offset: 2, Width: 32}},
		{"66 jcc", "66 0f 84 10 00 00 00", addr + 0x17, decode.PCRel{Kind: decode.PCRelBranch, Offset: 3, Width: 32}},
		{"66 xbegin", "66 c7 f8 fe ff", addr + 3, decode.PCRel{Kind: decode.PCRelBranch, Offset: 3, Width: 16}},
		{"REX2 lea", "d5 40 8d 05 04 00 00 00", addr + 12, decode.PCRel{Kind: decode.PCRelAddress, Offset: 4, Width: 32}},
		{"APX add", "62 f4 fc 08 03 05 00 01 00 00", addr + 0x10a, decode.PCRel{Kind: decode.PCRelMemory, Offset: 6, Width: 32}},
		{"jmpabs", "d5 00 a1 08 07 06 05 04 03 02 01", 0x0102030405060708, decode.PCRel{}},
		{"bndcl", "f3 0f 1a 05 00 00 00 00", addr + 8, decode.PCRel{Kind: decode.PCRelAddress, Offset: 4, Width: 32}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inst := mustDecode(t, test.code, addr)
			if !inst.Has(decode.HasTarget) || inst.Target != test.target || inst.PCRel != test.pcrel {
				t.Errorf("%v %#x, want %v %#x", inst.PCRel, inst.Target, test.pcrel, test.target)
			}
		})
	}
}

func mustDecode(t testing.TB, code string, addr uint64) decode.Inst {
	t.Helper()
	var inst decode.Inst
	bytes := unhex(t, code)
	if err := (ISA{}).Decode(&inst, bytes, addr); err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	if int(inst.Len) != len(bytes) || inst.Addr != addr || !cmp.Equal(inst.Bytes(), bytes) {
		t.Fatalf("%s: %d bytes % x at %#x", code, inst.Len, inst.Bytes(), inst.Addr)
	}
	return inst
}

// A target is there where a direct branch or a PC-relative operand is.
func TestDecodeNoTarget(t *testing.T) {
	for name, code := range map[string]string{
		"register":     "48 89 c8",
		"memory":       "48 8b 04 25 11 22 33 44",
		"moffs":        "48 a1 11 22 33 44 55 66 77 88",
		"indirect jmp": "ff e0",
		"ret":          "c3",
	} {
		inst := mustDecode(t, code, 0x401000)
		if inst.Has(decode.HasTarget) || inst.Target != 0 || inst.PCRel != (decode.PCRel{}) {
			t.Errorf("%s: %+v", name, inst)
		}
	}
}

func TestDecodeFlowOfMnemonics(t *testing.T) {
	counts := map[decode.Flow]int{}
	rows(t, "testdata/decode-lists.tsv.gz", func(columns []string) {
		if columns[2] == "-" || wrongRows[columns[0]] != "" {
			return
		}
		inst := mustDecode(t, columns[0], 0)
		want := mnemonicFlow(columns[2], inst.Fields.Operands != 0)
		if inst.Flow != want {
			t.Errorf("%s %s: %v, want %v", columns[0], columns[2], inst.Flow, want)
		}
		counts[want]++
	})
	if len(counts) < 6 {
		t.Errorf("the list has few kinds of flow: %v", counts)
	}
}

// mnemonicFlow is the flow of what objdump names so.
func mnemonicFlow(name string, modRM bool) decode.Flow {
	name = name[strings.LastIndex(name, "+")+1:] // after prefixes
	name, _, _ = strings.Cut(name, ",")          // branch hint
	switch {
	case name == "call" && modRM:
		return decode.FlowCallIndirect
	case name == "call":
		return decode.FlowCall
	case name == "jmp" && modRM:
		return decode.FlowJumpIndirect
	case name == "jmp":
		return decode.FlowJump
	case strings.HasPrefix(name, "j"), strings.HasPrefix(name, "loop"):
		return decode.FlowJumpIf
	case name == "ret", name == "lret", strings.HasPrefix(name, "iret"):
		return decode.FlowReturn
	case name == "int3", name == "ud2":
		return decode.FlowTrap
	}
	return decode.FlowNone
}

func TestDecodeFlow(t *testing.T) {
	const (
		none     = decode.FlowNone
		trap     = decode.FlowTrap
		ret      = decode.FlowReturn
		priv     = decode.Privileged
		jumpIf   = decode.Conditional | decode.HasTarget
		indirect = decode.FlowJumpIndirect
	)
	for _, test := range []struct {
		name, code string
		flow       decode.Flow
		props      decode.Props
	}{
		{"nop", "90", none, 0},
		{"jo", "70 00", decode.FlowJumpIf, jumpIf},
		{"jg near", "0f 8f 00 00 00 00", decode.FlowJumpIf, jumpIf},
		{"loop", "e2 fe", decode.FlowJumpIf, jumpIf},
		{"jrcxz", "e3 fe", decode.FlowJumpIf, jumpIf},
		{"jecxz", "67 e3 fe", decode.FlowJumpIf, jumpIf},
		{"xbegin", "c7 f8 00 00 00 00", decode.FlowJumpIf, jumpIf},
		{"jmp short", "eb fe", decode.FlowJump, decode.HasTarget},
		{"jmp near", "e9 00 00 00 00", decode.FlowJump, decode.HasTarget},
		{"jmpabs", "d5 00 a1 00 00 00 00 00 00 00 00", decode.FlowJump, decode.HasTarget},
		{"call", "e8 00 00 00 00", decode.FlowCall, decode.HasTarget | decode.Link},
		{"call rax", "ff d0", decode.FlowCallIndirect, decode.Link},
		{"call [rip]", "ff 15 00 00 00 00", decode.FlowCallIndirect, decode.Link | decode.HasTarget},
		{"far call", "48 ff 1b", decode.FlowCallIndirect, decode.Link},
		{"jmp rax", "ff e0", indirect, 0},
		{"notrack jmp rax", "3e ff e0", indirect, 0},
		{"jmp r16", "d5 10 ff e0", indirect, 0},
		{"far jmp", "ff 2b", indirect, 0},
		{"push", "ff 30", none, 0},
		{"ret", "c3", ret, 0},
		{"ret 8", "c2 08 00", ret, 0},
		{"rep ret", "f3 c3", ret, 0},
		{"far ret", "48 cb", ret, 0},
		{"far ret 8", "ca 08 00", ret, 0},
		{"iretq", "48 cf", ret, 0},
		{"uiret", "f3 0f 01 ec", ret, 0},
		{"sysret", "48 0f 07", ret, priv},
		{"sysexit", "48 0f 35", ret, priv},
		{"erets", "f2 0f 01 ca", ret, priv},
		{"eretu", "f3 0f 01 ca", ret, priv},
		{"rsm", "0f aa", ret, 0},
		{"int3", "cc", trap, 0},
		{"int 0x80", "cd 80", trap, 0},
		{"int1", "f1", trap, 0},
		{"ud0", "0f ff 05 00 00 00 00", trap, decode.HasTarget},
		{"ud1", "0f b9 c0", trap, 0},
		{"ud2", "0f 0b", trap, 0},
		{"syscall", "0f 05", decode.FlowSyscall, 0},
		{"sysenter", "0f 34", decode.FlowSyscall, 0},
		{"vmcall", "0f 01 c1", decode.FlowSyscall, 0},
		{"vmmcall", "0f 01 d9", decode.FlowSyscall, 0},
		{"tdcall", "66 0f 01 cc", decode.FlowSyscall, 0},
		{"hlt", "f4", decode.FlowHalt, priv},
		{"endbr64", "f3 0f 1e fa", none, decode.LandingPad},
		{"endbr32", "f3 0f 1e fb", none, 0},
		{"rdssp", "f3 48 0f 1e c8", none, 0},
		{"wrmsr", "0f 30", none, priv},
		{"rdmsr", "0f 32", none, priv},
		{"rdtsc", "0f 31", none, 0},
		{"cli", "fa", none, 0},
		{"in", "ec", none, 0},
		{"mov cr0", "0f 22 c0", none, priv},
		{"mov cr8", "44 0f 20 c0", none, priv},
		{"lock mov cr0", "f0 0f 20 c0", none, priv},
		{"mov dr7", "0f 23 f8", none, priv},
		{"mov cr3 with mod 0", "0f 22 1d", none, priv},
		{"lgdt", "0f 01 10", none, priv},
		{"sgdt", "0f 01 00", none, 0},
		{"invlpg", "0f 01 38", none, priv},
		{"swapgs", "0f 01 f8", none, priv},
		{"rdtscp", "0f 01 f9", none, 0},
		{"xsetbv", "0f 01 d1", none, priv},
		{"xgetbv", "0f 01 d0", none, 0},
		{"clac", "0f 01 ca", none, priv},
		{"ltr", "0f 00 d8", none, priv},
		{"str", "0f 00 c8", none, 0},
		{"wbinvd", "0f 09", none, priv},
		{"clts", "0f 06", none, priv},
		{"xsaves", "0f c7 28", none, priv},
		{"xsavec", "0f c7 20", none, 0},
		{"invpcid", "66 0f 38 82 00", none, priv},
		{"APX invpcid", "62 f4 7e 08 f2 00", none, priv},
		{"lea rip", "48 8d 05 00 00 00 00", none, decode.HasTarget},
		{"nop rip", "0f 1f 05 00 00 00 00", none, decode.HasTarget},
	} {
		t.Run(test.name, func(t *testing.T) {
			inst := mustDecode(t, test.code, 0x401000)
			if inst.Flow != test.flow || inst.Props != test.props {
				t.Errorf("%v %#x, want %v %#x", inst.Flow, inst.Props, test.flow, test.props)
			}
		})
	}
}

func TestDecodeFields(t *testing.T) {
	for _, test := range []struct {
		name, code string
		want       decode.Fields
	}{
		{"nop", "90", decode.Fields{}},
		{"push imm8", "6a 10", decode.Fields{Imm: 1, ImmLen: 1}},
		{"push imm16", "66 68 10 20", decode.Fields{Opcode: 1, Imm: 2, ImmLen: 2}},
		{"push imm32, REX.W", "48 68 10 20 30 40", decode.Fields{Opcode: 1, Imm: 2, ImmLen: 4}},
		{"mov r8w", "66 41 b8 10 20", decode.Fields{Opcode: 2, Imm: 3, ImmLen: 2}},
		{"mov r64, 66 without effect", "66 48 b8 11 22 33 44 55 66 77 88", decode.Fields{Opcode: 2, Imm: 3, ImmLen: 8}},
		{"movabs", "48 b8 11 22 33 44 55 66 77 88", decode.Fields{Opcode: 1, Imm: 2, ImmLen: 8}},
		{"REX not last", "48 66 b8 11 22", decode.Fields{Opcode: 2, Imm: 3, ImmLen: 2}},
		{"mov moffs", "a1 11 22 33 44 55 66 77 88", decode.Fields{Disp: 1, DispLen: 8}},
		{"mov moffs, 67", "67 48 a3 11 22 33 44", decode.Fields{Opcode: 2, Disp: 3, DispLen: 4}},
		{"mov moffs of 14 bytes", "67 67 67 67 67 67 67 67 67 a1 11 22 33 44", decode.Fields{Opcode: 9, Disp: 10, DispLen: 4}},
		{"enter", "c8 11 22 33", decode.Fields{Imm: 1, ImmLen: 3}},
		{"jcc", "0f 84 11 22 33 44", decode.Fields{Opcode: 1, Imm: 2, ImmLen: 4}},
		{"mod 0", "48 8b 00", decode.Fields{Opcode: 1, Operands: 2}},
		{"mod 1", "48 8b 40 10", decode.Fields{Opcode: 1, Operands: 2, Disp: 3, DispLen: 1}},
		{"mod 2", "48 8b 80 10 20 30 40", decode.Fields{Opcode: 1, Operands: 2, Disp: 3, DispLen: 4}},
		{"rip", "48 8b 05 10 20 30 40", decode.Fields{Opcode: 1, Operands: 2, Disp: 3, DispLen: 4}},
		{"SIB", "48 8b 04 24", decode.Fields{Opcode: 1, Operands: 2}},
		{"SIB without base", "48 8b 04 25 10 20 30 40", decode.Fields{Opcode: 1, Operands: 2, Disp: 4, DispLen: 4}},
		{"SIB with base r13", "49 8b 04 25 10 20 30 40", decode.Fields{Opcode: 1, Operands: 2, Disp: 4, DispLen: 4}},
		{"SIB mod 1", "48 8b 44 24 10", decode.Fields{Opcode: 1, Operands: 2, Disp: 4, DispLen: 1}},
		{"SIB mod 2", "48 8b 84 24 10 20 30 40", decode.Fields{Opcode: 1, Operands: 2, Disp: 4, DispLen: 4}},
		{"disp and imm", "81 80 11 22 33 44 55 66 77 88", decode.Fields{Operands: 1, Disp: 2, DispLen: 4, Imm: 6, ImmLen: 4}},
		{"group with imm", "66 f7 40 11 22 33", decode.Fields{Opcode: 1, Operands: 2, Disp: 3, DispLen: 1, Imm: 4, ImmLen: 2}},
		{"group without imm", "f7 d0", decode.Fields{Operands: 1}},
		{"0f38", "66 0f 38 00 c1", decode.Fields{Opcode: 3, Operands: 4}},
		{"0f3a", "66 0f 3a 0f 40 10 05", decode.Fields{Opcode: 3, Operands: 4, Disp: 5, DispLen: 1, Imm: 6, ImmLen: 1}},
		{"extrq", "66 0f 78 c0 11 22", decode.Fields{Opcode: 2, Operands: 3, Imm: 4, ImmLen: 2}},
		{"vmread", "0f 78 c0", decode.Fields{Opcode: 1, Operands: 2}},
		{"3DNow!", "0f 0f 44 88 11 b4", decode.Fields{Opcode: 5, Operands: 2, Disp: 4, DispLen: 1}},
		{"VEX2", "c5 f8 10 00", decode.Fields{Opcode: 2, Operands: 3}},
		{"vzeroupper", "c5 f8 77", decode.Fields{Opcode: 2}},
		{"VEX3 with imm", "c4 e3 79 0f c1 05", decode.Fields{Opcode: 3, Operands: 4, Imm: 5, ImmLen: 1}},
		{"EVEX with disp8", "62 f1 7c 48 58 40 01", decode.Fields{Opcode: 4, Operands: 5, Disp: 6, DispLen: 1}},
		{"EVEX map 4, imm16", "62 f4 7d 08 81 c0 34 12", decode.Fields{Opcode: 4, Operands: 5, Imm: 6, ImmLen: 2}},
		{"EVEX map 4, 66 and W", "62 f4 fd 08 81 c0 34 12 00 00", decode.Fields{Opcode: 4, Operands: 5, Imm: 6, ImmLen: 4}},
		{"EVEX map 7", "62 f7 7f 08 f8 c0 11 22 33 44", decode.Fields{Opcode: 4, Operands: 5, Imm: 6, ImmLen: 4}},
		{"XOP bextr", "8f ea 78 10 c1 11 22 33 44", decode.Fields{Opcode: 3, Operands: 4, Imm: 5, ImmLen: 4}},
		{"pop, not XOP", "8f 00", decode.Fields{Operands: 1}},
		{"REX2", "d5 10 b8 11 22 33 44", decode.Fields{Opcode: 2, Imm: 3, ImmLen: 4}},
		{"REX2 map 1", "66 d5 c0 af c0", decode.Fields{Opcode: 3, Operands: 4}},
		{"mov cr3 with mod 2", "0f 20 98", decode.Fields{Opcode: 1, Operands: 2}},
		{"15 bytes", "67 f0 66 48 81 84 24 11 22 33 44 55 66 77 88",
			decode.Fields{Opcode: 4, Operands: 5, Disp: 7, DispLen: 4, Imm: 11, ImmLen: 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inst := mustDecode(t, test.code, 0)
			if diff := cmp.Diff(test.want, inst.Fields); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeDetail(t *testing.T) {
	for _, test := range []struct {
		name, code string
		want       detailFields
	}{
		{"prefixes", "f3 66 66 64 67 90", detailFields{Opcode: 0x90, Prefixes: PrefixF3 | Prefix66 | PrefixFS | Prefix67, Count: 5}},
		{"REX", "4d 8b 44 24 08", detailFields{Opcode: 0x8b, ModRM: 0x44, W: 1, R: 1, B: 1, REX: true}},
		{"REX without bits", "40 8a c4", detailFields{Opcode: 0x8a, ModRM: 0xc4, REX: true}},
		{"REX without effect", "4f 66 90", detailFields{Opcode: 0x90, Prefixes: Prefix66, Count: 1}},
		{"REX.X", "42 8b 04 20", detailFields{Opcode: 0x8b, ModRM: 0x04, X: 1, REX: true}},
		{"0f", "0f af c1", detailFields{Opcode: 0xaf, ModRM: 0xc1, Map: Map0F}},
		{"0f38", "66 0f 38 1c c1", detailFields{Opcode: 0x1c, ModRM: 0xc1, Map: Map0F38, Prefixes: Prefix66, Count: 1}},
		{"0f3a", "f3 0f 3a f0 c0 01", detailFields{Opcode: 0xf0, ModRM: 0xc0, Map: Map0F3A, Prefixes: PrefixF3, Count: 1}},
		{"3DNow!", "0f 0f c1 b4", detailFields{Opcode: 0xb4, ModRM: 0xc1, Map: Map3DNow}},
		{"REX2", "66 d5 ff af c1", detailFields{Opcode: 0xaf, ModRM: 0xc1, Encoding: EncREX2, Map: Map0F,
			Prefixes: Prefix66, Count: 1, W: 1, R: 1, X: 1, B: 1, R4: 1, X4: 1, B4: 1}},
		{"VEX2", "c5 4c 58 c2", detailFields{Opcode: 0x58, ModRM: 0xc2, Encoding: EncVEX2, Map: Map0F, R: 1, VVVV: 6, L: 1}},
		{"VEX3", "c4 02 f5 98 04 08", detailFields{Opcode: 0x98, ModRM: 0x04, Encoding: EncVEX3, Map: Map0F38,
			W: 1, R: 1, X: 1, B: 1, VVVV: 1, L: 1, PP: 1}},
		{"VEX map 7", "c4 e7 7b f8 c0 11 22 33 44", detailFields{Opcode: 0xf8, ModRM: 0xc0, Encoding: EncVEX3, Map: Map7, PP: 3}},
		{"EVEX", "62 02 b5 c3 98 c1", detailFields{Opcode: 0x98, ModRM: 0xc1, Encoding: EncEVEX, Map: Map0F38,
			W: 1, R: 1, X: 1, B: 1, R4: 1, VVVV: 25, L: 2, PP: 1, EVEXz: true, AAA: 3}},
		{"EVEX.b", "62 f1 7c 38 58 c1", detailFields{Opcode: 0x58, ModRM: 0xc1, Encoding: EncEVEX, Map: Map0F, L: 1, EVEXb: true}},
		{"EVEX.B4 and X4", "62 f9 78 48 58 04 08", detailFields{Opcode: 0x58, ModRM: 0x04, Encoding: EncEVEX, Map: Map0F,
			X4: 1, B4: 1, L: 2}},
		{"EVEX map 4", "62 f4 6c 1c 01 c1", detailFields{Opcode: 0x01, ModRM: 0xc1, Encoding: EncEVEX, Map: Map4,
			VVVV: 2, EVEXb: true, AAA: 4}},
		{"EVEX map 6", "62 f6 7d 08 98 c1", detailFields{Opcode: 0x98, ModRM: 0xc1, Encoding: EncEVEX, Map: Map6, PP: 1}},
		{"XOP", "8f 48 f8 a2 c1 10", detailFields{Opcode: 0xa2, ModRM: 0xc1, Encoding: EncXOP, Map: MapXOP8,
			W: 1, R: 1, B: 1, X: 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inst := mustDecode(t, test.code, 0)
			if diff := cmp.Diff(test.want, fieldsOf(DetailOf(&inst))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type detailFields struct {
	Opcode, ModRM          byte
	Encoding               Encoding
	Map                    Map
	Prefixes               Prefixes
	Count                  int
	REX                    bool
	W, R, X, B, R4, X4, B4 byte
	VVVV, L, PP            byte
	EVEXb, EVEXz           bool
	AAA                    byte
}

func fieldsOf(d Detail) detailFields {
	return detailFields{
		d.Opcode(), d.ModRM(), d.Encoding(), d.Map(), d.Prefixes(), d.PrefixCount(), d.HasREX(),
		d.W(), d.R(), d.X(), d.B(), d.R4(), d.X4(), d.B4(),
		d.VVVV(), d.VectorLength(), d.PP(), d.EVEXb(), d.EVEXz(), d.EVEXaaa(),
	}
}

func TestBranch66(t *testing.T) {
	for code, want := range map[string]bool{
		"66 e8 00 00 00 00":          true,
		"66 e9 00 00 00 00":          true,
		"66 0f 84 00 00 00 00":       true,
		"66 74 00":                   true,
		"66 eb 00":                   true,
		"66 e2 00":                   true,
		"66 c3":                      true,
		"66 c2 00 00":                true,
		"66 ff e0":                   true,
		"66 ff 10":                   true,
		"66 48 e8 00 00 00 00":       false, // REX.W wins
		"e8 00 00 00 00":             false,
		"66 ff 30":                   false, // push
		"66 c7 f8 00 00":             false, // xbegin
		"66 90":                      false,
		"66 0f 1f 84 00 00 00 00 00": false,
	} {
		if inst := mustDecode(t, code, 0); Branch66(&inst) != want {
			t.Errorf("%s: not %v", code, want)
		}
	}
}

func TestDecodeAllocs(t *testing.T) { archtest.CheckDecodeAllocs(t, ISA{}, benchText(t)) }

func TestTablesAreGenerated(t *testing.T) { archtest.CheckGenerated(t, "gen.go") }
