package classify_test

import (
	"testing"

	"xol/classify"
	"xol/place"
)

func TestGaps(t *testing.T) {
	const functions, blacklist = "linux/unknown-functions", "linux/unknown-blacklist"
	jumpLabel := place.Mark{Addr: 0x102, Len: 1, Kind: place.JumpLabel}
	kernel := classify.WithKernelChecks(own, classify.KernelOptions{})
	owned := classify.WithOwnedText(own)
	for _, c := range []struct {
		name  string
		own   classify.Profile
		gaps  classify.Gaps
		align int
		want  [3]string // of what is allowed, what its bytes forbid, and a site
	}{
		{"all is known", kernel, classify.Gaps{}, 1, [3]string{"", "test/ff", "linux/jump-label"}},
		{"no names, any length", kernel, classify.Gaps{Functions: true, Sites: true}, 1, [3]string{functions, functions, "linux/jump-label"}},
		{"no names, words", kernel, classify.Gaps{Functions: true, Sites: true}, 4, [3]string{functions, "test/ff", "linux/jump-label"}},
		{"names of functions", kernel, classify.Gaps{Sites: true}, 1, [3]string{blacklist, "test/ff", "linux/jump-label"}},
		{"isa, no names", owned, classify.Gaps{Functions: true, Sites: true}, 1, [3]string{functions, functions, "isa/jump-label"}},
		{"isa, names of functions", owned, classify.Gaps{Sites: true}, 4, [3]string{blacklist, "test/ff", "isa/jump-label"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := classify.WithGaps(c.own, c.gaps, c.align)
			f := bytewiseFunc("\x01\xff\x02", jumpLabel)
			for i, v := range p.Func(nil, f) {
				if ruleID(&v) != c.want[i] {
					t.Errorf("+%d: rule %q, want %q", i, ruleID(&v), c.want[i])
				}
				if undecided := c.want[i] == functions || c.want[i] == blacklist; v.Undecided() != undecided || undecided && v.OK() {
					t.Errorf("+%d: undecided %v, allowed %v", i, v.Undecided(), v.OK())
				}
				if at := p.At(f, f.Addr+uint64(i)); at != v {
					t.Errorf("+%d: At says %+v, Func %+v", i, at, v)
				}
			}
		})
	}
}
