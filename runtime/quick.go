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
	outer := r.handling
	r.handling = cpu
	err = r.breakpoint(cpu, s)
	r.handling = outer
	return true, err
}

// hostCalled handles the calls that detour buffers and the stubs of patchable
// entries make.
func (r *Runtime) hostCalled(cpu int, addr uint64) (err error) {
	outer := r.handling
	r.handling = cpu
	if addr == r.stubs.entryCall() {
		err = r.entered(cpu)
	} else {
		err = r.jumped(cpu)
	}
	r.handling = outer
	return err
}
