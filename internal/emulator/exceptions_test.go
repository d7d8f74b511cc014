//go:build unicorn

package emulator

import (
	"testing"

	"xol/machine"
)

// The engine never sees a handler return, so to it each exception happens during
// the one before: a second one is a double fault, a third one shuts it down.
func TestExceptionsInARow(t *testing.T) {
	g := amd64Guest(t)
	for i := range 12 {
		for _, c := range []struct {
			code string
			trap uint64
		}{
			{"f7f1", 0},    // div %ecx, which is 0
			{"0f01d1", 13}, // xsetbv, which must not clear XCR0
			{"cc", 3},
		} {
			want := machine.Event{Kind: machine.EventException, Number: c.trap}
			if _, event, _ := g.run(t, c.code, 1); event != want {
				t.Errorf("%s, round %d: %+v, want %+v", c.code, i+1, event, want)
			}
		}
	}
}
