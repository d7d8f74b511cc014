package optcheck

import (
	"math/rand/v2"
	"testing"
)

func TestOffsets(t *testing.T) {
	var o Offsets
	for _, off := range []uint64{0, 63, 64, 127, 128, 199} {
		o.reset(200)
		o.Add(off)
		for at := range uint64(200) {
			if got := o.Has(at); got != (at == off) {
				t.Errorf("with %d, Has(%d) = %v", off, at, got)
			}
			first, ok := o.Within(at, 5)
			if want := at <= off && off < at+5; ok != want || ok && first != off {
				t.Errorf("with %d, Within(%d, 5) = %d, %v", off, at, first, ok)
			}
		}
	}
}

func TestOffsetsWithoutRoom(t *testing.T) {
	var o Offsets
	if o.Has(0) {
		t.Error("the zero set has an offset")
	}
	o.reset(10)
	o.Add(1 << 20)
	o.Add(^uint64(0))
	if o.Has(1<<20) || o.Has(^uint64(0)) || o.Window(0) != 0 {
		t.Error("an offset beyond the room is in the set")
	}
}

func TestBranchInto(t *testing.T) {
	var s Scratch
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := rng.Uint64N(300) + 1
		l := s.Layout(n)
		first := map[uint64]uint64{} // by target
		for from := uint64(0); from < n; from += 1 + rng.Uint64N(40) {
			target := rng.Uint64N(n + 70)
			l.Branch(from, target)
			if _, has := first[target]; !has && target < n+64 {
				first[target] = from
			}
		}
		for off := range n {
			want, wantOK := uint64(0), false
			for at := off; at < off+5; at++ {
				if from, has := first[at]; has && (!wantOK || from < want) {
					want, wantOK = from, true
				}
			}
			if got, ok := l.BranchInto(off, 5); got != want || ok != wantOK {
				t.Fatalf("BranchInto(%d, 5) = %d, %v, want %d, %v", off, got, ok, want, wantOK)
			}
		}
	}
}
