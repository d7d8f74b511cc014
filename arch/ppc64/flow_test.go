package ppc64

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/internal/refdata"
	"xol/optcheck/flow"
)

// program is an ELF file, a TOCMemory.
type program struct{ *image.Image }

var _ TOCMemory = program{}

func (p *program) isa() ISA {
	return ISA{LittleEndian: p.ByteOrder() == binary.ByteOrder(binary.LittleEndian)}
}

// openProgram opens an ELF file.
func openProgram(tb testing.TB, file []byte) *program {
	tb.Helper()
	im, err := image.Open(bytes.NewReader(file), int64(len(file)), image.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return &program{im}
}

// function returns the size bytes at addr.
func (p *program) function(tb testing.TB, name string, addr, size uint64) *classify.Func {
	tb.Helper()
	code, err := p.Code(nil, addr, size)
	if err != nil {
		tb.Fatal(err)
	}
	return &classify.Func{Name: name, Addr: addr, Code: code, Insts: decode.Sweep(p.isa(), nil, code, addr)}
}

// targets reads the first n entries of a table.
func (p *program) targets(t *flow.Table, n int) (targets []uint64, err error) {
	for i := range n {
		at := t.Addr + uint64(i)*uint64(t.Width)
		if t.Width == 8 && t.Base == 0 {
			target, ok := p.Pointer(at)
			if !ok {
				return targets, fmt.Errorf("no pointer at %#x", at)
			}
			targets = append(targets, target)
			continue
		}
		b, err := p.Data(nil, at, uint64(t.Width))
		if err != nil {
			return targets, err
		}
		if t.Width != 4 || !t.Signed {
			return targets, fmt.Errorf("entries of %d bytes, signed: %t", t.Width, t.Signed)
		}
		targets = append(targets, t.Base+uint64(int64(int32(p.ByteOrder().Uint32(b))))<<t.Shift)
	}
	return targets, nil
}

// fixture is a file of testdata/switch with the tables that its compiler's
// output says it has.
type fixture struct {
	*program
	name      string
	functions map[string]*classify.Func
	tables    map[string][]expectedTable // by function
}

// expectedTable is a row of tables.txt.
type expectedTable struct {
	addr, base uint64
	targets    []uint64
}

// fixtures reads testdata/switch.
func fixtures(tb testing.TB) (all []*fixture) {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", "switch", "tables.txt"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var symbols map[string]uint64
	for s := bufio.NewScanner(f); s.Scan(); {
		columns := strings.Fields(s.Text())
		if columns[0] == "#" {
			var x *fixture
			x, symbols = newFixture(tb, columns[1])
			all = append(all, x)
			continue
		}
		row := expectedTable{addr: symbols[columns[1]], base: symbols[columns[2]]}
		for _, label := range columns[3:] {
			if label == "0" {
				label = columns[2]
			}
			row.targets = append(row.targets, symbols[label])
		}
		x := all[len(all)-1]
		x.tables[columns[0]] = append(x.tables[columns[0]], row)
	}
	return all
}

// newFixture opens a file and returns its symbols.
func newFixture(tb testing.TB, name string) (*fixture, map[string]uint64) {
	tb.Helper()
	file := unzipped(tb, filepath.Join("testdata", "switch", name+".so.gz"))
	x := &fixture{name: name, functions: make(map[string]*classify.Func), tables: make(map[string][]expectedTable)}
	x.program = openProgram(tb, file)
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		tb.Fatal(err)
	}
	list, err := f.Symbols()
	if err != nil {
		tb.Fatal(err)
	}
	symbols := make(map[string]uint64)
	for _, s := range list {
		symbols[s.Name] = s.Value
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF || s.Size == 0 {
			continue
		}
		addr := s.Value
		if sec := f.Sections[s.Section]; sec.Name == ".opd" { // a function descriptor
			b, err := x.Data(nil, addr, 8)
			if err != nil {
				tb.Fatal(err)
			}
			addr = x.ByteOrder().Uint64(b)
		}
		x.functions[s.Name] = x.function(tb, s.Name, addr, s.Size)
	}
	return x, symbols
}

func unzipped(tb testing.TB, path string) []byte {
	tb.Helper()
	file, err := refdata.Read(path)
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

// jumps returns what IndirectJump says of each indirect jump of f.
func (p *program) jumps(f *classify.Func) (jumps []flow.Jump) {
	for i := range f.Insts {
		if f.Insts[i].Flow == decode.FlowJumpIndirect {
			jumps = append(jumps, p.isa().IndirectJump(new(flow.Tracer), f, i, p))
		}
	}
	return jumps
}

// check compares the tables of one function with those of the compiler.
func (x *fixture) check(t *testing.T, f *classify.Func) {
	t.Helper()
	found := make([]bool, len(x.tables[f.Name]))
	for _, j := range x.jumps(f) {
		if j.Kind == flow.JumpUnresolved {
			t.Errorf("%s: unresolved: %s", f.Name, j.What)
		}
		if j.Kind != flow.JumpTable {
			continue
		}
		i := slices.IndexFunc(x.tables[f.Name], func(e expectedTable) bool { return e.addr == j.Table.Addr && e.base == j.Table.Base })
		if i < 0 {
			t.Errorf("%s: there is no table %+v", f.Name, j.Table)
			continue
		}
		found[i] = true
		want := x.tables[f.Name][i].targets
		got, err := x.targets(&j.Table, len(want))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: entries %#x, want %#x: %v", f.Name, got, want, err)
		}
		x.checkBound(t, f, &j.Table, len(want))
	}
	for i, e := range x.tables[f.Name] {
		if !found[i] && e.base != 0 {
			t.Errorf("%s: table at %#x not found", f.Name, e.addr)
		}
	}
}

// unbounded are the functions whose tables need no comparison.
var unbounded = map[string]bool{"labels": true, "distances": true, "never_else": true, "machine": true}

func (x *fixture) checkBound(t *testing.T, f *classify.Func, table *flow.Table, entries int) {
	t.Helper()
	switch table.Bound {
	case flow.BoundNone:
		followed := len(x.tables[f.Name]) > 1 && table.Addr-f.Addr >= uint64(len(f.Code)) // by another table
		if !unbounded[f.Name] && !followed {
			t.Errorf("%s: no bound", f.Name)
		}
	case flow.BoundCompare:
		if table.Count != entries {
			t.Errorf("%s: %d entries, want %d", f.Name, table.Count, entries)
		}
	case flow.BoundMask:
		if table.Count < entries {
			t.Errorf("%s: at most %d entries, want %d", f.Name, table.Count, entries)
		}
	}
	if i, start := decode.Find(f.Insts, table.Check); table.Bound != flow.BoundNone && (!start || f.Insts[i].Flow != decode.FlowNone) {
		t.Errorf("%s: check at %#x", f.Name, table.Check)
	}
}

func TestTablesOfCompilers(t *testing.T) {
	for _, x := range fixtures(t) {
		t.Run(x.name, func(t *testing.T) {
			if len(x.tables) < 14 {
				t.Fatalf("the list has tables of %d functions", len(x.tables))
			}
			for _, name := range slices.Sorted(maps.Keys(x.functions)) {
				x.check(t, x.functions[name])
			}
		})
	}
}
