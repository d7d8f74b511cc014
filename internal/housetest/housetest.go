// Package housetest counts how the files of a package hang together. A file
// needs another one if it uses an identifier, a method or a field that is
// declared there.
package housetest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Circles fails the test where more than most files of the package in the
// current folder need each other in a circle, tests not among them. The message
// names what they need of each other.
func Circles(t *testing.T, most int) {
	t.Helper()
	needs, err := Needs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, circle := range needs.Circles() {
		if len(circle) <= most {
			continue
		}
		t.Errorf("%d files need each other in a circle, %d may: %s", len(circle), most, strings.Join(circle, " "))
		for _, from := range circle {
			for _, to := range circle {
				if names := needs[from][to]; len(names) > 0 {
					t.Logf("%s needs %s: %s", from, to, strings.Join(names, " "))
				}
			}
		}
	}
}

// Graph has, by the names of two files, what the first needs of the second.
type Graph map[string]map[string][]string

// Needs returns what the files of the package in a folder need of each other.
func Needs(dir string) (Graph, error) {
	listed, err := list(dir)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range listed.files {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(listed.exports[path])
	})}
	pkg, err := conf.Check(dir, fset, files, info)
	if err != nil {
		return nil, err
	}
	file := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	g := Graph{}
	for _, name := range listed.files {
		g[name] = map[string][]string{}
	}
	for id, obj := range info.Uses {
		from, to := file(id.Pos()), file(obj.Pos())
		if obj.Pkg() == pkg && from != to && !slices.Contains(g[from][to], obj.Name()) {
			g[from][to] = append(g[from][to], obj.Name())
		}
	}
	for _, to := range g {
		for _, names := range to {
			slices.Sort(names)
		}
	}
	return g, nil
}

// listing is what the go command says of a package.
type listing struct {
	files   []string
	exports map[string]string // files of export data of what it imports
}

func list(dir string) (*listing, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f",
		"{{.ImportPath}}\t{{.Export}}\t{{if not .DepOnly}}{{range .GoFiles}}{{.}} {{end}}{{range .CgoFiles}}{{.}} {{end}}{{end}}", ".")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	l := &listing{exports: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		l.exports[f[0]] = f[1]
		l.files = append(l.files, strings.Fields(f[2])...)
	}
	return l, nil
}

// Circles returns the sets of files that need each other in a circle, the
// largest first.
func (g Graph) Circles() [][]string {
	s := search{graph: g, index: map[string]int{}, low: map[string]int{}, open: map[string]bool{}}
	for file := range g {
		if s.index[file] == 0 {
			s.visit(file)
		}
	}
	slices.SortFunc(s.circles, func(a, b []string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return slices.Compare(a, b)
	})
	return s.circles
}

// search is Tarjan's search for strongly connected components.
type search struct {
	graph      Graph
	index, low map[string]int
	open       map[string]bool
	stack      []string
	circles    [][]string
}

func (s *search) visit(file string) {
	s.index[file] = len(s.index) + 1
	s.low[file] = s.index[file]
	s.stack, s.open[file] = append(s.stack, file), true
	for to := range s.graph[file] {
		if s.index[to] == 0 {
			s.visit(to)
			s.low[file] = min(s.low[file], s.low[to])
		} else if s.open[to] {
			s.low[file] = min(s.low[file], s.index[to])
		}
	}
	if s.low[file] != s.index[file] {
		return
	}
	start := slices.Index(s.stack, file)
	circle := slices.Sorted(slices.Values(s.stack[start:]))
	s.stack = s.stack[:start]
	for _, f := range circle {
		s.open[f] = false
	}
	if len(circle) > 1 {
		s.circles = append(s.circles, circle)
	}
}
