package image

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestReadSymbolMap(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []MapSymbol
	}{
		{"System.map", "0000000000000000 D __per_cpu_start\nffffffff81000000 T _text\nffffffff81000110 t early_setup_idt\n", []MapSymbol{
			{Name: "__per_cpu_start", Type: 'D'},
			{Name: "_text", Addr: 0xffffffff81000000, Type: 'T'},
			{Name: "early_setup_idt", Addr: 0xffffffff81000110, Type: 't'},
		}},
		{"kallsyms with modules", "ffff800080010000 T _stext\nffff80007a5e1000 t ext4_init\t[ext4]\nffff80007a600000 t bpf_prog_6deef7357e7b4530\t[bpf]\n", []MapSymbol{
			{Name: "_stext", Addr: 0xffff800080010000, Type: 'T'},
		}},
		{"nm", "                 U printk\n                 w __gmon_start__\nc000000000000100 T start_here\n", []MapSymbol{
			{Name: "start_here", Addr: 0xc000000000000100, Type: 'T'},
		}},
		{"no end of line, blank lines, CR LF", "\r\nC000000000000100 T a.isra.0\r\n\r\nc000000000000200 W $b", []MapSymbol{
			{Name: "a.isra.0", Addr: 0xc000000000000100, Type: 'T'},
			{Name: "$b", Addr: 0xc000000000000200, Type: 'W'},
		}},
		{"32 bits", "00008000 T stext\n", []MapSymbol{{Name: "stext", Addr: 0x8000, Type: 'T'}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readSymbolMap(strings.NewReader(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestReadSymbolMapRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		line       int // 0: not a SymbolMapError
		message    string
	}{
		{"Debian's stand-in", "ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg package\n", 1, "The real System.map is in the linux-image-<version>-dbg package"},
		{"another file", "MZ\x00\x00", 1, "not address, type and name"},
		{"later line", "ffffffff81000000 T _text\n\nffffffff81000000 T\n", 3, "(line 3)"},
		{"empty name", "ffffffff81000000 T \t[ext4]\n", 1, "no name"},
		{"too many digits", "0ffffffff81000000 T _text\n", 1, "not address"},
		{"long line", strings.Repeat("x", 5000), 1, strings.Repeat("x", 100) + "…"},
		{"hidden addresses", "0000000000000000 T _text\n0000000000000000 t ext4_init\t[ext4]\n", 0, "kptr_restrict"},
		{"empty", "", 0, "no symbols"},
		{"only modules", "ffff80007a5e1000 t ext4_init\t[ext4]\n", 0, "no symbols"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readSymbolMap(strings.NewReader(tt.text))
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tt.message) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q: want one line with %q", err, tt.message)
			}
			line := 0
			if e := new(SymbolMapError); errors.As(err, &e) {
				line = e.Line
			}
			if line != tt.line {
				t.Errorf("line %d, want %d", line, tt.line)
			}
		})
	}
}

func TestReadSymbolMapReadError(t *testing.T) {
	r := strings.NewReader("ffffffff81000000 T _text\n")
	_, err := readSymbolMap(&failingReader{r})
	if !errors.Is(err, errBeyond) {
		t.Errorf("error %v", err)
	}
}

// failingReader fails where its reader ends.
type failingReader struct{ r *strings.Reader }

func (f *failingReader) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil {
		err = errBeyond
	}
	return n, err
}

func BenchmarkReadSymbolMap(b *testing.B) {
	var text strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&text, "%016x t some_function_of_a_kernel_%d\n", uint64(0xffffffff81000000)+uint64(64*i), i)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readSymbolMap(strings.NewReader(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzReadSymbolMap(f *testing.F) {
	f.Add("ffffffff81000000 T _text\nffff80007a5e1000 t ext4_init\t[ext4]\n")
	f.Add("                 U printk\r\n0000000000000000 D x")
	f.Fuzz(func(t *testing.T, text string) {
		syms, err := readSymbolMap(strings.NewReader(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %q", err)
			}
			return
		}
		for _, s := range syms {
			if s.Name == "" || strings.ContainsAny(s.Name, " \t\n") {
				t.Errorf("symbol %+v", s)
			}
		}
	})
}
