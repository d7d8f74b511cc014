//go:build unicorn

package main

import (
	"xol/arch"
	"xol/internal/emulator"
	"xol/machine"
)

func openEmulator(isa arch.ISA) (machine.Engine, error) {
	return emulator.Open(isa.Name(), isa.Registers())
}
