package image

import (
	"bytes"
	"debug/elf"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"fmt"
	"slices"
	"strings"
	"testing"

	"xol/image/isa"
)

// list writes functions one in a line: section, offset in it, size, local
// entry, source, name.
func list(im *Image, fns []Function) []string {
	var lines []string
	for _, f := range fns {
		lines = append(lines, fmt.Sprintf("%s %#x %d %d %v %s",
			f.Section, f.Addr-im.sectionNamed(f.Section).addr, f.Size, f.LocalEntry, f.Source, f.Name))
	}
	return lines
}

// What functions.S says of its functions. On amd64 its instructions are 1 byte
// long but for the calls, elsewhere 4.
const (
	symbolsAMD64 = `
.text 0x0 11 0 symbol _start
.text 0x10 4 0 symbol sized
.text 0x20 16 0 symbol unsized
.text 0x30 1 0 symbol outer
.text 0x31 4 0 symbol inner
.text 0x50 2 0 eh_frame .text+0x50
.text 0x60 2 0 symbol last
.text 0x70 2 0 symbol elsewhere
.text 0x80 2 0 symbol last`
	nextAMD64 = `
.text 0x0 16 0 symbol _start
.text 0x10 2 0 symbol sized
.text 0x12 14 0 symbol label_inside
.text 0x20 16 0 symbol unsized
.text 0x30 1 0 symbol outer
.text 0x31 15 0 symbol inner
.text 0x40 32 0 symbol table
.text 0x60 16 0 symbol last
.text 0x70 16 0 symbol elsewhere
.text 0x80 2 0 symbol last`
	// Here unsized and table are taken for leftovers, and the NOPs that the
	// first starts with for padding.
	strippedAMD64 = `
.text 0x0 11 0 eh_frame entry
.text 0x10 4 0 eh_frame .text+0x10
.text 0x22 14 0 section .text+0x22
.text 0x30 5 0 eh_frame .text+0x30
.text 0x40 16 0 section .text+0x40
.text 0x50 2 0 eh_frame .text+0x50
.text 0x60 2 0 eh_frame .text+0x60
.text 0x70 2 0 eh_frame .text+0x70
.text 0x80 2 0 eh_frame .text+0x80`
	symbolsWide = `
.text 0x0 12 0 symbol _start
.text 0x10 16 0 symbol sized
.text 0x20 16 0 symbol unsized
.text 0x30 4 0 symbol outer
.text 0x34 16 0 symbol inner
.text 0x60 8 0 eh_frame .text+0x60
.text 0x70 8 0 symbol last
.text 0x80 8 0 symbol elsewhere
.text 0x90 8 0 symbol last`
	nextWide = `
.text 0x0 16 0 symbol _start
.text 0x10 8 0 symbol sized
.text 0x18 8 0 symbol label_inside
.text 0x20 16 0 symbol unsized
.text 0x30 4 0 symbol outer
.text 0x34 28 0 symbol inner
.text 0x50 32 0 symbol table
.text 0x70 16 0 symbol last
.text 0x80 16 0 symbol elsewhere
.text 0x90 8 0 symbol last`
	strippedWide = `
.text 0x0 12 0 eh_frame entry
.text 0x10 16 0 eh_frame .text+0x10
.text 0x28 8 0 section .text+0x28
.text 0x30 20 0 eh_frame .text+0x30
.text 0x50 16 0 section .text+0x50
.text 0x60 8 0 eh_frame .text+0x60
.text 0x70 8 0 eh_frame .text+0x70
.text 0x80 8 0 eh_frame .text+0x80
.text 0x90 8 0 eh_frame .text+0x90`
)

