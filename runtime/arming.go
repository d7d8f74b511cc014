package runtime

import (
	"errors"

	"xol/machine"
	"xol/patch"
)

// reconcile arms or disarms the site as its probes and the global switch have it,
// and lets the optimizer look at it and at its neighbours.
func (r *optimizer) reconcile(s *site) error {
	if s.state == siteGone {
		return nil
	}
	want := r.armed && s.enabled() && s.state != siteLost
	if want != s.state.armed() {
		if !want {
			return r.disarm(s)
		}
		if err := r.arm(s); err != nil {
			return err
		}
	}
	return r.consider(s)
}

func (r *optimizer) arm(s *site) error {
	put := r.execute
	if s.entry {
		put = r.patchEntry
	} else {
		for _, n := range r.covering(s.addr) {
			if err := r.toBreakpoint(n); err != nil {
				return err
			}
		}
	}
	if err := put(s, patch.Arm); err != nil {
		return err
	}
	return s.on(siteArm)
}

func (r *optimizer) disarm(s *site) error {
	if !s.state.armed() {
		return nil
	}
	if s.entry {
		return errors.Join(s.on(siteDisarm), r.patchEntry(s, patch.Disarm))
	}
	errs := []error{r.toBreakpoint(s), r.execute(s, patch.Disarm), s.on(siteDisarm)}
	for _, n := range r.covering(s.addr) {
		errs = append(errs, r.consider(n))
	}
	return errors.Join(errs...)
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
		errs = append(errs, r.reconcile(s))
	}
	return errors.Join(errs...)
}
