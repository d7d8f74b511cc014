package image

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	im := fixture(t, "functions.amd64") // .text at 0x401000, at 0x1000 in the file
	for _, tc := range []struct{ name, place, want string }{
		{"function", "sized", "0x401010 sized+0"},
		{"other name of a function", "sized_alias", "0x401010 sized+0"},
		{"offset", "sized+0x2", "0x401012 sized+2"},
		{"decimal offset", "outer+3", "0x401033 inner+2"},
		{"label", "label_inside", "0x401012 sized+2"},
		{"two local functions", "last", "0x401060 last+0, 0x401080 last+0"},
		{"offset from two", "last+1", "0x401061 last+1, 0x401081 last+1"},
		{"address", "0x401023", "0x401023 unsized+3"},
		{"file offset", "file:0x1031", "0x401031 inner+0"},
		{"decimal file offset", "file:4096", "0x401000 _start+0"},
		{"section", ".text", "0x401000 _start+0"},
		{"offset from a section", ".text+0x31", "0x401031 inner+0"},
		{"function without a symbol", ".text+0x50", "0x401050 .text+0x50+0"},
		{"data in text", "table", "0x401040 table+0"},
		{"source line", "functions.S:32", "0x401021 unsized+1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			places, err := im.Resolve(tc.place)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range places {
				got = append(got, fmt.Sprintf("%#x %s+%d", p.Addr, p.Symbol, p.Offset))
			}
			if got := strings.Join(got, ", "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	im := fixture(t, "functions.amd64")
	for _, tc := range []struct{ name, place, want string }{
		{"nothing", "", `place "": it is empty (places are symbol, symbol+0x1c, 0x1000, file:0x1000, source.c:123)`},
		{"bad address", "0x40zz", `place "0x40zz": the address is no hexadecimal number of 64 bits (places are symbol, symbol+0x1c, 0x1000, file:0x1000, source.c:123)`},
		{"bad file offset", "file:x", `place "file:x": the file offset is no number (places are symbol, symbol+0x1c, 0x1000, file:0x1000, source.c:123)`},
		{"letters swapped", "szied", `no symbol "szied" (similar: sized)`},
		{"letter missing", "elsewere+4", `no symbol "elsewere" (similar: elsewhere)`},
		{"letter added", "innner", `no symbol "innner" (similar: inner)`},
		{"nothing similar", "completely_different_name", `no symbol "completely_different_name"`},
		{"address of a header", "0x400010", `0x400010 is not in text; text is 0x401000–0x401082`},
		{"address of data", "0x402000", `0x402000 is not in text but in section .eh_frame; text is 0x401000–0x401082`},
		{"symbol outside text", "_end", `_end is not in text; text is 0x401000–0x401082`},
		{"offset after text", "sized+0x100", `sized+0x100 is not in text; text is 0x401000–0x401082`},
		{"source line without code", "functions.S:1", `place "functions.S:1": no code comes from line 1 of functions.S; the next line that has code is 9`},
		{"file offset of a header", "file:0x10", `file:0x10 is not in text; text is 0x401000–0x401082`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			places, err := im.Resolve(tc.place)
			if err == nil {
				t.Fatalf("got %+v, want an error", places)
			}
			if err.Error() != tc.want {
				t.Errorf("got  %s\nwant %s", err, tc.want)
			}
		})
	}
}

func TestDemangle(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("testdata", "elf", "stripped.amd64"))
	if err != nil {
		t.Fatal(err)
	}
	for _, demangle := range []bool{false, true} {
		im, err := Open(bytes.NewReader(file), int64(len(file)), Options{
			Symbols:  strings.NewReader("0000000000401010 T _ZN3foo3barEi\n"),
			Demangle: demangle,
		})
		if err != nil {
			t.Fatal(err)
		}
		want := "_ZN3foo3barEi"
		if demangle {
			want = "foo::bar(int)"
		}
		if name, _ := im.Symbolize(0x401012); name != want {
			t.Errorf("got %s, want %s", name, want)
		}
		places, err := im.Resolve("foo::bar(int)+0x1")
		if err != nil || len(places) != 1 || places[0].Addr != 0x401011 {
			t.Errorf("got %+v, %v", places, err)
		}
	}
}

