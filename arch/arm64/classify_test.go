package arm64

import (
	"encoding/binary"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/kernel"
	"xol/place"
)

const testAddr = 0xffff800008010000

// testFunc makes a function of words.
func testFunc(words ...uint32) *classify.Func {
	var code []byte
	for _, w := range words {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	return archtest.Func(ISA{}, testAddr, code)
}

const kernelList = "testdata/kernel-verdicts.jsonl.gz"

var recorded = archtest.Kernel{ISA: ISA{}, SiteLen: archtest.OneWord, Hits: true}

func TestKprobeVerdicts(t *testing.T) { recorded.CheckProbes(t, kernelList) }

func TestKprobeVerdictsComplete(t *testing.T) {
	recorded.CheckProbes(t, refdata.Full(t, "kernel-verdicts", "arm64.jsonl.gz"))
}

// repeat returns n times w.
func repeat(w uint32, n int) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = w
	}
	return words
}

// Words of the instructions in the tables of cases.
const (
	nop    = 0xd503201f
	addW   = 0x8b020020 // add x0, x1, x2
	ldxr   = 0xc85f7c20 // ldxr x0, [x1]
	stxr   = 0xc8027c20 // stxr w2, x0, [x1]
	ldar   = 0xc8dffc20 // ldar x0, [x1]
	stlr   = 0xc89ffc20 // stlr x0, [x1]
	cbnz   = 0x35ffffc2 // cbnz w2, .-8
	clrex  = 0xd5033f5f
	retW   = 0xd65f03c0
	blW    = 0x94000010
	noWord = 0xffffffff
)

