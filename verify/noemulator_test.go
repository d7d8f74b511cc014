//go:build !unicorn

package verify_test

import (
	"errors"

	"xol/machine"
)

func openEmulator(string, *machine.File) (machine.Engine, error) {
	return nil, errors.New("built without the emulator")
}
