package image

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// lineFixtures are programs with lines, and what GNU addr2line says of them.
// The compiled ones differ only in how their debugging information is written.
var lineFixtures = []struct{ file, list string }{
	{"lines.dwarf2.elf", "lines.compiled.txt"},
	{"lines.dwarf4.elf", "lines.compiled.txt"},
	{"lines.dwarf5.elf", "lines.compiled.txt"},
	{"lines.dwarf5.o", "lines.compiled.txt"}, // relocatable
	{"lines.wide.elf", "lines.compiled.txt"}, // 64-bit DWARF
	{"lines.compressed.elf", "lines.compiled.txt"},
	{"lines.oldcompressed.elf", "lines.compiled.txt"},
	{"lines.noaranges.elf", "lines.compiled.txt"},
	{"lines.noaranges4.elf", "lines.compiled.txt"},
	{"lines.split.elf", "lines.compiled.txt"},
	{"lines.x86_64.elf", "lines.x86_64.txt"},
	{"lines.aarch64.elf", "lines.aarch64.txt"},
	{"lines.powerpc64.elf", "lines.powerpc64.txt"},
	{"lines.powerpc64le.elf", "lines.powerpc64le.txt"},
}

func openFixture(t testing.TB, name string) *Image {
	t.Helper()
	im, err := OpenFile(filepath.Join("testdata", "formats", name), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

// wantLine is an answer of addr2line.
type wantLine struct {
	addr uint64
	file string
	line int
}

// wantLines reads answers, and moves them to where the image's text is.
func wantLines(t testing.TB, im *Image, name string) []wantLine {
	t.Helper()
	var list []wantLine
	for text := range strings.Lines(string(readFixture(t, name))) {
		var w wantLine
		var place string
		if _, err := fmt.Sscanf(text, "%v %s", &w.addr, &place); err != nil {
			t.Fatal(err)
		}
		i := strings.LastIndexByte(place, ':')
		w.file = path.Clean(place[:i])
		w.line, _ = strconv.Atoi(place[i+1:]) // "?" is 0
		list = append(list, w)
	}
	move := im.Text()[0].Addr - list[0].addr
	for i := range list {
		list[i].addr += move
	}
	return list
}

func TestLineLikeAddr2line(t *testing.T) {
	for _, tt := range lineFixtures {
		t.Run(tt.file, func(t *testing.T) {
			im := openFixture(t, tt.file)
			for _, w := range wantLines(t, im, tt.list) {
				file, line, ok := im.Line(w.addr)
				if file != w.file || line != w.line || !ok {
					t.Errorf("%#x: %s:%d, %v, want %s:%d", w.addr, file, line, ok, w.file, w.line)
				}
			}
		})
	}
}

func TestLineOutside(t *testing.T) {
	im := openFixture(t, "lines.dwarf5.elf")
	text := im.Text()[0]
	for _, addr := range []uint64{0, text.Addr - 1, text.End(), ^uint64(0)} {
		if file, line, ok := im.Line(addr); ok {
			t.Errorf("%#x: %s:%d", addr, file, line)
		}
	}
	if _, _, ok := openFixture(t, "frames.x86_64.elf").Line(0x4000b0); ok {
		t.Error("a line without DWARF")
	}
}

// The addresses of a line are such that addr2line ascribes to it.
func TestLineAddresses(t *testing.T) {
	for _, tt := range lineFixtures {
		t.Run(tt.file, func(t *testing.T) {
			im := openFixture(t, tt.file)
			want := wantLines(t, im, tt.list)
			for i, w := range want {
				if i > 0 && want[i-1].line == w.line && want[i-1].file == w.file {
					continue
				}
				got, err := im.lines.addrs(w.file, w.line)
				if err != nil {
					t.Errorf("%s:%d: %v", w.file, w.line, err)
				} else if !slices.ContainsFunc(got, func(a uint64) bool { return a <= w.addr && w.addr-a < 4 }) {
					t.Errorf("%s:%d: %#x, want one just before %#x", w.file, w.line, got, w.addr)
				}
				for _, addr := range got {
					if file, line, _ := im.Line(addr); file != w.file || line != w.line {
						t.Errorf("%s:%d: %#x is of %s:%d", w.file, w.line, addr, file, line)
					}
				}
			}
		})
	}
}

func TestLineAddressesByPartOfPath(t *testing.T) {
	im := openFixture(t, "lines.dwarf5.elf")
	helper, err := im.lines.addrs("/src/sub/helper.c", 3)
	if err != nil || len(helper) != 1 {
		t.Fatalf("%#x, %v", helper, err)
	}
	for _, tt := range []struct {
		file string
		line int
		err  string
	}{
		{"helper.c", 3, ""},
		{"sub/helper.c", 3, ""},
		{"./sub/../sub/helper.c", 3, ""},
		{"elper.c", 3, "no code comes from a file elper.c"},
		{"other/helper.c", 3, "no code comes from a file other/helper.c"},
		{"helper.c", 1, "no code comes from line 1 of helper.c; the next line that has code is 4"},
		{"helper.c", 1000, "no code comes from line 1000 of helper.c, nor from those after it"},
	} {
		got, err := im.lines.addrs(tt.file, tt.line)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s:%d: error %v, want %q", tt.file, tt.line, err, tt.err)
			}
		} else if err != nil || !slices.Equal(got, helper) {
			t.Errorf("%s:%d: %#x, %v, want %#x", tt.file, tt.line, got, err, helper)
		}
	}
}

