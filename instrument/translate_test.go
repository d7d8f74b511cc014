package instrument

import "testing"

// sample is a copy at 0x2000 of three instructions at 0x1000, 0x1003 and 0x1005, with a
// counter before the first two in one run, a gate before the third, and a jump back.
var sample = Copy{
	Addr: 0x2000, Orig: 0x1000, Size: 40, Back: 35, Counters: 0x3000, Runs: []Run{{0, 1}, {2, 2}},
	Points: []Point{{Orig: 0, Offset: 0, Body: 8, Len: 3}, {Orig: 3, Offset: 11, Body: 11, Len: 2}, {Orig: 5, Offset: 13, Body: 22, Len: 4}},
	Items:  []Inserted{{Offset: 0, Step: 0, Kind: Count}, {Offset: 13, Step: 2, Kind: Count, Number: 1}, {Offset: 21, Step: 2, Kind: Gate, Number: 7}},
}

func TestLocate(t *testing.T) {
	for _, c := range []struct {
		name string
		pc   uint64
		want Where
		ok   bool
	}{
		{"before the counter", 0x2000, Where{0, 0, 0}, true},
		{"in the counter", 0x2004, Where{0, 0, 0}, true},
		{"the instruction", 0x2008, Where{0, -1, 8}, true},
		{"inside of its moved form", 0x200a, Where{0, -1, 8}, true},
		{"one with nothing before it", 0x200b, Where{1, -1, 11}, true},
		{"a second counter", 0x200d, Where{2, 1, 13}, true},
		{"the gate after it", 0x2015, Where{2, 2, 21}, true},
		{"the last instruction", 0x2016, Where{2, -1, 22}, true},
		{"the jump back", 0x2023, Where{}, false},
	} {
		if got, ok := sample.Locate(c.pc); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestCorrections(t *testing.T) {
	fix := func(n int64, first, last int) Correction {
		c := Correction{Counter: 0x3000, First: first, Last: last, N: n}
		if first == 2 {
			c.Counter = 0x3008
		}
		return c
	}
	for _, c := range []struct {
		name    string
		leave   bool
		step    int
		counted bool
		want    Correction
		fixed   bool
	}{
		{"left before it was counted", true, 0, false, Correction{}, false},
		{"left after it was counted", true, 0, true, fix(-1, 0, 1), true},
		{"left in the middle of a run", true, 1, true, fix(-1, 1, 1), true},
		{"left before another run", true, 2, false, Correction{}, false},
		{"come to the start of a run", false, 0, false, Correction{}, false},
		{"come into the middle of a run", false, 1, false, fix(1, 1, 1), true},
		{"come to a run of one", false, 2, false, Correction{}, false},
	} {
		var got Correction
		var fixed bool
		if c.leave {
			got, fixed = sample.Leave(c.step, c.counted)
		} else {
			var pc uint64
			pc, got, fixed = sample.Enter(c.step)
			if want := sample.Addr + uint64(sample.Points[c.step].Offset); pc != want {
				t.Errorf("%s: at %#x, want %#x", c.name, pc, want)
			}
		}
		if got != c.want || fixed != c.fixed {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, got, fixed, c.want, c.fixed)
		}
	}
}

func TestAt(t *testing.T) {
	for _, c := range []struct {
		addr uint64
		step int
		ok   bool
	}{{0x1000, 0, true}, {0x1003, 1, true}, {0x1005, 2, true}, {0x1001, 1, false}, {0x1009, 3, false}, {0xfff, 0, false}} {
		if step, ok := sample.At(c.addr); ok != c.ok || ok && step != c.step {
			t.Errorf("%#x: %d, %v", c.addr, step, ok)
		}
	}
	if sample.Next() != 0x1009 || sample.End() != 0x2028 || sample.Covers(0x1009) || !sample.Covers(0x1008) {
		t.Error("bounds")
	}
}
