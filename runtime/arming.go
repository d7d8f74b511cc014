package runtime

import (
	"errors"

	"xol/machine"
	"xol/patch"
)

// settle arms or disarms the site as its probes and the global switch have it,
// and lets the optimizer look at it and at its neighbours.
func (r *optimizer) settle(s *site) error {
	if s.gone {
		return nil
	}
	want := r.armed && s.enabled() && s.lost == nil
	if want != s.armed {
		if !want {
			return r.disarm(s)
		}
		if err := r.arm(s); err != nil {
			return err
		}
	}
	r.consider(s)
	return nil
}

func (r *optimizer) arm(s *site) (err error) {
	if s.entry {
		err = r.patchEntry(s, patch.Arm)
		s.armed = err == nil
		return err
	}
	for _, n := range r.covering(s.addr) {
		r.toBreakpoint(n)
	}
	err = r.execute(s, patch.Arm)
	s.armed = err == nil
	return err
}

func (r *optimizer) disarm(s *site) error {
	if !s.armed {
		return nil
	}
	if s.entry {
		s.armed = false
		return r.patchEntry(s, patch.Disarm)
	}
	r.toBreakpoint(s)
	err := r.execute(s, patch.Disarm)
	s.armed = false
	for _, n := range r.covering(s.addr) {
		r.consider(n)
	}
	return err
}

// SetArmed is the global switch: off, no probe is hit, and each keeps its own
// state.
func (r *optimizer) SetArmed(on bool) error {
	if r.closed {
		return machine.ErrClosed
	}
	r.armed = on
	var errs []error
	for _, s := range r.byAddress() {
		errs = append(errs, r.settle(s))
	}
	return errors.Join(errs...)
}
