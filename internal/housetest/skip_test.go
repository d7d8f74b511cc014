package housetest

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// TestSkipsSayWhy sees that tests are skipped by package skip only, whose reasons
// can be counted.
func TestSkipsSayWhy(t *testing.T) {
	home := filepath.Join("internal", "skip")
	eachFile(t, func(rel string) bool { return filepath.Dir(rel) != home }, func(fset *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, s.Sel.Name) {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"t", "b", "tb", "f"}, x.Name) {
				t.Errorf("%s: skip by package skip, whose reasons are counted", fset.Position(s.Pos()))
			}
			return true
		})
	})
}
