//go:build unicorn

package main

import (
	"fmt"

	"xol/arch"
	"xol/internal/emulator"
	"xol/internal/unicorn"
	"xol/machine"
)

func openEmulator(isa arch.Executor) (machine.Engine, error) {
	return emulator.Open(isa.Name(), isa.Registers())
}

// engineVersion follows the version of xol.
func engineVersion() string {
	major, minor, patch := unicorn.Version()
	return fmt.Sprintf(" unicorn %d.%d.%d", major, minor, patch)
}
