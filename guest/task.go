//go:build unicorn

package guest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"xol/machine"
)

var _ machine.TaskSwitcher = (*Machine)(nil)

// SwitchTask has a CPU go on with another task (see machine.TaskSwitcher).
func (m *Machine) SwitchTask(cpu int, left any) any {
	c := m.CPUs[cpu]
	was := c.watch.unfinished
	c.watch.unfinished, _ = left.(unfinished)
	c.dropReservation()
	if !was.left() {
		return nil
	}
	return was
}

// noReservation stands for none in the engine.
const noReservation = ^uint64(0)

// learnReservation finds where the engine keeps the address that an exclusive load has
// reserved: code loads from its argument so and returns.
func (c *CPU) learnReservation(code string) error {
	text, err := c.m.target.test.bytes(c.m, code)
	if err != nil {
		return err
	}
	if err := c.m.Write(testText, text); err != nil {
		return err
	}
	addrs := []uint64{noReservation, testData, testData + 64}
	var contexts [][]byte
	for _, addr := range addrs {
		if addr != noReservation {
			if err := c.Call(machine.Function{Entry: testText}, addr); err != nil {
				return err
			}
			if err := c.testRun(machine.EventReturned, ExitAddress); err != nil {
				return err
			}
		}
		context, err := c.engine.Context()
		if err != nil {
			return err
		}
		contexts = append(contexts, slices.Clone(context))
	}
	found := 0
	for at := 0; at+8 <= len(contexts[0]); at++ {
		shows := func(addr uint64, context []byte) bool { return binary.NativeEndian.Uint64(context[at:]) == addr }
		if slices.EqualFunc(addrs, contexts, shows) {
			c.reserve = at
			found++
		}
	}
	if found != 1 {
		return fmt.Errorf("%d places may hold the address that the engine has reserved", found)
	}
	c.dropReservation()
	return c.err
}

// dropReservation has the next exclusive store fail, unless it follows another load.
func (c *CPU) dropReservation() {
	if c.reserve == 0 || c.err != nil {
		return
	}
	context, err := c.engine.Context()
	if err != nil {
		c.err = err
		return
	}
	binary.NativeEndian.PutUint64(context[c.reserve:], noReservation)
	c.err = c.engine.SetContext()
}
