package main

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

type options struct {
	tests, fields, all bool
}

// lists reports whether n belongs to the list.
func (o options) lists(n *name) bool {
	switch {
	case n.readers.code, n.required && !o.all, n.kind == "field" && !o.fields:
		return false
	}
	return o.tests || !n.readers.tests
}

// name is an exported name. A package and the variants of it that tests make have
// objects of their own for the same name, so that it is known by its place.
type name struct {
	pos      token.Position
	pkg      string
	kind     string // const, var, func, type, method or field
	title    string // analyze.New, (*analyze.Result).Boot, analyze.Result.Padding
	object   types.Object
	required bool // by an interface, or by the type of a name that is read
	readers  struct{ own, code, tests bool }
}

func (n *name) note() string {
	switch {
	case n.required:
		return " [required]"
	case n.readers.tests:
		return " [tests]"
	}
	return ""
}

type nameSet map[token.Position]*name

// exported collects the exported names of the packages themselves, without tests
// and commands.
func exported(pkgs []*packages.Package) nameSet {
	set := nameSet{}
	for _, p := range pkgs {
		if p.ID != p.PkgPath || p.Name == "main" || strings.HasSuffix(p.PkgPath, ".test") {
			continue
		}
		scope := p.Types.Scope()
		for _, id := range scope.Names() {
			if object := scope.Lookup(id); object.Exported() {
				set.add(p, object, kindOf(object), p.Name+"."+id)
				set.addParts(p, object)
			}
		}
	}
	return set
}

func (set nameSet) add(p *packages.Package, object types.Object, kind, title string) {
	pos := p.Fset.Position(object.Pos())
	if set[pos] == nil {
		set[pos] = &name{pos: pos, pkg: p.PkgPath, kind: kind, title: title, object: object}
	}
}

// addParts adds the methods and fields of a type.
func (set nameSet) addParts(p *packages.Package, object types.Object) {
	named, ok := object.Type().(*types.Named)
	if _, isType := object.(*types.TypeName); !ok || !isType || named.Obj() != object {
		return
	}
	title := p.Name + "." + object.Name()
	for m := range named.Methods() {
		if m.Exported() {
			receiver := title
			if _, pointer := m.Signature().Recv().Type().(*types.Pointer); pointer {
				receiver = "*" + title
			}
			set.add(p, m, "method", "("+receiver+")."+m.Name())
		}
	}
	switch under := named.Underlying().(type) {
	case *types.Struct:
		for f := range under.Fields() {
			if f.Exported() && !f.Embedded() {
				set.add(p, f, "field", title+"."+f.Name())
			}
		}
	case *types.Interface:
		for m := range under.ExplicitMethods() {
			if m.Exported() {
				set.add(p, m, "method", title+"."+m.Name())
			}
		}
	}
}

func kindOf(object types.Object) string {
	switch object.(type) {
	case *types.Const:
		return "const"
	case *types.Var:
		return "var"
	case *types.TypeName:
		return "type"
	}
	return "func"
}

// read notes who reads the names: the code of other packages, or tests. Tests in
// the package of a name are part of it; those beside it, and examples, are not.
func (set nameSet) read(pkgs []*packages.Package) {
	for _, p := range pkgs {
		for id, object := range p.TypesInfo.Uses {
			if f, ok := object.(*types.Func); ok {
				object = f.Origin()
			} else if v, ok := object.(*types.Var); ok {
				object = v.Origin()
			}
			n := set[p.Fset.Position(object.Pos())]
			switch {
			case n == nil:
				continue
			case n.pkg == p.PkgPath:
				n.readers.own = true
				continue
			}
			if strings.HasSuffix(p.Fset.Position(id.Pos()).Filename, "_test.go") {
				n.readers.tests = true
			} else {
				n.readers.code = true
			}
		}
	}
}

// require marks what has to be exported though it is read nowhere by name.
func (set nameSet) require(pkgs []*packages.Package) {
	set.requireMethods(interfaces(pkgs))
	set.requireErrors()
	for more := true; more; {
		more = false
		for _, n := range set {
			if n.readers.code || n.readers.tests || n.required {
				more = set.requireTypes(n.object) || more
			}
		}
	}
	for _, n := range set {
		if _, isConst := n.object.(*types.Const); !isConst {
			continue
		}
		if named, ok := n.object.Type().(*types.Named); ok {
			if t := set.of(named.Obj()); t != nil && t.needed() {
				n.required = true
			}
		}
	}
}