func TestErrorTypes(t *testing.T) {
	im := fixture(t, "functions.amd64")
	_, err := im.Resolve("szied")
	var notFound *SymbolNotFoundError
	if !errors.As(err, &notFound) || notFound.Name != "szied" || !slices.Equal(notFound.Nearest, []string{"sized"}) {
		t.Errorf("got %#v", err)
	}
	_, err = im.Code(nil, 0x400000, 4)
	var notText *NotTextError
	if !errors.As(err, &notText) || notText.Addr != 0x400000 {
		t.Errorf("got %#v", err)
	}
	if _, err = im.Code(nil, 0x401080, 3); !errors.As(err, &notText) || notText.Addr != 0x401082 {
		t.Errorf("beyond the end of text: got %v", err)
	}
}

func TestMatch(t *testing.T) {
	im := fixture(t, "functions.amd64")
	for _, tc := range []struct{ pattern, want string }{
		{"sized", "sized"},
		{"sized_alias", "sized"},
		{"*sized", "sized unsized"},
		{"?nsized", "unsized"},
		{"[os]*", "sized outer"},
		{"[^a-t]*", "_start unsized .text+0x50"},
		{"*e*e*", "elsewhere"},
		{".text*", ".text+0x50"},
		{"last", "last last"},
	} {
		t.Run(tc.pattern, func(t *testing.T) {
			fns, err := im.Match(ExtentSymbol, tc.pattern)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range fns {
				got = append(got, f.Name)
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	_, err := im.Match(ExtentSymbol, "*szied*")
	var notFound *SymbolNotFoundError
	if !errors.As(err, &notFound) || !slices.Contains(notFound.Nearest, "sized") {
		t.Errorf("no match: got %v", err)
	}
}

func TestSymbolize(t *testing.T) {
	for _, tc := range []struct {
		file string
		addr uint64
		want string
	}{
		{"functions.amd64", 0x401013, "sized+3"},
		{"functions.amd64", 0x401055, ".text+0x50+5"}, // padding after the function .text+0x50
		{"functions.amd64", 0x402004, ".eh_frame+4"},
		{"functions.amd64", 0x10, "+16"},
		{"relocs.amd64.o", 0x100328, "data+8"},
		{"relocs.amd64.o", 0x101010, "external_data+0"},
		{"relocs.ppc64.o", 0x100214, "other+4"},
	} {
		t.Run(fmt.Sprintf("%s %#x", tc.file, tc.addr), func(t *testing.T) {
			name, base := fixture(t, tc.file).Symbolize(tc.addr)
			if got := fmt.Sprintf("%s+%d", name, tc.addr-base); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestFileOffset(t *testing.T) {
	im := fixture(t, "functions.amd64")
	if off, ok := im.OffsetOf(0x401013); !ok || off != 0x1013 {
		t.Errorf("got %#x, %v", off, ok)
	}
	if off, ok := im.OffsetOf(0x400013); ok {
		t.Errorf("outside all sections: got %#x", off)
	}
}

func TestDistance(t *testing.T) {
	var d distance
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"vfs_read", "vfs_read", 0}, {"vfs_raed", "vfs_read", 1}, {"vfs_red", "vfs_read", 1},
		{"vfs_reads", "vfs_read", 1}, {"vfs_write", "vfs_read", 4}, {"", "abc", 3}, {"abc", "", 3},
	} {
		if got := d.between(tc.a, tc.b, 10); got != tc.want {
			t.Errorf("%q to %q: got %d, want %d", tc.a, tc.b, got, tc.want)
		}
		if got := d.between(tc.a, tc.b, 1); min(got, 2) != min(tc.want, 2) {
			t.Errorf("%q to %q, at most 1: got %d", tc.a, tc.b, got)
		}
	}
}

// TestOneLine keeps a file's contents from breaking the line of an error.
func TestOneLine(t *testing.T) {
	err := truncated("section a\nb")
	if got, want := err.Error(), `the file is cut off ("section a\nb")`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestResolveVersion: a file that has only the symbols of the dynamic linker, without
// their versions in the names.
func TestResolveVersion(t *testing.T) {
	im, err := OpenFile(filepath.Join("..", "selection", "testdata", "libfix.so.1"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	for _, c := range []struct {
		name string
		want []uint64 // as nm -D has them
	}{
		{"copy", []uint64{0x36c, 0x370}},
		{"copy@V1", []uint64{0x36c}},
		{"copy@@V2", []uint64{0x370}},
		{"copy@V2+2", []uint64{0x372}},
		{"copy@V3", nil},
		{"alpha@V2", nil},
	} {
		places, err := im.Resolve(c.name)
		var got []uint64
		for _, p := range places {
			got = append(got, p.Addr)
		}
		if !slices.Equal(got, c.want) || (err == nil) != (len(c.want) > 0) {
			t.Errorf("%s: %#x, %v, want %#x", c.name, got, err, c.want)
		}
	}
}
