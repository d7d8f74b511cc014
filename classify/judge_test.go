package classify_test

import (
	"testing"

	"xol/classify"
	"xol/decode"
)

func TestNew(t *testing.T) {
	slot := classify.Verdict{Exec: classify.ExecSlot, Boost: true}
	for _, c := range []struct {
		name string
		code string
		addr uint64
		want classify.Verdict
	}{
		{"an instruction", "\x01\x02", 0x101, slot},
		{"one that is refused", "\x01\xff", 0x101, classify.Refuse(&refusedByISA)},
		{"before the function", "\x01", 0xff, classify.Refuse(&outside)},
		{"after the function", "\x01", 0x101, classify.Refuse(&outside)},
		{"an entry that moves a probe", "\xe1\x02", 0x100, classify.Verdict{Exec: classify.ExecSlot, Boost: true, MovedTo: 0x101}},
		{"one that moves it to what is refused", "\xe1\xff", 0x100, classify.Verdict{Rule: &refusedByISA, MovedTo: 0x101}},
		{"one that moves it out of the function", "\xe1", 0x100, classify.Verdict{Rule: &outside, MovedTo: 0x101}},
		{"the same byte inside", "\x01\xe1\xff", 0x101, slot},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := bytewiseFunc(c.code)
			if got := own.At(f, c.addr); got != c.want {
				t.Errorf("At says %+v, want %+v", got, c.want)
			}
			if i, start := decode.Find(f.Insts, c.addr); start {
				if got := own.Func(make([]classify.Verdict, 3), f)[3+i]; got != c.want {
					t.Errorf("Func says %+v, want %+v", got, c.want)
				}
			}
		})
	}
	if got := own.Func(nil, bytewiseFunc("")); len(got) != 0 || own.Name() != classify.Linux612 {
		t.Errorf("%s: %+v", own.Name(), got)
	}
}

func TestLone(t *testing.T) {
	for code, want := range map[string]classify.Verdict{
		"\x01":     {Exec: classify.ExecSlot, Boost: true},
		"\xff\x01": classify.Refuse(&refusedByISA),
		"\xe1\xff": {Exec: classify.ExecSlot, Boost: true}, // it is no function's entry
		"\xf0":     {Exec: classify.ExecSlot, Boost: true, Emulator: "as it is"},
		"":         classify.Refuse(&noBytes),
	} {
		if got := own.Lone([]byte(code), 0x100); got != want {
			t.Errorf("% x: %+v, want %+v", code, got, want)
		}
	}
}

func TestBoundaries(t *testing.T) {
	short, long, bad := classify.Rule{ID: "short"}, classify.Rule{ID: "long"}, classify.Rule{ID: "bad"}
	all := classify.Boundaries{Outside: &outside, Inside: &refusedByISA, Truncated: &short, TooLong: &long, Invalid: &bad}
	fixed := all
	fixed.TooLong = nil
	for _, c := range []struct {
		name string
		b    classify.Boundaries
		err  error
		want *classify.Rule
	}{
		{"an instruction", all, nil, nil},
		{"truncated", all, decode.ErrTruncated, &short},
		{"too long", all, decode.ErrTooLong, &long},
		{"too long where that is not told apart", fixed, decode.ErrTooLong, &bad},
		{"invalid", all, decode.ErrInvalid, &bad},
		{"bytes are judged as they are", classify.Boundaries{}, decode.ErrInvalid, nil},
	} {
		var v classify.Verdict
		if c.b.Lone(&v, nil, c.err); v.Rule != c.want {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
	f := bytewiseFunc("\x01")
	if v := all.Elsewhere(f, 0, -1); v != classify.Refuse(&outside) {
		t.Errorf("outside: %+v", v)
	}
	if v := all.Elsewhere(f, 0, 0); v != (classify.Verdict{Rule: &refusedByISA, Culprit: 0x100, Instead: 0x100}) {
		t.Errorf("inside: %+v", v)
	}
}
