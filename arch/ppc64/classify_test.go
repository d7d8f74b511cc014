package ppc64

import (
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
	"xol/kernel"
)

const testAddr = 0xc000000000010000

// testFunc makes a function of words.
func testFunc(isa ISA, words ...uint64) *classify.Func {
	var code []byte
	for _, w := range words {
		code = append(code, isa.bytesOf(w)...)
	}
	return archtest.Func(isa, testAddr, code)
}

const kernelList = "testdata/kernel-verdicts.jsonl.gz"

var recorded = archtest.Kernel{ISA: ISA{LittleEndian: true}, SiteLen: archtest.OneWord}

func TestKprobeVerdicts(t *testing.T) { recorded.CheckProbes(t, kernelList) }

func TestKprobeVerdictsComplete(t *testing.T) {
	recorded.CheckProbes(t, refdata.Full(t, "kernel-verdicts", "ppc64el.jsonl.gz"))
}

// The expected answers are those of the rules as read in the kernel's sources;
// each row names one.
func TestKprobeRules(t *testing.T) {
	const nop, add = 0x60000000, 0x7c642a14
	for _, c := range []struct {
		name         string
		words        []uint64
		off          uint64
		rule, hazard string
		emulator     string
	}{
		{name: "add", words: []uint64{add}, emulator: "COMPUTE"},
		{name: "vaddubm", words: []uint64{0x10642800}},
		{name: "no instruction", words: []uint64{0}},
		{name: "misaligned", words: []uint64{add}, off: 2, rule: "ppc64/kprobe-misaligned"},
		{name: "after the function", words: []uint64{add}, off: 4, rule: "ppc64/kprobe-outside"},
		{name: "tw", words: []uint64{0x7fe00008}, rule: "ppc64/kprobe-trap"},
		{name: "td", words: []uint64{0x7c832088}, rule: "ppc64/kprobe-trap"},
		{name: "tdi", words: []uint64{0x08830000}, rule: "ppc64/kprobe-trap"},
		{name: "twi that never traps", words: []uint64{0x0c030000}, rule: "ppc64/kprobe-trap"},
		{name: "sc", words: []uint64{0x44000002}, rule: "ppc64/kprobe-syscall"},
		{name: "scv", words: []uint64{0x44000001}, rule: "ppc64/kprobe-syscall"},
		{name: "mtmsr", words: []uint64{0x7c600124}, rule: "ppc64/kprobe-mtmsr"},
		{name: "mfmsr", words: []uint64{0x7c6000a6}, emulator: "MFMSR"},
		{name: "rfid", words: []uint64{0x4c000024}, rule: "ppc64/kprobe-return-from-interrupt"},
		{name: "hrfid", words: []uint64{0x4c000224}, rule: "ppc64/kprobe-return-from-interrupt"},
		{name: "rfscv", words: []uint64{0x4c0000a4}, rule: "ppc64/kprobe-return-from-interrupt"},
		{name: "urfid", words: []uint64{0x4c000264}, rule: "ppc64/kprobe-return-from-interrupt"},
		{name: "rfmci", words: []uint64{0x4c00004c}, rule: "ppc64/kprobe-return-from-interrupt"},
		{name: "stop", words: []uint64{0x4c0002e4}, rule: "ppc64/kprobe-power-saving"},
		{name: "rvwinkle", words: []uint64{0x4c0003e4}, rule: "ppc64/kprobe-power-saving"},
		{name: "blr", words: []uint64{0x4e800020}, emulator: "BRANCH"},
		{name: "bctar", words: []uint64{0x4e800460}, hazard: "ppc64/lost-branch"},
		{name: "prefixed", words: []uint64{0x06100001_38600010}, emulator: "COMPUTE"},
		{name: "suffix", words: []uint64{0x06100001_38600010}, off: 4, rule: "ppc64/kprobe-suffix"},
		{name: "word after an invalid prefix", words: []uint64{0x06f00001, nop}, off: 4, rule: "ppc64/kprobe-suffix"},
		{name: "lwarx", words: []uint64{0x7c602028, add, 0x7c60212d}, hazard: "ppc64/reservation-lost", emulator: "LARX"},
		{name: "in the sequence", words: []uint64{0x7c602028, add, 0x7c60212d}, off: 4, hazard: "ppc64/reservation-lost", emulator: "COMPUTE"},
		{name: "stwcx.", words: []uint64{0x7c602028, add, 0x7c60212d}, off: 8, hazard: "ppc64/reservation-lost", emulator: "STCX"},
		{name: "after it", words: []uint64{0x7c602028, add, 0x7c60212d, add}, off: 12, emulator: "COMPUTE"},
		{name: "mtsrr0", words: []uint64{0x7c7a03a6, add, 0x4c000024}, hazard: "ppc64/save-restore-lost"},
		{name: "after mtsrr0", words: []uint64{0x7c7a03a6, add, 0x4c000024}, off: 4, hazard: "ppc64/save-restore-lost", emulator: "COMPUTE"},
	} {
		for _, isa := range byteOrders {
			p, _ := isa.Profile(classify.Linux612, kernel.Debian("ppc64", classify.Linux(6, 12)))
			f := testFunc(isa, c.words...)
			v := p.At(f, testAddr+c.off)
			rule, hazard := archtest.IDs(&v)
			if rule != c.rule || hazard != c.hazard || v.Emulator != c.emulator || v.OK() && v.Boost != (c.emulator != "") ||
				!v.OK() && v.Rule.Errno != classify.EINVAL {
				t.Errorf("%s, %s: got %q %q %+v", isa.Name(), c.name, rule, hazard, v)
			}
		}
	}
}