// The expected answers are those of the rules as read in the kernel's sources;
// each row names one.
func TestKprobeRules(t *testing.T) {
	const atomic = "arm64/kprobe-atomic-sequence"
	for _, c := range []struct {
		name         string
		words        []uint32
		off          uint64
		rule, hazard string
		emulator     string
	}{
		{name: "add", words: []uint32{addW}},
		{name: "no instruction", words: []uint32{noWord}},
		{name: "misaligned", words: []uint32{addW}, off: 2, rule: "arm64/kprobe-misaligned"},
		{name: "after the function", words: []uint32{addW}, off: 4, rule: "arm64/kprobe-outside"},
		{name: "msr daifset", words: []uint32{0xd50342df}, rule: "arm64/kprobe-msr"},
		{name: "msr", words: []uint32{0xd5181000}, rule: "arm64/kprobe-msr"},
		{name: "mrs", words: []uint32{0xd5381000}},
		{name: "mrs daif", words: []uint32{0xd53b4220}, rule: "arm64/kprobe-mrs-daif"},
		{name: "mrs nzcv", words: []uint32{0xd53b4200}},
		{name: "svc", words: []uint32{0xd4000001}, rule: "arm64/kprobe-exception"},
		{name: "hvc", words: []uint32{0xd4000002}, rule: "arm64/kprobe-exception"},
		{name: "brk", words: []uint32{0xd4210000}, rule: "arm64/kprobe-exception"},
		{name: "hlt", words: []uint32{0xd4400000}, rule: "arm64/kprobe-exception"},
		{name: "udf", words: []uint32{0}},
		{name: "eret", words: []uint32{0xd69f03e0}, rule: "arm64/kprobe-exception-return"},
		{name: "eretab", words: []uint32{0xd69f0fff}, rule: "arm64/kprobe-exception-return"},
		{name: "retaa", words: []uint32{0xd65f0bff}, rule: "arm64/kprobe-authenticating-branch"},
		{name: "braa", words: []uint32{0xd71f0821}, rule: "arm64/kprobe-authenticating-branch"},
		{name: "blrabz", words: []uint32{0xd63f0c3f}, rule: "arm64/kprobe-authenticating-branch"},
		{name: "nop", words: []uint32{nop}},
		{name: "bti c", words: []uint32{0xd503245f}},
		{name: "paciasp", words: []uint32{0xd503233f}},
		{name: "autiasp", words: []uint32{0xd50323bf}, rule: "arm64/kprobe-hint"},
		{name: "wfi", words: []uint32{0xd503207f}, rule: "arm64/kprobe-hint"},
		{name: "csdb", words: []uint32{0xd503229f}, rule: "arm64/kprobe-hint"},
		{name: "dmb", words: []uint32{0xd5033bbf}},
		{name: "ldxr", words: []uint32{ldxr}, rule: "arm64/kprobe-exclusive"},
		{name: "stlxrb", words: []uint32{0x0802fc20}, rule: "arm64/kprobe-exclusive"},
		{name: "casp", words: []uint32{0x48207c82}, rule: "arm64/kprobe-exclusive"},
		{name: "cas", words: []uint32{0xc8a07c41}},
		{name: "ldar", words: []uint32{ldar}},
		{name: "cpyfp", words: []uint32{0x19010440}, rule: "arm64/kprobe-memory-copy"},
		{name: "prfm literal", words: []uint32{0xd8000000}, rule: "arm64/kprobe-prefetch-literal"},
		{name: "prfm", words: []uint32{0xf9800000}},
		{name: "ldr w literal", words: []uint32{0x18000040}, emulator: "ldr_literal"},
		{name: "ldr x literal", words: []uint32{0x58000040}, emulator: "ldr_literal"},
		{name: "ldrsw literal", words: []uint32{0x98000040}, emulator: "ldrsw_literal"},
		{name: "ldr d literal", words: []uint32{0x5c000040}, hazard: "arm64/simd-literal"},
		{name: "ldr q literal", words: []uint32{0x9c000040}, hazard: "arm64/simd-literal"},
		{name: "retaasppc", words: []uint32{0x5500001f}, hazard: "arm64/pc-modifier"},
		{name: "retaasppcr", words: []uint32{0xd65f0be3}, hazard: "arm64/leaves-slot"},
		{name: "cbgt", words: []uint32{0x74010040}, hazard: "arm64/leaves-slot"},
		{name: "ldtxr", words: []uint32{0xc95f7c20}, hazard: "arm64/exclusive-lost"},
		{name: "setgop", words: []uint32{0x1ddf0020}, hazard: "arm64/memory-copy-split"},
		{name: "adr", words: []uint32{0x10000000}, emulator: "adr_adrp"},
		{name: "adrp", words: []uint32{0x90000000}, emulator: "adr_adrp"},
		{name: "b", words: []uint32{0x14000001}, emulator: "b_bl"},
		{name: "bl", words: []uint32{blW}, emulator: "b_bl"},
		{name: "b.eq", words: []uint32{0x54000040}, emulator: "b_cond"},
		{name: "bc.eq", words: []uint32{0x54000050}, emulator: "b_cond"},
		{name: "cbz", words: []uint32{0xb4000040}, emulator: "cbz_cbnz"},
		{name: "tbnz", words: []uint32{0xb7000040}, emulator: "tbz_tbnz"},
		{name: "br", words: []uint32{0xd61f0200}, emulator: "br_blr_ret"},
		{name: "blr", words: []uint32{0xd63f0200}, emulator: "br_blr_ret"},
		{name: "ret", words: []uint32{retW}, emulator: "br_blr_ret"},
		{name: "in a sequence", words: []uint32{ldxr, addW, stxr, cbnz}, off: 4, rule: atomic},
		{name: "stxr", words: []uint32{ldxr, addW, stxr, cbnz}, off: 8, rule: "arm64/kprobe-exclusive"},
		{name: "after a sequence", words: []uint32{ldxr, addW, stxr, cbnz}, off: 12, emulator: "cbz_cbnz"},
		{name: "after ldar", words: []uint32{ldar, addW}, off: 4, rule: atomic},
		{name: "after a call", words: []uint32{ldar, blW, addW}, off: 8, rule: atomic},
		{name: "after cas", words: []uint32{0xc8a07c41, addW}, off: 4},
		{name: "after casa", words: []uint32{0xc8e07c41, addW}, off: 4, rule: atomic},
		{name: "after stlr in a sequence", words: []uint32{ldxr, stlr, addW, stxr}, off: 8, hazard: "arm64/exclusive-lost"},
		{name: "32 after ldar", words: append([]uint32{ldar}, repeat(addW, 32)...), off: 4 * 32, rule: atomic},
		{name: "33 after ldar", words: append([]uint32{ldar}, repeat(addW, 33)...), off: 4 * 33},
	} {
		p, _ := ISA{}.Profile(classify.Linux612, kernel.Debian("arm64", classify.Linux(6, 12)))
		f := testFunc(c.words...)
		v := p.At(f, testAddr+c.off)
		rule, hazard := archtest.IDs(&v)
		if rule != c.rule || hazard != c.hazard || v.Emulator != c.emulator || v.Boost ||
			v.OK() && (v.Exec == classify.ExecEmulate) != (c.emulator != "") || !v.OK() && v.Rule.Errno != classify.EINVAL {
			t.Errorf("%s: got %q %q %+v", c.name, rule, hazard, v)
		}
		if i, start := decode.Find(f.Insts, testAddr+c.off); start && p.Func(nil, f)[i] != v {
			t.Errorf("%s: Func differs from At", c.name)
		}
	}
}

