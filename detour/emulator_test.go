//go:build unicorn

package detour_test

import (
	"bytes"
	"testing"

	"xol/arch"
	"xol/detour"
	"xol/internal/emulator"
	"xol/machine"
)

func openUnicorn(isa arch.Prober) (machine.Engine, error) {
	return emulator.Open(isa.Name(), isa.Registers())
}

func TestBuffersInUnicorn(t *testing.T) {
	for _, name := range arch.Names() {
		testBuffers(t, name, openUnicorn)
	}
}

func TestFramesInUnicorn(t *testing.T) {
	for _, name := range arch.Names() {
		testFrames(t, name, openUnicorn)
	}
}

func TestLibrariesInUnicorn(t *testing.T) {
	for _, name := range arch.Names() {
		testLibrary(t, name, openUnicorn)
	}
}

func TestCountsInUnicorn(t *testing.T) {
	for _, name := range arch.Names() {
		testCounts(t, name, openUnicorn)
	}
}

// TestLoopsInUnicorn runs a buffer whose region goes back to its start: to the
// jump there, and not around in the buffer.
func TestLoopsInUnicorn(t *testing.T) {
	for _, name := range arch.Names() {
		isa := isaOf(t, name)
		r := newRunner(t, isa, openUnicorn)
		r.randomize(5)
		r.run(t, loops[name].code(t, isa), detour.Options{Probe: probeArgument, TOC: tocValue}, callbackCheck)
		if pc := r.file.Word(r.end, r.file.PC); pc != home {
			t.Errorf("%s: continues at %#x", name, pc)
		}
	}
}

// TestBrokenBuffersAreCaught spoils buffers, all of which must show.
func TestBrokenBuffersAreCaught(t *testing.T) {
	isa := isaOf(t, "amd64")
	for _, c := range []struct{ name, region, was, is string }{
		{"direction flag as it was", "9090909090", "fc4889e3", "904889e3"},
		{"stack not aligned", "9090909090", "4883e4f0", "4883e4ff"},
		{"the red zone overwritten", "4889c8 4889c8", "488d642480", "488d6424f8"},
		{"another register restored", "9090909090", "5d5b415b", "5d59415b"},
		{"flags not restored", "4811c1 4819d3", "9d488da424", "58488da424"},
		{"another probe", "9090909090", "48bf88", "48bf89"},
		{"arguments exchanged", "9090909090", "4889e6", "4889e7"},
		{"the instructions left out", "48ffc0 90 90", "48ffc0", "909090"},
		{"stack pointer off by a word", "9090909090", "488d642418", "488d642410"},
	} {
		changed := false
		tg := newTarget(t, isa, false)
		tg.change = func(code []byte, _ detour.Parts) {
			spoiled := bytes.Replace(code, unhex(t, c.was), unhex(t, c.is), 1)
			changed = changed || !bytes.Equal(code, spoiled)
			copy(code, spoiled)
		}
		r := verifyRegions(t, tg, openUnicorn, sweep(t, isa, unhex(t, c.region), home))
		if r.Differences != 1 || !changed {
			t.Errorf("%s does not show (changed: %t)", c.name, changed)
		}
	}
}

func TestInsertedCountersInUnicorn(t *testing.T) {
	for _, name := range arch.Names() {
		testInsertedCounters(t, name, openUnicorn)
	}
}

func TestTimersInUnicorn(t *testing.T) { testTimers(t, openUnicorn) }
