package image

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

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
			landings, err := im.Landings()
			if err != nil {
				t.Fatal(err)
			}
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
		im := &Image{r: bytes.NewReader(data), size: int64(len(data)), order: tc.order, typ: elf.ET_EXEC}
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
			landings, err := im.Landings()
			if err != nil {
				t.Fatal(err)
			}
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
			landings, err := im.Landings()
			if err != nil {
				t.Fatal(err)
			}
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
			landings, err := bare.Landings()
			if err != nil {
				t.Fatal(err)
			}
			compareLines(t, landingLines(landings, func(place.LandingKind) bool { return true }), want)
		})
	}
}

// TestLandingPadsWithoutSections finds the unwind tables by their segment.
func TestLandingPadsWithoutSections(t *testing.T) {
	whole, bare := fixture(t, "throw.amd64.so"), withoutSections(t, "throw.amd64.so")
	landings, err := bare.Landings()
	if err != nil {
		t.Fatal(err)
	}
	got := landingLines(landings, func(k place.LandingKind) bool { return k == place.LandUnwind })
	compareLines(t, got, wantLandings(t, whole))
}
