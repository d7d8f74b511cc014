//go:build unicorn

package runtime_test

import (
	"slices"
	"testing"

	"xol/arch"
	"xol/internal/isatest"
)

// TestInterruptsLeaveNoTrace calls a function before every instruction, and
// holds what is executed after it against what is executed without.
func TestInterruptsLeaveNoTrace(t *testing.T) {
	for _, name := range arch.Names() {
		for _, level := range []string{"0", "2"} {
			t.Run(name+" -O"+level, func(t *testing.T) {
				t.Parallel()
				isa, err := isatest.Named(name)
				if err != nil {
					t.Fatal(err)
				}
				d := newDrill(t, isa, level, "days")
				f, err := d.p.Function(interruptFunction)
				if err != nil {
					t.Fatal(err)
				}
				for i := range d.trace {
					var trace []uint64
					for d.start(t); d.c.Running(); {
						if len(trace) == i {
							if err := d.Interrupt(other, f, interruptArgs...); err != nil {
								t.Fatal(err)
							}
						}
						trace = append(trace, d.c.PC())
						if err := d.Step(other, 1); err != nil {
							t.Fatal(err)
						}
					}
					if err := d.check(d.Result(other)); err != nil || !slices.Equal(trace, d.trace) {
						t.Errorf("interrupted before %#x: %v, executed\n%#x\nnot\n%#x", d.trace[i], err, trace, d.trace)
					}
				}
			})
		}
	}
}
