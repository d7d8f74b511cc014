package image

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xol/image/isa"
	"xol/internal/skip"
	"xol/place"
)

// record returns the words of a section in which the source of a fixture says
// what is to be found, in rows of n.
func record(t testing.TB, im *Image, section string, n int) [][]uint64 {
	t.Helper()
	s := im.sectionNamed(section)
	if s == nil {
		t.Fatalf("the fixture has no section %s", section)
	}
	data, err := im.contents(s)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]uint64
	for ; len(data) >= 8*n; data = data[8*n:] {
		row := make([]uint64, n)
		for i := range row {
			row[i] = im.order.u64(data[8*i:])
		}
		rows = append(rows, row)
	}
	return rows
}

func landingsOf(t testing.TB, im *Image) place.Landings {
	t.Helper()
	landings, err := im.Landings()
	if err != nil {
		t.Fatal(err)
	}
	return landings
}

func landingLine(l place.Landing) string {
	return fmt.Sprintf("%#x %v from %#x", l.Addr, l.Kind, l.From)
}

// landingLines writes the landings that the judge of a test speaks of, so that
// they can be compared and read.
func landingLines(landings place.Landings, judged func(k place.LandingKind) bool) []string {
	var lines []string
	for _, l := range landings {
		if judged(l.Kind) {
			lines = append(lines, landingLine(l))
		}
	}
	return lines
}

// wantLandings reads what the source of a fixture says of its landings.
func wantLandings(t *testing.T, im *Image) []string {
	t.Helper()
	var lines []string
	for _, row := range record(t, im, ".landings", 3) {
		lines = append(lines, landingLine(place.Landing{Kind: place.LandingKind(row[0]), Addr: row[1], From: row[2]}))
	}
	return lines
}

// TestLandings finds in each file what its source says, and nothing else.
func TestLandings(t *testing.T) {
	names := []string{"landings.relr.amd64.so"}
	for _, target := range targets {
		names = append(names, "landings."+target+".ko", "landings."+target+".fixed", "landings."+target+".so")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			im := fixture(t, name)
			landings := landingsOf(t, im)
			got := landingLines(landings, func(k place.LandingKind) bool { return k != place.LandSymbol })
			compareLines(t, got, wantLandings(t, im))
			if want := im.typ != elf.ET_EXEC; im.PositionIndependent() != want {
				t.Errorf("position-independent: got %v", !want)
			}
		})
	}
}