// The kernel looks up the address of the probe, no other byte of the
// instruction, and it does so before it reads the instruction.
func TestKprobeExceptionTable(t *testing.T) {
	p, _ := ISA{}.Profile(classify.Linux612, kernel.Debian("arm64", classify.Linux(6, 12)))
	f := testFunc(addW, addW, ldxr)
	for _, c := range []struct {
		mark, probe uint64
		rule        string
	}{
		{4, 4, "arm64/kprobe-exception-table"},
		{4, 0, ""},
		{4, 6, "arm64/kprobe-misaligned"},
		{5, 4, ""},
		{8, 8, "arm64/kprobe-exception-table"},
	} {
		f.Marks = place.Marks{{Addr: testAddr + c.mark, Len: 1, Kind: place.ExTable}}
		v := p.At(f, testAddr+c.probe)
		if rule, _ := archtest.IDs(&v); rule != c.rule {
			t.Errorf("entry at %d, probe at %d: got %q, want %q", c.mark, c.probe, rule, c.rule)
		}
	}
}

// arm64 kernels cannot put kprobes on ftrace sites, whatever the options say.
func TestKprobeFtrace(t *testing.T) {
	p, _ := ISA{}.Profile(classify.Linux612, classify.KernelOptions{FtraceProbes: true})
	f := testFunc(nop, nop)
	f.Marks = place.Marks{{Addr: testAddr, Len: 4, Kind: place.Ftrace}}
	v := p.At(f, testAddr)
	if rule, _ := archtest.IDs(&v); rule != "linux/ftrace-site" || v.Rule.Errno != classify.EINVAL {
		t.Errorf("got %+v", v)
	}
}

func TestISARules(t *testing.T) {
	const exclusive = "arm64/exclusive"
	for _, c := range []struct {
		name  string
		words []uint32
		off   uint64
		rule  string
		exec  classify.Exec
	}{
		{"add", []uint32{addW}, 0, "", classify.ExecSlot},
		{"bl", []uint32{blW}, 0, "", classify.ExecSlot},
		{"ret", []uint32{retW}, 0, "", classify.ExecSlot},
		{"retaa", []uint32{0xd65f0bff}, 0, "", classify.ExecSlot},
		{"ldr q literal", []uint32{0x9c000040}, 0, "", classify.ExecSlot},
		{"svc", []uint32{0xd4000001}, 0, "", classify.ExecSlot},
		{"udf", []uint32{0}, 0, "", classify.ExecEmulate},
		{"hlt", []uint32{0xd4400000}, 0, "", classify.ExecEmulate},
		{"brk", []uint32{0xd4200080}, 0, "arm64/brk", 0},
		{"cpyp", []uint32{0x1d010440}, 0, "arm64/memory-copy", 0},
		{"setgm", []uint32{0x1dc14440}, 0, "arm64/memory-copy", 0},
		{"paciasppc", []uint32{0xdac1a3fe}, 0, "arm64/pc-modifier", 0},
		{"misaligned", []uint32{addW}, 2, "arm64/misaligned", 0},
		{"outside", []uint32{addW}, 4, "arm64/outside", 0},
		{"no instruction", []uint32{noWord}, 0, "arm64/not-instruction", 0},
		{"ldxr", []uint32{ldxr, addW, stxr, cbnz}, 0, "", classify.ExecSlot},
		{"in the sequence", []uint32{ldxr, addW, stxr, cbnz}, 4, exclusive, 0},
		{"stxr", []uint32{ldxr, addW, stxr, cbnz}, 8, exclusive, 0},
		{"after the sequence", []uint32{ldxr, addW, stxr, cbnz}, 12, "", classify.ExecSlot},
		{"after an exit of it", []uint32{ldxr, cbnz, addW, stxr}, 8, exclusive, 0},
		{"ldaxp and stlxp", []uint32{0xc87f8440, addW, 0xc8268440}, 4, exclusive, 0},
		{"ldxr without stxr", []uint32{ldxr, addW, addW}, 4, "", classify.ExecSlot},
		{"stxr without ldxr", []uint32{addW, stxr}, 4, exclusive, 0},
		{"before stxr without ldxr", []uint32{addW, stxr}, 0, "", classify.ExecSlot},
		{"before clrex", []uint32{ldxr, addW, clrex}, 4, exclusive, 0},
		{"clrex between them", []uint32{ldxr, clrex, addW, stxr}, 8, "", classify.ExecSlot},
		{"pacm", []uint32{0xd50324ff, 0xd503233f}, 0, "arm64/pc-modifier", 0},
		{"paciasp after pacm", []uint32{0xd50324ff, 0xd503233f}, 4, "arm64/pc-modifier", 0},
		{"after them", []uint32{0xd50324ff, 0xd503233f, nop}, 8, "", classify.ExecSlot},
		{"landing pad", []uint32{0xd503245f}, 0, "", classify.ExecSlot},
		{"cbgt", []uint32{0x74010040}, 0, "", classify.ExecSlot},
		{"return between them", []uint32{ldxr, retW, addW, stxr}, 8, "", classify.ExecSlot},
		{"call between them", []uint32{ldxr, blW, addW, stxr}, 8, "", classify.ExecSlot},
		{"second ldxr", []uint32{ldxr, ldxr, stxr}, 4, "", classify.ExecSlot},
		{"ldar and stlr", []uint32{ldar, addW, stlr}, 4, "", classify.ExecSlot},
		{"between stlr and stxr", []uint32{ldxr, stlr, addW, stxr}, 8, exclusive, 0},
	} {
		p, _ := ISA{}.Profile(classify.ISA, classify.KernelOptions{})
		f := testFunc(c.words...)
		v := p.At(f, testAddr+c.off)
		if rule, _ := archtest.IDs(&v); rule != c.rule || v.Exec != c.exec || v.Boost != (c.exec == classify.ExecSlot) {
			t.Errorf("%s: got %q %+v", c.name, rule, v)
		}
		if i, start := decode.Find(f.Insts, testAddr+c.off); start && p.Func(nil, f)[i] != v {
			t.Errorf("%s: Func differs from At", c.name)
		}
	}
}