func TestFunctions(t *testing.T) {
	// With ELFv2, elsewhere sets r2 up before its local entry point.
	local := strings.NewReplacer(
		"0x80 8 0 symbol elsewhere", "0x80 16 8 symbol elsewhere",
		"0x80 16 0 symbol elsewhere", "0x80 16 8 symbol elsewhere",
		"0x80 8 0 eh_frame", "0x80 16 0 eh_frame")
	for _, target := range targets {
		for _, tc := range []struct {
			file         string
			extent       Extent
			amd64, other string
		}{
			{"functions", ExtentSymbol, symbolsAMD64, symbolsWide},
			{"functions", ExtentNext, nextAMD64, nextWide},
			{"stripped", ExtentSymbol, strippedAMD64, strippedWide},
			{"stripped", ExtentNext, strippedAMD64, strippedWide},
		} {
			name := tc.file + "." + target
			t.Run(fmt.Sprint(name, tc.extent), func(t *testing.T) {
				want := tc.other
				switch target {
				case "amd64":
					want = tc.amd64
				case "ppc64le":
					want = local.Replace(want)
				}
				im := fixture(t, name)
				fns, err := im.Functions(tc.extent)
				if err != nil {
					t.Fatal(err)
				}
				got := list(im, fns)
				if want := strings.Split(want, "\n")[1:]; !slices.Equal(got, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	}
}

func TestABI(t *testing.T) {
	for target, want := range map[string]int{"amd64": 0, "arm64": 0, "ppc64": 1, "ppc64le": 2} {
		if got := fixture(t, "functions."+target).ABI(); got != want {
			t.Errorf("%s: got %d, want %d", target, got, want)
		}
		if got := fixture(t, "relocs."+target+".o").ABI(); got != want {
			t.Errorf("%s, relocatable: got %d, want %d", target, got, want)
		}
	}
}

func TestPadding(t *testing.T) {
	amd64, arm64 := fixture(t, "functions.amd64"), fixture(t, "functions.arm64")
	ppc64 := fixture(t, "functions.ppc64")
	for _, tc := range []struct {
		name string
		im   *Image
		code string
		want uint64
	}{
		{"amd64 nop", amd64, "\x90\x90\xc3", 2},
		{"amd64 long nops", amd64, "\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\x0f\x1f\x44\x00\x00\x55", 16},
		{"amd64 nop with displacement", amd64, "\x0f\x1f\x80\x00\x00\x00\x00\x66\x90", 9},
		{"amd64 int3 and zero", amd64, "\xcc\xcc\x00\x00\x48", 4},
		{"amd64 cut off", amd64, "\x90\x0f\x1f", 1},
		{"amd64 prefixed instruction", amd64, "\x66\x89\xc0", 0},
		{"arm64", arm64, "\x1f\x20\x03\xd5\x00\x00\x00\x00\xc0\x03\x5f\xd6", 8},
		{"arm64 cut off", arm64, "\x1f\x20\x03\xd5\x1f\x20", 4},
		{"ppc64", ppc64, "\x60\x00\x00\x00\x60\x42\x00\x00\x4e\x80\x00\x20", 8},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.im.paddingLen([]byte(tc.code)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// Whatever symbol a piece of a kernel's text starts at, the functions are the same.
func TestFunctionsInPieces(t *testing.T) {
	for name, file := range fixtureFiles(t) {
		im, err := Open(bytes.NewReader(file), int64(len(file)), Options{})
		if err != nil || im.typ == elf.ET_REL {
			continue
		}
		t.Run(name, func(t *testing.T) {
			whole, err := im.Functions(ExtentNext)
			if err != nil {
				t.Fatal(err)
			}
			syms, _ := im.symbols()
			rule := im.aliasRule(syms, ExtentNext)
			for _, i := range syms.sorted {
				if im.textAt(syms.syms[i].addr) < 0 {
					continue
				}
				at := im.nextCounted(syms, rule, syms.syms[i].addr)
				var got []Function
				for _, part := range [][2]uint64{{0, at}, {at, math.MaxUint64}} {
					w := &worklist{im: &im.namedFile, hints: sync.OnceValue(im.functionHints)}
					w.cut(syms, ExtentNext, part[0], part[1])
					got = append(got, w.fns...)
				}
				if !slices.Equal(got, whole) {
					t.Errorf("cut at %#x: %d functions, want %d", at, len(got), len(whole))
				}
			}
		})
	}
}

// A kernel with many symbols is cut by several goroutines.
func TestPieces(t *testing.T) {
	const symbols, size = 4 * pieceSymbols, 16
	im := newImage(file{order: littleEndian, isa: isa.Known().Find(elf.EM_X86_64), typ: elf.ET_EXEC, kind: KindKernel})
	im.text = []Range{{Addr: 0x1000, Size: symbols / 2 * size}, {Addr: 1 << 30, Size: symbols / 2 * size}}
	syms := &symtab{names: "\x00f\x00"}
	for _, r := range im.text {
		for i := range uint64(symbols / 2) {
			syms.syms = append(syms.syms, symbol{addr: r.Addr + i*size, name: 1, info: byte(elf.STT_FUNC)})
		}
	}
	syms.sort()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	ends := im.pieces(syms, ExtentNext)
	if len(ends) != 4 || ends[3] != math.MaxUint64 {
		t.Fatalf("ends of pieces: %#x, want 4", ends)
	}
	lo := uint64(0)
	for _, hi := range ends {
		if n := im.symbolsIn(syms, lo, hi); n != symbols/4 {
			t.Errorf("[%#x, %#x) has %d symbols, want %d", lo, hi, n, symbols/4)
		}
		lo = hi
	}
	if ends := im.pieces(syms, ExtentSymbol); len(ends) != 1 {
		t.Errorf("functions with sizes are cut in pieces: %#x", ends)
	}
}

func TestAscending(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	syms := &symtab{names: "\x00f\x00"}
	for len(syms.syms) < 20*atATime {
		addr := random.Uint64N(1 << 20)
		for range 1 + random.IntN(3)*random.IntN(2*atATime) { // also more than are fetched at a time
			syms.syms = append(syms.syms, symbol{addr: addr, name: 1, size: uint64(len(syms.syms)), info: byte(elf.STT_FUNC)})
		}
	}
	syms.sort()
	lo, hi := uint64(1<<18), uint64(3<<18)
	var want []symbol
	for _, i := range syms.sorted {
		if s := syms.syms[i]; s.addr >= lo && s.addr < hi {
			want = append(want, s)
		}
	}
	var got []symbol
	a := syms.ascending(lo, hi)
	for group := a.group(); len(group) > 0; group = a.group() {
		if n := len(got); n > 0 && got[n-1].addr >= group[0].addr {
			t.Fatalf("group at %#x after one at %#x", group[0].addr, got[n-1].addr)
		}
		for i := range group {
			if group[i].addr != group[0].addr {
				t.Fatalf("%#x in the group of %#x", group[i].addr, group[0].addr)
			}
		}
		got = append(got, group...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d symbols, want %d", len(got), len(want))
	}
}

func TestRoom(t *testing.T) {
	for _, n := range []int{0, 1, 3 * largeRoom} {
		got := room[uint16](n)
		if len(got) != n || slices.ContainsFunc(got, func(v uint16) bool { return v != 0 }) {
			t.Errorf("room for %d: %d values, or some that are not 0", n, len(got))
		}
	}
}
