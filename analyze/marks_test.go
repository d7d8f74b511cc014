package analyze

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"xol/place"
)

func randomMarks(r *rand.Rand, n int) place.Marks {
	lens := []uint64{1, 2, 5, 16, 17, 300, 4096, 4097, 50000}
	marks := make(place.Marks, n)
	for i := range marks {
		marks[i] = place.Mark{Addr: 0x1000 + r.Uint64N(100000), Len: lens[r.IntN(len(lens))], Kind: 1 << r.IntN(8)}
	}
	return marks
}

func TestTouchingAgreesWithAScanOfTheWholeList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	marks := randomMarks(r, 400)
	index := newMarkIndex(marks[:100], marks[100:])
	count := func(ms place.Marks) map[place.Mark]int {
		c := map[place.Mark]int{}
		for _, m := range ms {
			c[m]++
		}
		return c
	}
	var cursor markCursor
	for range 2000 {
		lo := r.Uint64N(110000)
		hi := lo + 1 + r.Uint64N(600)
		var want place.Marks
		for _, m := range marks {
			if m.Addr < hi && m.End() > lo {
				want = append(want, m)
			}
		}
		got := index.touching(nil, lo, hi)
		for i := 1; i < len(got); i++ {
			if got[i-1].Addr > got[i].Addr {
				t.Fatalf("[%#x,%#x): not sorted", lo, hi)
			}
		}
		if !reflect.DeepEqual(count(got), count(want)) {
			t.Fatalf("[%#x,%#x): got %v, want %v", lo, hi, got, want)
		}
		if near := index.touchingNear(nil, lo, hi, &cursor); !slices.Equal(near, got) {
			t.Fatalf("[%#x,%#x): got %v with the cursor, want %v", lo, hi, near, got)
		}
	}
}
