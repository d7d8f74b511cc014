//go:build unicorn

package guest

import (
	"slices"

	"xol/internal/emulator"
)

// HookCode has f called with the value of register reg, a general one, before
// every instruction at one of the addresses, by a hook of the engine for each
// (see unicorn.Engine.HookCode).
func (c *CPU) HookCode(addrs []uint64, reg int, f func(value uint64)) error {
	if err := c.m.usable(); err != nil {
		return err
	}
	i := slices.IndexFunc(c.core.links, func(l emulator.Link) bool { return l.Index == reg })
	id := c.core.links[i].ID
	hook := func(uint64) {
		v, err := c.engine.ReadOne(id)
		if err != nil {
			c.err = err
			return
		}
		f(v)
	}
	for _, addr := range addrs {
		if err := c.engine.HookCode(addr, hook); err != nil {
			return err
		}
	}
	return nil
}
