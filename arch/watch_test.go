package arch

import (
	"testing"

	"xol/machine"
)

func TestCheckWatch(t *testing.T) {
	const r, w, rw = machine.WatchRead, machine.WatchWrite, machine.WatchAccess
	cases := []struct {
		isa  string
		addr uint64
		len  int
		kind machine.WatchKind
		rule string
	}{
		{"amd64", 0x1000, 8, w, ""},
		{"amd64", 0x1004, 4, rw, ""},
		{"amd64", 0x1001, 1, w, ""},
		{"amd64", 0x1000, 8, r, "amd64/watch-read"},
		{"amd64", 0x1000, 3, w, "amd64/watch-length"},
		{"amd64", 0x1000, 16, w, "amd64/watch-length"},
		{"amd64", 0x1002, 4, w, "amd64/watch-alignment"},
		{"arm64", 0x1000, 8, r, ""},
		{"arm64", 0x1003, 5, rw, ""},
		{"arm64", 0x1003, 6, rw, "arm64/watch-doubleword"},
		{"arm64", 0x1000, 9, rw, "arm64/watch-doubleword"},
		{"arm64", 0x1000, 0, rw, "arm64/watch-doubleword"},
		{"ppc64", 0x1003, 8, r, ""},
		{"ppc64le", 0x1000, 512, w, ""},
		{"ppc64le", 0x1001, 512, w, "ppc64/watch-length"},
		{"ppc64", 0x1000, 0, w, "ppc64/watch-length"},
	}
	for _, c := range cases {
		known, err := ByName(c.isa)
		if err != nil {
			t.Fatal(err)
		}
		isa, err := Execution(known)
		if err != nil {
			t.Fatal(err)
		}
		rule := isa.CheckWatch(machine.Watch{Addr: c.addr, Len: c.len, Kind: c.kind})
		if got := ""; rule != nil {
			got = rule.ID
			if got != c.rule || rule.Reason == "" {
				t.Errorf("%s: %v of %d bytes at %#x: %+v, want %q", c.isa, c.kind, c.len, c.addr, rule, c.rule)
			}
		} else if c.rule != got {
			t.Errorf("%s: %v of %d bytes at %#x: allowed, want %q", c.isa, c.kind, c.len, c.addr, c.rule)
		}
	}
}
