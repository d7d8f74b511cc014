package analyze

import (
	"testing"

	"xol/image"
	"xol/place"
)

func TestHasFtraceSite(t *testing.T) {
	f := image.Function{Addr: 0x1000, Size: 0x40}
	site := place.Mark{Addr: 0x1004, Len: 5, Kind: place.Ftrace}
	for _, c := range []struct {
		name  string
		marks place.Marks
		want  bool
	}{
		{"none", nil, false},
		{"at its start", place.Marks{site}, true},
		{"of the function after it", place.Marks{{Addr: 0x1040, Len: 5, Kind: place.Ftrace}}, false},
		{"in init text, which is freed", place.Marks{{Addr: 0x1000, Len: 0x1000, Kind: place.InitText}, site}, false},
		{"another mark", place.Marks{{Addr: 0x1004, Len: 5, Kind: place.JumpLabel}}, false},
	} {
		if got := hasFtraceSite(c.marks, f); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
