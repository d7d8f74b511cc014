package classify_test

import (
	"testing"

	"xol/classify"
	"xol/place"
)

func TestOwnedText(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    place.Kind
		rule    string
		instead uint64
	}{
		{"data", place.Data, "isa/data", 0},
		{"jump label", place.JumpLabel, "isa/jump-label", 0x103},
		{"static call", place.StaticCall, "isa/static-call", 0x103},
		{"ftrace site", place.Ftrace, "isa/ftrace-site", 0x103},
		{"data first", place.Ftrace | place.Data, "isa/data", 0},
		{"a handled fault owns nothing", place.ExTable, "", 0},
		{"the kernel's blacklist is the kernel's", place.Blacklist, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := classify.WithOwnedText(own)
			f := bytewiseFunc("\x01\x02\x03\x04", place.Mark{Addr: 0x101, Len: 2, Kind: c.kind})
			got := p.Func(nil, f)
			for i := range got {
				v := &got[i]
				inside := i == 1 || i == 2
				if want := map[bool]string{true: c.rule}[inside]; ruleID(v) != want {
					t.Errorf("+%d: rule %q, want %q", i, ruleID(v), want)
				}
				if ruleID(v) != "" && (v.Instead != c.instead || v.Culprit != 0x101) {
					t.Errorf("+%d: %+v", i, v)
				}
				if at := p.At(f, f.Addr+uint64(i)); at != *v {
					t.Errorf("+%d: At says %+v, Func %+v", i, at, *v)
				}
			}
		})
	}
}
