//go:build linux && amd64

package main

import (
	"xol/arch"
	"xol/internal/nativecpu"
	"xol/machine"
)

func openCPU(isa arch.Executor) (machine.Engine, error) {
	if isa.Name() != "amd64" {
		return nil, errForeignCPU
	}
	return nativecpu.Open(isa.Registers())
}
