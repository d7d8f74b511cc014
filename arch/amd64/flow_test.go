package amd64_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xol/arch/amd64"
	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/internal/refdata"
	"xol/optcheck/flow"
)

// switchFile returns a file that testdata/switch/build.sh has made.
func switchFile(t testing.TB, name string) *bytes.Reader {
	t.Helper()
	file, err := refdata.Read("testdata/switch/" + name + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(file)
}

func openSwitch(t testing.TB, file *bytes.Reader) *image.Image {
	t.Helper()
	im, err := image.Open(file, file.Size(), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// functionsOf returns the decoded functions of a file.
func functionsOf(t testing.TB, im *image.Image) []classify.Func {
	t.Helper()
	list, err := im.Functions(image.ExtentSymbol)
	if err != nil {
		t.Fatal(err)
	}
	fns := make([]classify.Func, len(list))
	for i, l := range list {
		code, err := im.Code(nil, l.Addr, l.Size)
		if err != nil {
			t.Fatal(err)
		}
		fns[i] = classify.Func{Name: l.Name, Addr: l.Addr, Code: code, Insts: decode.Sweep(amd64.ISA{}, nil, code, l.Addr)}
	}
	return fns
}

// eachJump calls visit for each indirect jump of f with what is known of it.
func eachJump(f *classify.Func, mem flow.Memory, visit func(inst *decode.Inst, j flow.Jump)) {
	for i := range f.Insts {
		if f.Insts[i].Flow == decode.FlowJumpIndirect {
			visit(&f.Insts[i], amd64.ISA{}.IndirectJump(new(flow.Tracer), f, i, mem))
		}
	}
}

// compiledTable is a jump table of a compiler's assembly.
type compiledTable struct {
	width   int
	targets []uint64
	found   bool
}

func compiledTables(t testing.TB) map[string]map[uint64]*compiledTable {
	rows, err := refdata.Rows("testdata/switch/tables.tsv.gz")
	if err != nil {
		t.Fatal(err)
	}
	hex := func(s string) uint64 {
		v, err := strconv.ParseUint(s, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	files := map[string]map[uint64]*compiledTable{}
	for _, row := range rows {
		c := new(compiledTable)
		if c.width, err = strconv.Atoi(row[2]); err != nil {
			t.Fatal(err)
		}
		for _, target := range strings.Fields(row[3]) {
			c.targets = append(c.targets, hex(target))
		}
		if files[row[0]] == nil {
			files[row[0]] = map[uint64]*compiledTable{}
		}
		files[row[0]][hex(row[1])] = c
	}
	return files
}

// looseTables are the functions of switch.c whose tables have no bound in the
// code, but perhaps in the type of the index.
var looseTables = []string{"unbounded", "threaded"}

// TestCompiledSwitches compares with the compilers' assembly: each table is
// found where it is, with all its entries.
func TestCompiledSwitches(t *testing.T) {
	for name, tables := range compiledTables(t) {
		t.Run(name, func(t *testing.T) {
			im := openSwitch(t, switchFile(t, name))
			for _, f := range functionsOf(t, im) {
				eachJump(&f, im, func(inst *decode.Inst, j flow.Jump) {
					if err := checkCompiled(im, &f, j, tables); err != nil {
						t.Errorf("%s, jump at %#x: %v", f.Name, inst.Addr, err)
					}
				})
			}
			for addr, c := range tables {
				if !c.found {
					t.Errorf("no jump goes by the table at %#x", addr)
				}
			}
		})
	}
}

func checkCompiled(im *image.Image, f *classify.Func, j flow.Jump, tables map[uint64]*compiledTable) error {
	pointer := f.Name == "tail" || f.Name == "tailtable"
	switch j.Kind {
	case flow.JumpUnresolved:
		return fmt.Errorf("unresolved: %s", j.What)
	case flow.JumpPointer:
		if !pointer {
			return fmt.Errorf("a pointer")
		}
		return nil
	}
	c := tables[j.Table.Addr]
	switch {
	case pointer, c == nil, int(j.Table.Width) != c.width:
		return fmt.Errorf("there is no such table: %+v", j.Table)
	case slices.Contains(looseTables, f.Name):
		if j.Table.Bound == flow.BoundCompare || j.Table.Count != 0 && j.Table.Count < len(c.targets) {
			return fmt.Errorf("at most %d entries, not %d", j.Table.Count, len(c.targets))
		}
	case j.Table.Count != len(c.targets):
		return fmt.Errorf("%d entries, not %d", j.Table.Count, len(c.targets))
	}
	for n, want := range c.targets {
		if target, ok := readEntry(im, &j.Table, n); !ok || target != want {
			return fmt.Errorf("entry %d is %#x, not %#x", n, target, want)
		}
	}
	c.found = true
	return nil
}

// BenchmarkIndirectJump takes the jumps of all compiled files.
func BenchmarkIndirectJump(b *testing.B) {
	var fns []classify.Func
	jumps := 0
	for name := range compiledTables(b) {
		fns = append(fns, functionsOf(b, openSwitch(b, switchFile(b, name)))...)
	}
	tracer := new(flow.Tracer)
	b.ReportAllocs()
	for b.Loop() {
		for i := range fns {
			f := &fns[i]
			for k := range f.Insts {
				if f.Insts[k].Flow == decode.FlowJumpIndirect {
					amd64.ISA{}.IndirectJump(tracer, f, k, nil)
					jumps++
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(jumps), "ns/jump")
}
