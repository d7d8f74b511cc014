package arm64

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"xol/decode"
	"xol/internal/archtest"
	"xol/internal/refdata"
)

// Instructions of every line of GNU binutils' table of opcodes, random words
// and near misses, as GNU objdump 2.47 writes them. Left out are the words that
// objdump and this package read differently on purpose:
//
//   - Words that have other values in bits that should be 0 or 1 (ldar, ldarb,
//     ldarh, addg, subg), or registers that must differ (ldpsw, cpy*, set*), are
//     unpredictable and thus instructions; objdump decodes only some.
//   - msr and mrs with op0 = 0, stilp, ldiapp, stlr, ldapr and setgo* of sizes
//     that are not allocated, and fmul of a list of four at an odd place are no
//     instructions; objdump ignores those bits.
//   - msr of an immediate takes all 4 bits; objdump reads values above 1 as a
//     system register.
//   - bti without a target is not called "bti r".
func TestTextObjdump(t *testing.T) {
	rows, err := refdata.Rows("testdata/objdump.tsv.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		addr, err := strconv.ParseUint(row[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		word, err := strconv.ParseUint(row[1], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		var i decode.Inst
		got := "-"
		if (ISA{}).Decode(&i, bytesOf(uint32(word)), addr) == nil {
			got = ISA{}.Text(&i, nil)
		}
		if got != row[2] {
			t.Errorf("%s: got %s, want %s", row[1], got, row[2])
		}
	}
	t.Logf("%d words", len(rows))
}

func TestText(t *testing.T) {
	lookup := func(addr uint64) (string, uint64) {
		if 0x2000 <= addr && addr < 0x3000 {
			return "sym", 0x2000
		}
		return "", 0
	}
	for _, c := range []struct {
		name string
		word uint32
		addr uint64
		want string
	}{
		{"branch into a symbol", 0x14000404, 0x1000, "b 0x2010 <sym+0x10>"},
		{"call of a symbol", 0x94000400, 0x1000, "bl 0x2000 <sym>"},
		{"branch to no symbol", 0x54000040, 0x1000, "b.eq 0x1008"},
		{"page of a symbol", 0xb0000000, 0x1000, "adrp x0, 0x2000 <sym>"},
		{"address", 0x70008000, 0x1000, "adr x0, 0x2003 <sym+0x3>"},
		{"literal", 0x58008001, 0x1000, "ldr x1, 0x2000 <sym>"},
		{"SIMD literal", 0x9c008041, 0x1000, "ldr q1, 0x2008 <sym+0x8>"},
		{"prefetch", 0xd8008001, 0x1000, "prfm pldl1strm, 0x2000 <sym>"},
		{"test of a bit", 0xb7f88003, 0x1000, "tbnz x3, #63, 0x2000 <sym>"},
		{"comparison of registers", 0xf4010040, 0x1ff8, "cbgt x0, x1, 0x2000 <sym>"},
		{"constant that looks like an address", 0xd2840000, 0x1000, "mov x0, #0x2000"},
		{"landing pad", 0xd503241f, 0x1000, "bti"},
		{"all immediate bits of a state", 0xd5034f5f, 0x1000, "msr dit, #0xf"},
	} {
		var i decode.Inst
		if err := (ISA{}).Decode(&i, bytesOf(c.word), c.addr); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := (ISA{}).Text(&i, lookup); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTextInvalid(t *testing.T) {
	insts := decode.Sweep(ISA{}, nil, []byte{0xff, 0xff, 0xff, 0xff, 0x1f, 0x20}, 0x1000)
	var got []string
	for i := range insts {
		got = append(got, ISA{}.Text(&insts[i], nil))
	}
	if want := []string{".inst 0xffffffff", ".byte 0x1f, 0x20"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (ISA{}).Text(&decode.Inst{}, nil); got != ".byte" {
		t.Errorf("nothing: got %q", got)
	}
}

// checkText checks that the text of an instruction says what is decoded.
func checkText(t *testing.T, i *decode.Inst) {
	s := ISA{}.Text(i, func(addr uint64) (string, uint64) {
		if addr != i.Target {
			t.Fatalf("%x: asks for %#x, target %#x", i.Bytes(), addr, i.Target)
		}
		return "here", addr - 1
	})
	named := strings.HasSuffix(s, fmt.Sprintf("%#x <here+0x1>", i.Target))
	if s == "" || named != (i.PCRel.Kind != decode.PCRelNone) || strings.HasSuffix(s, " ") || strings.Contains(s, "  ") {
		t.Fatalf("%x: %q, target %#x", i.Bytes(), s, i.Target)
	}
}

// The text uses no state but its tables.
func TestTextConcurrent(t *testing.T) {
	text := realText(t)
	insts := decode.Sweep(ISA{}, nil, text, 0x10000)
	texts := make([][]string, 4)
	var wg sync.WaitGroup
	for g := range texts {
		wg.Go(func() {
			for i := range insts {
				texts[g] = append(texts[g], ISA{}.Text(&insts[i], nil))
			}
		})
	}
	wg.Wait()
	for g := range texts {
		if fmt.Sprint(texts[g]) != fmt.Sprint(texts[0]) {
			t.Errorf("goroutine %d has other texts", g)
		}
	}
}

func BenchmarkText(b *testing.B) {
	insts := decode.Sweep(ISA{}, nil, archtest.KernelText(b, kernelList), 0x10000)
	b.ReportAllocs()
	for b.Loop() {
		for i := range insts {
			_ = ISA{}.Text(&insts[i], nil)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(insts)), "ns/inst")
}
