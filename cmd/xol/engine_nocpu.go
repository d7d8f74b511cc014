//go:build !(linux && amd64)

package main

import (
	"xol/arch"
	"xol/machine"
)

func openCPU(arch.Executor) (machine.Engine, error) { return nil, errForeignCPU }
