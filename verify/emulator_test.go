//go:build unicorn

package verify_test

import (
	"xol/internal/emulator"
	"xol/machine"
)

func openEmulator(isa string, f *machine.File) (machine.Engine, error) { return emulator.Open(isa, f) }
