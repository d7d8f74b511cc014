//go:build unicorn

package runtime_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"xol/arch"
	"xol/machine"
	"xol/runtime"
)

// watchedFunctions are those of the events whose accesses are watched.
var watchedFunctions = []string{"load", "store", "update", "second", "push", "pop", "return", "call", "indirect", "throughstack"}

// TestWatchedAccessesOfProbes watches the data and the stack of functions: whatever
// way their probed instructions are executed in, calls and returns among them, the
// handlers see the accesses that they see without probes.
func TestWatchedAccessesOfProbes(t *testing.T) {
	for _, isa := range arch.Names() {
		t.Run(isa, func(t *testing.T) {
			t.Parallel()
			for i := range eventCases {
				one := eventCases[i]
				_, exists := one.events[isa]
				if !exists || !slices.Contains(watchedFunctions, one.function) {
					continue
				}
				t.Run(one.function, func(t *testing.T) { watchedInEveryWay(t, isa, &one) })
			}
		})
	}
}

func watchedInEveryWay(t *testing.T, isa string, one *eventCase) {
	plain := newEventHost(t, isa, one, runtime.Options{})
	want, result := plain.watched(t), uint64(0)
	result, err := plain.run(t)
	if err != nil {
		t.Fatal(err)
	}
	list := *want
	for i := range eventWays {
		way := &eventWays[i]
		if way.suits != nil && !way.suits(isa) {
			continue
		}
		for _, where := range eventPlaces {
			t.Run(way.name+" "+where.name, func(t *testing.T) {
				h := newEventHost(t, isa, one, way.opt)
				var seen *[]string
				h.probed(t, way, where.at, func(round int, r uint64) {
					if r != result {
						t.Errorf("round %d: result %#x, want %#x", round, r, result)
					}
					if seen != nil && !slices.Equal(*seen, list) {
						t.Errorf("round %d: accesses\n%q, want\n%q", round, *seen, list)
					}
					if seen == nil {
						seen = h.watched(t)
					}
					*seen = nil
				})
			})
		}
	}
}

// watched watches the top of the stack, and data. It returns the accesses that are
// seen.
func (h *eventHost) watched(t *testing.T) *[]string {
	t.Helper()
	seen := new([]string)
	file := h.isa.Registers()
	handler := func(c *runtime.WatchContext) {
		sp, result := c.Regs.SP(), c.Regs.ReturnValue()
		*seen = append(*seen, fmt.Sprintf("%v of %d at %#x, %#x to %#x, at %#x with %s %#x and %#x",
			c.Kind, c.Size, c.Addr, c.Old, c.New, c.Regs.IP(), file.Registers[file.SP].Name, sp, result))
	}
	kind := machine.WatchAccess
	for _, addr := range []uint64{eventStack, eventStack - 8, data + 8} {
		err := try(h, runtime.WatchProbe{Addr: addr, Len: 8, Kind: kind, Handler: handler})
		var refused *runtime.RegisterError
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
	}
	return seen
}
