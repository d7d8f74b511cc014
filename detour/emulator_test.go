//go:build unicorn

package detour_test

import (
	"testing"

	"xol/arch"
	"xol/internal/emulator"
	"xol/machine"
)

func openUnicorn(isa arch.ISA) (machine.Engine, error) {
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