// requireErrors marks errors: users ask for them with errors.Is and errors.As, also
// those that nothing in the project asks for.
func (set nameSet) requireErrors() {
	isError := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	for _, n := range set {
		switch o := n.object.(type) {
		case *types.Var:
			n.required = n.required || n.kind == "var" && types.Implements(o.Type(), isError)
		case *types.TypeName:
			n.required = n.required || types.Implements(types.NewPointer(o.Type()), isError)
		}
	}
}

func (n *name) needed() bool { return n.readers.code || n.readers.tests || n.required }

// of returns the name of an object, or nil.
func (set nameSet) of(object types.Object) *name {
	for _, n := range set {
		if n.object == object {
			return n
		}
	}
	return nil
}

// interfaces returns the interfaces of the project and of all that it imports.
func interfaces(pkgs []*packages.Package) (list []*types.Interface) {
	seen := map[*types.Package]bool{}
	packages.Visit(pkgs, nil, func(p *packages.Package) {
		if p.Types == nil || seen[p.Types] {
			return
		}
		seen[p.Types] = true
		for _, id := range p.Types.Scope().Names() {
			if i, ok := p.Types.Scope().Lookup(id).Type().Underlying().(*types.Interface); ok && i.NumMethods() > 0 && i.IsMethodSet() {
				list = append(list, i)
			}
		}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(node ast.Node) bool {
				if literal, ok := node.(*ast.InterfaceType); ok && p.TypesInfo != nil {
					if i, ok := p.TypesInfo.TypeOf(literal).(*types.Interface); ok && i.NumMethods() > 0 && i.IsMethodSet() {
						list = append(list, i)
					}
				}
				return true
			})
		}
	})
	list = append(list, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
	return list
}

// requireMethods marks the methods by which a type fulfils an interface, and those
// that package errors looks for.
func (set nameSet) requireMethods(list []*types.Interface) {
	for _, n := range set {
		f, ok := n.object.(*types.Func)
		if !ok || f.Signature().Recv() == nil {
			continue
		}
		if n.title[0] == '(' && slices.Contains([]string{"Unwrap", "Is", "As"}, f.Name()) {
			n.required = true
			continue
		}
		receiver := f.Signature().Recv().Type()
		if types.IsInterface(receiver) {
			n.required = n.readers.own
			continue
		}
		if _, pointer := receiver.(*types.Pointer); !pointer {
			receiver = types.NewPointer(receiver)
		}
		for _, i := range list {
			if m, _, _ := types.LookupFieldOrMethod(i, false, f.Pkg(), f.Name()); m != nil && types.Implements(receiver, i) {
				n.required = true
				break
			}
		}
	}
}

// requireTypes marks the types in the declaration of an object and reports whether
// that made a difference.
func (set nameSet) requireTypes(object types.Object) (changed bool) {
	seen := map[types.Type]bool{}
	var visit func(t types.Type)
	visit = func(t types.Type) {
		if t == nil || seen[t] {
			return
		}
		seen[t] = true
		switch t := t.(type) {
		case *types.Alias:
			changed = set.requireObject(t.Obj()) || changed
			visit(t.Rhs())
		case *types.Named:
			changed = set.requireObject(t.Obj()) || changed
			for arg := range t.TypeArgs().Types() {
				visit(arg)
			}
		case *types.Signature:
			visit(t.Params())
			visit(t.Results())
		case *types.Tuple:
			for v := range t.Variables() {
				visit(v.Type())
			}
		case *types.Map:
			visit(t.Key())
			visit(t.Elem())
		case interface{ Elem() types.Type }:
			visit(t.Elem())
		}
	}
	visit(object.Type())
	return changed
}

func (set nameSet) requireObject(object types.Object) bool {
	n := set.of(object)
	if n == nil || n.required || n.readers.code {
		return false
	}
	n.required = true
	return true
}

func (set nameSet) sorted() []*name {
	list := make([]*name, 0, len(set))
	for _, n := range set {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *name) int {
		return cmp.Or(cmp.Compare(a.pos.Filename, b.pos.Filename), cmp.Compare(a.pos.Offset, b.pos.Offset))
	})
	return list
}

// count returns the number of names, without fields, of some packages.
func (set nameSet) count(wanted map[string]bool) (n int) {
	for _, name := range set {
		if wanted[name.pkg] && name.kind != "field" {
			n++
		}
	}
	return n
}
