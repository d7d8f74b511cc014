package image

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// Bounds on demangling: a short name may stand for a very long one.
const (
	maxMangled   = 16 << 10 // bytes
	maxDemangled = 14       // bytes as a power of 2
)

// demangleName returns a C++ or Rust name as it was written, with the types of
// parameters but without those of results. Any other name comes back as it is,
// and so does one that is longer than any compiler makes.
func demangleName(name string) string {
	// Go names have no such prefix, and the library would look for others.
	if !strings.HasPrefix(name, "_Z") && !strings.HasPrefix(name, "_R") || len(name) > maxMangled {
		return name
	}
	return demangle.Filter(name, demangle.MaxLength(maxDemangled))
}