func TestISALone(t *testing.T) {
	for _, c := range []struct {
		name string
		code []byte
		addr uint64
		rule string
	}{
		{"nop", []byte{0x1f, 0x20, 0x03, 0xd5}, 0x1000, ""},
		{"nothing", nil, 0x1000, "arm64/truncated"},
		{"three bytes", []byte{0x1f, 0x20, 0x03}, 0x1000, "arm64/truncated"},
		{"no instruction", []byte{0xff, 0xff, 0xff, 0xff}, 0x1000, "arm64/not-instruction"},
		{"misaligned", []byte{0x1f, 0x20, 0x03, 0xd5}, 0x1001, "arm64/misaligned"},
	} {
		v := isaProfile().Lone(c.code, c.addr)
		if rule, _ := archtest.IDs(&v); rule != c.rule {
			t.Errorf("%s: got %q, want %q", c.name, rule, c.rule)
		}
	}
}

func TestISAOwnedText(t *testing.T) { archtest.CheckOwnedText(t, ISA{}, bytesOf(nop)) }

func TestProfileNames(t *testing.T) { archtest.CheckNames(t, ISA{}) }

func TestProfileAllocs(t *testing.T) {
	archtest.CheckProfileAllocs(t, ISA{}, testAddr, archtest.KernelText(t, kernelList))
}

// FuzzProfiles looks for panics, and for differences between Func and At.
func FuzzProfiles(f *testing.F) {
	text := archtest.KernelText(f, kernelList)
	for i := 0; i+64 < len(text) && i < 8000; i += 256 {
		f.Add(text[i:i+64], uint64(testAddr), uint64(i%70))
	}
	f.Add(testFunc(ldxr, addW, stxr).Code, uint64(0), uint64(4))
	f.Add([]byte{0x1f, 0x20}, ^uint64(0)-3, uint64(1))
	f.Fuzz(func(t *testing.T, code []byte, addr, off uint64) {
		archtest.CheckProfiles(t, ISA{}, code, addr, off)
	})
}

func BenchmarkProfiles(b *testing.B) {
	archtest.BenchmarkProfiles(b, ISA{}, archtest.Func(ISA{}, testAddr, archtest.KernelText(b, kernelList)))
}

func TestPlacesAreAccepted(t *testing.T) {
	const brk = 0xd4200000
	archtest.CheckPlaces(t, ISA{}, bytesOf(nop), bytesOf(brk))
}
