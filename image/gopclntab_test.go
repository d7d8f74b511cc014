package image

import (
	"bytes"
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"xol/internal/refdata"
	"xol/internal/skip"
)

// gosymFunctions returns what Go's own reader finds in a table.
func gosymFunctions(t testing.TB, data []byte, text uint64) []goFunc {
	t.Helper()
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, text))
	if err != nil {
		t.Fatal(err)
	}
	var fns []goFunc
	for i := range table.Funcs {
		if f := &table.Funcs[i]; f.Entry < f.End {
			fns = append(fns, goFunc{f.Name, f.Entry, f.End})
		}
	}
	return fns
}

// goTableVersions are named by the first release that wrote them.
var goTableVersions = []struct {
	name  string
	magic uint32
}{{"1.2", 0xfffffffb}, {"1.16", 0xfffffffa}, {"1.18", 0xfffffff0}, {"1.20", 0xfffffff1}}

// buildGoTable writes a table of the given version with the given functions,
// which must touch. start is what its header says that addresses count from.
func buildGoTable(magic uint32, order binary.AppendByteOrder, text, start uint64, fns []goFunc) []byte {
	var b, names, funcs, described []byte
	nameAt := make([]uint32, len(fns))
	names = append(names, 0)
	for i, f := range fns {
		nameAt[i] = uint32(len(names))
		names = append(append(names, f.name...), 0)
	}
	narrow := magic == 0xfffffff0 || magic == 0xfffffff1
	word := func(b []byte, v uint64) []byte {
		if narrow {
			return order.AppendUint32(b, uint32(v))
		}
		return order.AppendUint64(b, v)
	}
	addr, size := func(v uint64) uint64 { return v }, 8
	if narrow {
		addr, size = func(v uint64) uint64 { return v - text }, 4
	}
	header := []uint64{uint64(len(fns))}
	namesAt, funcsAt := 16, 16 // of Go 1.2: the names are where they happen to be
	switch {
	case narrow:
		namesAt = 8 + 8*8
		header = append(header, 0, start, uint64(namesAt), 0, 0, 0, uint64(namesAt+len(names)))
		funcsAt = namesAt + len(names)
	case magic == 0xfffffffa:
		namesAt = 8 + 8*7
		header = append(header, 0, uint64(namesAt), 0, 0, 0, uint64(namesAt+len(names)))
		funcsAt = namesAt + len(names)
	}
	tableSize := (2*len(fns) + 1) * size
	nameBase, describedBase := 0, tableSize
	if magic == 0xfffffffb {
		nameBase = funcsAt + tableSize
		describedBase = nameBase + len(names)
	}
	for i, f := range fns {
		funcs = word(word(funcs, addr(f.lo)), uint64(describedBase+len(described)))
		described = word(described, addr(f.lo))
		described = order.AppendUint32(described, nameAt[i]+uint32(nameBase))
		described = append(described, make([]byte, 36)...)
	}
	funcs = word(funcs, addr(fns[len(fns)-1].hi))
	b = append(order.AppendUint32(b, magic), 0, 0, 1, 8)
	for _, v := range header {
		b = order.AppendUint64(b, v)
	}
	if magic == 0xfffffffb {
		return slices.Concat(b, funcs, names, described)
	}
	return slices.Concat(b, names, funcs, described)
}

var someGoFuncs = []goFunc{
	{"internal/cpu.Initialize", 0x401000, 0x401060},
	{"runtime.(*mheap).alloc", 0x401060, 0x402000},
	{"slices.Sort[go.shape.[]int,go.shape.int]", 0x402000, 0x402001},
	{"main.main", 0x402001, 0x402800},
}

func TestGoFunctionsOfEachVersion(t *testing.T) {
	text := extent{0x401000, 0x403000}
	for _, v := range goTableVersions {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			for _, start := range []uint64{text.lo, 0} { // Go 1.26 writes 0
				t.Run(fmt.Sprintf("%s/%v/start=%#x", v.name, order, start), func(t *testing.T) {
					data := buildGoTable(v.magic, order, text.lo, start, someGoFuncs)
					if judge := gosymFunctions(t, data, text.lo); !slices.Equal(judge, someGoFuncs) {
						t.Fatalf("the table is wrong: gosym reads %#x", judge)
					}
					got, err := goFunctions(data, text, order.(binary.ByteOrder))
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(got, someGoFuncs) {
						t.Errorf("got %#x", got)
					}
				})
			}
		}
	}
}

