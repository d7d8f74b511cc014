package image

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"xol/place"
)

// fixtureFiles are all ELF files of testdata/elf but debug files.
func fixtureFiles(t testing.TB) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	paths, err := filepath.Glob(filepath.Join("testdata", "elf", "*64*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(b, []byte(elf.ELFMAG)) && filepath.Ext(path) != ".debug" {
			files[filepath.Base(path)] = b
		}
	}
	if len(files) < len(targets) {
		t.Fatal("no fixtures")
	}
	return files
}

// exercise calls all that reads the file, and checks what must hold of any
// file whatever it contains. It returns the first error.
func exercise(t testing.TB, file []byte, opt Options) error {
	t.Helper()
	im, err := Open(bytes.NewReader(file), int64(len(file)), opt)
	if err != nil {
		return err
	}
	defer im.Close()
	_, _, _, _ = im.Machine(), im.ByteOrder(), im.ABI(), im.Format()
	for _, e := range []Extent{ExtentSymbol, ExtentNext} {
		fns, ferr := im.Functions(e)
		checkFunctions(t, im, fns)
		err = errors.Join(err, ferr)
	}
	marks, merr := im.Marks()
	if !slices.IsSortedFunc(marks, func(a, b place.Mark) int { return cmp.Compare(a.Addr, b.Addr) }) {
		t.Error("marks are not sorted")
	}
	err = errors.Join(err, merr)
	landings, lerr := im.Landings()
	checkLandings(t, im, landings)
	err = errors.Join(err, lerr)
	for _, r := range im.Text() {
		code, cerr := im.Code(nil, r.Addr, min(r.Size, 1<<16))
		if cerr == nil && uint64(len(code)) != min(r.Size, 1<<16) {
			t.Errorf("%d bytes of code at %#x, want %d", len(code), r.Addr, r.Size)
		}
		err = errors.Join(err, cerr)
		im.Symbolize(r.Addr)
		im.Symbolize(r.End())
		im.OffsetOf(r.Addr)
		im.Line(r.Addr)
	}
	for _, place := range []string{"_start", "entry+4", "file:0x1000", "0x401000", "functions.S:31", ".text", "x::y"} {
		im.Resolve(place)
	}
	im.Match(ExtentNext, "*a?[b-z]*")
	return err
}

func checkLandings(t testing.TB, im *Image, landings place.Landings) {
	t.Helper()
	if !slices.IsSortedFunc(landings, func(a, b place.Landing) int { return cmp.Compare(a.Addr, b.Addr) }) {
		t.Error("landings are not sorted")
	}
	for _, l := range landings {
		if im.textAt(l.Addr) < 0 {
			t.Errorf("landing (%v) at %#x is not in text", l.Kind, l.Addr)
		}
		if target, ok := im.Pointer(l.From); ok && im.sectionAt(target) == nil {
			t.Errorf("pointer at %#x leads to %#x, which is nowhere", l.From, target)
		}
		if end, ok := im.DataEnd(l.Addr); !ok || end <= l.Addr {
			t.Errorf("end of the section that holds %#x: %#x, %v", l.Addr, end, ok)
		}
	}
}

func checkFunctions(t testing.TB, im *Image, fns []Function) {
	t.Helper()
	end := uint64(0)
	for i := range fns {
		f := &fns[i]
		if f.Size == 0 || f.Addr < end || f.End() < f.Addr {
			t.Errorf("function %q: %#x, %d bytes, after %#x", f.Name, f.Addr, f.Size, end)
		}
		if text := im.textAt(f.Addr); text < 0 || text != im.textAt(f.End()-1) {
			t.Errorf("function %q is not in text", f.Name)
		}
		end = f.End()
	}
}

