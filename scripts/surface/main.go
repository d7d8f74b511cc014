// Surface lists the exported names of the project that no other package reads.
// Such a name is part of what a user has to learn and the authors have to keep,
// and serves neither: it should be unexported, or its package be internal.
//
//	go run ./scripts/surface [-tags unicorn] [-tests] [-fields] [-all] [PACKAGES]
//
// It has to run in the root of the project; PACKAGES are patterns of the go
// command, all of the project where none is given. Every package is looked at for
// who reads a name, whichever are listed. Each line is
//
//	FILE:LINE: KIND NAME [tests]
//
// where tests says that tests of other packages read it, or examples: these are
// listed with -tests only. With cgo and -tags unicorn the readers that need the
// engine are seen too (make surface).
//
// Left out, unless -all is given, is what has to be exported though it is read
// nowhere by name: methods by which a type fulfils an interface of the project or
// of what it imports; methods of an interface that its own package calls; types in
// the declaration of a name that is read; the values of such a type; and errors. Fields of
// structs are listed with -fields.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"go/token"
	"os"
	"path/filepath"

	"golang.org/x/tools/go/packages"
)

func main() {
	var opt options
	tags := flag.String("tags", "", "build tags")
	flag.BoolVar(&opt.tests, "tests", false, "list what only tests read as well")
	flag.BoolVar(&opt.fields, "fields", false, "list fields of structs as well")
	flag.BoolVar(&opt.all, "all", false, "list what has to be exported as well")
	flag.Parse()
	if err := run(*tags, opt, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "surface:", err)
		os.Exit(2)
	}
}

func run(tags string, opt options, patterns []string) error {
	pkgs, err := load(tags, "./...")
	if err != nil {
		return err
	}
	listed, err := packages.Load(&packages.Config{Mode: packages.NeedName, BuildFlags: []string{"-tags", tags}}, patterns...)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, p := range listed {
		wanted[p.PkgPath] = true
	}
	names := exported(pkgs)
	names.read(pkgs)
	names.require(pkgs)
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	unread := 0
	for _, n := range names.sorted() {
		if !wanted[n.pkg] || !opt.lists(n) {
			continue
		}
		unread++
		fmt.Fprintf(w, "%s: %s %s%s\n", short(n.pos), n.kind, n.title, n.note())
	}
	fmt.Fprintf(w, "%d of %d exported names\n", unread, names.count(wanted))
	return nil
}

// load reads the packages and their tests with types.
func load(tags string, patterns ...string) ([]*packages.Package, error) {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps | packages.NeedModule,
		Tests:      true,
		BuildFlags: []string{"-tags", tags},
	}, patterns...)
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(pkgs) > 0 {
		return nil, fmt.Errorf("the project does not build")
	}
	return pkgs, nil
}

// short returns the place of a name, seen from here.
func short(pos token.Position) string {
	if here, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(here, pos.Filename); err == nil {
			return fmt.Sprintf("%s:%d", rel, pos.Line)
		}
	}
	return fmt.Sprintf("%s:%d", pos.Filename, pos.Line)
}