// A header that says where addresses count from is believed: text may begin
// with what C compilers made.
func TestGoFunctionsOfMixedProgram(t *testing.T) {
	data := buildGoTable(0xfffffff1, binary.LittleEndian, 0x401000, 0x401000, someGoFuncs)
	got, err := goFunctions(data, extent{0x400f00, 0x403000}, binary.LittleEndian)
	if err != nil || !slices.Equal(got, someGoFuncs) {
		t.Errorf("got %#x, %v", got, err)
	}
}

// The running test is a Go program, too.
func TestReadGoFunctionsOfThisProgram(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		skip.Missing(t, "a test program that is an ELF file", err)
	}
	table, err := f.Section(".gopclntab").Data()
	if err != nil {
		t.Fatal(err)
	}
	if f.Type != elf.ET_EXEC {
		skip.Missing(t, "a test program that runs at its file's addresses")
	}
	// Where the functions start is known by where this one is.
	want := gosymFunctions(t, table, 0)
	self := slices.IndexFunc(want, func(f goFunc) bool { return strings.HasSuffix(f.name, "."+t.Name()) })
	if self < 0 {
		t.Fatal("gosym does not find this function")
	}
	start := uint64(reflect.ValueOf(TestReadGoFunctionsOfThisProgram).Pointer()) - want[self].lo
	for i := range want {
		want[i].lo += start
		want[i].hi += start
	}

	bare := bytes.Clone(program)
	clear(bare[40:48]) // e_shoff
	clear(bare[60:64]) // e_shnum, e_shstrndx
	for name, file := range map[string][]byte{"as it is": program, "without section headers": bare} {
		t.Run(name, func(t *testing.T) {
			im, err := Open(bytes.NewReader(file), int64(len(file)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := im.readGoFunctions()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d functions, want %d as gosym finds", len(got), len(want))
			}
		})
	}
}

func TestReadGoFunctionsOfOtherProgram(t *testing.T) {
	fns, err := openFixture(t, "lines.dwarf5.elf").readGoFunctions()
	if len(fns) > 0 || err != nil {
		t.Errorf("%d functions, %v", len(fns), err)
	}
}

// Go's own tests have the table of a program that Go 1.15 made.
func TestGoFunctionsOfGo115(t *testing.T) {
	data, err := refdata.Read(filepath.Join(build.Default.GOROOT, "src/debug/gosym/testdata/pcln115.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		skip.Missing(t, "the source of Go", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := goFunctions(data, extent{0, 1 << 40}, binary.LittleEndian)
	if err != nil {
		t.Fatal(err)
	}
	if want := gosymFunctions(t, data, 0); !slices.Equal(got, want) {
		t.Errorf("%d functions, want %d as gosym finds", len(got), len(want))
	}
}

func TestGoFunctionsRefuses(t *testing.T) {
	text := extent{0x401000, 0x403000}
	whole := buildGoTable(0xfffffff1, binary.LittleEndian, text.lo, 0, someGoFuncs)
	edit := func(off int, v uint64) []byte {
		b := bytes.Clone(whole)
		binary.LittleEndian.PutUint64(b[off:], v)
		return b
	}
	funcs := bytes.LastIndex(whole, []byte("main.main\x00")) + len("main.main\x00")
	for _, tt := range []struct {
		name string
		data []byte
		text string
	}{
		{"empty", nil, "cut off (.gopclntab)"},
		{"header cut off", whole[:40], "cut off (.gopclntab)"},
		{"unknown version", edit(0, 0x08010000_fffffff2), "unknown version (begins with f2 ff ff ff 00 00 01 08)"},
		{"other byte order", buildGoTable(0xfffffff1, binary.BigEndian, text.lo, 0, someGoFuncs), "unknown version"},
		{"32 bits", edit(0, 0x04010000_fffffff1), "unknown version"},
		{"huge count", edit(8, 1<<60), "cut off (.gopclntab, 1152921504606846976 functions)"},
		{"huge count that wraps around", edit(8, 1<<63), "cut off"},
		{"names beyond the end", edit(8+3*8, 1<<40), "cut off"},
		{"functions beyond the end", edit(8+7*8, 1<<40), "cut off"},
		{"functions cut off", whole[:funcs+20], "cut off (.gopclntab, 4 functions)"},
		{"addresses outside text", buildGoTable(0xfffffff1, binary.LittleEndian, text.lo, 0, []goFunc{{"f", 0x401000, 0x404000}}), "addresses not in text (.gopclntab, function 0)"},
		{"addresses backwards", buildGoTable(0xfffffff1, binary.LittleEndian, text.lo, 0, []goFunc{{"f", 0x402000, 0x402000}, {"g", 0x401000, 0x403000}}), "addresses not in text (.gopclntab, function 0)"},
		{"description outside", edit(funcs, 0xffffffff_00000000), "description outside the table (.gopclntab, function 0)"},
		{"name outside", edit(len(whole)-40, 0xffffffff), "name outside the table (.gopclntab, function 3)"},
		{"name without an end", buildGoTable(0xfffffff1, binary.LittleEndian, text.lo, 0, []goFunc{{strings.Repeat("f", maxGoName), 0x401000, 0x402000}}), "name without an end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := goFunctions(tt.data, text, binary.LittleEndian)
			if fe := new(FormatError); !errors.As(err, &fe) {
				t.Fatalf("error %v is no FormatError", err)
			}
			if !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %q, want %q", err, tt.text)
			}
		})
	}
}

