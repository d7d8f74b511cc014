package housetest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// page says which packages there are, and what each may import of the others.
const page = "../../ARCHITECTURE.md"

// row is a row of the page's table of packages: one package, or several of a kind.
type row struct {
	packages []string
	imports  []string
}

// TestPlan compares the table of packages with what the go command says: every
// package has a row, imports only what its row allows, and nothing below it; and
// what a row allows is imported. The tests of a package are not asked.
func TestPlan(t *testing.T) {
	rows := readRows(t)
	imports := projectImports(t)
	place := map[string]int{} // of a package: its row
	for i, r := range rows {
		for _, p := range r.packages {
			if _, twice := place[p]; twice {
				t.Errorf("%s has two rows", p)
			}
			if _, ok := imports[p]; !ok {
				t.Errorf("%s has a row, and is no package", p)
			}
			place[p] = i
		}
	}
	used := make([]map[string]bool, len(rows))
	for p, list := range imports {
		i, ok := place[p]
		if !ok {
			t.Errorf("%s has no row: add `%s` with what it may import: %s", p, p, quoted(list))
			continue
		}
		if used[i] == nil {
			used[i] = map[string]bool{}
		}
		for _, q := range list {
			used[i][q] = true
			switch {
			case !slices.Contains(rows[i].imports, q):
				t.Errorf("%s imports %s, and its row does not allow it", p, q)
			case place[q] >= i:
				t.Errorf("%s imports %s, which does not stand above it in the table", p, q)
			}
		}
	}
	for i, r := range rows {
		for _, q := range r.imports {
			if !used[i][q] {
				t.Errorf("the row of %s allows %s, which is not imported", quoted(r.packages), q)
			}
		}
	}
}

// readRows reads the table. Its columns are the packages, what they do, and what
// they may import.
func readRows(t *testing.T) (rows []row) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n| package | its one job | imports |\n")
	if !found {
		t.Fatalf("%s has no table of packages", page)
	}
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		if strings.HasPrefix(line, "|--") {
			continue
		}
		if len(cells) < 2 {
			t.Fatalf("a row of %d cells: %s", len(cells), line)
		}
		r := row{packages: names(cells[0])}
		if len(cells) > 2 {
			r.imports = names(cells[2])
		}
		rows = append(rows, r)
	}
	return rows
}

// names returns what stands between `…`.
func names(cell string) (list []string) {
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			list = append(list, part)
		}
	}
	return list
}

func quoted(list []string) string {
	var b strings.Builder
	for i, p := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("`" + p + "`")
	}
	return b.String()
}

// projectImports returns what each package imports of the project, with the engine
// and without.
func projectImports(t *testing.T) map[string][]string {
	module := goList(t, "list", "-m")[0]
	all := map[string][]string{}
	for _, tags := range []string{"", "unicorn"} {
		for _, line := range goList(t, "list", "-tags", tags, "-f", "{{.ImportPath}} {{join .Imports \" \"}}", module+"/...") {
			fields := strings.Fields(line)
			p := strings.TrimPrefix(fields[0], module+"/")
			list := all[p]
			for _, q := range fields[1:] {
				if own, ok := strings.CutPrefix(q, module+"/"); ok && !slices.Contains(list, own) {
					list = append(list, own)
				}
			}
			slices.Sort(list)
			all[p] = list
		}
	}
	for p := range all {
		if strings.HasPrefix(p, "scripts/") {
			delete(all, p) // they are about the project, and no part of it
		}
	}
	return all
}

// goList calls the go command and returns its lines. Listing needs no C compiler.
func goList(t *testing.T, args ...string) []string {
	c := exec.Command("go", args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=1")
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
