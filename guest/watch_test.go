//go:build unicorn

package guest

import (
	"errors"
	"fmt"
	"testing"

	"xol/machine"
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
				if err := m.Map(data, PageSize, machine.PermRead|machine.PermWrite); err != nil {
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
		case ev.Kind == machine.EventReturned:
			return reported
		case ev.Kind != machine.EventWatch:
			t.Fatal(m.Unexpected(ev))
		}
		if hit := m.Watched(0); len(hit) != 1 || hit[0].Addr != data || hit[0].Kind != machine.WatchRead {
			t.Errorf("%+v", hit)
		}
		reported++
	}
}

// TestWatchAcrossPages has a word accessed that lies in two pages, which are apart in
// physical memory, or around a smaller boundary: what it does not touch is not reported,
// and where the report comes before the access memory is as it was.
func TestWatchAcrossPages(t *testing.T) {
	const first, size = 0x5000_0000, 8
	stores := map[string]string{"amd64": "488907", "arm64": "000000f9", "ppc64": "f8630000", "ppc64le": "f8630000"}
	for _, i := range isas {
		for _, write := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s write=%t", i.name, write), func(t *testing.T) {
				m := open(t, Options{}, i.name)
				code := i.load
				if write {
					code = stores[i.name]
				}
				put(t, m, textAddr, code+i.ret)
				for _, at := range []uint64{first, first + 16*PageSize, first + PageSize} {
					if err := m.Map(at, PageSize, machine.PermRead|machine.PermWrite); err != nil {
						t.Fatal(err)
					}
				}
				for _, boundary := range []uint64{first + PageSize, first + 1024, first + PageSize + 1024} {
					for _, w := range []struct{ from, bytes int }{{0, 1}, {0, 8}, {3, 1}, {4, 4}, {-8, 8}, {-1, 1}, {-4, 2}, {-5, 1}} {
						watch := machine.Watch{Addr: boundary + uint64(w.from), Len: w.bytes, Kind: machine.WatchAccess}
						touched := w.from < size/2 && w.from+w.bytes > -size/2
						if got := accessAt(t, m, boundary-size/2, watch); got != touched {
							t.Errorf("%d bytes at %+d from %#x: reported %t, want %t", w.bytes, w.from, boundary, got, touched)
						}
					}
				}
			})
		}
	}
}

// accessAt calls textAddr with an address, and returns whether the watched data are
// reported. Before the access memory holds what it did.
func accessAt(t *testing.T, m *Machine, addr uint64, w machine.Watch) (reported bool) {
	t.Helper()
	const before = 0x1122334455667788
	if err := errors.Join(m.WriteWord(addr, before), m.Watch(0, []machine.Watch{w})); err != nil {
		t.Fatal(err)
	}
	c := m.CPUs[0]
	sp := c.Reg(m.File.SP)
	if err := c.Call(machine.Function{Entry: textAddr}, addr); err != nil {
		t.Fatal(err)
	}
	for {
		ev, err := c.Run(100)
		switch {
		case err != nil:
			t.Fatal(err)
		case ev.Kind == machine.EventReturned:
			c.SetReg(m.File.SP, sp)
			return reported
		case ev.Kind != machine.EventWatch || reported:
			t.Fatal(m.Unexpected(ev))
		}
		reported = true
		if v, err := m.ReadWord(addr); err != nil || !m.ISA.WatchUnit().After && v != before {
			t.Errorf("%#x before the access, %v", v, err)
		}
	}
}
