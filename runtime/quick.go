package runtime

// quick handles breakpoints that no other event follows: those of sites whose copy
// leads back by itself.
func (r *Runtime) quick(cpu int, addr uint64) (handled bool, err error) {
	s := r.sites[addr]
	if s == nil || !s.armed {
		return false, nil
	}
	if w, _ := r.wayBack(s); w == WayNone {
		return false, nil
	}
	if _, denied := r.unfetchable(s); denied {
		return false, nil
	}
	return true, r.breakpoint(cpu, s)
}

// hostCalled handles the calls that detour buffers and the stubs of patchable
// entries make.
func (r *Runtime) hostCalled(cpu int, addr uint64) error {
	if addr == r.stubs.entryCall() {
		return r.entered(cpu)
	}
	return r.jumped(cpu)
}