// TestPointer reads words that a fixture's source speaks of.
func TestPointer(t *testing.T) {
	names := []string{"landings.relr.amd64.so"}
	for _, target := range targets {
		names = append(names, "landings."+target+".ko", "landings."+target+".fixed", "landings."+target+".so")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			im := fixture(t, name)
			words := record(t, im, ".pointers", 2)
			for _, row := range words {
				at, want := row[0], row[1]
				if got, ok := im.Pointer(at); got != want || ok != (want != 0) {
					t.Errorf("at %#x: got %#x, %v, want %#x", at, got, ok, want)
				}
			}
			if n := testing.AllocsPerRun(100, func() { im.Pointer(words[0][0]) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// TestPointerNowhere asks for words that there are not.
func TestPointerNowhere(t *testing.T) {
	im := fixture(t, "landings.amd64.fixed")
	data := im.sectionNamed(".data")
	for _, tc := range []struct {
		name string
		addr uint64
	}{
		{"no section", 0x10},
		{"end of a section", data.end()},
		{"last bytes of a section", data.end() - 7},
		{"end of the address space", ^uint64(0)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if target, ok := im.Pointer(tc.addr); ok {
				t.Errorf("got %#x", target)
			}
		})
	}
}

// TestWordAcrossBlocks reads a word of which one part is read with one block
// of a section and the rest with the next.
func TestWordAcrossBlocks(t *testing.T) {
	const base = 0x10000
	data := make([]byte, blockSize+16)
	for i := range 8 {
		data[blockSize-3+i] = byte(i + 1)
	}
	for _, tc := range []struct {
		order byteOrder
		want  uint64
	}{
		{littleEndian, 0x0807060504030201},
		{bigEndian, 0x0102030405060708},
	} {
		im := newImage(file{isa: new(isa.Record), r: bytes.NewReader(data), size: int64(len(data)), order: tc.order, typ: elf.ET_EXEC})
		im.sections = []section{{
			typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, addr: base, size: uint64(len(data)),
		}}
		if err := im.finishLayout(); err != nil {
			t.Fatal(err)
		}
		if got, ok := im.word(base + blockSize - 3); got != tc.want || !ok {
			t.Errorf("got %#x, %v, want %#x", got, ok, tc.want)
		}
	}
}

// textSymbols returns the addresses in text that debug/elf finds symbols for.
func textSymbols(t *testing.T, path string, im *Image) []string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, _ := f.Symbols() // a file may have none
	dynamic, _ := f.DynamicSymbols()
	inText := func(addr uint64) bool {
		return slices.ContainsFunc(im.Text(), func(r Range) bool { return r.Addr <= addr && addr < r.End() })
	}
	var lines []string
	for _, s := range append(symbols, dynamic...) {
		typ, addr := elf.ST_TYPE(s.Info), s.Value
		if s.Section == elf.SHN_UNDEF || s.Section >= elf.SHN_LORESERVE || s.Name == "" ||
			typ == elf.STT_SECTION || typ == elf.STT_FILE || isMapping(s.Name) {
			continue
		}
		if f.Type == elf.ET_REL {
			addr += im.sections[s.Section].addr
		}
		if inText(addr) {
			lines = append(lines, landingLine(place.Landing{Kind: place.LandSymbol, Addr: addr}))
		}
	}
	return lines
}

// TestLandingSymbols compares the symbols in text with those that debug/elf
// finds.
func TestLandingSymbols(t *testing.T) {
	for _, name := range []string{
		"functions.amd64", "functions.arm64", "functions.ppc64le", "module.arm64.ko", "module.ppc64le.ko",
		"kernel.amd64", "landings.amd64.so", "landings.arm64.so", "throw.amd64.o",
	} {
		t.Run(name, func(t *testing.T) {
			im := fixture(t, name)
			landings := landingsOf(t, im)
			got := landingLines(landings, func(k place.LandingKind) bool { return k == place.LandSymbol })
			compareLines(t, got, textSymbols(t, filepath.Join("testdata", "elf", name), im))
		})
	}
}

// TestLandingPads compares the landing pads with those that the compiler wrote
// into the assembler's text.
func TestLandingPads(t *testing.T) {
	names := []string{"throw.amd64.fixed"}
	for _, target := range targets {
		names = append(names, "throw."+target+".o", "throw."+target+".so")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			im := fixture(t, name)
			landings := landingsOf(t, im)
			got := landingLines(landings, func(k place.LandingKind) bool { return k == place.LandUnwind })
			compareLines(t, got, wantLandings(t, im))
		})
	}
}

// withoutSections returns a file with its section headers forgotten.
func withoutSections(t *testing.T, name string) *Image {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", "elf", name))
	if err != nil {
		t.Fatal(err)
	}
	for i := 40; i < 48; i++ { // e_shoff
		file[i] = 0
	}
	for i := 60; i < 64; i++ { // e_shnum, e_shstrndx
		file[i] = 0
	}
	im, err := Open(bytes.NewReader(file), int64(len(file)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// TestLandingsWithoutSections finds what the loader finds in files that have
// segments only, of one symbol table only what other files may use.
func TestLandingsWithoutSections(t *testing.T) {
	for _, name := range []string{"landings.amd64.so", "landings.relr.amd64.so", "landings.arm64.so", "landings.ppc64le.so"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "elf", name)
			f, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			whole, bare := fixture(t, name), withoutSections(t, name)
			want := wantLandings(t, whole)
			symbols, err := f.DynamicSymbols()
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range symbols {
				if s.Section != elf.SHN_UNDEF && whole.textAt(s.Value) >= 0 && s.Name != "" {
					want = append(want, landingLine(place.Landing{Kind: place.LandSymbol, Addr: s.Value}))
				}
			}
			landings := landingsOf(t, bare)
			compareLines(t, landingLines(landings, func(place.LandingKind) bool { return true }), want)
		})
	}
}

// TestLandingPadsWithoutSections finds the unwind tables by their segment.
func TestLandingPadsWithoutSections(t *testing.T) {
	whole, bare := fixture(t, "throw.amd64.so"), withoutSections(t, "throw.amd64.so")
	landings := landingsOf(t, bare)
	got := landingLines(landings, func(k place.LandingKind) bool { return k == place.LandUnwind })
	compareLines(t, got, wantLandings(t, whole))
}