func TestFindGoTable(t *testing.T) {
	table := buildGoTable(0xfffffff1, binary.BigEndian, 0x401000, 0, someGoFuncs)
	// Something that begins like a table, but is none, stands before it.
	data := slices.Concat(make([]byte, 64), table[:8], bytes.Repeat([]byte{0xff}, 72), table)
	if got := findGoTable(data, bigEndian); got != 144 {
		t.Errorf("found at %d, want 144", got)
	}
	if got := findGoTable(data, littleEndian); got != -1 {
		t.Errorf("found at %d in the other byte order", got)
	}
	if got := findGoTable(data[:144], bigEndian); got != -1 {
		t.Errorf("found at %d where there is none", got)
	}
}

func TestFindGoText(t *testing.T) {
	text := extent{0x400f00, 0x403000}
	record := func(table, minPC, start uint64) []byte {
		words := make([]uint64, 30)
		words[0], words[20], words[21], words[22], words[23] = table, minPC, 0x402800, start, 0x402f00
		b, _ := binary.Append(nil, binary.LittleEndian, words)
		return b
	}
	for _, tt := range []struct {
		name string
		data []byte
		want uint64
	}{
		{"record", record(0x4d5348, 0x401000, 0x401000), 0x401000},
		{"after something else", slices.Concat(record(1, 2, 3), record(0x4d5348, 0x401040, 0x401000)), 0x401000},
		{"another pointer to the table", slices.Concat(record(0x4d5348, 7, 8), record(0x4d5348, 0x401000, 0x401000)), 0x401000},
		{"another table", record(0x4d5000, 0x401000, 0x401000), 0},
		{"outside text", record(0x4d5348, 0x501000, 0x501000), 0},
		{"cut off", record(0x4d5348, 0x401000, 0x401000)[:8*22], 0},
	} {
		got, ok := findGoText(tt.data, 0x4d5348, text, littleEndian)
		if got != tt.want || ok != (tt.want != 0) {
			t.Errorf("%s: %#x, %v, want %#x", tt.name, got, ok, tt.want)
		}
	}
}

func FuzzGoFunctions(f *testing.F) {
	for _, v := range goTableVersions {
		f.Add(buildGoTable(v.magic, binary.LittleEndian, 0x401000, 0, someGoFuncs), uint64(0x401000), uint64(0x403000), false)
		f.Add(buildGoTable(v.magic, binary.BigEndian, 0x401000, 0x401000, someGoFuncs), uint64(0x401000), uint64(0x403000), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, lo, hi uint64, big bool) {
		order := binary.ByteOrder(binary.LittleEndian)
		if big {
			order = binary.BigEndian
		}
		findGoTable(data, byteOrder(big))
		fns, _ := goFunctions(data, extent{lo, hi}, order)
		for _, fn := range fns {
			if fn.lo >= fn.hi || fn.lo < lo || fn.hi > hi {
				t.Errorf("function %#x", fn)
			}
		}
	})
}
