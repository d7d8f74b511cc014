//go:build linux

package verify_test

import (
	"context"
	"reflect"
	"testing"

	"xol/arch/amd64"
	"xol/decode"
	"xol/verify"
)

// repeats are instructions of which many states raise an exception, or come to
// no end: what one leaves in an engine must not change what the next one does.
var repeats = []string{
	"f7f1", "f7fe", "48f7f7", "49f7fb", "f6f3", // div and idiv by registers
	"48 f7 33",                  // div by memory
	"f3 48 a5", "f3 aa", "ebfe", // repeated stores, and a jump to itself
	"48 8b 05 10 00 00 00", "e8 00 10 00 00", "74 10", "0f 0b", "cc",
}

// manyRepeats has each of them at several addresses.
func manyRepeats(t *testing.T) (insts []decode.Inst) {
	for i := range 12 {
		for j, code := range repeats {
			insts = append(insts, decodeRun(t, code, 0x40_0000+uint64(i*len(repeats)+j)*0x40)...)
		}
	}
	return insts
}

// The report depends on the instructions and the seed only: not on how they are
// shared out to workers, and on what an engine ran before.
func TestRepeatable(t *testing.T) {
	const states = 20
	insts := manyRepeats(t)
	for name, open := range engines(t) {
		t.Run(name, func(t *testing.T) {
			var first *verify.Report
			for _, workers := range []int{1, 2, 3, 7} {
				r, err := verify.Instructions(context.Background(), insts, verify.Options{
					Target: target{}, Engines: only(open), States: states, Workers: workers, Seed: 3,
				})
				if err != nil {
					t.Fatal(err)
				}
				if r.States+r.Endless != states*r.Executed {
					t.Errorf("%d workers: %d states and %d endless ones of %d instructions", workers, r.States, r.Endless, r.Executed)
				}
				if first == nil {
					first = r
				}
				if !reflect.DeepEqual(r, first) {
					t.Errorf("%d workers: %s\n1 worker: %s", workers, summary(r), summary(first))
				}
			}
			report(t, amd64.ISA{}, first)
			t.Log(summary(first))
		})
	}
}
