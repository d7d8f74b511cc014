package amd64

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"xol/classify"
	"xol/internal/refdata"
	"xol/internal/skip"
	"xol/kernel"
)

// The profiles of 6.12, and the decoder that they share.
var (
	decoder612 = newKernelDecoder(linux6_12)
	kprobe612  = kprobeProfile(linux6_12, kernel.Debian("amd64", linux6_12))
	uprobe612  = uprobeProfile(linux6_12)
)

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The lengths are those of the list of recorded verdicts, or follow from the
// functions that the names say; 0 means that the kernel refuses the bytes.
func TestKernelDecoderPeculiarities(t *testing.T) {
	for _, c := range []struct {
		name, code string
		len        uint8
	}{
		{"xop is pop, insn_get_opcode", "8fe868b6472040", 2},
		{"fma4 is unknown", "c4e37968d911", 0},
		{"evex in map 7", "62f7 7e48 f8c0 11223344", 10},
		{"vex in map 7", "c4e7 7b f8c0 11223344", 9},
		{"vex in map 0", "c4e0 79 90", 0},
		{"vex in map 31", "c4ff 79 90 c0", 0},
		{"vex form of an evex instruction", "c4e3 79 03 c1 11", 0},
		{"evex form of a vex instruction is taken", "62f2 7d08 0ec1", 6},
		{"legacy form of a vex instruction", "0f3850c1", 0},
		{"legacy form of an unknown opcode", "0f04", 2},
		{"last prefix 66, f3 in front", "f3660f38f0c1", 6},
		{"last prefix f3, 66 in front", "66f30f38f0c1", 5},
		{"fifth prefix is the opcode", "f26664672ee811223304", 5},
		{"the same prefix again does not count", "66666666666690", 7},
		{"rex before rex", "484889c0", 2},
		{"rex before vex", "48c5f877", 4},
		{"rex2 with 0f", "d5000f", 3},
		{"rex2 in map 1 without modrm", "d5800b", 3},
		{"jmpabs", "d500a11122334455667788", 11},
		{"moffs with 67", "67a111223344", 6},
		{"far jump", "ea112233445566", 7},
		{"far jump with 66", "66ea11223344", 6},
		{"far jump with rex.w", "48ea112233445566", 0},
		{"near jump with 66", "66e911223344", 6},
		{"near jcc with 66", "660f8411223344", 7},
		{"imm64", "48b81122334455667788", 10},
		{"test with immediate", "f7c011223344", 6},
		{"not without", "f7d0", 2},
		{"forced emulation of cpuid", "0f0b78656e 0fa2", 7},
		{"forced emulation, kvm", "0f0b6b766d 90", 6},
		{"ud2 and other bytes", "0f0b786566", 2},
		{"fifteen bytes", "2e2e2e 48c784c0 11223344 11223344", 15},
		{"sixteen bytes", "2e2e2e2e 48c784c0 11223344 11223344", 0},
		{"prefixes only", "66666666666666666666666666666666", 0},
	} {
		var k kernelInsn
		var buf [kernelWindow]byte
		ok := decoder612.decode(&k, window(unhex(t, c.code), 0, &buf))
		if !ok {
			k.len = 0
		}
		if k.len != c.len {
			t.Errorf("%s: %s: got length %d, want %d", c.name, c.code, k.len, c.len)
		}
	}
}

// inat holds the tables of the kernel's decoder as they stand in its image
// [arch/x86/include/asm/inat.h]: by escape, group or VEX map, by prefix, then
// by opcode or ModRM.reg.
type inat struct {
	prefixBits uint // 4, or 5 where REX2 is known
	primary    []uint32

	escapes, vexs, groups, xops [32][4][]uint32
}

// The parts of an attribute.
func (x *inat) prefix(a uint32) uint32 { return a & (1<<x.prefixBits - 1) }
func (x *inat) escape(a uint32) uint32 { return a >> x.prefixBits & 3 }
func (x *inat) group(a uint32) uint32  { return a >> (x.prefixBits + 2) & 31 }
func (x *inat) imm(a uint32) uint32    { return a >> (x.prefixBits + 7) & 7 }

