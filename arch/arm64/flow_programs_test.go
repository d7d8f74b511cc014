package arm64

import (
	"os"
	"path/filepath"
	"testing"

	"xol/classify"
	"xol/decode"
	"xol/image"
	"xol/internal/skip"
	"xol/optcheck"
	"xol/optcheck/flow"
)

// programsVariable names a list of arm64 ELF files, with the separator of
// PATH. scripts/debget unpacks Debian's.
const programsVariable = "XOL_ARM64_PROGRAMS"

// eachFunction calls visit for every function of an ELF file.
func eachFunction(t testing.TB, im *image.Image, visit func(*classify.Func)) {
	t.Helper()
	functions, err := im.Functions(image.ExtentSymbol)
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range functions {
		code, err := im.Code(nil, fn.Addr, fn.Size)
		if err != nil {
			t.Fatal(err)
		}
		visit(&classify.Func{Name: fn.Name, Addr: fn.Addr, Code: code, Insts: decode.Sweep(ISA{}, nil, code, fn.Addr)})
	}
}

// textOnly is the set of addresses of a file's text, without starts of
// functions.
func textOnly(im *image.Image) *optcheck.Addresses {
	var set optcheck.Addresses
	for _, r := range im.Text() {
		set.AddRange(r.Addr, r.End())
	}
	return &set
}

// TestPrograms counts the indirect jumps of whole programs. Entries of tables
// must be instructions, which optcheck checks; it makes others unresolved.
func TestPrograms(t *testing.T) {
	list := os.Getenv(programsVariable)
	if list == "" {
		skip.Missing(t, "programs of other machines", programsVariable+" names none")
	}
	for _, path := range filepath.SplitList(list) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			im, err := image.OpenFile(path, image.Options{})
			if err != nil {
				skip.Missing(t, "programs of other machines", err)
			}
			defer im.Close()
			countJumps(t, im)
		})
	}
}

func countJumps(t *testing.T, im *image.Image) {
	p := optcheck.Program{Arch: ISA{}, Memory: im, Starts: textOnly(im)}
	var jumps, tables, pointers, unresolved, withTable, withBoth int
	bounds := map[flow.Bound]int{}
	eachFunction(t, im, func(f *classify.Func) {
		for i := range f.Insts {
			if f.Insts[i].Flow == decode.FlowJumpIndirect {
				jumps++
				if j := (ISA{}).IndirectJump(new(flow.Tracer), f, i, im); j.Kind == flow.JumpTable {
					bounds[j.Table.Bound]++
				}
			}
		}
		var found optcheck.Findings
		p.Survey(f, &found)
		tables += found.Tables
		pointers += found.Pointers
		unresolved += len(found.Unresolved)
		for _, u := range found.Unresolved {
			t.Logf("%s: %#x: %s", f.Name, u.Addr, u.What)
		}
		if found.Tables > 0 || len(found.Unresolved) > 0 {
			withTable++
			withBoth += min(1, len(found.Unresolved))
		}
	})
	t.Logf("%d indirect jumps: %d tables (%d bounded by comparison, %d by mask), %d pointers, %d unresolved", jumps,
		tables, bounds[flow.BoundCompare], bounds[flow.BoundMask], pointers, unresolved)
	t.Logf("%d functions with a table or an unresolved jump, %d of them with an unresolved one", withTable, withBoth)
	if withBoth*50 > withTable {
		t.Errorf("more than 2 %% of the functions have an unresolved jump")
	}
}
