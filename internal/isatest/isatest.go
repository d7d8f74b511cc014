// Package isatest gives tests ISAs that can do all that xol knows of.
package isatest

import "xol/arch"

// Named returns the ISA of that name, or why it cannot be probed.
func Named(name string) (arch.Prober, error) {
	isa, err := arch.ByName(name)
	if err != nil {
		return nil, err
	}
	return arch.Probing(isa)
}
