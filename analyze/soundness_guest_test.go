//go:build unicorn

package analyze_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"xol/arch"
	"xol/guest"
	"xol/internal/workload"
	"xol/machine"
)

// TestFreeRegionsAreNotEnteredByGuests runs the programs in testdata/guest with
// many arguments, and looks where execution lands.
func TestFreeRegionsAreNotEnteredByGuests(t *testing.T) {
	for _, name := range arch.Names() {
		for _, level := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s -O%d", name, level), func(t *testing.T) {
				path := fmt.Sprintf("../testdata/guest/%s-O%d", name, level)
				l := landings{}
				traceGuest(t, name, path, l)
				f := judge(t, path)
				if f.check(t, l) == 0 && f.inside {
					t.Error("no landing is inside any region, not even a heedless one")
				}
			})
		}
	}
}

const guestBuffer = 0x6000_0000

// traceGuest adds where execution lands in calls of every workload.
func traceGuest(t *testing.T, name, path string, l landings) {
	t.Helper()
	isa, err := arch.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := guest.Open(guest.Options{ISA: isa, Exact: true, Trace: func(_ int, from, to uint64) { l.add(from, to) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, err := m.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Map(guestBuffer, workload.Size, machine.PermRead|machine.PermWrite); err != nil {
		t.Fatal(err)
	}
	clear(l) // the machine's own start-up test
	b := &workload.Buffer{Memory: m, Order: m.Order, Addr: guestBuffer}
	r := rand.New(rand.NewPCG(4, 5))
	for _, w := range workload.All() {
		for range 100 {
			call, err := w.New(b, r)
			if err != nil {
				t.Fatal(err)
			}
			f, err := p.Function(call.Function)
			if err != nil {
				t.Fatal(err)
			}
			result, err := m.CPUs[0].CallAndRun(1_000_000, f, call.Args...)
			if err == nil {
				err = call.Check(result)
			}
			if err != nil {
				t.Fatalf("%s(%#x): %v", call.Function, call.Args, err)
			}
		}
	}
}
