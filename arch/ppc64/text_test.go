package ppc64

import (
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
)

// objdumpDiffers are the words that GNU objdump and this package see
// differently, with the reason. objdump's text is ".long" where it knows no
// instruction; ours is ".long" likewise.
var objdumpDiffers = []struct {
	reason string
	holds  func(word uint64, objdump, own string) bool
}{
	{"the manual has ignored and reserved values of BO, the CPU branches", func(word uint64, objdump, own string) bool {
		return objdump == ".long" && strings.HasPrefix(own, "b")
	}},
	{"the target of an absolute branch is sign-extended to 64 bits", func(word uint64, objdump, own string) bool {
		at := strings.Index(own, "0xffffffff")
		return at > 0 && own[:at]+"0x"+own[at+len("0xffffffff"):] == objdump
	}},
	{"instructions of the manual, or of its version 2.07, that objdump does not count to POWER10", func(word uint64, objdump, own string) bool {
		name, _, _ := strings.Cut(own, " ")
		switch name {
		case "lfdp", "stfdp", "lfdpx", "stfdpx", "dcffix", "dcffix.", "mftb", "mftbu", "doze", "nap", "sleep", "rvwinkle":
			return objdump == ".long"
		}
		return false
	}},
	{"an odd register for a pair is an invalid form; objdump rounds it down", func(word uint64, objdump, own string) bool {
		name, _, _ := strings.Cut(objdump, " ")
		decimalPair := word>>26 == 63 && name[0] == 'd' && strings.HasSuffix(strings.TrimSuffix(name, "."), "q") ||
			word>>26 == 63 && strings.HasPrefix(name, "dctqpq") || name == "dtstsfiq"
		return own == ".long" && (decimalPair || name == "plq" || name == "pstq")
	}},
	{"any suffix may stand after the prefix of pnop", func(word uint64, objdump, own string) bool {
		return objdump == ".long" && own == "pnop"
	}},
}

// TestTextObjdump compares with text of GNU objdump: some words of every
// mnemonic, SPR, prefix and branch condition, random real instructions, and
// words that are no instruction.
func TestTextObjdump(t *testing.T) {
	rows, err := refdata.Rows(filepath.Join("testdata", "objdump.tsv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	seen := make([]int, len(objdumpDiffers))
	agree := 0
	for _, row := range rows {
		word, err1 := strconv.ParseUint(row[0], 16, 64)
		addr, err2 := strconv.ParseUint(row[1], 16, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("bad row %q", row)
		}
		own := ".long"
		var isa ISA
		var i decode.Inst
		if isa.Decode(&i, isa.bytesOf(word), addr) == nil {
			own = isa.Text(&i, nil)
		}
		if own == row[2] {
			agree++
			continue
		}
		known := false
		for n, d := range objdumpDiffers {
			if d.holds(word, row[2], own) {
				seen[n]++
				known = true
				break
			}
		}
		if !known {
			t.Errorf("%s: %q, objdump %q", row[0], own, row[2])
		}
	}
	for n, d := range objdumpDiffers {
		t.Logf("%d: %s", seen[n], d.reason)
		if seen[n] == 0 {
			t.Errorf("no word shows that %s", d.reason)
		}
	}
	t.Logf("%d of %d agree", agree, len(rows))
}

func TestTextSymbols(t *testing.T) {
	lookup := func(addr uint64) (string, uint64) {
		switch {
		case addr >= 0x20000:
			return "table", 0x20000
		case addr >= 0x10000:
			return "start", 0x10000
		}
		return "", 0
	}
	tests := []struct {
		word uint64
		want string
	}{
		{0x48000101, "bl 0x10104 <start+0x104>"},
		{0x4bfffffc, "b 0x10000 <start>"},
		{0x4bfffff8, "b 0xfffc"},
		{0x41820008, "beq 0x1000c <start+0xc>"},
		{0x48000102, "ba 0x100"},
		{0x4d9e0020, "beqlr cr7"},
		{0x429f0005, "bcl 20,4*cr7+so,0x10008 <start+0x8>"},
		{0x04100000_e461fffc, ".long 0x4100000"},
		{0x04100000_e460fffc, "pld r3,65532 # 0x20000 <table>"},
		{0x06100001_38600010, "pla r3,65552 # 0x20014 <table+0x14>"},
		{0x7fe00008, "trap"},
		{0x7c632a14, "add r3,r3,r5"},
	}
	for _, test := range tests {
		for _, isa := range byteOrders {
			i := decode.Sweep(isa, nil, isa.bytesOf(test.word), 0x10004)[0]
			if got := isa.Text(&i, lookup); got != test.want {
				t.Errorf("%s %#x: %q, want %q", isa.Name(), test.word, got, test.want)
			}
		}
	}
}

func TestTextOfGaps(t *testing.T) {
	insts := decode.Sweep(ISA{LittleEndian: true}, nil, []byte{1, 2, 3, 0, 0xaa, 0xbb}, 0)
	want := []string{".long 0x30201", ".byte 0xaa,0xbb"}
	for n, i := range insts {
		if got := (ISA{LittleEndian: true}).Text(&i, nil); got != want[n] {
			t.Errorf("gap %d: %q, want %q", n, got, want[n])
		}
	}
}

// TestTextConcurrent is for the race detector.
func TestTextConcurrent(t *testing.T) {
	isa := ISA{LittleEndian: true}
	insts := decode.Sweep(isa, nil, realText(t, isa), 0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range insts {
				if isa.Text(&insts[n], nil) == "" {
					t.Errorf("%x: no text", insts[n].Bytes())
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkText(b *testing.B) {
	isa := ISA{LittleEndian: true}
	insts := decode.Sweep(isa, nil, archtest.KernelText(b, kernelList), 0)
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		for n := range insts {
			buf = isa.appendText(buf[:0], &insts[n], nil)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(insts)), "ns/inst")
}
