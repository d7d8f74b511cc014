//go:build unicorn

package guest

import (
	"testing"
)

// TestHookCode counts calls of a function by a hook, which sees its argument.
func TestHookCode(t *testing.T) {
	eachProgram(t, func(t *testing.T, isa, level string) {
		m, p := load(t, Options{}, isa, level)
		f, err := p.Function("length")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Write(bufferAddr, []byte("hello\x00")); err != nil {
			t.Fatal(err)
		}
		calls := 0
		c := m.CPUs[0]
		err = c.HookCode([]uint64{f.Entry}, m.convention.Args[0], func(v uint64) {
			if calls++; v != bufferAddr {
				t.Errorf("the argument is %#x, want %#x", v, bufferAddr)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if n, err := c.CallAndRun(1000, f, bufferAddr); err != nil || n != 5 {
				t.Errorf("%d, %v", n, err)
			}
		}
		if calls != 3 {
			t.Errorf("%d calls", calls)
		}
	})
}
