//go:build unicorn

package guest

import (
	"fmt"
	"testing"

	"xol/machine"
	"xol/runtime"
)

// TestWatchAndBack has a function load a word that is watched at times: whether the
// machine is exact or not, each load is reported while it is, and none when it is not.
func TestWatchAndBack(t *testing.T) {
	const data = textAddr + 4*PageSize
	for _, i := range isas {
		for _, exact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s exact=%t", i.name, exact), func(t *testing.T) {
				m := open(t, Options{Exact: exact}, i.name)
				put(t, m, textAddr, i.load+i.load+i.ret)
				if err := m.Map(data, PageSize, runtime.PermRead|runtime.PermWrite); err != nil {
					t.Fatal(err)
				}
				for round := range 6 {
					var list []machine.Watch
					if round%2 == 1 {
						list = []machine.Watch{{Addr: data, Len: 8, Kind: machine.WatchRead | machine.WatchWrite}}
					}
					if err := m.Watch(0, list); err != nil {
						t.Fatal(err)
					}
					if got, want := loads(t, m, data), 2*len(list); got != want {
						t.Errorf("round %d: %d loads reported, want %d", round, got, want)
					}
				}
			})
		}
	}
}

// loads has the CPU call the code at textAddr, and returns how many accesses it
// reports.
func loads(t *testing.T, m *Machine, data uint64) (reported int) {
	t.Helper()
	c := m.CPUs[0]
	start(t, c, data)
	for {
		ev, err := c.Run(1000)
		switch {
		case err != nil:
			t.Fatal(err)
		case ev.Kind == runtime.EventReturned:
			return reported
		case ev.Kind != runtime.EventWatch:
			t.Fatal(m.Unexpected(ev))
		}
		if hit := m.Watched(0); len(hit) != 1 || hit[0].Addr != data || hit[0].Kind != machine.WatchRead {
			t.Errorf("%+v", hit)
		}
		reported++
	}
}
