package image

import (
	"iter"
	"strconv"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// Bounds on demangling: a short name may stand for a very long one.
const (
	maxMangled   = 16 << 10 // bytes
	maxDemangled = 14       // bytes as a power of 2
)

// IsMangled reports whether name looks like one that a compiler of C++ or Rust made, which
// Symbolize may return as it was written. All others it returns as they are.
func IsMangled(name string) bool {
	return len(name) > 2 && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R')
}

// demangleName returns a C++ or Rust name as it was written, with the types of
// parameters but without those of results. What linkers and objdump add to a
// name after an @ is kept. Any other name comes back as it is, and so does one
// that is longer than any compiler makes.
func demangleName(name string) string {
	name, suffix := splitAt(name)
	return demangled(name) + suffix
}

// splitAt cuts "name@plt" before the @.
func splitAt(name string) (base, suffix string) {
	if i := strings.IndexByte(name, '@'); i > 0 {
		return name[:i], name[i:]
	}
	return name, ""
}

func demangled(name string, options ...demangle.Option) string {
	// Go names have no such prefix, and the library would look for others.
	if !IsMangled(name) || len(name) > maxMangled {
		return name
	}
	return demangle.Filter(name, append(options, demangle.MaxLength(maxDemangled))...)
}

// writings returns the forms of a mangled name that people write: as it is
// printed, without the types of parameters, and without template arguments as
// well. What a compiler has split off a function has only the first form. A
// name that is not mangled has none.
func writings(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		base, suffix := splitAt(name)
		full := demangled(base)
		if full == base || !yield(full+suffix) || strings.IndexByte(base, '.') >= 0 {
			return
		}
		if yield(demangled(base, demangle.NoParams) + suffix) {
			yield(demangled(base, demangle.NoParams, demangle.NoTemplateParams) + suffix)
		}
	}
}

// isWritten reports whether name is a form of a mangled one.
func isWritten(name, mangled string) bool {
	if IsMangled(mangled) && isIdentifier(name) && !strings.Contains(mangled, strconv.Itoa(len(name))+name) {
		return false // identifiers have their length before them: it is not worth while to demangle all
	}
	for written := range writings(mangled) {
		if written == name {
			return true
		}
	}
	return false
}

// isIdentifier reports whether a name is one of C: letters, digits and underscores.
func isIdentifier(name string) bool {
	for i := range len(name) {
		if c := name[i]; c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return name != ""
}

// withoutClone takes off a name what compilers add to one of the forms that
// they make of a function: .isra.0, .constprop.0, .part.0, .cold.
func withoutClone(name string) string {
	if i := strings.IndexByte(name, '.'); i > 0 {
		return name[:i]
	}
	return name
}
