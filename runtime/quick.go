package runtime

// Trapper is a Machine that can show a breakpoint without stopping the CPU,
// which then costs a fraction of an Event.
type Trapper interface {
	Machine
	// OnBreakpoint has f called with the CPU and address of every breakpoint.
	// The CPU may be used as after an EventBreakpoint. If f returns true the
	// CPU goes on as f left it, and there is no event. An error ends the run.
	// Else f must have left everything alone: the event follows.
	OnBreakpoint(f func(cpu int, addr uint64) (handled bool, err error))
}

// quick handles breakpoints that no other event follows: the calls that detour
// buffers make, and those of sites whose copy leads back by itself.
func (r *Runtime) quick(cpu int, addr uint64) (handled bool, err error) {
	if addr == r.stubs.hostCall && r.stubs.page != 0 {
		return true, r.jumped(cpu)
	}
	if addr == r.stubs.entryCall && r.stubs.page != 0 {
		return true, r.entered(cpu)
	}
	s := r.sites[addr]
	if s == nil || !s.armed {
		return false, nil
	}
	if w, _ := s.wayBack(); w == WayNone {
		return false, nil
	}
	return true, r.breakpoint(cpu, s)
}