// TestLandingsLateBinding reads the words through which stubs go to the loader
// until a symbol is bound: after the jump of the stub that objdump shows, or
// where it starts again.
func TestLandingsLateBinding(t *testing.T) {
	for _, tc := range []struct {
		name string
		want []string
	}{
		{"plt.amd64.so", []string{"0x1016 pointer from 0x4000", "0x1026 pointer from 0x4008"}},
		{"plt.ibt.amd64.so", []string{"0x1010 pointer from 0x4000", "0x1020 pointer from 0x4008"}},
		{"plt.arm64.so", []string{"0x250 pointer from 0x2000", "0x250 pointer from 0x2008"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			landings := landingsOf(t, fixture(t, tc.name))
			got := landingLines(landings, func(k place.LandingKind) bool { return k == place.LandPointer })
			compareLines(t, got, tc.want)
		})
	}
}

// TestEntryOfKernel has an entry point that is a physical address.
func TestEntryOfKernel(t *testing.T) {
	const virtual, physical = 0xffffffff81000000, 0x1000000
	file, err := os.ReadFile(filepath.Join("testdata", "elf", "stripped.amd64"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text := f.Section(".text").Addr
	for i, p := range f.Progs {
		if p.Flags&elf.PF_X != 0 {
			file = edit(file, ehdrSize+i*phdrSize+24, 8, p.Vaddr+physical) // p_paddr
		}
	}
	file = edit(file, 24, 8, text+physical+4) // e_entry
	im, err := Open(bytes.NewReader(file), int64(len(file)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	landings := landingsOf(t, im)
	got := landingLines(landings, func(k place.LandingKind) bool { return k == place.LandEntry })
	compareLines(t, got, []string{landingLine(place.Landing{Kind: place.LandEntry, Addr: text + 4})})
}

// TestPackedRelocations follows the rules of the format: an address, then
// bitmaps of the 63 words after the last one.
func TestPackedRelocations(t *testing.T) {
	const base = 0x10000
	for _, tc := range []struct {
		name  string
		table []uint64
		want  []uint64 // offsets from base
		bad   bool
	}{
		{"address", []uint64{base}, []uint64{0}, false},
		{"bitmap", []uint64{base, 0b1011}, []uint64{0, 8, 24}, false},
		{"last bit", []uint64{base, 1<<63 | 1}, []uint64{0, 63 * 8}, false},
		{"two bitmaps", []uint64{base + 8, 1, 0b11}, []uint64{8, 8 + 64*8}, false},
		{"address after a bitmap", []uint64{base, 1, base + 64*8}, []uint64{0, 64 * 8}, false},
		{"outside", []uint64{base + 1<<20}, nil, false},
		{"backwards", []uint64{base + 8, base}, []uint64{8}, true},
		{"into a bitmap", []uint64{base, 0b11, base + 8}, []uint64{0, 8}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data := make([]byte, 128*8)
			for i := range 128 {
				littleEndian.put64(data[8*i:], uint64(i))
			}
			im := newImage(file{isa: new(isa.Record), r: bytes.NewReader(data), size: int64(len(data)), typ: elf.ET_DYN})
			im.sections = []section{{typ: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, addr: base, size: uint64(len(data))}}
			if err := im.finishLayout(); err != nil {
				t.Fatal(err)
			}
			table := make([]byte, 8*len(tc.table))
			for i, w := range tc.table {
				littleEndian.put64(table[8*i:], w)
			}
			var p pointers
			if err := p.relr(&im.namedFile, &tableData{littleEndian, 0, table}); (err != nil) != tc.bad {
				t.Errorf("error %v", err)
			}
			var want []pointer
			for _, off := range tc.want {
				want = append(want, pointer{base + off, off / 8})
			}
			if !slices.Equal(p.list, want) {
				t.Errorf("got %#x, want %#x", p.list, want)
			}
		})
	}
}

// TestGNUHashCount counts the symbols of hash tables.
func TestGNUHashCount(t *testing.T) {
	for _, tc := range []struct {
		name  string
		words []uint32
		want  uint64
	}{
		{"one bucket", []uint32{1, 1, 1, 0, 0, 0, 1, 0x10, 0x20, 0x31}, 4},
		{"two buckets, one empty", []uint32{2, 5, 1, 0, 0, 0, 0, 5, 0x10, 0x21}, 7},
		{"no symbol", []uint32{1, 3, 1, 0, 0, 0, 0}, 3},
		{"without an end", []uint32{1, 1, 1, 0, 0, 0, 1, 0x10, 0x20}, 0},
		{"filter outside", []uint32{1, 1, 9, 0, 0, 0, 1, 0x11}, 0},
		{"buckets outside", []uint32{1 << 31, 1, 1, 0, 0, 0, 1, 0x11}, 0},
		{"header cut off", []uint32{1, 1, 1}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data := make([]byte, 4*len(tc.words))
			for i, w := range tc.words {
				littleEndian.put32(data[4*i:], w)
			}
			if got := littleEndian.gnuHashCount(data); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestDataEnd(t *testing.T) {
	im := fixture(t, "landings.amd64.fixed")
	f, err := elf.Open(filepath.Join("testdata", "elf", "landings.amd64.fixed"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{".text", ".data", "__ex_table"} {
		s := f.Section(name)
		for _, addr := range []uint64{s.Addr, s.Addr + s.Size - 1} {
			if end, ok := im.DataEnd(addr); end != s.Addr+s.Size || !ok {
				t.Errorf("%s: end of the section that holds %#x: got %#x, %v, want %#x", name, addr, end, ok, s.Addr+s.Size)
			}
		}
	}
	if end, ok := im.DataEnd(f.Section("__ex_table").Addr - 1); ok {
		t.Errorf("before a section: got %#x", end)
	}
}

// TestLandingsOfThisProgram looks at where this Go program goes on after
// panics: at calls of runtime.deferreturn, and at all of them.
func TestLandingsOfThisProgram(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		skip.Missing(t, "a program of the ISA", "amd64")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	im := openReal(t, path)
	fns, err := im.readGoFunctions()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(fns, func(f goFunc) bool { return f.name == "runtime.deferreturn" })
	if i < 0 {
		t.Fatal("there is no runtime.deferreturn")
	}
	landings := landingsOf(t, im)
	functions := make(map[uint64]bool)
	for _, l := range landings {
		if l.Kind != place.LandUnwind {
			continue
		}
		functions[l.From] = true
		code, err := im.Code(nil, l.Addr, 5)
		if err != nil {
			t.Fatal(err)
		}
		if target := l.Addr + 5 + littleEndian.i32(code[1:]); code[0] != 0xe8 || target != fns[i].lo {
			t.Errorf("%#x, of the function at %#x: % x is no call of runtime.deferreturn", l.Addr, l.From, code)
		}
	}
	calls := 0
	for _, f := range fns {
		code, err := im.Code(nil, f.lo, f.hi-f.lo)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at+5 <= len(code); at++ {
			if code[at] == 0xe8 && f.lo+uint64(at)+5+littleEndian.i32(code[at+1:]) == fns[i].lo {
				calls++
				if !functions[f.lo] {
					t.Errorf("%s calls runtime.deferreturn at %#x", f.name, f.lo+uint64(at))
				}
				break
			}
		}
	}
	if calls == 0 {
		t.Error("nothing is deferred")
	}
}

// realFiles are files of this machine's systems that tests read where there
// are any.
var realFiles = []string{
	"/bin/bash", "/usr/bin/python3", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/aarch64-linux-gnu/lib/libstdc++.so.6", "/usr/aarch64-linux-gnu/lib/libc.so.6",
	"/usr/powerpc64le-linux-gnu/lib/libstdc++.so.6", "/usr/powerpc64-linux-gnu/lib/libstdc++.so.6",
}

// openReal opens a file of the machine that runs the test, and skips the test
// where it cannot.
func openReal(t *testing.T, path string) *Image {
	t.Helper()
	im, err := OpenFile(path, Options{})
	if err != nil {
		skip.Missing(t, "programs of this machine", err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

// TestLandingsLikeReadelf looks, in real files, for every address that readelf
// shows a relocation to put into a word.
func TestLandingsLikeReadelf(t *testing.T) {
	readelf, err := exec.LookPath("readelf")
	if err != nil {
		skip.Missing(t, "readelf")
	}
	for _, path := range realFiles {
		t.Run(path, func(t *testing.T) {
			im := openReal(t, path)
			landings := landingsOf(t, im)
			have := make(map[string]bool)
			for _, line := range landingLines(landings, func(k place.LandingKind) bool { return k == place.LandPointer }) {
				have[line] = true
			}
			out, err := exec.Command(readelf, "-rW", path).Output()
			if err != nil {
				t.Fatal(err)
			}
			compared := 0
			for line := range strings.Lines(string(out)) {
				at, target, ok := shownRelocation(line)
				if !ok || im.textAt(target) < 0 {
					continue
				}
				compared++
				if want := landingLine(place.Landing{Kind: place.LandPointer, Addr: target, From: at}); !have[want] {
					t.Errorf("not found: %s", want)
				}
			}
			t.Logf("%d landings, of these %d pointers, %d of them shown by readelf", len(landings), len(have), compared)
		})
	}
}

// shownRelocation reads a line of readelf -rW whose relocation fills a word
// with an address in the file: place, info, type, and after that the addend of
// a relative one, or a symbol's value and name, and the addend.
func shownRelocation(line string) (at, target uint64, ok bool) {
	const relative, symbolic = 4, 7
	f := strings.Fields(line)
	if len(f) != relative && len(f) != symbolic {
		return 0, 0, false
	}
	hex := func(s string) uint64 {
		v, err := strconv.ParseUint(s, 16, 64)
		ok = ok && err == nil
		return v
	}
	ok = true
	at = hex(f[0])
	switch {
	case len(f) == relative && (strings.HasSuffix(f[2], "_RELATIVE") || strings.HasSuffix(f[2], "_RELATIV")):
		target = hex(f[3])
	case len(f) == symbolic && hex(f[3]) != 0:
		for _, suffix := range []string{"_64", "_ABS64", "_ADDR64", "_GLOB_DAT", "_GLOB_DA", "_JUMP_SLOT", "_JUMP_SL", "_JUMP_SLO"} {
			if strings.HasSuffix(f[2], suffix) {
				return at, hex(f[3]) + hex(f[6]), ok
			}
		}
		return 0, 0, false
	default:
		return 0, 0, false
	}
	return at, target, ok
}

// TestRealLandingPads reads the tables of real C++ libraries: nothing in them
// is damaged, and each landing pad is in a function with unwinding rules.
func TestRealLandingPads(t *testing.T) {
	for _, path := range realFiles {
		t.Run(path, func(t *testing.T) {
			im := openReal(t, path)
			covered, err := im.unwindExtents()
			if err != nil {
				t.Fatal(err)
			}
			covered = union(covered)
			n := 0
			err = im.eachLandingPad(func(site, pad uint64) {
				n++
				if !holds(covered, site) || !holds(covered, pad) {
					t.Errorf("call site %#x, landing pad %#x: not in a function", site, pad)
				}
			})
			if err != nil {
				t.Error(err)
			}
			if n == 0 && strings.Contains(path, "libstdc++") {
				t.Error("no landing pad in a C++ library")
			}
		})
	}
}

// TestKernelLandings compares what kernels' tables say with the marks, which
// running kernels have confirmed.
func TestKernelLandings(t *testing.T) {
	for _, name := range []string{"amd64", "arm64", "ppc64el"} {
		t.Run(name, func(t *testing.T) {
			im := openKernel(t, name)
			landings := landingsOf(t, im)
			marks, err := im.Marks()
			if err != nil {
				t.Fatal(err)
			}
			for _, tc := range []struct {
				kind place.LandingKind
				from place.Kind
				to   place.Kind // 0 where marks do not tell
			}{
				{place.LandExFixup, place.ExTable, place.ExFixup},
				{place.LandJumpLabel, place.JumpLabel, 0},
			} {
				var from, to, wantFrom, wantTo []uint64
				for _, l := range landings {
					if l.Kind == tc.kind {
						from, to = append(from, l.From), append(to, l.Addr)
					}
				}
				for _, m := range marks {
					if m.Kind&tc.from != 0 {
						wantFrom = append(wantFrom, m.Addr)
					}
					if m.Kind&tc.to != 0 {
						wantTo = append(wantTo, m.Addr)
					}
				}
				compareAddresses(t, tc.kind, from, wantFrom)
				if tc.to != 0 {
					compareAddresses(t, tc.kind, to, wantTo)
				}
			}
		})
	}
}

// compareAddresses compares sets of addresses.
func compareAddresses(t *testing.T, kind place.LandingKind, got, want []uint64) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	got, want = slices.Compact(got), slices.Compact(want)
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("%v: %d addresses, which are not the %d expected", kind, len(got), len(want))
	}
}

// BenchmarkLandings measures the largest files at hand, from opening them on.
func BenchmarkLandings(b *testing.B) {
	for _, name := range []string{"amd64", "arm64", "ppc64el"} {
		b.Run(name, func(b *testing.B) {
			kernel := openKernel(b, name)
			for b.Loop() {
				im, err := Open(kernel.r, kernel.size, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := im.Landings(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPointer(b *testing.B) {
	for _, name := range []string{"landings.amd64.fixed", "landings.amd64.so"} {
		b.Run(name, func(b *testing.B) {
			im := fixture(b, name)
			words := record(b, im, ".pointers", 2)
			b.ReportAllocs()
			for b.Loop() {
				for _, row := range words {
					im.Pointer(row[0])
				}
			}
		})
	}
}
