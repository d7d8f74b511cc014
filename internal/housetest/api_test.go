package housetest

import (
	"bytes"
	"flag"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "record the exported names as they are")

// recorded is the folder with the exported names of each package, as they were
// recorded last.
var recorded = filepath.Join("testdata", "api")

// TestAPI compares what the packages export with what is recorded, so that it
// changes on purpose only. Internal packages and commands have no users.
func TestAPI(t *testing.T) {
	seen := map[string]bool{}
	for p := range projectImports(t) {
		if p == "cmd/xol" || strings.HasPrefix(p, "internal/") || strings.Contains(p, "/internal/") {
			continue
		}
		name := strings.ReplaceAll(p, "/", "-") + ".txt"
		seen[name] = true
		got := surface(t, filepath.Join(root, filepath.FromSlash(p)))
		file := filepath.Join(recorded, name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("what %s exports has changed (- before, + now):\n%s", p, diff)
		}
	}
	old, err := filepath.Glob(filepath.Join(recorded, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range old {
		switch {
		case seen[filepath.Base(file)]:
		case !*update:
			t.Errorf("%s is of no package", file)
		case os.Remove(file) != nil:
			t.Errorf("%s is of no package, and stays", file)
		}
	}
	if t.Failed() {
		t.Log("if that is on purpose: go test ./internal/housetest -run TestAPI -update")
	}
}

// surface returns a line for each exported name of the package in a folder, as it
// is built for Linux on amd64 with the engine, sorted.
func surface(t *testing.T, dir string) string {
	t.Helper()
	target := build.Default
	target.GOOS, target.GOARCH, target.CgoEnabled = "linux", "amd64", true
	target.BuildTags = []string{"unicorn"}
	p, err := target.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, name := range p.GoFiles {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s := surfaceOf{fset: fset}
		for _, d := range f.Decls {
			s.declaration(d)
		}
		lines = append(lines, s.lines...)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// surfaceOf collects the exported names of a file.
type surfaceOf struct {
	fset  *token.FileSet
	lines []string
}

func (s *surfaceOf) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		s.function(d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					s.typ(spec)
				}
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					if id.IsExported() {
						s.add(d.Tok.String(), id.Name, s.text(spec.Type))
					}
				}
			}
		}
	}
}

func (s *surfaceOf) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	name := d.Name.Name
	if d.Recv != nil {
		receiver := s.text(d.Recv.List[0].Type)
		if !ast.IsExported(strings.TrimLeft(receiver, "*")) {
			return
		}
		name = "(" + receiver + ") " + name
	}
	s.add("func", name+strings.TrimPrefix(s.text(d.Type), "func"))
}

// typ adds a type with its exported fields or methods.
func (s *surfaceOf) typ(spec *ast.TypeSpec) {
	name := spec.Name.Name
	head := name + s.text(spec.TypeParams)
	switch t := spec.Type.(type) {
	case *ast.StructType:
		s.add("type", head, "struct")
		s.members(name, t.Fields)
	case *ast.InterfaceType:
		s.add("type", head, "interface")
		s.members(name, t.Methods)
	default:
		if spec.Assign.IsValid() {
			head += " ="
		}
		s.add("type", head, s.text(t))
	}
}

func (s *surfaceOf) members(of string, fields *ast.FieldList) {
	for _, f := range fields.List {
		typ := s.text(f.Type)
		if len(f.Names) == 0 {
			s.add("in", of, typ)
		}
		for _, id := range f.Names {
			if id.IsExported() {
				s.add("in", of, id.Name+strings.TrimPrefix(" "+typ, " func"))
			}
		}
	}
}

func (s *surfaceOf) add(words ...string) {
	s.lines = append(s.lines, strings.TrimSpace(strings.Join(words, " ")))
}

var space = regexp.MustCompile(`\s+`)

// text returns a piece of Go on one line; nothing where there is none.
func (s *surfaceOf) text(n ast.Node) string {
	switch list := n.(type) {
	case *ast.FieldList:
		if list == nil {
			return ""
		}
		var parts []string
		for _, f := range list.List {
			for _, id := range f.Names {
				parts = append(parts, id.Name+" "+s.text(f.Type))
			}
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case nil:
		return ""
	}
	var b bytes.Buffer
	if printer.Fprint(&b, s.fset, n) != nil {
		return ""
	}
	return space.ReplaceAllString(b.String(), " ")
}
