package image

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// The names are what c++filt (GNU binutils) prints, without the hashes that it
// keeps in those of Rust.
func TestDemangleName(t *testing.T) {
	for _, tt := range []struct{ lang, name, want string }{
		{"C++ function", "_ZN4llvm9CallGraph9addToCallEPNS_8FunctionE", "llvm::CallGraph::addToCall(llvm::Function*)"},
		{"C++ operator", "_ZNKSt6vectorIiSaIiEEixEm", "std::vector<int, std::allocator<int> >::operator[](unsigned long) const"},
		{"C++ part of a function", "_ZN3foo3barEv.cold", "foo::bar() [clone .cold]"},
		{"Rust, legacy", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
		{"Rust, v0", "_RNvCs15kBYyAo9fc_7mycrate7example", "mycrate::example"},
		{"C", "vfs_read", "vfs_read"},
		{"C with a reserved name", "_Zlib", "_Zlib"},
		{"Go", "runtime.(*mheap).alloc", "runtime.(*mheap).alloc"},
		{"Go generics", "slices.Sort[go.shape.[]int,go.shape.int]", "slices.Sort[go.shape.[]int,go.shape.int]"},
		{"empty", "", ""},
		{"prefix alone", "_Z", "_Z"},
		{"too long", "_Z" + strings.Repeat("1a", maxMangled), "_Z" + strings.Repeat("1a", maxMangled)},
	} {
		if got := demangleName(tt.name); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.lang, got, tt.want)
		}
	}
}

// A name whose parameters are each twice as long as the one before, because
// they refer back to it: a<int>, b<a<int>, a<int>>, …
func TestDemangleNameIsBounded(t *testing.T) {
	nested := func(depth int) string {
		name := "_Z1f1aIiE"
		for i := 1; i < depth; i++ {
			back := strings.ToUpper(strconv.FormatInt(int64(2*i-2), 36))
			name += fmt.Sprintf("1%cIS%s_S%s_E", 'a'+i, back, back)
		}
		return name
	}
	if got, want := demangleName(nested(3)), "f(a<int>, b<a<int>, a<int> >, c<b<a<int>, a<int> >, b<a<int>, a<int> > >)"; got != want {
		t.Fatalf("%q, want %q", got, want)
	}
	if got := demangleName(nested(26)); len(got) > 1<<maxDemangled {
		t.Errorf("%d bytes", len(got))
	}
}

func FuzzDemangleName(f *testing.F) {
	f.Add("_ZNKSt6vectorIiSaIiEEixEm")
	f.Add("_RNvCs15kBYyAo9fc_7mycrate7example")
	f.Fuzz(func(t *testing.T, name string) {
		if got := demangleName(name); len(got) > max(2<<maxDemangled, 2*len(name)) {
			t.Errorf("%d bytes of %d", len(got), len(name))
		}
	})
}
