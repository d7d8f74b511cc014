package main

import (
	"strings"

	"xol/analyze"
)

// implementation is a function that the resolver of an IFUNC may choose.
type implementation struct {
	Sym  string  `json:"sym"`
	Addr address `json:"addr"`
}

// ifunc is what is told of an IFUNC: its symbol stands for the resolver.
type ifunc struct {
	Implementations []implementation `json:"implementations"`
}

// ifunc returns what is to be told of a function that is a resolver, nil for
// any other.
func (f *analyzedFile) ifunc(r *analyze.Result) *ifunc {
	if !r.Function.Resolver {
		return nil
	}
	all := ifunc{[]implementation{}}
	for _, addr := range f.Implementations(r) {
		name, base := f.Image.Symbolize(addr)
		all.Implementations = append(all.Implementations, implementation{placeName(name, addr-base), address(addr)})
	}
	return &all
}

// names returns the names of the implementations; i may be nil.
func (i *ifunc) names() []string {
	if i == nil {
		return nil
	}
	names := make([]string, len(i.Implementations))
	for k := range names {
		names[k] = i.Implementations[k].Sym
	}
	return names
}

// String says what a probe here is about.
func (i *ifunc) String() string {
	const what = "IFUNC: this is the resolver, which runs once, when the program is loaded; callers call what it returns"
	if len(i.Implementations) == 0 {
		return what
	}
	return what + ": " + strings.Join(i.names(), ", ")
}
