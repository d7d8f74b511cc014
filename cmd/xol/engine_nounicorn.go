//go:build !unicorn

package main

import (
	"errors"

	"xol/arch"
	"xol/machine"
)

var errNoUnicorn = errors.New("this build has no Unicorn engine (make build on a machine with a C compiler makes one that has)")

func openEmulator(arch.Executor) (machine.Engine, error) { return nil, errNoUnicorn }

func engineVersion() string { return "" }
