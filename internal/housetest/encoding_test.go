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

// root is the folder of the project.
const root = "../.."

// eachFile calls f with the files of Go code whose path in the project is wanted.
func eachFile(t *testing.T, wanted func(rel string) bool, f func(*token.FileSet, *ast.File)) {
	t.Helper()
	read := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && rel != ".":
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || !wanted(rel):
			return nil
		}
		read++
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err == nil {
			f(fset, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 100 {
		t.Errorf("only %d files of code were read", read)
	}
}

// TestEncodingsStayAtHome sees that no code but that of the ISAs, and of the engine
// whose faults depend on it, takes the encodings of instructions apart.
func TestEncodingsStayAtHome(t *testing.T) {
	engine := filepath.Join("internal", "emulator")
	elsewhere := func(rel string) bool {
		return !strings.HasSuffix(rel, "_test.go") && filepath.Dir(rel) != engine && !strings.HasPrefix(rel, "arch"+string(filepath.Separator))
	}
	eachFile(t, elsewhere, func(fset *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "WordOf" || s.Sel.Name == "DetailOf") {
				t.Errorf("%s reads the encoding of an instruction: ask decode.Inst, or have the ISA answer", fset.Position(s.Pos()))
			}
			return true
		})
	})
}