// TestFixtures finds nothing wrong in files that are right.
func TestFixtures(t *testing.T) {
	for name, file := range fixtureFiles(t) {
		if err := exercise(t, file, Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCutOff cuts files off everywhere.
func TestCutOff(t *testing.T) {
	for name, file := range fixtureFiles(t) {
		step := 1 + len(file)/60
		cuts := boundaries(t, file)
		for n := 0; n < len(file); n += step {
			cuts = append(cuts, n)
		}
		for _, n := range cuts {
			err := exercise(t, file[:n], Options{})
			if n < ehdrSize && err == nil {
				t.Errorf("%s: no error when cut off after %d bytes", name, n)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("%s, cut off after %d bytes: more than one line: %v", name, n, err)
			}
		}
	}
}

// TestOverwritten overwrites parts of files whose headers stay: no panic, and
// no functions that overlap.
func TestOverwritten(t *testing.T) {
	for _, file := range fixtureFiles(t) {
		order := binary.ByteOrder(binary.LittleEndian)
		if file[elf.EI_DATA] == byte(elf.ELFDATA2MSB) {
			order = binary.BigEndian
		}
		shoff := int(order.Uint64(file[40:]))
		for _, n := range boundaries(t, file) {
			if n < ehdrSize || n >= shoff {
				continue
			}
			for _, fill := range []byte{0, 0xff} {
				damaged := slices.Clone(file)
				part := damaged[n:min(n+64, shoff)]
				for i := range part {
					part[i] = fill
				}
				_ = exercise(t, damaged, Options{}) // an error is fine
			}
		}
	}
}

// boundaries returns where the headers and sections of a file start and end,
// and the bytes beside.
func boundaries(t *testing.T, file []byte) []int {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var cuts []int
	at := func(off uint64) {
		for _, n := range []int{int(off) - 1, int(off), int(off) + 1} {
			if n >= 0 && n < len(file) {
				cuts = append(cuts, n)
			}
		}
	}
	at(ehdrSize)
	shoff := f.ByteOrder.Uint64(file[40:])
	for i, s := range f.Sections {
		at(s.Offset)
		at(s.Offset + s.FileSize)
		at(shoff + uint64(i)*shdrSize)
	}
	for i := range f.Progs {
		at(ehdrSize + uint64(i)*phdrSize)
	}
	return cuts
}

// edit returns a copy of a file with a value of 2, 4 or 8 bytes, as the
// length of mask says, put at off.
func edit(file []byte, off int, size int, value uint64) []byte {
	file = slices.Clone(file)
	switch size {
	case 2:
		binary.LittleEndian.PutUint16(file[off:], uint16(value))
	case 4:
		binary.LittleEndian.PutUint32(file[off:], uint32(value))
	case 8:
		binary.LittleEndian.PutUint64(file[off:], value)
	}
	return file
}

// shdr returns the offset of a field in the header of a section.
func shdr(t *testing.T, file []byte, section string, field int) int {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range f.Sections {
		if s.Name == section {
			return int(binary.LittleEndian.Uint64(file[40:])) + i*shdrSize + field
		}
	}
	t.Fatalf("no section %s", section)
	return 0
}

// Offsets of fields in a section header.
const (
	shOffset = 24
	shSize   = 32
	shLink   = 40
	shInfo   = 44
	shAlign  = 48
)

func TestBadInput(t *testing.T) {
	good, err := os.ReadFile(filepath.Join("testdata", "elf", "functions.amd64"))
	if err != nil {
		t.Fatal(err)
	}
	object, err := os.ReadFile(filepath.Join("testdata", "elf", "relocs.amd64.o"))
	if err != nil {
		t.Fatal(err)
	}
	wide := edit(edit(good, 60, 2, 0), int(binary.LittleEndian.Uint64(good[40:]))+shSize, 8, 1<<40)
	relas := shdr(t, object, ".rela.text", shOffset)
	firstRela := int(binary.LittleEndian.Uint64(object[relas:]))
	for _, tc := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "the file is empty"},
		{"text", []byte("#!/bin/sh\n"), "not an ELF file, and no packed kernel or module either"},
		{"magic number only", good[:4], "the file is cut off (ELF header)"},
		{"32-bit", edit(good, 4, 2, 0x0101), "not a 64-bit ELF file; only 64-bit ones are supported"},
		{"core file", edit(good, 16, 2, uint64(elf.ET_CORE)), "ELF type ET_CORE is not supported (supported: ET_EXEC, ET_DYN, ET_REL)"},
		{"section headers outside", edit(good, 40, 8, 1<<40), "the file is cut off (section headers at 0x10000000000)"},
		{"program headers outside", edit(good, 32, 8, 1<<62), "the file is cut off (program headers at 0x4000000000000000)"},
		{"too many program headers", edit(good, 56, 2, 0xffff), "the file is cut off (program headers at 0x40)"},
		{"too many section headers", wide, "the file is cut off (headers)"},
		{"section outside", edit(good, shdr(t, good, ".text", shOffset), 8, 1<<40), "the file is cut off (section .text)"},
		{"section too large", edit(good, shdr(t, good, ".symtab", shSize), 8, 1<<60), "the file is cut off (section .symtab)"},
		{"section around the address space", edit(edit(good, shdr(t, good, ".text", 16), 8, 1<<64-8), 16, 2, 2), "section goes beyond the end of the address space (section .text)"},
		{"no string table", edit(good, shdr(t, good, ".symtab", shLink), 4, 1<<31), "no string table (section .symtab)"},
		{"name outside", edit(good, shdr(t, good, ".strtab", shSize), 8, 4), "name outside the string table (symbol 2 of section .symtab)"},
		{"bss too large", edit(object, shdr(t, object, ".bss", shSize), 8, 1<<60), "section does not fit into memory (section .bss)"},
		{"alignment is no power of 2", edit(object, shdr(t, object, ".text", shAlign), 8, 48), "section does not fit into memory (section .text)"},
		{"relocation outside", edit(object, firstRela, 8, 1<<50), "relocation outside its section (entry 0 of section .rela.text)"},
		{"relocation without a symbol", edit(object, firstRela+12, 4, 1<<30), "relocation against a symbol that does not exist (entry 0 of section .rela.text)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := exercise(t, tc.file, Options{})
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatal("no error")
			}
			if got, _, _ := strings.Cut(err.Error(), "\n"); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
				t.Errorf("%d bytes were allocated", used)
			}
		})
	}
}

