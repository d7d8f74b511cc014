package housetest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestNeeds counts a package in which a uses a type of b, b a field of c, and
// c a method of a; d uses all and is used by none.
func TestNeeds(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module house\n\ngo 1.24\n",
		"a.go":      "package house\n\ntype A struct{ b B }\n\nfunc (A) Method() {}\n",
		"b.go":      "package house\n\ntype B struct{ c C }\n\nfunc (b B) field() any { return b.c.field }\n",
		"c.go":      "package house\n\nimport \"errors\"\n\ntype C struct{ field error }\n\nvar errC = errors.New(\"c\")\n\nfunc call(m interface{ Method() }) { m.Method(); var a A; a.Method() }\n",
		"d.go":      "package house\n\nvar d = A{}\n",
		"d_test.go": "package house\n\nvar _ = d\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g, err := Needs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"A", "Method"}; !slices.Equal(g["c.go"]["a.go"], want) {
		t.Errorf("c needs %v of a, want %v", g["c.go"]["a.go"], want)
	}
	if want := []string{"C", "field"}; !slices.Equal(g["b.go"]["c.go"], want) {
		t.Errorf("b needs %v of c, want %v", g["b.go"]["c.go"], want)
	}
	circles := g.Circles()
	if len(circles) != 1 || !slices.Equal(circles[0], []string{"a.go", "b.go", "c.go"}) {
		t.Errorf("circles %v", circles)
	}
}
