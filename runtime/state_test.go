package runtime

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The table of ARCHITECTURE.md has a row for each state, with what each event makes of it.
func TestTransitionsAreThoseShown(t *testing.T) {
	page, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	cells := func(line string) []string {
		list := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
		return list
	}
	var events []string
	rows := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		switch row := cells(strings.TrimSpace(line)); {
		case strings.HasPrefix(line, "| state |"):
			events = row[1:]
		case strings.HasPrefix(line, "|") && events != nil && slices.Contains(siteStateNames[:], row[0]):
			rows[row[0]] = row[1:]
		}
	}
	if !slices.Equal(events, siteEventNames[:]) || len(rows) != len(siteStateNames) {
		t.Fatalf("the table has the events %q and %d states", events, len(rows))
	}
	for state := range siteState(len(siteStateNames)) {
		for event := range siteEvent(len(siteEventNames)) {
			s := &site{state: state}
			want := rows[state.String()][event]
			if err := s.on(event); (err != nil) != (want == "") {
				t.Errorf("%v: %v: %v, the table has %q", state, event, err, want)
			}
			if want == "" {
				want = state.String()
			}
			if s.state.String() != want {
				t.Errorf("%v: %v makes it %v, the table has %q", state, event, s.state, want)
			}
		}
	}
}

// Text is written to, and the state of a site changed, in one function each.
func TestOneOwner(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Patch" {
						found["writes"] = append(found["writes"], name+": "+f.Name.Name)
					}
				case *ast.KeyValueExpr:
					if id, ok := n.Key.(*ast.Ident); ok && id.Name == "state" {
						found["states"] = append(found["states"], name+": "+f.Name.Name)
					}
				case *ast.AssignStmt:
					for _, to := range n.Lhs {
						if s, ok := to.(*ast.SelectorExpr); ok && s.Sel.Name == "state" {
							found["states"] = append(found["states"], name+": "+f.Name.Name)
						}
					}
				}
				return true
			})
		}
	}
	for what, want := range map[string]string{"writes": "install.go: patch", "states": "state.go: on"} {
		if !slices.Equal(found[what], []string{want}) {
			t.Errorf("%s: %q, want %q only", what, found[what], want)
		}
	}
}