func (x *inat) has(a, flag uint32) bool { return a>>(x.prefixBits+10)&flag != 0 }

const (
	inatModRM = 1 << iota
	inatForce64
	inatImm2
	inatMoffset
	inatVariant
	inatVEX
	inatVEXOnly
	inatEVEXOnly
	_
	_
	inatScalable
	inatInvalid64
)

func readImage(t *testing.T, path string) *inat {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := xz.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	image, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := image.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]uint64{}
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "inat_") {
			at[s.Name] = s.Value
		}
	}
	read := func(addr uint64, n int) []byte {
		for _, p := range image.Progs {
			if p.Type == elf.PT_LOAD && p.Vaddr <= addr && addr < p.Vaddr+p.Filesz {
				return data[p.Off+addr-p.Vaddr:][:n]
			}
		}
		t.Fatalf("no bytes at %#x", addr)
		return nil
	}
	words := func(addr uint64, n int) []uint32 {
		b, w := read(addr, 4*n), make([]uint32, n)
		for i := range w {
			w[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		return w
	}
	tables := func(to *[32][4][]uint32, name string, rows, variants, n int) {
		if at[name] == 0 {
			return
		}
		b := read(at[name], rows*variants*8)
		for i := range rows * variants {
			if p := binary.LittleEndian.Uint64(b[8*i:]); p != 0 {
				to[i/variants][i%variants] = words(p, n)
			}
		}
	}
	x := &inat{prefixBits: 4, primary: words(at["inat_primary_table"], 256)}
	if x.primary[0xD5]&31 == 16 {
		x.prefixBits = 5
	}
	tables(&x.escapes, "inat_escape_tables", 4, 4, 256)
	tables(&x.groups, "inat_group_tables", 32, 4, 8)
	tables(&x.vexs, "inat_avx_tables", 32, 4, 256)
	tables(&x.xops, "inat_xop_tables", 24, 1, 256)
	return x
}

// length decodes b by the kernel's tables, step by step as its functions do;
// 0 means refused. It is slow and simple on purpose.
func (x *inat) length(b []byte) int {
	i := 0
	if s := string(b[:5]); s == "\x0f\x0bxen" || s == "\x0f\x0bkvm" {
		i = 5
	}
	at := func(i int) byte {
		if i < len(b) {
			return b[i]
		}
		return 0
	}
	operand, address, seen, last := 4, 8, "", byte(0)
	for p := x.prefix(x.primary[at(i)]); p >= 1 && p <= 11; p = x.prefix(x.primary[at(i)]) {
		if !strings.Contains(seen, string(rune(at(i)))) {
			if len([]rune(seen)) == 4 {
				break
			}
			seen += string(rune(at(i)))
			switch p {
			case 1:
				operand = 2
			case 11:
				address = 4
			}
		}
		last = at(i)
		i++
	}
	variant := x.prefix(x.primary[last])
	if last == 0 || variant > 3 {
		variant = 0
	}
	rex, rex2, vex := false, false, []byte(nil)
	switch x.prefix(x.primary[at(i)]) {
	case 12:
		rex = true
		if at(i)&8 != 0 {
			operand = 8
		}
		i++
	case 16:
		rex2 = true
		if at(i+1)&8 != 0 {
			operand = 8
		}
		i += 2
	}
	knowsXOP := x.prefix(x.primary[0x8F]) == 17
	if !rex2 && !(rex && knowsXOP) {
		switch x.prefix(x.primary[at(i)]) {
		case 17:
			if at(i+1)&0x38 != 0 {
				vex = []byte{0x8F, at(i + 1), at(i + 2)}
				i += 3
			}
		case 13:
			vex = []byte{0xC5, at(i + 1), at(i+1) & 0x7F}
			i += 2
		case 14:
			vex = []byte{0xC4, at(i + 1), at(i + 2)}
			i += 3
		case 15:
			vex = []byte{0x62, at(i + 1), at(i + 2), at(i + 3)}
			i += 4
		}
		if vex != nil && vex[len(vex)-1]&0x80 != 0 {
			operand = 8
		}
	}
	op := at(i)
	i++
	var a uint32
	pick := func(t *[4][]uint32, i byte, variant, never uint32) uint32 {
		if t[0] == nil {
			return never
		}
		a := t[0][i]
		if x.has(a, inatVariant) && variant != 0 {
			if t[variant] == nil {
				return never
			}
			a = t[variant][i]
		}
		return a
	}
	switch {
	case vex != nil && vex[0] == 0x8F:
		if m := vex[1] & 31; m >= 8 && x.xops[m-8][0] != nil {
			a = x.xops[m-8][0][op]
		}
		variant = uint32(vex[2] & 3)
		if !x.has(a, inatVEX) && x.group(a) == 0 {
			return 0
		}
	case vex != nil:
		m := uint32(vex[1] & 31)
		switch vex[0] {
		case 0xC5:
			m = 1
		case 0x62:
			m &= 7
			if x.vexs[5][0] == nil {
				m &= 3 // before it got a third bit
			}
		}
		variant = uint32(vex[2] & 3)
		if t := &x.vexs[m]; t[0] != nil {
			a = t[0][op]
			if x.group(a) == 0 && variant != 0 {
				a = 0
				if t[variant] != nil {
					a = t[variant][op]
				}
			}
		}
		wide := vex[0] != 0xC5 && vex[2]&0x80 != 0
		if x.has(a, inatScalable) && !wide && variant == 1 {
			operand = 2
		}
		if x.has(a, inatEVEXOnly) && vex[0] != 0x62 || !x.has(a, inatVEX) && x.group(a) == 0 {
			return 0
		}
	case rex2 && b[i-2]&0x80 != 0:
		a = pick(&x.escapes[x.escape(x.primary[0x0F])], op, variant, 0)
	case rex2:
		a = x.primary[op]
	case x.has(x.primary[op], inatInvalid64):
	default:
		for a = x.primary[op]; x.escape(a) != 0; i++ {
			a = pick(&x.escapes[x.escape(a)], at(i), variant, 0)
		}
		if x.has(a, inatVEXOnly|inatEVEXOnly) {
			return 0
		}
	}
	if x.has(a, inatModRM) {
		modrm := at(i)
		i++
		if g := x.group(a); g != 0 {
			a = a&^(31<<(x.prefixBits+2)) | pick(&x.groups[g], modrm>>3&7, variant, 0)
			if vex != nil && !x.has(a, inatVEX) {
				return 0
			}
		}
		mod, rm, base := modrm>>6, modrm&7, byte(0)
		if mod != 3 && rm == 4 {
			base = at(i) & 7
			i++
		}
		switch {
		case mod == 1:
			i++
		case mod == 2, mod == 0 && (rm == 5 || base == 5):
			i += 4
		}
	}
	if x.has(a, inatForce64) {
		operand = 8
	}
	switch imm := x.imm(a); {
	case x.has(a, inatMoffset):
		i += address
	case imm == 5 && operand == 8:
		return 0
	case imm == 5:
		i += operand + 2
	case imm == 6:
		i += min(operand, 4)
	case imm == 7:
		i += operand
	default:
		i += []int{0, 1, 2, 4, 8}[imm]
	}
	if x.has(a, inatImm2) {
		i++
	}
	if i > 15 {
		return 0
	}
	return i
}

// TestKernelDecoderAgreesWithImage compares the decoders with the tables in real
// kernels' images: every opcode of every map after many prefixes, and bytes at
// random.
func TestKernelDecoderAgreesWithImage(t *testing.T) {
	skip.Long(t, "whole kernels")
	for _, image := range []struct {
		version classify.Version
		file    string
	}{
		{linux5_10, "amd64-5.10.218.vmlinux.xz"},
		{linux6_1, "amd64-6.1.176.vmlinux.xz"},
		{linux6_12, "amd64.vmlinux.xz"},
		{linux7_3, "amd64-7.3.4.vmlinux.xz"},
	} {
		t.Run(image.version.String(), func(t *testing.T) {
			checkDecoder(t, newKernelDecoder(image.version), readImage(t, refdata.Full(t, "kernels", image.file)))
		})
	}
}

func checkDecoder(t *testing.T, d *kernelDecoder, x *inat) {
	r := rand.New(rand.NewPCG(6, 12))
	count, bad := 0, 0
	try := func(head []byte) {
		var b [kernelWindow]byte
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		copy(b[:], head)
		var k kernelInsn
		got := 0
		if d.decode(&k, &b) {
			got = int(k.len)
		}
		count++
		if want := x.length(b[:]); got != want && bad < 20 {
			bad++
			t.Errorf("% x: got length %d, want %d", b, got, want)
		}
	}
	for _, prefix := range []string{"", "66", "f3", "f2", "48", "6648", "66f3", "f266", "67", "d500", "d508", "d580", "66d580", "f3d580"} {
		for _, escape := range []string{"", "0f", "0f38", "0f3a"} {
			sweepOpcodes(try, unhex(t, prefix+escape))
		}
	}
	for _, prefix := range []string{"c5", "62"} {
		for p := range 256 {
			sweepOpcodes(try, append(unhex(t, prefix), byte(p)))
		}
	}
	for m := range 12 {
		for p := range 8 {
			sweepOpcodes(try, []byte{0xC4, 0xE0 | byte(m), byte(p)<<7 | byte(p)&3})
			if m >= 7 && m <= 11 {
				sweepOpcodes(try, []byte{0x8F, 0xE0 | byte(m), byte(p)<<7 | byte(p)&3})
				sweepOpcodes(try, []byte{0x48, 0xC4, 0xE0 | byte(m), byte(p)<<7 | byte(p)&3})
			}
			sweepOpcodes(try, []byte{0x62, 0xF0 | byte(m), byte(p)<<7 | byte(p)&3, byte(p) << 5})
		}
	}
	for range 500_000 {
		try(nil)
	}
	t.Logf("%d byte strings", count)
}

// sweepOpcodes tries every opcode with every ModRM.reg after head.
func sweepOpcodes(try func([]byte), head []byte) {
	n := len(head)
	head = append(head, 0, 0)
	for op := range 256 {
		for modrm := 0; modrm < 256; modrm += 8 {
			head[n], head[n+1] = byte(op), byte(modrm|op&7)
			try(head)
		}
	}
}

// FuzzKernelDecoder checks that no bytes upset the model and that what stands
// after an instruction does not matter.
func FuzzKernelDecoder(f *testing.F) {
	rows, err := refdata.UprobeVerdicts("testdata/uprobe-verdicts.tsv.gz")
	if err != nil {
		f.Fatal(err)
	}
	for i := 0; i < len(rows); i += 97 {
		f.Add([]byte(rows[i].Bytes))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		var a, b kernelInsn
		var buf, other [kernelWindow]byte
		window(code, 0, &buf)
		other = *window(code, 0, &buf)
		if !decoder612.decode(&a, &other) {
			return
		}
		if a.len == 0 || a.len > maxInsnLen || int(a.nprefix+a.nrex+a.nvex+a.nop) > int(a.len) {
			t.Fatalf("% x: impossible %+v", other, a)
		}
		for i := int(a.len); i < kernelWindow; i++ {
			other[i] ^= 0xA5
		}
		if !decoder612.decode(&b, &other) || a != b {
			t.Fatalf("% x: %+v, with other bytes after it %+v", other, a, b)
		}
	})
}
