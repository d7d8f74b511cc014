package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files are a small project: package low has the names, package high reads some.
var files = map[string]string{
	"go.mod": "module example\n\ngo 1.26\n",
	"low/low.go": `package low

// A has a method that is read, one that is not, and one for an interface.
type A struct {
	Shown  int
	Hidden int
}

func (*A) Read() {}
func (*A) Unread() {}
func (*A) Error() string { return "" }

// B is in the declaration of a name that is read.
type B int

const (
	First B = iota
	Second
)

type C struct{}

func New() B { return First }

func Unread() {}

func ForTests() {}

func inside() { ForTests() }
`,
	"high/high.go": `package high

import "example/low"

func Call() int {
	a := new(low.A)
	a.Read()
	_ = low.New()
	return a.Shown
}
`,
	"high/high_test.go": `package high

import "example/low"

var _ = low.ForTests
`,
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("CGO_ENABLED", "0")
	pkgs, err := load("", "./...")
	if err != nil {
		t.Fatal(err)
	}
	set := exported(pkgs)
	set.read(pkgs)
	set.require(pkgs)
	for _, test := range []struct {
		opt  options
		want string
	}{
		{options{}, "(*low.A).Unread,low.C,low.Unread,high.Call"},
		{options{fields: true}, "low.A.Hidden,(*low.A).Unread,low.C,low.Unread,high.Call"},
		{options{tests: true}, "(*low.A).Unread,low.C,low.Unread,low.ForTests,high.Call"},
		{options{all: true}, "(*low.A).Unread,(*low.A).Error,low.B,low.First,low.Second,low.C,low.Unread,high.Call"},
	} {
		var got []string
		for _, part := range []string{"low", "high"} {
			for _, n := range set.sorted() {
				if n.pkg == "example/"+part && test.opt.lists(n) {
					got = append(got, n.title)
				}
			}
		}
		if list := strings.Join(got, ","); list != test.want {
			t.Errorf("%s: %s\nwant %s", fmt.Sprintf("%+v", test.opt), list, test.want)
		}
	}
}