// A page never starts with a suffix, and the kernel does not look there.
func TestKprobeSuffixAtPage(t *testing.T) {
	isa := ISA{}
	f := testFunc(isa, 0x06f00001, 0x60000000)
	f.Addr -= 4
	f.Insts = decode.Sweep(isa, nil, f.Code, f.Addr)
	if v := (kprobeProfile(isa)).At(f, testAddr); !v.OK() {
		t.Errorf("got %+v", v)
	}
}

func TestISARules(t *testing.T) {
	const (
		nop, add    = 0x60000000, 0x7c642a14
		lwarx       = 0x7c602028
		stwcx       = 0x7c60212d
		bne         = 0x4082fffc
		bl          = 0x48000101
		mtsrr0      = 0x7c7a03a6
		mfsrr1      = 0x7c7b02a6
		rfid        = 0x4c000024
		reservation = "ppc64/reservation"
		srr         = "ppc64/save-restore"
	)
	for _, c := range []struct {
		name  string
		words []uint64
		off   uint64
		rule  string
		exec  classify.Exec
	}{
		{"add", []uint64{add}, 0, "", classify.ExecSlot},
		{"bl", []uint64{bl}, 0, "", classify.ExecSlot},
		{"blr", []uint64{0x4e800020}, 0, "", classify.ExecSlot},
		{"sc", []uint64{0x44000002}, 0, "", classify.ExecSlot},
		{"trap", []uint64{0x7fe00008}, 0, "", classify.ExecEmulate},
		{"prefixed", []uint64{0x06100001_38600010}, 0, "", classify.ExecSlot},
		{"suffix", []uint64{0x06100001_38600010}, 4, "ppc64/suffix", 0},
		{"misaligned", []uint64{add}, 2, "ppc64/misaligned", 0},
		{"misaligned in a suffix", []uint64{0x06100001_38600010}, 6, "ppc64/misaligned", 0},
		{"outside", []uint64{add}, 4, "ppc64/outside", 0},
		{"no instruction", []uint64{0}, 0, "ppc64/not-instruction", 0},
		{"lwarx", []uint64{lwarx, add, stwcx, bne}, 0, "", classify.ExecSlot},
		{"in the sequence", []uint64{lwarx, add, stwcx, bne}, 4, reservation, 0},
		{"stwcx.", []uint64{lwarx, add, stwcx, bne}, 8, reservation, 0},
		{"after the sequence", []uint64{lwarx, add, stwcx, bne}, 12, "", classify.ExecSlot},
		{"after an exit of it", []uint64{lwarx, bne, add, stwcx}, 8, reservation, 0},
		{"lwarx without stwcx.", []uint64{lwarx, add, add}, 4, "", classify.ExecSlot},
		{"stwcx. without lwarx", []uint64{add, stwcx}, 4, "", classify.ExecSlot},
		{"return between them", []uint64{lwarx, 0x4e800020, add, stwcx}, 8, "", classify.ExecSlot},
		{"call between them", []uint64{lwarx, bl, stwcx}, 8, "", classify.ExecSlot},
		{"second lwarx", []uint64{lwarx, lwarx, stwcx}, 4, "", classify.ExecSlot},
		{"between two lwarx", []uint64{lwarx, add, lwarx, stwcx}, 4, "", classify.ExecSlot},
		{"mtsrr0", []uint64{mtsrr0, add, rfid}, 0, srr, 0},
		{"after mtsrr0", []uint64{mtsrr0, add, rfid}, 4, srr, 0},
		{"rfid", []uint64{rfid}, 0, srr, 0},
		{"mfsrr1", []uint64{mfsrr1, add}, 0, srr, 0},
		{"after mfsrr1", []uint64{mfsrr1, add, rfid}, 4, "", classify.ExecSlot},
		{"hrfid", []uint64{0x4c000224}, 0, "", classify.ExecSlot},
	} {
		for _, isa := range byteOrders {
			p, _ := isa.Profile(classify.ISA, classify.KernelOptions{})
			f := testFunc(isa, c.words...)
			v := p.At(f, testAddr+c.off)
			if rule, _ := archtest.IDs(&v); rule != c.rule || v.Exec != c.exec || v.Boost != (c.exec == classify.ExecSlot) {
				t.Errorf("%s, %s: got %q %+v", isa.Name(), c.name, rule, v)
			}
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
		{"nop", []byte{0x60, 0, 0, 0}, 0x1000, ""},
		{"nothing", nil, 0x1000, "ppc64/truncated"},
		{"three bytes", []byte{0x60, 0, 0}, 0x1000, "ppc64/truncated"},
		{"prefix alone", []byte{6, 0, 0, 0}, 0x1000, "ppc64/truncated"},
		{"zero", []byte{0, 0, 0, 0}, 0x1000, "ppc64/not-instruction"},
		{"misaligned", []byte{0x60, 0, 0, 0}, 0x1001, "ppc64/misaligned"},
		{"prefixed", []byte{6, 0, 0, 0, 0x38, 0x60, 0, 0}, 0x1038, ""},
		{"prefixed at 60", []byte{6, 0, 0, 0, 0x38, 0x60, 0, 0}, 0x103c, "ppc64/prefixed-boundary"},
		{"word at 60", []byte{0x60, 0, 0, 0}, 0x103c, ""},
	} {
		v := isaProfile(ISA{}).Lone(c.code, c.addr)
		if rule, _ := archtest.IDs(&v); rule != c.rule {
			t.Errorf("%s: got %q, want %q", c.name, rule, c.rule)
		}
	}
}

func TestISAOwnedText(t *testing.T) { archtest.CheckOwnedText(t, ISA{}, []byte{0x60, 0, 0, 0}) }

func TestProfileNames(t *testing.T) { archtest.CheckNames(t, ISA{}) }

func TestProfileAllocs(t *testing.T) {
	isa := ISA{LittleEndian: true}
	archtest.CheckProfileAllocs(t, isa, testAddr, realText(t, isa))
}

// FuzzProfiles looks for panics, and for differences between Func and At.
func FuzzProfiles(f *testing.F) {
	for _, isa := range byteOrders {
		text := realText(f, isa)
		for i := 0; i+64 < len(text) && i < 8000; i += 256 {
			f.Add(text[i:i+64], uint64(testAddr), uint64(i%70), isa.LittleEndian)
		}
	}
	f.Add((ISA{}).bytesOf(0x06100001_38600010)[:4], ^uint64(0)-3, uint64(4), false)
	f.Fuzz(func(t *testing.T, code []byte, addr, off uint64, little bool) {
		archtest.CheckProfiles(t, ISA{LittleEndian: little}, code, addr, off)
	})
}

func BenchmarkProfiles(b *testing.B) {
	isa := ISA{LittleEndian: true}
	archtest.BenchmarkProfiles(b, isa, archtest.Func(isa, testAddr, archtest.KernelText(b, kernelList)))
}

func TestPlacesAreAccepted(t *testing.T) {
	archtest.CheckPlaces(t, ISA{}, []byte{0x60, 0, 0, 0}, []byte{0x7f, 0xe0, 0, 0x08})
}
