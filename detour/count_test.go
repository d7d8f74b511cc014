package detour_test

import (
	"bytes"
	"testing"

	"xol/detour"
	"xol/machine"
)

// testCounts runs buffers that count instead of calling, for an instruction that
// does nothing: only the count and the program counter may have changed.
func testCounts(t *testing.T, name string, open opener) {
	r := newRunner(t, isaOf(t, name), open)
	for seed := range uint64(50) {
		kernel := seed%2 == 1
		counter := uint64(nearCounter)
		if seed%4 >= 2 {
			counter = farCounter
		}
		r.randomize(seed)
		region := nops(r.isa)
		event := r.run(t, region, detour.Options{Kernel: kernel, Count: counter}, callbackCheck)
		if event.Kind != machine.EventLeft {
			t.Fatalf("%s %s: %v", name, modeName(kernel), event)
		}
		r.file.SetWord(r.start, r.file.PC, home+uint64(len(region)))
		if !bytes.Equal(r.start, r.end) {
			t.Errorf("%s %s: registers have changed", name, modeName(kernel))
		}
		if was, is := r.inOrder(swapped(machine.Word(counter, seed))), r.memory(counter); is != was+1 {
			t.Errorf("%s %s: %#x has become %#x", name, modeName(kernel), was, is)
		}
		sp := r.file.Word(r.start, r.file.SP)
		lo, hi := sp-uint64(r.plan.Stack), sp-redZones[name][kernel]
		for _, w := range r.writes {
			if w.Addr != counter && w.Addr-lo >= hi-lo {
				t.Errorf("%s %s: %#x is written, the stack pointer is %#x", name, modeName(kernel), w.Addr, sp)
			}
		}
	}
}
