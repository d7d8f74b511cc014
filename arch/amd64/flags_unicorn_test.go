//go:build unicorn && linux && amd64

package amd64_test

import (
	"testing"

	"xol/arch/amd64"
	"xol/internal/emulator"
)

// TestFlagsInUnicorn asks the emulator what TestFlagsOnTheCPU asks the CPU.
func TestFlagsInUnicorn(t *testing.T) {
	engine, err := emulator.Open("amd64", amd64.Registers())
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	testFlags(t, engine)
}
