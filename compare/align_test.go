package compare

import (
	"math/rand/v2"
	"testing"
)

// checkAlignment looks whether what is aligned is equal, and ascends in both.
func checkAlignment(t *testing.T, a, b []uint64, pairs [][2]int) {
	t.Helper()
	x, y := -1, -1
	for _, p := range pairs {
		if p[0] <= x || p[1] <= y || p[0] >= len(a) || p[1] >= len(b) || a[p[0]] != b[p[1]] {
			t.Fatalf("%v after %d and %d, of %v and %v", p, x, y, a, b)
		}
		x, y = p[0], p[1]
	}
}

func FuzzAlign(f *testing.F) {
	f.Add([]byte("abcabba"), []byte("cbabac"))
	f.Add([]byte("the same"), []byte("the same"))
	f.Add([]byte(""), []byte("x"))
	f.Fuzz(func(t *testing.T, x, y []byte) {
		a, b := numbersOf(x), numbersOf(y)
		pairs := align(nil, a, b, 0, 0)
		checkAlignment(t, a, b, pairs)
		if string(x) == string(y) && len(pairs) != len(x) {
			t.Fatalf("%d of %d elements of %q are aligned with itself", len(pairs), len(x), x)
		}
	})
}

func numbersOf(bytes []byte) []uint64 {
	list := make([]uint64, len(bytes))
	for i, b := range bytes {
		list[i] = uint64(b)
	}
	return list
}

// TestAlignEdited takes some elements out of a long list and puts others in: all that
// is left is to be found again, or nearly.
func TestAlignEdited(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var a, b []uint64
		left := 0
		for range 2000 {
			v := r.Uint64N(300)
			switch r.IntN(20) {
			case 0:
				a = append(a, v)
			case 1:
				b = append(b, v)
			default:
				a, b = append(a, v), append(b, v)
				left++
			}
		}
		pairs := align(nil, a, b, 0, 0)
		checkAlignment(t, a, b, pairs)
		if len(pairs) < left*95/100 {
			t.Errorf("%d of %d elements are aligned", len(pairs), left)
		}
	}
}

// TestAlignRepeated aligns long lists of which no element is the only one of its kind.
func TestAlignRepeated(t *testing.T) {
	var a, b []uint64
	for i := range uint64(4000) {
		a, b = append(a, i%7), append(b, i%5)
	}
	pairs := align(nil, a, b, 0, 0)
	checkAlignment(t, a, b, pairs)
	if len(pairs) < 1500 {
		t.Errorf("%d elements are aligned", len(pairs))
	}
}

func TestStem(t *testing.T) {
	for name, want := range map[string]string{
		"vfs_read":                       "vfs_read",
		"foo.isra.0":                     "foo",
		"foo.constprop.0.isra.12":        "foo",
		"foo.isra.0.cold":                "foo.cold",
		"foo.part.3":                     "foo.part",
		"foo.llvm.1234567890":            "foo",
		"foo.lto_priv.0":                 "foo",
		"_ZN3std2io17h0123456789abcdefE": "_ZN3std2io",
		"runtime.isra":                   "runtime",
		"main.islands":                   "main.islands",
	} {
		if got := stem(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
