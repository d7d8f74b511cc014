package amd64

import (
	"debug/elf"
	"os"
	"testing"
	"time"

	"golang.org/x/arch/x86/x86asm"

	"xol/decode"
	"xol/internal/refdata"
	"xol/internal/skip"
)

// benchText returns instructions of real programs, in random order.
func benchText(t testing.TB) []byte {
	text, err := refdata.Read("testdata/decode-text.gz")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ownText returns text of this test's own program.
func ownText(b *testing.B) []byte {
	path, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		skip.Missing(b, "a program of the ISA", err)
	}
	defer f.Close()
	section := f.Section(".text")
	if f.Machine != elf.EM_X86_64 || section == nil {
		skip.Missing(b, "a program of the ISA", "amd64")
	}
	text, err := section.Data()
	if err != nil {
		b.Fatal(err)
	}
	return text[:min(len(text), 1<<20)]
}

func decodeAll(text []byte) (n int) {
	var inst decode.Inst
	for off := 0; off < len(text); n++ {
		if (ISA{}).Decode(&inst, text[off:], uint64(off)) != nil {
			off++
		} else {
			off += int(inst.Len)
		}
	}
	return n
}

func x86asmAll(text []byte) (n int) {
	for off := 0; off < len(text); n++ {
		inst, err := x86asm.Decode(text[off:], 64)
		if err != nil || inst.Len == 0 {
			off++
		} else {
			off += inst.Len
		}
	}
	return n
}

// BenchmarkDecode takes turns with x86asm on the same text, one of it on eight
// of ours.
func BenchmarkDecode(b *testing.B) {
	for _, text := range []struct {
		name string
		text func(*testing.B) []byte
	}{
		{"sample", func(b *testing.B) []byte { return benchText(b) }},
		{"program", ownText},
	} {
		b.Run(text.name, func(b *testing.B) {
			text := text.text(b)
			var n, nx86asm int
			var x86asmTime time.Duration
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				n += decodeAll(text)
				if i%8 > 0 {
					continue
				}
				b.StopTimer()
				start := time.Now()
				nx86asm += x86asmAll(text)
				x86asmTime += time.Since(start)
				b.StartTimer()
			}
			ours := float64(b.Elapsed().Nanoseconds()) / float64(n)
			theirs := float64(x86asmTime.Nanoseconds()) / float64(nx86asm)
			b.ReportMetric(ours, "ns/inst")
			b.ReportMetric(theirs, "x86asm-ns/inst")
			b.ReportMetric(theirs/ours, "times-x86asm")
		})
	}
}
