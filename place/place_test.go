package place

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

func randomMarks(r *rand.Rand, n int) Marks {
	lens := []uint64{1, 2, 5, 16, 17, 300, 4096, 4097, 50000}
	marks := make(Marks, n)
	for i := range marks {
		marks[i] = Mark{Addr: 0x1000 + r.Uint64N(100000), Len: lens[r.IntN(len(lens))], Kind: 1 << r.IntN(8)}
	}
	return marks
}

func TestTouchingAgreesWithAScanOfTheWholeList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	marks := randomMarks(r, 400)
	index := NewIndex(marks)
	count := func(ms Marks) map[Mark]int {
		c := map[Mark]int{}
		for _, m := range ms {
			c[m]++
		}
		return c
	}
	for range 2000 {
		lo := r.Uint64N(110000)
		hi := lo + 1 + r.Uint64N(600)
		var want Marks
		for _, m := range marks {
			if m.Addr < hi && m.End() > lo {
				want = append(want, m)
			}
		}
		got := index.Touching(nil, lo, hi)
		for i := 1; i < len(got); i++ {
			if got[i-1].Addr > got[i].Addr {
				t.Fatalf("[%#x,%#x): not sorted", lo, hi)
			}
		}
		if !reflect.DeepEqual(count(got), count(want)) {
			t.Fatalf("[%#x,%#x): got %v, want %v", lo, hi, got, want)
		}
	}
}

func TestAtUnitesAllRangesThatHoldTheByte(t *testing.T) {
	ms := Marks{{10, 20, InitText}, {12, 5, JumpLabel}, {14, 1, Bug}}
	for _, c := range []struct {
		addr uint64
		want Kind
	}{
		{9, 0}, {10, InitText}, {12, InitText | JumpLabel}, {14, InitText | JumpLabel | Bug},
		{16, InitText | JumpLabel}, {17, InitText}, {29, InitText}, {30, 0},
	} {
		if got := ms.At(c.addr); got != c.want {
			t.Errorf("At(%d) = %b, want %b", c.addr, got, c.want)
		}
	}
}