// A line of a header has code wherever that was included.
func TestLineAddressesInSeveralUnits(t *testing.T) {
	im := openFixture(t, "lines.dwarf5.elf")
	got, err := im.lines.addrs("inc.h", 2)
	if err != nil {
		t.Fatal(err)
	}
	functions := make(map[string]bool)
	for _, addr := range got {
		name, _ := im.Symbolize(addr)
		functions[name] = true
	}
	for _, name := range []string{"_start", "helper", "unused"} {
		if !functions[name] {
			t.Errorf("none in %s: %#x", name, got)
		}
	}
}

// What is asked for tells which sections must be read.
func TestLineTableReadsWhatItNeeds(t *testing.T) {
	im := openFixture(t, "lines.dwarf5.elf")
	opened := make(map[string]bool)
	table := newLineTable(func(name string) (*io.SectionReader, error) {
		opened[name] = true
		return im.debugSection(name)
	}, im.order, func(uint64) bool { return true })
	if len(opened) > 0 {
		t.Fatalf("opened before it was asked: %v", opened)
	}
	if _, _, ok := table.line(im.Text()[0].Addr); !ok {
		t.Fatal("no line")
	}
	for name := range opened {
		switch name {
		case "rnglists", "ranges", "loclists", "frame":
			t.Errorf("read .debug_%s, although .debug_aranges tells the unit", name)
		}
	}
	for i := range im.lines.mustIndex(t).units {
		u := &im.lines.mustIndex(t).units[i]
		if u.rows != nil {
			t.Error("the image's own table was read")
		}
	}
}

func (t *lineTable) mustIndex(tb testing.TB) *lineIndex {
	tb.Helper()
	ix, err := t.index()
	if err != nil {
		tb.Fatal(err)
	}
	return ix
}

func TestLineTableConcurrently(t *testing.T) {
	im := openFixture(t, "lines.noaranges.elf")
	want := wantLines(t, im, "lines.compiled.txt")
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range want {
				w := want[(i*7+n)%len(want)]
				if _, line, _ := im.Line(w.addr); line != w.line {
					t.Errorf("%#x: line %d, want %d", w.addr, line, w.line)
				}
			}
			if _, err := im.lines.addrs("inc.h", 2); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// debugSections are sections of debugging information in memory.
type debugSections map[string][]byte

func (s debugSections) open(name string) (*io.SectionReader, error) {
	b, ok := s[name]
	if !ok {
		return nil, nil
	}
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), nil
}

var debugSectionNames = []string{
	"info", "line", "abbrev", "str", "line_str", "str_offsets", "addr", "aranges", "ranges", "rnglists",
}

func debugSectionsOf(t testing.TB, im *Image) debugSections {
	t.Helper()
	all := make(debugSections)
	for _, name := range debugSectionNames {
		r, err := im.debugSection(name)
		if err != nil {
			t.Fatal(err)
		}
		if r != nil {
			if all[name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// Sections that are cut off give fewer answers, no wrong ones.
func TestLineTableCutOff(t *testing.T) {
	im := openFixture(t, "lines.dwarf5.elf")
	whole := debugSectionsOf(t, im)
	want := wantLines(t, im, "lines.compiled.txt")
	for name, data := range whole {
		if name == "str" || name == "line_str" { // without them names are missing, and nothing tells
			continue
		}
		for n := range data {
			damaged := maps.Clone(whole)
			damaged[name] = data[:n]
			table := newLineTable(damaged.open, im.order, func(addr uint64) bool { return im.textAt(addr) >= 0 })
			for _, w := range want[:8] {
				if file, line, ok := table.line(w.addr); ok && (file != w.file || line != w.line) {
					t.Fatalf("%d bytes of .debug_%s: %#x: %s:%d, want %s:%d", n, name, w.addr, file, line, w.file, w.line)
				}
			}
		}
	}
}

// Linkers set the addresses of code that they leave out to 0.
func TestLineTableLeavesOutWhatIsNotInText(t *testing.T) {
	im := openFixture(t, "lines.dwarf5.elf")
	sections := debugSectionsOf(t, im)
	table := newLineTable(sections.open, im.order, func(uint64) bool { return false })
	if got, err := table.addrs("helper.c", 3); err == nil {
		t.Errorf("addresses %#x", got)
	}
}

func FuzzLineTable(f *testing.F) {
	files := []*Image{fixture(f, "inlined.5.amd64.so"), fixture(f, "inlined.4.amd64.o")}
	for _, name := range []string{"lines.dwarf4.elf", "lines.dwarf5.elf", "lines.wide.elf", "lines.noaranges.elf", "lines.powerpc64.elf"} {
		files = append(files, openFixture(f, name))
	}
	for _, im := range files {
		s := debugSectionsOf(f, im)
		var packed []byte
		for _, name := range debugSectionNames {
			packed = binary.LittleEndian.AppendUint32(packed, uint32(len(s[name])))
			packed = append(packed, s[name]...)
		}
		f.Add(packed, im.order == bigEndian, im.Text()[0].Addr)
	}
	f.Fuzz(func(t *testing.T, packed []byte, big bool, addr uint64) {
		s := make(debugSections)
		for _, name := range debugSectionNames {
			if len(packed) < 4 {
				break
			}
			n := min(int64(binary.LittleEndian.Uint32(packed)), int64(len(packed)-4))
			s[name] = packed[4 : 4+n]
			packed = packed[4+n:]
		}
		table := newLineTable(s.open, byteOrder(big), func(uint64) bool { return true })
		if _, line, ok := table.line(addr); ok && line <= 0 {
			t.Errorf("line %d", line)
		}
		if addrs := table.inlined("ns::hidden"); !slices.IsSorted(addrs) {
			t.Errorf("inlined at %#x", addrs)
		}
		if _, err := table.addrs("helper.c", 3); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error of several lines: %q", err)
		}
	})
}
