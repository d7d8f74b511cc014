package amd64

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/internal/skip"
)

// decodeText decodes the instruction that hexBytes starts with and writes it.
func decodeText(t testing.TB, hexBytes string, addr uint64, lookup decode.SymLookup) (inst decode.Inst, text string) {
	t.Helper()
	code, err := hex.DecodeString(strings.ReplaceAll(hexBytes, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := (ISA{}).Decode(&inst, code, addr); err != nil {
		t.Fatalf("%s: %v", hexBytes, err)
	}
	return inst, (ISA{}).Text(&inst, lookup)
}

// knownDifference is a reason why GNU objdump 2.40 writes an instruction
// otherwise. revise turns the text into what 2.40 writes.
type knownDifference struct {
	why    string
	holds  func(d Detail) bool
	revise func(inst *decode.Inst, text string) string
}

// oldConditions are the names of CMPccXADD before GNU binutils 2.42 gave them those of
// the other conditional instructions.
var oldConditions = map[byte]string{0xe3: "nb", 0xe4: "z", 0xe5: "nz", 0xe7: "nbe", 0xed: "nl", 0xef: "nle"}

func replacer(old, new string) func(*decode.Inst, string) string {
	return func(_ *decode.Inst, text string) string { return strings.Replace(text, old, new, 1) }
}

func isOpcode(enc Encoding, m Map, opcodes ...byte) func(Detail) bool {
	return func(d Detail) bool {
		return d.Encoding() == enc && d.Map() == m && bytes.IndexByte(opcodes, d.Opcode()) >= 0
	}
}

var knownDifferences = []knownDifference{
	{
		"2.41 and later write the count of a shift by one",
		isOpcode(EncLegacy, MapOneByte, 0xd0, 0xd1),
		replacer("$1,", ""),
	},
	{
		"2.42 and later name conditions as in other instructions",
		isOpcode(EncVEX3, Map0F38, 0xe3, 0xe4, 0xe5, 0xe7, 0xed, 0xef),
		func(inst *decode.Inst, text string) string {
			_, operands, _ := strings.Cut(text, "xadd")
			return "cmp" + oldConditions[DetailOf(inst).Opcode()] + "xadd" + operands
		},
	},
	{
		"2.40 does not cut an EIP-relative address to 32 bits",
		func(d Detail) bool { return d.Prefixes()&Prefix67 != 0 && d.Mod() == 0 && d.RM() == 5 },
		func(inst *decode.Inst, text string) string {
			before, _, _ := strings.Cut(text, " # ")
			return fmt.Sprintf("%s # %#x", before, uint64(int32(inst.Target)))
		},
	},
	{
		"2.40 gives the destination of a move between registers the vector length",
		func(d Detail) bool { return d.Map() == Map0F && d.Opcode() == 0x11 && d.PP() >= 2 && d.Mod() == 3 },
		func(inst *decode.Inst, text string) string {
			i := strings.LastIndex(text, "%xmm")
			return text[:i+1] + string("xyz"[DetailOf(inst).VectorLength()]) + text[i+2:]
		},
	},
	{
		"2.40 calls rounding that has no effect bad",
		isOpcode(EncEVEX, Map0F, 0x2a, 0x7b),
		func(inst *decode.Inst, text string) string {
			if d := DetailOf(inst); d.W() == 0 && d.PP() == 3 {
				return strings.Replace(text, "-sae}", "-bad}", 1)
			}
			return text
		},
	},
	{
		"2.40 names the predicates 2 and 3, of which bit 4 is the second's",
		func(d Detail) bool { return d.Map() == Map0F3A && d.Opcode() == 0x44 },
		func(inst *decode.Inst, text string) string {
			switch inst.Raw[inst.Fields.Imm] {
			case 2:
				return strings.Replace(text, "qdq $0x2,", "lqhqdq ", 1)
			case 3:
				return strings.Replace(text, "qdq $0x3,", "hqhqdq ", 1)
			}
			return text
		},
	},
	{
		"2.40 writes {evex} though VEX has no such form",
		isOpcode(EncEVEX, Map0F38, 0x16),
		func(inst *decode.Inst, text string) string { return "{evex} " + text },
	},
	{
		"2.40 writes no {evex} though VEX has such a form",
		isOpcode(EncEVEX, Map0F38, 0x45, 0x46, 0x47),
		replacer("{evex} ", ""),
	},
}

// sameAsObjdump reports whether text is what objdump 2.40 writes, but for the
// known differences.
func sameAsObjdump(inst *decode.Inst, text, want string) (same bool, why string) {
	if text == want {
		return true, ""
	}
	d := DetailOf(inst)
	for _, k := range knownDifferences {
		if k.holds(d) && k.revise(inst, text) == want {
			return true, k.why
		}
	}
	return false, ""
}

// TestText compares whole texts with those of objdump 2.40: instructions of
// real programs, and at least one for each name, operand kind and vector length
// from random encodings.
func TestText(t *testing.T) {
	for _, name := range []string{"legacy", "vector"} {
		t.Run(name, func(t *testing.T) {
			rows, err := refdata.Rows(filepath.Join("testdata", "text-"+name+".tsv.gz"))
			if err != nil {
				t.Fatal(err)
			}
			differ := map[string]int{}
			for i, row := range rows {
				inst, text := decodeText(t, row[0], 0x401000+uint64(i)*32, nil)
				same, why := sameAsObjdump(&inst, text, row[1])
				if !same {
					t.Errorf("%s: %q, objdump %q", row[0], text, row[1])
				}
				if why != "" {
					differ[why]++
				}
			}
			for why, n := range differ {
				t.Logf("%d of %d: %s", n, len(rows), why)
			}
		})
	}
}

// prefixWords are words before a name.
var prefixWords = strings.Fields("lock rep repz repnz data16 addr32 cs ds es ss fs gs notrack bnd xacquire xrelease {vex} {evex}")

// mnemonicOf returns the prefixes and the name of an instruction, joined by +.
func mnemonicOf(text string) string {
	words := strings.Fields(text)
	n := 0
	for n < len(words)-1 && (strings.HasPrefix(words[n], "rex") || contains(prefixWords, words[n])) {
		n++
	}
	return strings.Join(words[:n+1], "+")
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// TestMnemonics compares the names in the whole list of real instructions with
// those of GNU objdump 2.44.
func TestMnemonics(t *testing.T) {
	for _, row := range referenceRows(t, "amd64-real.tsv.gz") {
		if row[0] == "f01400" { // data in text: LOCK without memory is no instruction
			continue
		}
		_, text := decodeText(t, row[0], 0x1000, nil)
		if got := mnemonicOf(text); got != row[2] {
			t.Errorf("%s: %q is called %s, objdump %s", row[0], text, got, row[2])
		}
	}
}

// TestSweepHasText asks for the text of every instruction in the systematic list.
func TestSweepHasText(t *testing.T) {
	for _, row := range referenceRows(t, "amd64-sweep.tsv.gz") {
		if row[1] == "0" {
			continue
		}
		if _, text := decodeText(t, row[0], 0x1000, nil); text == "" || strings.Contains(text, ".map") || strings.Contains(text, "(bad)") {
			t.Errorf("%s: %q", row[0], text)
		}
	}
}

// referenceRows returns a list of reference instructions, and skips the test
// where it is not beside the project.
func referenceRows(t *testing.T, name string) [][]string {
	rows, err := refdata.Rows(refdata.Full(t, "decode", name))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestTextAPX judges what objdump 2.40 does not know by the tests of later GNU
// binutils.
func TestTextAPX(t *testing.T) {
	for _, test := range []struct{ code, want string }{
		{"62f40d1081d03412", "adc $0x1234,%ax,%r30w"},
		{"627c6c1010f9", "adc %r15b,%r17b,%r18b"},
		{"62546c101138", "adc %r15d,(%r8),%r18d"},
		{"62c43c18120407", "adc (%r15,%rax,1),%r16b,%r8b"},
		{"62fc5c1083148311", "adc $0x11,(%r19,%rax,4),%r20d"},
		{"62546d1066c7", "adcx %r15d,%r8d,%r18d"},
		{"6214f90866043f", "adcx (%r15,%r31,1),%r8"},
		{"6214691066043f", "adcx (%r15,%r31,1),%r8d,%r18d"},
		{"62d4fc1081c733443412", "add $0x12344433,%r15,%r16"},
		{"62f4bc1881c0112233f4", "add $0xfffffffff4332211,%rax,%r8"},
		{"6244f810013cc0", "add %r31,(%r8,%r16,8),%r16"},
		{"625cf81003840790900000", "add 0x9090(%r31,%r16,1),%r8,%r16"},
		{"6762f43c18479090909090", "cmova -0x6f6f6f70(%eax),%edx,%r8d"},
		{"62f4f410ffc8", "dec %rax,%r17"},
		{"629c3c18fe0c27", "dec (%r31,%r12,1),%r8b"},
		{"62b4b010af94f809090000", "imul 0x909(%rax,%r31,8),%rdx,%r25"},
		{"62d40410c0d402", "rcl $0x2,%r12b,%r31b"},
		{"62fc3c18d2d0", "rcl %cl,%r16b,%r8b"},
		{"62f40410d010", "rcl $1,(%rax),%r31b"},
		{"62748410242001", "shld $0x1,%r12,(%rax),%r31"},
		{"627c0510a52c83", "shld %cl,%r13w,(%r19,%rax,4),%r31w"},
		{"62f47c0c80c37b", "{nf} add $0x7b,%bl"},
		{"62d47c0c808480230100007b", "{nf} addb $0x7b,0x123(%r8,%rax,4)"},
		{"62726c0cf2d1", "{nf} andn %ecx,%edx,%r10d"},
		{"6242b40cf7bc8023010000", "{nf} bextr %r9,0x123(%r8,%rax,4),%r31"},
		{"62d4fc0c838480230100007b", "{nf} addq $0x7b,0x123(%r8,%rax,4)"},
		{"62f47c0cf6f3", "{nf} div %bl"},
		{"62f47c0c6bd17b", "{nf} imul $0x7b,%ecx,%edx"},
		{"62f47d0c6bc290", "{nf} imul $0xff90,%dx,%ax"},
		{"62f47d0cf5c2", "{nf} lzcnt %dx,%ax"},
		{"624c7c08fc8c8723010000", "aadd %r25d,0x123(%r31,%rax,4)"},
		{"62723400f7d2", "bextr %r25d,%edx,%r10d"},
		{"62da6c08f3d9", "blsi %r25d,%edx"},
		{"62da3500e6948723010000", "cmpbexadd %r25d,%edx,0x123(%r31,%rax,4)"},
		{"62ccfc08f1f7", "crc32 %r31,%r22"},
		{"62ccfc08f137", "crc32q (%r31),%r22"},
		{"62ecfc08f0cb", "crc32 %r19b,%r17"},
		{"62fc7c08f01b", "crc32b (%r19),%ebx"},
		{"62cc7d08f12f", "crc32w (%r31),%r21d"},
		{"67624c7f08f88c8723010000", "enqcmd 0x123(%r31d,%eax,4),%r25d"},
		{"624c7e08f0bc8723010000", "invept 0x123(%r31,%rax,4),%r31"},
		{"62617d0893cd", "kmovb %k5,%r25d"},
		{"62d97d0891ac8723010000", "kmovb %k5,0x123(%r31,%rax,4)"},
		{"6261ff0893fd", "kmovq %k5,%r31"},
		{"62da7c0849848723010000", "ldtilecfg 0x123(%r31,%rax,4)"},
		{"62fc7d0860c2", "movbe %r18w,%ax"},
		{"62d47d0860c7", "movbe %r15w,%ax"},
		{"6254fc0860f8", "movbe %r8,%r15"},
		{"624c7d08f8bc8723010000", "movdir64b 0x123(%r31,%rax,4),%r31"},
		{"625a6f08f5d1", "pdep %r25d,%edx,%r10d"},
		{"62da7f084bb48723010000", "tileloadd 0x123(%r31,%rax,4),%tmm6"},
		{"62da7e084bb48723010000", "tilestored %tmm6,0x123(%r31,%rax,4)"},
		{"624c7c08668c8723010000", "wrssd %r25d,0x123(%r31,%rax,4)"},
		{"624cfd0865bc8723010000", "wrussq %r31,0x123(%r31,%rax,4)"},
		{"62d48c0283bc80230100007b", "ccmpbq {dfv=cf} $0x7b,0x123(%r8,%rax,4)"},
		{"62740d0239f8", "ccmpb {dfv=cf} %r15w,%ax"},
		{"62540c023bbc8023010000", "ccmpb {dfv=cf} 0x123(%r8,%rax,4),%r15d"},
		{"62d46d0283bc80230100007b", "ccmpbw {dfv=of, sf, cf} $0x7b,0x123(%r8,%rax,4)"},
		{"62fcc40083f87b", "ccmpo {dfv=of} $0x7b,%r16"},
		{"62dcc40a83fa7b", "ccmpt {dfv=of} $0x7b,%r26"},
		{"62dcc40f83ff7b", "ccmpg {dfv=of} $0x7b,%r31"},
		{"62fcc407f7c77b000000", "ctesta {dfv=of} $0x7b,%r23"},
		{"6254940285ff", "ctestb {dfv=zf} %r15,%r15"},
		{"6274040a85fa", "ctestt {dfv=} %r15d,%edx"},
		{"62f47d186bc30a", "imulzu $0xa,%bx,%ax"},
		{"62f47d1c6bc30a", "{nf} imulzu $0xa,%bx,%ax"},
		{"62f47d086bc30a", "{evex} imul $0xa,%bx,%ax"},
		{"62f47f1841c0", "setzuno %al"},
		{"62f47f084fc0", "{evex} setg %al"},
		{"d5919fc1", "setg %r25b"},
		{"62f47c18fff3", "push2 %rbx,%rax"},
		{"62dcbc10fff7", "push2p %r31,%r24"},
		{"62f464188fc0", "pop2 %rax,%rbx"},
		{"62dcb4188fc7", "pop2p %r31,%r9"},
		{"d50850", "pushp %rax"},
		{"d51957", "pushp %r31"},
		{"d5195f", "popp %r31"},
		{"d500a10202020202020202", "jmpabs $0x202020202020202"},
		{"d5000006", "{rex2 0x0} add %al,(%rsi)"},
		{"d50e8b2b", "{rex2 0xe} mov (%rbx),%r13"},
		{"62f47d084ec2", "cfcmovle %dx,%ax"},
		{"62f405104ec2", "cmovle %dx,%ax,%r31w"},
	} {
		if _, got := decodeText(t, test.code, 0x1000, nil); got != test.want {
			t.Errorf("%s: %q, want %q", test.code, got, test.want)
		}
	}
}

// visitEncodings calls visit with encodings of every opcode map: all prefixes,
// opcodes and ModRM.reg and rm, operands in registers and memory.
func visitEncodings(visit func(code []byte)) {
	heads := [][]byte{}
	for _, prefix := range []string{"", "66", "f3", "f2", "67"} {
		for _, rest := range []string{
			"", "48", "41", "d500", "d508", "d511", "0f", "480f", "410f", "d580", "d588", "d591",
			"0f38", "480f38", "0f3a", "480f3a", "0f0fc1",
		} {
			head, _ := hex.DecodeString(prefix + rest)
			heads = append(heads, head)
		}
	}
	for m := range byte(11) {
		for wpp := range byte(8) {
			w, pp := wpp&1<<7, wpp>>1
			for _, v := range []byte{0x78, 0x60} {
				for _, l := range []byte{0, 4} {
					heads = append(heads, []byte{0xc4, 0xe0 | m, w | v | l | pp}, []byte{0x8f, 0xe0 | m, w | v | l | pp})
				}
				// z, L'L, b, V' and aaa; ND and NF in map 4
				for _, p2 := range []byte{0x08, 0x28, 0x48, 0x18, 0x58, 0x49, 0x0c, 0x1c, 0x00, 0x02} {
					heads = append(heads, []byte{0x62, 0xf0 | m, w | v | 4 | pp, p2})
				}
			}
		}
	}
	for _, head := range heads {
		for opcode := range 256 {
			for modRM := range 256 {
				if mod := modRM >> 6; mod == 0 || mod == 3 {
					var code [16]byte
					copy(code[copy(code[:], head):], []byte{byte(opcode), byte(modRM), 0x21})
					visit(code[:])
				}
			}
		}
	}
}

// TestNamesMatchDecoder checks that every instruction has a name and every name
// an instruction.
func TestNamesMatchDecoder(t *testing.T) {
	skip.Long(t, "millions of encodings")
	reached := map[*nameForm]bool{}
	visitEncodings(func(code []byte) {
		var inst decode.Inst
		if (ISA{}).Decode(&inst, code, 0x1000) != nil {
			return
		}
		f := findName(&inst, DetailOf(&inst))
		if f == nil {
			t.Errorf("%x has no name", inst.Bytes())
		}
		reached[f] = true
	})
	for i := range nameForms {
		if f := &nameForms[i]; !reached[f] {
			t.Errorf("no instruction is %s (mask %#x, want %#x)", f.name, f.mask, f.want)
		}
	}
}

func TestTextAddresses(t *testing.T) {
	lookup := func(addr uint64) (string, uint64) {
		if addr >= 0x2000 && addr < 0x3000 {
			return "vfs_read", 0x2000
		}
		return "", 0
	}
	for _, test := range []struct{ name, code, want string }{
		{"call of a function", "e8fb0f0000", "call 0x2000 <vfs_read>"},
		{"call into a function", "e80b100000", "call 0x2010 <vfs_read+0x10>"},
		{"call of what has no name", "e8fb1f0000", "call 0x3000"},
		{"conditional branch", "0f84fa0f0000", "je 0x2000 <vfs_read>"},
		{"RIP-relative load", "488b0509100000", "mov 0x1009(%rip),%rax # 0x2010 <vfs_read+0x10>"},
		{"RIP-relative vector", "c5fa6f0508100000", "vmovdqu 0x1008(%rip),%xmm0 # 0x2010 <vfs_read+0x10>"},
		{"EIP-relative load", "678b0509100000", "mov 0x1009(%eip),%eax # 0x2010 <vfs_read+0x10>"},
		{"absolute address", "488b042500200000", "mov 0x2000,%rax"},
		{"immediate", "48c7c000200000", "mov $0x2000,%rax"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, got := decodeText(t, test.code, 0x1000, lookup); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestTextOfGaps(t *testing.T) {
	gaps := decode.Sweep(ISA{}, nil, []byte{0x06, 0x90, 0x0f}, 0x1000)
	var got []string
	for i := range gaps {
		got = append(got, (ISA{}).Text(&gaps[i], nil))
	}
	if want := "(bad) nop (bad)"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (ISA{}).Text(&decode.Inst{}, nil); got != "(bad)" {
		t.Errorf("zero value: %q", got)
	}
	unnamed := decode.Inst{Len: 6, Detail: uint64(EncEVEX)<<encodingAt | uint64(Map5)<<mapAt | 1<<ppAt | 0x57}
	if got, want := (ISA{}).Text(&unnamed, nil), "evex.map5.66.w0 0x57"; got != want {
		t.Errorf("opcode without a name: %q, want %q", got, want)
	}
}

// TestNamesTable checks that the generated table is that of its input.
func TestNamesTable(t *testing.T) { archtest.CheckGenerated(t, "gennames.go") }

func FuzzText(f *testing.F) {
	rows, err := refdata.Rows(filepath.Join("testdata", "text-vector.tsv.gz"))
	if err != nil {
		f.Fatal(err)
	}
	for i := 0; i < len(rows); i += 50 {
		code, err := hex.DecodeString(rows[i][0])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(code)
	}
	lookup := func(addr uint64) (string, uint64) { return "f", addr &^ 0xff }
	f.Fuzz(func(t *testing.T, data []byte) {
		insts := decode.Sweep(ISA{}, nil, data, 0x1000)
		for i := range insts {
			text := (ISA{}).Text(&insts[i], lookup)
			if text == "" || strings.Contains(text, ".map") || insts[i].Has(decode.Invalid) != (text == "(bad)") {
				t.Errorf("%x: %q", insts[i].Bytes(), text)
			}
		}
		var any decode.Inst
		if _, err := binary.Decode(append(data, make([]byte, 64)...), binary.LittleEndian, &any); err != nil {
			t.Fatal(err)
		}
		if (ISA{}).Text(&any, lookup) == "" {
			t.Errorf("%+v has no text", any)
		}
	})
}

func BenchmarkText(b *testing.B) {
	rows, err := refdata.Rows(filepath.Join("testdata", "text-legacy.tsv.gz"))
	if err != nil {
		b.Fatal(err)
	}
	var insts []decode.Inst
	for _, row := range rows {
		inst, _ := decodeText(b, row[0], 0x1000, nil)
		insts = append(insts, inst)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		(ISA{}).Text(&insts[i], nil)
		i = (i + 1) % len(insts)
	}
}
