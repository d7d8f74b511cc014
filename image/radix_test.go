package image

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRadixSort(t *testing.T) {
	type item struct{ key, seq uint64 }
	random := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		name string
		key  func() uint64
	}{
		{"few values", func() uint64 { return random.Uint64N(16) }},
		{"addresses of a program", func() uint64 { return 0x400000 + random.Uint64N(1<<16) }},
		{"addresses of a kernel", func() uint64 {
			return 0xffffffff81000000 + random.Uint64N(1<<25) - random.Uint64N(2)*0xffffffff81000000
		}},
		{"all bits", func() uint64 { return random.Uint64() }},
		{"ends of the number space", func() uint64 { return -random.Uint64N(3) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, n := range []int{0, 1, 2, 3, 1000} {
				var items []item
				for i := range n {
					items = append(items, item{tc.key() &^ 3, uint64(i)})
				}
				want := slices.Clone(items)
				slices.SortStableFunc(want, func(a, b item) int { return cmp.Compare(a.key, b.key) })
				items = radixSorted(items, func(i *item) uint64 { return i.key })
				if !slices.Equal(items, want) {
					t.Errorf("%d items: wrong order", n)
				}
			}
		})
	}
}
