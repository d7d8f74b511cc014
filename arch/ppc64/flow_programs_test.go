package ppc64

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

// programsVariable names a list of ppc64 ELF files of either byte order, with
// the separator of PATH. scripts/debget unpacks Debian's.
const programsVariable = "XOL_PPC64_PROGRAMS"

// each calls visit with every function.
func (p *program) each(tb testing.TB, visit func(f *classify.Func)) {
	tb.Helper()
	functions, err := p.Functions(image.ExtentSymbol)
	if err != nil {
		tb.Fatal(err)
	}
	for _, fn := range functions {
		visit(p.function(tb, fn.Name, fn.Addr, fn.Size))
	}
}

// text is the set of addresses of the program's text, without starts of
// functions.
func (p *program) text() *optcheck.Addresses {
	var set optcheck.Addresses
	for _, r := range p.Text() {
		set.AddRange(r.Addr, r.End())
	}
	return &set
}

// tally counts the indirect jumps of a program.
type tally struct {
	kinds           map[flow.JumpKind]int
	bounds          map[flow.Bound]int
	tables, unknown int // functions with a table or an unresolved jump; with an unresolved one
}

// TestPrograms counts the indirect jumps of whole programs. Entries of tables
// must be instructions: all that a comparison allows, and the first one else.
// Package optcheck, which reads the tables, makes of others unresolved jumps.
func TestPrograms(t *testing.T) {
	list := os.Getenv(programsVariable)
	if list == "" {
		skip.Missing(t, "programs of other machines", programsVariable+" names none")
	}
	for _, path := range filepath.SplitList(list) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			file, err := os.ReadFile(path)
			if err != nil {
				skip.Missing(t, "programs of other machines", err)
			}
			p := openProgram(t, file)
			n := p.count(t)
			t.Logf("%s: %v, bounds of tables: %v", path, n.kinds, n.bounds)
			t.Logf("%d functions with a table or an unresolved jump, %d of them with an unresolved one", n.tables, n.unknown)
			if n.unknown*50 > n.tables {
				t.Errorf("more than 2 %% of the functions have an unresolved jump")
			}
		})
	}
}

func (p *program) count(t *testing.T) tally {
	n := tally{kinds: make(map[flow.JumpKind]int), bounds: make(map[flow.Bound]int)}
	survey := optcheck.Program{Arch: p.isa(), Memory: p, Starts: p.text()}
	p.each(t, func(f *classify.Func) {
		for _, j := range p.jumps(f) {
			n.kinds[j.Kind]++
			if j.Kind == flow.JumpTable {
				n.bounds[j.Table.Bound]++
				p.checkEntries(t, f, &j.Table)
			}
		}
		var found optcheck.Findings
		survey.Survey(f, &found)
		for _, u := range found.Unresolved {
			t.Logf("%s: %#x: %s", f.Name, u.Addr, u.What)
		}
		if found.Tables > 0 || len(found.Unresolved) > 0 {
			n.tables++
			n.unknown += min(1, len(found.Unresolved))
		}
	})
	return n
}

// checkEntries checks that entries which lead into f lead to instructions, and
// that what stands after a table in the text, which a comparison bounds, does
// not.
func (p *program) checkEntries(t *testing.T, f *classify.Func, table *flow.Table) {
	entries := 1
	if table.Bound == flow.BoundCompare {
		entries = table.Count
	}
	targets, err := p.targets(table, entries)
	if err != nil {
		t.Errorf("%s: table %+v: %v", f.Name, *table, err)
	}
	for n, target := range targets {
		if target-f.Addr < uint64(len(f.Code)) && !startsInstruction(f, target) {
			t.Errorf("%s: entry %d of table %+v is %#x", f.Name, n, *table, target)
		}
	}
	if table.Bound != flow.BoundCompare || table.Addr-f.Addr >= uint64(len(f.Code)) {
		return
	}
	if targets, err := p.targets(table, entries+1); err == nil && startsInstruction(f, targets[entries]) {
		t.Errorf("%s: table %+v has another entry, %#x", f.Name, *table, targets[entries])
	}
}

func startsInstruction(f *classify.Func, addr uint64) bool {
	i, start := decode.Find(f.Insts, addr)
	return start && !f.Insts[i].Has(decode.Invalid)
}
