package image

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// isaNames are the names in debug/elf that belong to one ISA.
var isaNames = regexp.MustCompile(`^(EM_|R_|(SHT|DT)_(X86|AMD64|AARCH64|PPC))`)

// TestNoISAInReader reads the source: what is true of one ISA only is in its
// record, and nothing else tells one machine from another.
func TestNoISAInReader(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	for _, file := range files {
		name := file.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && isaNames.MatchString(s.Sel.Name) {
				t.Errorf("%v: %s belongs into a record of package isa", fset.Position(n.Pos()), s.Sel.Name)
			}
			return true
		})
	}
}
