package live

import (
	"slices"
	"strings"

	"xol/image"
)

// loadedModules are the modules of a running kernel, by its list of them and by its
// symbols.
type loadedModules struct {
	names   map[string]bool
	symbols map[string][]string // by name: the modules that have it, once for each
	known   bool                // the symbols are known
}

const procModules = "/proc/modules"

// newModules takes the modules that are listed, and those that symbols name.
func (s System) newModules(syms []image.MapSymbol) *loadedModules {
	m := &loadedModules{names: make(map[string]bool), symbols: make(map[string][]string), known: len(syms) > 0}
	if text, err := s.read(procModules); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, _, ok := strings.Cut(line, " "); ok {
				m.names[name] = true
			}
		}
	}
	for i := range syms {
		if s := &syms[i]; s.Module != "" && !generated(s.Module) {
			m.names[s.Module] = true
			m.symbols[s.Name] = append(m.symbols[s.Name], s.Module)
		}
	}
	return m
}

// generated reports whether kallsyms names as a module what the kernel makes while it
// runs [kernel/kallsyms.c].
func generated(module string) bool {
	return module == "bpf" || strings.HasPrefix(module, "__builtin__")
}

// Loaded reports whether there is a module of that name.
func (m *loadedModules) Loaded(name string) bool { return m.names[name] }

// Count returns how many symbols of a name a module has, or all of them.
func (m *loadedModules) Count(module, symbol string) (n int, known bool) {
	owners := m.symbols[symbol]
	if module == "" {
		return len(owners), m.known
	}
	for _, owner := range owners {
		if owner == module {
			n++
		}
	}
	return n, m.known
}

// sorted returns their names.
func (m *loadedModules) sorted() []string {
	var names []string
	for name := range m.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
