package amd64

import (
	"fmt"
	"testing"
)

// TestAlternative puts code in the place of other code by the kernel's rules. Whole
// kernels are compared with what they wrote in package analyze.
func TestAlternative(t *testing.T) {
	for _, c := range []struct {
		name, code string
		from, to   uint64
		size       int
		want       string
		traps      bool
	}{
		{"call", "e8a7ee6002", 0xffffffff8332aab8, 0xffffffff8100493a, 6, "e82550930490", true},
		{"jump", "e94f6e8efd", 0xffffffff8371fd06, 0xffffffff81006a57, 5, "e9fe000000", true},
		{"jump that may be short", "e9ca0e5cfe", 0xffffffff83720150, 0xffffffff81ce1003, 5, "eb1acccccc", true},
		{"jump that may be short, up to 6.2", "e9ca0e5cfe", 0xffffffff83720150, 0xffffffff81ce1003, 5, "eb1a0f1f00", false},
		{"one byte", "fa", 0xffffffff83720000, 0xffffffff8333aab8, 6, "fa0f1f440000", true},
		{"two bytes", "9c58", 0xffffffff83720000, 0xffffffff8333ae2b, 6, "9c580f1f4000", true},
		{"a NOP that stands alone", "e8fbffffff", 0x1000, 0x1000, 6, "e8fbffffff90", true},
		{"nothing", "", 0, 0x1000, 5, "0f1f440000", true},
		{"nothing, long", "", 0, 0x1000, 13, "66662e0f1f8400000000006690", true},
		{"pause is no NOP", "f390", 0x1000, 0x2000, 4, "f3906690", true},
		{"a branch inside stays", "7500 c3", 0x1000, 0x2000, 3, "7500c3", true},
		{"RIP-relative", "488b0500010000", 0x1000, 0x1800, 7, "488b0500f9ffff", true},
	} {
		got := ISA{}.Alternative(unhex(t, c.code), c.from, c.to, c.size, c.traps)
		if fmt.Sprintf("%x", got) != c.want {
			t.Errorf("%s: %x, want %s", c.name, got, c.want)
		}
	}
}
