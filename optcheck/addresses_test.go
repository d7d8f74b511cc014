package optcheck

import "testing"

func TestAddresses(t *testing.T) {
	var a Addresses
	a.AddRange(100, 164)
	a.AddRange(164, 165)
	a.AddRange(200, 200) // nothing
	a.AddRange(1000, 1001)
	starts := map[uint64]bool{100: true, 163: true, 164: true, 1000: true}
	for addr := range starts {
		a.Add(addr)
	}
	for _, outside := range []uint64{0, 99, 165, 200, 999, 1001, ^uint64(0)} {
		a.Add(outside)
	}
	for addr := range uint64(1100) {
		covered := addr >= 100 && addr < 165 || addr == 1000
		if got := a.covers(addr); got != covered {
			t.Errorf("covers(%d) = %v", addr, got)
		}
		if got, want := a.inside(addr), covered && !starts[addr]; got != want {
			t.Errorf("inside(%d) = %v", addr, got)
		}
	}
}

func TestAddressesAtTheEndOfTheAddressSpace(t *testing.T) {
	const last = ^uint64(0)
	var a Addresses
	a.AddRange(last-10, last)
	a.Add(last - 1)
	a.Add(last)
	for addr, want := range map[uint64]bool{last - 11: false, last - 10: true, last - 2: true, last - 1: false, last: false} {
		if got := a.inside(addr); got != want {
			t.Errorf("inside(%#x) = %v", addr, got)
		}
	}
}

func TestNoAddresses(t *testing.T) {
	var a Addresses
	a.Add(5)
	if a.covers(5) || a.inside(5) {
		t.Error("the zero value holds an address")
	}
}
