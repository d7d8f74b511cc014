package runtime

import (
	"bytes"
	"errors"
	"slices"

	"xol/machine"
)

// stored is told what the program, or the host, has changed.
func (r *registry) stored(changed machine.Range) error {
	var errs []error
	for _, im := range r.images {
		for _, fn := range im.touched(changed) {
			errs = append(errs, r.review(im, fn))
		}
	}
	return errors.Join(errs...)
}

// review looks at the sites of a function whose text has changed.
func (r *registry) review(im *Module, fn *function) error {
	if j := im.judged; j != nil && j.Addr+im.bias == fn.Lo {
		if err := r.forgetJudged(im); err != nil {
			return err
		}
	}
	var errs []error
	for _, s := range slices.Clone(fn.sites) {
		if !r.stands(s) {
			errs = append(errs, r.replace(s))
		}
	}
	return errors.Join(errs...)
}

// stands reports whether a site is as it would be made now.
func (r *registry) stands(s *site) bool {
	if s.state == siteLost {
		return false
	}
	now := make([]byte, len(s.original))
	if r.m.Read(now, s.addr) != nil || !bytes.Equal(now, s.original) {
		return false
	}
	if s.entry {
		return true
	}
	judged, _, refused := r.judgeSite(s.image, s.addr, nil)
	return refused == nil && judged == s.judgement
}

// replace makes anew what was made of old text. CPUs that execute some of it come back
// to the program where its next instruction starts.
func (r *registry) replace(s *site) error {
	var errs []error
	if s.state.armed() {
		errs = append(errs, r.withdraw(s))
	}
	r.discard(s)
	errs = append(errs, s.on(siteReplace), r.displace(s))
	now := r.remake(s)
	now.probes, now.origin = s.probes, s.origin
	for _, p := range now.probes {
		p.site = now
	}
	if now.lost != nil {
		errs = append(errs, now.on(siteRefuse))
	}
	errs = append(errs, r.put(now), r.close(s))
	r.retire(s)
	return errors.Join(append(errs, r.reconcile(now))...)
}

// remake returns what stands at the place of a site now.
func (r *registry) remake(s *site) *site {
	var now *site
	err := refuse(s.probes[0], s.addr, &ruleTextEntry, nil)
	if !s.entry {
		now, err = r.newSite(s.probes[0], s.image, s.addr, nil)
	}
	if err == nil {
		return now
	}
	lost := &site{addr: s.addr, image: s.image, entry: s.entry, boosting: boostNever}
	if !errors.As(err, &lost.lost) {
		lost.lost = refuse(s.probes[0], s.addr, &ruleNotText, err).(*RegisterError)
	}
	return lost
}
