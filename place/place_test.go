package place

import "testing"

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
