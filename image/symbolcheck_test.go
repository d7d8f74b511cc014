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

// mapText writes symbols as System.map has them.
func mapText(syms []MapSymbol) string {
	var b strings.Builder
	for _, s := range syms {
		fmt.Fprintf(&b, "%016x %c %s\n", s.Addr, s.Type, s.Name)
	}
	return b.String()
}

// with returns symbols with another one of the name of s, or with s added.
func with(syms []MapSymbol, s MapSymbol) []MapSymbol {
	syms = slices.DeleteFunc(slices.Clone(syms), func(o MapSymbol) bool { return o.Name == s.Name })
	return append(syms, s)
}

// TestForeignSymbols gives kernels maps that are not theirs.
func TestForeignSymbols(t *testing.T) {
	foreign := map[string]string{"amd64": "primary_entry", "arm64": "entry_SYSCALL_64", "ppc64": "startup_64", "ppc64le": "el0t_64_sync"}
	own := map[string]string{"arm64": "primary_entry", "amd64": "entry_SYSCALL_64", "ppc64": "start_here_multiplatform", "ppc64le": "start_here_multiplatform"}
	for _, target := range targets {
		syms := kernelMap(t, target)
		find := func(name string) MapSymbol {
			s, ok := findSymbol(syms, name)
			if !ok {
				t.Fatalf("%s: no %s", target, name)
			}
			return s
		}
		moved := func(name string, by uint64) MapSymbol {
			s := find(name)
			s.Addr += by
			return s
		}
		withSymbols, err := os.ReadFile(filepath.Join("testdata", "elf", "kernel."+target))
		if err != nil {
			t.Fatal(err)
		}
		bare, _ := stripped(t, target)
		packed := withKallsyms(t, target, kallsymsLayouts[6], syms, syms[0].Addr)
		code := find("__entry_text_end") // stands where a function starts
		data := find("__start___bug_table")
		greeting := bytes.Clone(bare)
		im := fixture(t, "kernel."+target)
		off, _ := im.OffsetOf(data.Addr)
		copy(greeting[off:], "Linux version 6.12.107")
		for _, c := range []struct {
			name string
			file []byte
			syms []MapSymbol
			want string // in the error; empty where the map is right
		}{
			{"its own", bare, syms, ""},
			{"its own, of a file with symbols", withSymbols, syms, ""},
			{"its own, of a kernel with kallsyms", packed, syms, ""},
			{"of its machine", bare, with(syms, MapSymbol{Name: own[target], Addr: code.Addr, Type: 'T'}), ""},
			{"another machine", bare, with(syms, MapSymbol{Name: foreign[target], Addr: code.Addr, Type: 'T'}), foreign[target] + " is a symbol of"},
			{"a function elsewhere than the file's symbols have it", withSymbols, with(syms, MapSymbol{Name: "_sinittext", Addr: code.Addr, Type: 'T'}), "_sinittext is at"},
			{"a function elsewhere than kallsyms has it", packed, with(syms, MapSymbol{Name: "_sinittext", Addr: code.Addr, Type: 'T'}), "_sinittext is at"},
			{"other functions", packed, []MapSymbol{{Name: "somewhere", Addr: code.Addr, Type: 'T'}}, "no function of the file's own table"},
			{"a table elsewhere", bare, with(syms, moved("__start___ex_table", 8)), "__start___ex_table is at"},
			{"a table of another size", bare, with(syms, moved("__stop___ex_table", 8)), "the end of section __ex_table"},
			{"init text elsewhere", bare, with(syms, moved("_sinittext", 8)), "section .init.text at"},
			{"functions outside text", bare, append(with(syms, code), MapSymbol{Name: "far_1", Addr: data.Addr, Type: 'T'},
				MapSymbol{Name: "far_2", Addr: data.Addr + 4, Type: 't'}), "symbols of functions lie outside its text"},
			{"its banner", greeting, with(syms, MapSymbol{Name: "linux_banner", Addr: data.Addr, Type: 'D'}), ""},
			{"another banner", greeting, with(syms, MapSymbol{Name: "linux_banner", Addr: data.Addr + 8, Type: 'D'}),
				"linux_banner is at"},
		} {
			t.Run(target+", "+c.name, func(t *testing.T) {
				_, err := Open(bytes.NewReader(c.file), int64(len(c.file)), Options{Symbols: strings.NewReader(mapText(c.syms))})
				e := new(MapMismatchError)
				switch {
				case c.want == "":
					if err != nil {
						t.Errorf("refused: %v", err)
					}
				case !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n"):
					t.Errorf("error %v, want one line with %q", err, c.want)
				}
			})
		}
	}
}

// TestEntriesOfRealKernels moves the maps of kernels that have nothing else to
// tell by: their functions then do not start where code starts.
func TestEntriesOfRealKernels(t *testing.T) {
	for _, name := range []string{"amd64", "arm64", "ppc64el"} {
		im := openKernel(t, name)
		own, err := im.readKernelNames()
		if err != nil {
			t.Fatal(err)
		}
		if err := im.checkEntries(own, 0); err != nil {
			t.Errorf("%s: its own symbols: %v", name, err)
		}
		for _, shift := range []uint64{0x10, 0x40, 0x1000, 0x12340} {
			if im.checkEntries(own, shift) == nil {
				t.Errorf("%s: symbols moved by %#x are taken", name, shift)
			}
		}
	}
}
