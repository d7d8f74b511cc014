//go:build unicorn

package guest

import "maps"

// Copy returns a machine of the same kind with the same memory and registers, as
// a fork does. What it watches, and who is asked about breakpoints, is not copied.
func (m *Machine) Copy() (*Machine, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	c, err := Open(m.opt)
	if err != nil {
		return nil, err
	}
	if err := c.take(m); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// take makes the memory and the registers those of another machine.
func (m *Machine) take(from *Machine) error {
	for at := range maps.Clone(m.memory.pages) {
		if from.memory.pages[at] != nil {
			continue
		}
		if err := m.Unmap(at, PageSize); err != nil {
			return err
		}
	}
	for at, p := range from.memory.pages {
		if m.memory.pages[at] == nil {
			if err := m.Map(at, PageSize, p.perm); err != nil {
				return err
			}
		} else if err := m.Protect(at, PageSize, p.perm); err != nil {
			return err
		}
		if err := m.Write(at, p.mem); err != nil {
			return err
		}
	}
	state := m.File.NewState()
	for i, c := range from.CPUs {
		c.Save(state)
		m.CPUs[i].Restore(state)
		m.CPUs[i].running = c.running
	}
	return nil
}
