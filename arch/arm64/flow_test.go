package arm64

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/internal/refdata"
	"xol/optcheck/flow"
)

// The files of testdata/switch are what GCC and LLVM make of switch.c; the
// judge is tables.tsv, with the tables as they stand in the compilers'
// assembler text.

// compiledTable is a jump table in the assembler text.
type compiledTable struct {
	width   uint8
	targets []uint64
}

// compiledTables returns the tables of all files, by file and address.
func compiledTables(t *testing.T) map[string]map[uint64]compiledTable {
	t.Helper()
	rows, err := refdata.Rows("testdata/switch/tables.tsv")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]map[uint64]compiledTable{}
	for _, row := range rows {
		if files[row[0]] == nil {
			files[row[0]] = map[uint64]compiledTable{}
		}
		table := compiledTable{width: uint8(parseAddress(t, row[2]))}
		for _, target := range strings.Split(row[3], ",") {
			table.targets = append(table.targets, parseAddress(t, target))
		}
		files[row[0]][parseAddress(t, row[1])] = table
	}
	return files
}

func parseAddress(t *testing.T, text string) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// unpackCompiled returns a file of testdata/switch.
func unpackCompiled(t testing.TB, name string) []byte {
	t.Helper()
	file, err := refdata.Read(filepath.Join("testdata", "switch", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func openCompiled(t testing.TB, name string) *image.Image {
	t.Helper()
	file := unpackCompiled(t, name)
	im, err := image.Open(bytes.NewReader(file), int64(len(file)), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// targetsOf reads n entries of a table.
func targetsOf(t *testing.T, im *image.Image, table *flow.Table, n int) (targets []uint64) {
	t.Helper()
	data, err := im.Data(nil, table.Addr, uint64(n)*uint64(table.Width))
	if err != nil {
		t.Fatal(err)
	}
	for ; len(data) > 0; data = data[table.Width:] {
		var entry [8]byte
		copy(entry[:], data[:table.Width])
		v := binary.LittleEndian.Uint64(entry[:])
		if unused := 64 - 8*table.Width; table.Signed {
			v = uint64(int64(v<<unused) >> unused)
		}
		targets = append(targets, table.Base+v<<table.Shift)
	}
	return targets
}

// mayBeUnbounded are the functions of switch.c whose index no compiler needs to
// compare.
var mayBeUnbounded = []string{"exhaustive", "interpreter", "relative_labels"}

func TestCompiledTables(t *testing.T) {
	for file, tables := range compiledTables(t) {
		t.Run(file, func(t *testing.T) {
			im := openCompiled(t, file)
			found := map[uint64]bool{}
			eachFunction(t, im, func(f *classify.Func) {
				for i := range f.Insts {
					if f.Insts[i].Flow == decode.FlowJumpIndirect {
						checkCompiled(t, im, f, i, tables, found)
					}
				}
			})
			for addr := range tables {
				if !found[addr] {
					t.Errorf("no jump uses the table at %#x", addr)
				}
			}
		})
	}
}

// checkCompiled compares what is found of one jump with the compiler's tables.
func checkCompiled(t *testing.T, im *image.Image, f *classify.Func, i int, tables map[uint64]compiledTable, found map[uint64]bool) {
	jump := ISA{}.IndirectJump(new(flow.Tracer), f, i, im)
	at := f.Insts[i].Addr
	wantKind := flow.JumpTable
	if strings.HasPrefix(f.Name, "by_") {
		wantKind = flow.JumpPointer
	}
	if jump.Kind != wantKind {
		t.Errorf("%s, %#x: %v %s, want %v", f.Name, at, jump.Kind, jump.What, wantKind)
	}
	if jump.Kind != flow.JumpTable {
		return
	}
	if blind := (ISA{}).IndirectJump(new(flow.Tracer), f, i, nil); blind != jump {
		t.Errorf("%s, %#x: without memory %+v, with it %+v", f.Name, at, blind, jump)
	}
	table := &jump.Table
	want, ok := tables[table.Addr]
	if !ok {
		t.Errorf("%s, %#x: table at %#x, where the compiler has none", f.Name, at, table.Addr)
		return
	}
	found[table.Addr] = true
	got := targetsOf(t, im, table, len(want.targets))
	if table.Width != want.width || !slices.Equal(got, want.targets) {
		t.Errorf("%s, %#x: %+v leads to %x, want %d bytes, %x", f.Name, at, *table, got, want.width, want.targets)
	}
	if table.Bound == flow.BoundNone {
		if table.Count != 0 || table.Check != 0 || !slices.Contains(mayBeUnbounded, f.Name) {
			t.Errorf("%s, %#x: no bound: %+v", f.Name, at, *table)
		}
		return
	}
	loose := table.Bound == flow.BoundMask && slices.Contains(mayBeUnbounded, f.Name) // by the type of the index
	if table.Count < len(want.targets) || table.Count > len(want.targets) && !loose {
		t.Errorf("%s, %#x: %d entries, want %d", f.Name, at, table.Count, len(want.targets))
	}
	if k, start := decode.Find(f.Insts, table.Check); !start || !checksIndex(&f.Insts[k], table.Bound) {
		t.Errorf("%s, %#x: bounded at %#x", f.Name, at, table.Check)
	}
}

// checksIndex reports whether inst, by its text, is of the kind that a bound is
// said to come from.
func checksIndex(inst *decode.Inst, b flow.Bound) bool {
	mnemonic, _, _ := strings.Cut(ISA{}.Text(inst, nil), " ")
	if b == flow.BoundCompare {
		return mnemonic == "cmp" || mnemonic == "subs"
	}
	return mnemonic == "ldrb" || mnemonic == "ldurb" || mnemonic == "and" || mnemonic == "ubfx" || mnemonic == "ubfiz"
}

// indirectJump returns the index of the first indirect jump, or return by way
// of another register than x30.
func indirectJump(f *classify.Func) int {
	return slices.IndexFunc(f.Insts, func(inst decode.Inst) bool {
		return inst.Flow == decode.FlowJumpIndirect || OpOf(&inst) == OpRET && fieldRn(&inst) != linkRegister
	})
}