// TestNoSectionHeaders reads a file that has segments only.
func TestNoSectionHeaders(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("testdata", "elf", "stripped.amd64"))
	if err != nil {
		t.Fatal(err)
	}
	file = edit(edit(edit(file, 40, 8, 0), 60, 2, 0), 62, 2, 0)
	im, err := Open(bytes.NewReader(file), int64(len(file)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	fns, err := im.Functions(ExtentSymbol)
	if err != nil {
		t.Fatal(err)
	}
	if len(fns) != 1 || fns[0].Name != "entry" || fns[0].Addr != 0x401000 || fns[0].Source != FromEntry {
		t.Errorf("got %+v", fns)
	}
}

func TestOpenFile(t *testing.T) {
	if _, err := OpenFile(filepath.Join("testdata", "no such file"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := OpenFile("testdata", Options{}); !errors.Is(err, ErrNotELF) {
		t.Errorf("folder: %v", err)
	}
}

// TestUserSymbols reads stripped kernels with the symbols that nm lists, as
// they stand and as a randomized kernel shows them: nothing may differ.
func TestUserSymbols(t *testing.T) {
	for _, target := range targets {
		for _, shift := range []uint64{0, 0x1600000} {
			t.Run(fmt.Sprintf("%s %#x", target, shift), func(t *testing.T) {
				path := filepath.Join("testdata", "elf", "kernel."+target)
				file, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				symbols, err := os.ReadFile(path + ".map")
				if err != nil {
					t.Fatal(err)
				}
				f, err := elf.NewFile(bytes.NewReader(file))
				if err != nil {
					t.Fatal(err)
				}
				hideSymbols(file, f)
				im, err := Open(bytes.NewReader(file), int64(len(file)), Options{Symbols: strings.NewReader(moved(t, string(symbols), shift))})
				if err != nil {
					t.Fatal(err)
				}
				compareImages(t, im, fixture(t, "kernel."+target), func(uint64) bool { return true })
			})
		}
	}
}

// moved adds a number to the addresses of a symbol map.
func moved(t *testing.T, symbols string, shift uint64) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(symbols) {
		addr, rest, _ := strings.Cut(line, " ")
		n, err := strconv.ParseUint(addr, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%016x %s", n+shift, rest)
	}
	return b.String()
}

// compareImages compares functions and marks at the addresses that are of
// interest, but for local entry points and data in text: maps know neither.
func compareImages(t *testing.T, got, want *Image, at func(addr uint64) bool) {
	t.Helper()
	describe := func(im *Image) []string {
		fns, err := im.Functions(ExtentNext)
		if err != nil {
			t.Fatal(err)
		}
		marks, err := im.Marks()
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, f := range fns {
			if at(f.Addr) {
				lines = append(lines, fmt.Sprintf("%#x %d bytes %s", f.Addr, f.Size, f.Name))
			}
		}
		for _, m := range marks {
			if at(m.Addr) && m.Kind != place.Data {
				lines = append(lines, fmt.Sprintf("%#x %d bytes kind %#x", m.Addr, m.Len, m.Kind))
			}
		}
		return lines
	}
	compareLines(t, describe(got), describe(want))
}

// TestRawKernel reads an arm64 kernel as it stands in memory, without ELF
// headers: the symbols tell where what is.
func TestRawKernel(t *testing.T) {
	want := fixture(t, "kernel.arm64")
	base := want.text[0].Addr
	end := want.sections[want.byAddr[len(want.byAddr)-1]].end()
	const head = 0x1000 // room for the header that starts such an image
	file := make([]byte, head+end-base)
	copy(file[56:], "ARMd")
	for _, i := range want.byAddr {
		s := &want.sections[i]
		if !s.inFile() {
			continue
		}
		data, err := want.contents(s)
		if err != nil {
			t.Fatal(err)
		}
		copy(file[head+s.addr-base:], data)
	}
	symbols, err := os.ReadFile(filepath.Join("testdata", "elf", "kernel.arm64.map"))
	if err != nil {
		t.Fatal(err)
	}
	// Here the image starts with its header, and its relocations are between
	// symbols, not in a section.
	relas := want.sectionNamed(".rela.dyn")
	text := strings.ReplaceAll(string(symbols), fmt.Sprintf("%016x T _text\n", base), fmt.Sprintf("%016x T _text\n", base-head)) +
		fmt.Sprintf("%016x R __pi_rela_start\n%016x R __pi_rela_end\n", relas.addr, relas.end())

	if _, err := Open(bytes.NewReader(file), int64(len(file)), Options{}); !errors.Is(err, ErrNoSymbols) {
		t.Errorf("without symbols: %v", err)
	}
	im, err := Open(bytes.NewReader(file), int64(len(file)), Options{Symbols: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	if im.Kind() != KindKernel || im.Machine() != elf.EM_AARCH64 || im.Format().raw == nil {
		t.Errorf("got kind %v, machine %v, format %+v", im.Kind(), im.Machine(), im.Format())
	}
	outside := want.sectionNamed(".outside.text")
	compareImages(t, im, want, func(addr uint64) bool {
		return addr >= base && addr-outside.addr >= outside.size
	})
}

func FuzzOpen(f *testing.F) {
	for _, file := range fixtureFiles(f) {
		f.Add(file, "")
	}
	f.Add(fixtureFiles(f)["stripped.amd64"], "0000000000401000 T _text\n0000000000401010 t sized\n")
	f.Fuzz(func(t *testing.T, file []byte, symbols string) {
		var opt Options
		if symbols != "" {
			opt.Symbols = strings.NewReader(symbols)
		}
		_ = exercise(t, file, opt)
	})
}

// TestConcurrent uses one image from many goroutines; the race detector is the
// judge.
func TestConcurrent(t *testing.T) {
	for _, name := range []string{"kernel.arm64", "module.ppc64le.ko", "stripped.amd64"} {
		im := fixture(t, name)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if _, err := im.Marks(); err != nil {
					t.Error(err)
				}
				if _, err := im.Landings(); err != nil {
					t.Error(err)
				}
				for _, r := range im.Text() {
					im.Pointer(r.Addr)
					if _, err := im.Code(nil, r.Addr, r.Size); err != nil {
						t.Error(err)
					}
					if name, _ := im.Symbolize(r.Addr); name == "" {
						t.Errorf("no name for %#x", r.Addr)
					}
					im.Line(r.Addr)
				}
			})
		}
		group.Wait()
	}
}

// newImage returns the image of a file that a test has made.
func newImage(f file) *Image {
	im := new(Image)
	im.file = f
	return im
}

func (o byteOrder) put32(b []byte, v uint32) {
	if o == bigEndian {
		v = bits.ReverseBytes32(v)
	}
	binary.LittleEndian.PutUint32(b, v)
}
