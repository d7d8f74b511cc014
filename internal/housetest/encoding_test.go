package housetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestEncodingsStayAtHome sees that no code but that of the ISAs, and of the engine
// whose faults depend on it, takes the encodings of instructions apart.
func TestEncodingsStayAtHome(t *testing.T) {
	const root = "../.."
	at := map[string]bool{"arch": true, filepath.Join("internal", "emulator"): true}
	read := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (at[rel] || strings.HasPrefix(d.Name(), ".") && rel != "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		read++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "WordOf" || s.Sel.Name == "DetailOf") {
				t.Errorf("%s reads the encoding of an instruction: ask decode.Inst, or have the ISA answer", fset.Position(s.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 100 {
		t.Errorf("only %d files of code were read", read)
	}
}
