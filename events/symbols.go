package events

import (
	"cmp"
	"slices"
	"strings"
)

// Symbol is a function or an object of a program.
type Symbol struct {
	Name   string
	Module string // of a kernel; empty for the program itself
	Addr   uint64
	Size   uint64 // bytes; 0 reaches to the next symbol
	Func   bool
}

// Table is Symbols made of a list. It must not be changed once it is in use.
type Table struct {
	byAddr []Symbol
	byName map[string][]Symbol
	// Landing returns how many bytes at the start of the function at addr leave
	// its arguments alone, such as ENDBR64, or what is before ppc64's local
	// entry point: a probe after them is at the entry as well. nil stands for
	// none.
	Landing func(addr uint64) uint64
}

// NewTable returns the Symbols of the list.
func NewTable(symbols []Symbol) *Table {
	t := &Table{byAddr: slices.Clone(symbols), byName: map[string][]Symbol{}}
	slices.SortStableFunc(t.byAddr, func(a, b Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
	for _, s := range t.byAddr {
		t.byName[s.Name] = append(t.byName[s.Name], s)
	}
	return t
}

// find returns the symbols of a name that may start with "MODULE:".
func (t *Table) find(name string) []Symbol {
	module, plain, ok := strings.Cut(name, ":")
	if !ok {
		return t.byName[name]
	}
	var found []Symbol
	for _, s := range t.byName[plain] {
		if s.Module == module {
			found = append(found, s)
		}
	}
	return found
}

// Count returns how many functions have that name; see Symbols.
func (t *Table) Count(module, name string) int {
	n := 0
	for _, s := range t.byName[name] {
		if s.Func && (module == "" || s.Module == module) {
			n++
		}
	}
	return n
}

// Entry says whether the place is a function's entry; see Symbols.
func (t *Table) Entry(function string, offset uint64) bool {
	if offset == 0 {
		return true
	}
	found := t.find(function)
	return len(found) == 1 && t.Landing != nil && offset == t.Landing(found[0].Addr)
}

// Address returns that of the first symbol of a name; see Symbols.
func (t *Table) Address(name string) (uint64, bool) {
	found := t.find(name)
	if len(found) == 0 {
		return 0, false
	}
	return found[0].Addr, true
}

// Lookup returns the symbol that holds addr; see Symbols.
func (t *Table) Lookup(addr uint64) (s Symbol, offset uint64, ok bool) {
	after := func(s Symbol, addr uint64) int {
		if s.Addr <= addr {
			return -1
		}
		return 1
	}
	i, _ := slices.BinarySearchFunc(t.byAddr, addr, after)
	if i == 0 {
		return Symbol{}, 0, false
	}
	s = t.byAddr[i-1]
	if s.Size == 0 && i < len(t.byAddr) {
		s.Size = t.byAddr[i].Addr - s.Addr
	}
	if offset = addr - s.Addr; s.Size != 0 && offset >= s.Size {
		return Symbol{}, 0, false
	}
	return s, offset, true
}

// Functions returns the names of the functions that match a pattern, in the
// order of their addresses; see ParseGlob.
func (t *Table) Functions(pattern string) []string {
	var names []string
	for _, s := range t.byAddr {
		if s.Func && Match(pattern, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}
