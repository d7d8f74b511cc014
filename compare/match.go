package compare

import (
	"hash/maphash"
	"regexp"
	"slices"
	"strings"

	"xol/analyze"
	"xol/decode"
	"xol/image"
)

// matcher finds which function of A became which of B.
type matcher struct {
	a, b    *analyze.Analysis
	fa, fb  []image.Function
	partner []int  // of each of fa, -1 for none
	taken   []bool // of fb
}

// matchFunctions returns for each function of fa the index in fb of the one that it
// became, -1 for none, and which of fb are taken: by their names first, then by
// names without what compilers add and count up; those that have no name, as in
// stripped programs, by what they do and by what stands around them.
func matchFunctions(a, b *analyze.Analysis, fa, fb []image.Function) (partner []int, taken []bool) {
	m := &matcher{a: a, b: b, fa: fa, fb: fb, partner: make([]int, len(fa)), taken: make([]bool, len(fb))}
	for i := range m.partner {
		m.partner[i] = -1
	}
	for _, name := range []func(string) string{func(s string) string { return s }, numberless, stem} {
		m.byName(name)
	}
	m.byContent()
	return m.partner, m.taken
}

func (m *matcher) pair(i, j int) { m.partner[i], m.taken[j] = j, true }

// hasName reports whether the name of f says more than where f stands.
func hasName(f *image.Function) bool {
	switch f.Source {
	case image.FromSymbol, image.FromGo, image.FromEntry:
		return true
	case image.FromPLT:
		return !strings.HasPrefix(f.Name, ".")
	}
	return false
}

// byName pairs the functions that are left and have the same name.
func (m *matcher) byName(name func(string) string) {
	as := m.named(m.fa, func(i int) bool { return m.partner[i] >= 0 }, name)
	bs := m.named(m.fb, func(j int) bool { return m.taken[j] }, name)
	for s, is := range as {
		js := bs[s]
		if len(is) != len(js) && len(js) > 0 {
			is, js = m.byNeighbours(is, js)
		}
		for k := range min(len(is), len(js)) {
			m.pair(is[k], js[k])
		}
	}
}

func (m *matcher) named(list []image.Function, done func(int) bool, name func(string) string) map[string][]int {
	by := make(map[string][]int, len(list))
	for i := range list {
		if !done(i) && hasName(&list[i]) {
			s := name(list[i].Name)
			by[s] = append(by[s], i)
		}
	}
	return by
}

// byNeighbours pairs those of several functions of one name whose neighbours have the
// same names as well, and returns those that are left.
func (m *matcher) byNeighbours(is, js []int) (restA, restB []int) {
	for _, distance := range []int{-1, 1} {
		restA = nil
		for _, i := range is {
			k := slices.IndexFunc(js, func(j int) bool {
				return neighbour(m.fa, i+distance) == neighbour(m.fb, j+distance)
			})
			if k < 0 {
				restA = append(restA, i)
				continue
			}
			m.pair(i, js[k])
			js = slices.Delete(slices.Clone(js), k, k+1)
		}
		is = restA
	}
	return is, js
}

func neighbour(list []image.Function, i int) string {
	if i < 0 || i >= len(list) {
		return ""
	}
	return numberless(list[i].Name)
}

var (
	// numbers are what compilers count up in names: foo.isra.0, foo.llvm.123, and the
	// hash at the end of Rust's.
	numbers = regexp.MustCompile(`\.\d+|17h[0-9a-f]{16}E`)
	// clones are what they add to the one form of a function that is left.
	clones = regexp.MustCompile(`\.(isra|constprop|llvm|lto_priv|localalias)\b`)
)

// numberless returns a name without what is counted up in it.
func numberless(name string) string {
	if !strings.ContainsRune(name, '.') && !strings.Contains(name, "17h") {
		return name
	}
	return numbers.ReplaceAllString(name, "")
}

// stem returns a name without what compilers add to that of a function which they
// change, but with what they call its parts: foo.cold, foo.part.
func stem(name string) string {
	name = numberless(name)
	if !strings.ContainsRune(name, '.') {
		return name
	}
	return clones.ReplaceAllString(name, "")
}

// byContent pairs functions without names.
func (m *matcher) byContent() {
	ia, ib := m.unnamed(m.fa, func(i int) bool { return m.partner[i] >= 0 }), m.unnamed(m.fb, func(j int) bool { return m.taken[j] })
	if len(ia) == 0 || len(ib) == 0 {
		return
	}
	ka, kb := contents(m.a, m.fa, ia), contents(m.b, m.fb, ib)
	x, y := 0, 0
	for _, equal := range append(align(nil, sums(ka), sums(kb), 0, 0), [2]int{len(ia), len(ib)}) {
		m.alike(ia[x:equal[0]], ib[y:equal[1]], ka[x:equal[0]], kb[y:equal[1]])
		if equal[0] < len(ia) {
			m.pair(ia[equal[0]], ib[equal[1]])
		}
		x, y = equal[0]+1, equal[1]+1
	}
}

func (m *matcher) unnamed(list []image.Function, done func(int) bool) (left []int) {
	for i := range list {
		if !done(i) && !hasName(&list[i]) {
			left = append(left, i)
		}
	}
	return left
}

// contents returns the keys of the instructions of functions.
func contents(an *analyze.Analysis, list []image.Function, which []int) [][]uint64 {
	all := make([][]uint64, len(which))
	var code []byte
	var insts []decode.Inst
	for k, i := range which {
		f := &list[i]
		var err error
		if code, err = an.Image.Code(code[:0], f.Addr, f.Size); err != nil {
			code = code[:0]
		}
		insts = decode.Sweep(an.ISA, insts[:0], code, f.Addr)
		all[k] = appendKeys(make([]uint64, 0, len(insts)), an, f, insts)
	}
	return all
}

// sums returns a number for each list of keys.
func sums(all [][]uint64) []uint64 {
	out := make([]uint64, len(all))
	for i, keys := range all {
		out[i] = maphash.Comparable(seed, len(keys))
		for _, k := range keys {
			out[i] = maphash.Comparable(seed, [2]uint64{out[i], k})
		}
	}
	return out
}

const (
	maxAlike = 1 << 14 // pairs of functions to look at
	minAlike = 0.5     // the share of instructions that a function keeps
)

// alike pairs functions between two equal ones, in order, so that as much as can be
// stays the same.
func (m *matcher) alike(ia, ib []int, ka, kb [][]uint64) {
	n, width := len(ia), len(ib)+1
	if n == 0 || len(ib) == 0 || n*width > maxAlike {
		return
	}
	for _, keys := range slices.Concat(ka, kb) {
		slices.Sort(keys)
	}
	like := make([]float64, n*width)
	best := make([]float64, (n+1)*width)
	for i := n - 1; i >= 0; i-- {
		for j := width - 2; j >= 0; j-- {
			at := i*width + j
			like[at] = common(ka[i], kb[j])
			best[at] = max(best[at+width], best[at+1])
			if like[at] >= minAlike {
				best[at] = max(best[at], like[at]+best[at+width+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < width-1; {
		switch at := i*width + j; {
		case best[at] == best[at+width]:
			i++
		case best[at] == best[at+1]:
			j++
		default:
			m.pair(ia[i], ib[j])
			i, j = i+1, j+1
		}
	}
}

// common returns what share of the longer of two sorted lists is in both.
func common(a, b []uint64) float64 {
	n := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			n, i, j = n+1, i+1, j+1
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return float64(n) / float64(max(len(a), len(b), 1))
}
