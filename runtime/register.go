package runtime

import (
	"errors"
	"slices"
	"xol/machine"
	"xol/patch"
	"xol/relocate"
)

// registry puts probes into the program and takes them out, and looks after those whose
// text changes.
type registry struct{ hits }

// register puts a probe into the program.
func (r *registry) register(p *probe) error {
	if r.closed {
		return refuse(p, 0, &ruleClosed, machine.ErrClosed)
	}
	addr, im, err := r.resolve(p)
	if err != nil {
		return err
	}
	if p.Counter {
		if p.counter, err = r.counters.take(&r.areas); err != nil {
			return refuse(p, addr, &ruleNoRoom, err)
		}
	}
	s, err := r.siteFor(p, im, addr)
	if err != nil {
		if p.Counter {
			r.counters.giveBack(p.counter)
			p.counter = 0
		}
		return err
	}
	p.site, p.enabled = s, !p.Disabled
	s.probes = append(slices.Clip(s.probes), p)
	if err := errors.Join(r.toBreakpoint(s), r.reconcile(s)); err != nil {
		return errors.Join(refuse(p, addr, &ruleNotText, err), r.unregister(p))
	}
	return nil
}

// siteFor returns the site of a probe at addr, which it makes where there is none.
func (r *registry) siteFor(p *probe, im *Module, addr uint64) (*site, error) {
	answer := r.askKernel(im, addr)
	if answer.rule != nil {
		return nil, refuse(p, addr, answer.rule, nil)
	}
	addr, entry := r.placeEntry(p, im, answer.addr)
	if s := r.sites[addr]; s != nil {
		if s.state == siteLost {
			return nil, refuse(p, addr, s.lost.Rule, s.lost.Err)
		}
		return s, nil
	}
	var s *site
	var err error
	if entry {
		s, err = r.newEntry(p, im, addr)
	} else {
		s, err = r.newSite(p, im, addr, &answer)
	}
	if err == nil {
		s.origin = new(origin)
		if putErr := r.put(s); putErr != nil {
			r.retire(s)
			return nil, refuse(p, addr, &ruleNotText, putErr)
		}
	}
	return s, err
}

// unregister takes a probe out of the program.
func (r *registry) unregister(p *probe) error {
	if err := r.checkOwn(p); err != nil {
		return err
	}
	s := p.site
	p.site, p.enabled, p.gone = nil, false, false
	if r.closed {
		s.probes = slices.DeleteFunc(slices.Clone(s.probes), func(q *probe) bool { return q == p })
		return refuse(p, s.addr, &ruleClosed, machine.ErrClosed)
	}
	var err error
	if s.state != siteGone {
		err = r.toBreakpoint(s)
	}
	if p.counter != 0 {
		r.retireCount(p, s)
	}
	s.probes = slices.DeleteFunc(slices.Clone(s.probes), func(q *probe) bool { return q == p })
	if len(s.probes) > 0 {
		return errors.Join(err, r.reconcile(s))
	}
	if s.state == siteGone {
		r.gone = deleteFrom(r.gone, s)
		return nil
	}
	err = errors.Join(err, r.disarm(s), r.displace(s))
	r.retire(s)
	return err
}

// checkOwn returns why nothing can be done to a probe.
func (r *registry) checkOwn(p *probe) error {
	switch {
	case p.site == nil && r.closed:
		return refuse(p, 0, &ruleClosed, machine.ErrClosed)
	case p.site == nil:
		return refuse(p, 0, &ruleUnregistered, nil)
	}
	return nil
}

func (r *registry) setEnabled(p *probe, on bool) error {
	if err := r.checkOwn(p); err != nil {
		return err
	}
	switch {
	case r.closed:
		return refuse(p, p.site.addr, &ruleClosed, machine.ErrClosed)
	case p.gone:
		return refuse(p, 0, &ruleGone, nil)
	case p.enabled == on:
		return nil
	}
	p.enabled = on
	return errors.Join(r.toBreakpoint(p.site), r.reconcile(p.site))
}

// resolve finds the address that a probe names.
func (r *registry) resolve(p *probe) (uint64, *Module, error) {
	if (p.Symbol == "") == (p.Addr == 0) {
		return 0, nil, refuse(p, 0, &rulePlace, nil)
	}
	if p.Symbol != "" {
		return r.resolveSymbol(p)
	}
	addr := p.Addr + p.Offset
	im := r.imageAt(addr)
	if im == nil {
		rule := &ruleNotText
		if r.owns(addr) {
			rule = &ruleOwnArea
		}
		return 0, nil, refuse(p, addr, rule, nil)
	}
	return addr, im, nil
}

// resolveSymbol takes the first symbol of that name. On ppc64 a function's
// first instruction is that of its local entry point, as kernels have it.
func (r *registry) resolveSymbol(p *probe) (uint64, *Module, error) {
	for _, im := range r.images {
		places, err := im.analysis.Image.Resolve(p.Symbol)
		if err != nil {
			continue
		}
		addr := places[0].Addr
		if f, ok := im.analysis.FunctionAt(addr); ok && p.Offset == 0 && f.Addr == addr {
			addr += f.LocalEntry
		}
		return addr + p.Offset + im.bias, im, nil
	}
	return 0, nil, refuse(p, 0, &ruleSymbol, nil)
}

// newSite checks that addr may be probed and prepares the execution of its
// instruction. The kernel's answer is nil where it has not been asked.
func (r *registry) newSite(p *probe, im *Module, addr uint64, kernel *kernelAnswer) (*site, error) {
	if im.unloaded || r.imageAt(addr) != im {
		return nil, refuse(p, addr, &ruleNotText, nil)
	}
	if slices.ContainsFunc(r.opt.Blacklist, func(b machine.Range) bool { return b.Holds(addr) }) {
		return nil, refuse(p, addr, &ruleBlacklist, nil)
	}
	if r.insideEntry(im, addr) {
		return nil, refuse(p, addr, &ruleInEntry, nil)
	}
	judged, v, refused := r.judgeSite(im, addr, kernel)
	if refused != nil {
		return nil, refuse(p, addr, refused, nil)
	}
	s := &site{addr: addr, image: im, judgement: judged}
	if err := r.decodeAt(&s.inst, addr); err != nil {
		return nil, refuse(p, addr, &ruleNotText, err)
	}
	if r.opt.Uprobes {
		r.chooseScratch(s, &v)
	}
	if !judged.boost || r.opt.NoBoost {
		s.boosting = boostNever
	}
	n := max(int(s.inst.Len), int(s.region.Region))
	s.original = make([]byte, n)
	if err := r.m.Read(s.original, addr); err != nil {
		return nil, refuse(p, addr, &ruleNotText, err)
	}
	if err := r.prepareStep(s); err != nil {
		return nil, r.refusePreparation(p, s, err)
	}
	s.calls = s.inst.IsCall() && r.interprets(&s.inst)
	return s, nil
}

func (r *registry) refusePreparation(p *probe, s *site, err error) error {
	var refused *relocate.RefusedError
	switch {
	case errors.As(err, &refused):
		return refuse(p, s.addr, refused.Rule, nil)
	case errors.Is(err, errNoRoom):
		return refuse(p, s.addr, &ruleNoRoom, nil)
	case errors.Is(err, errNoExecution):
		return refuse(p, s.addr, &ruleNoExecution, nil)
	}
	return refuse(p, s.addr, &ruleNoRoom, err)
}

// forget has the probes of a site gone with their text.
func (r *registry) forget(s *site) error {
	s.jump.plan, s.jump.queued = nil, false
	r.discard(s)
	for _, p := range s.probes {
		p.gone, p.enabled = true, false
	}
	r.gone = append(r.gone, s)
	r.retire(s)
	return errors.Join(s.on(siteUnload), r.displace(s))
}

// newEntry prepares a probe that is called.
func (r *registry) newEntry(p *probe, im *Module, addr uint64) (*site, error) {
	s := &site{addr: addr, image: im, entry: true, boosting: boostNever}
	s.original = make([]byte, r.entrySize())
	if err := r.m.Read(s.original, addr); err != nil {
		return nil, refuse(p, addr, &ruleNotText, err)
	}
	if err := r.isa.Decode(&s.inst, s.original, addr); err != nil {
		return nil, refuse(p, addr, &ruleNotText, err)
	}
	if err := r.makeEntryStub(im, s); err != nil {
		return nil, refuse(p, addr, &ruleNoRoom, err)
	}
	if _, err := r.isa.PlanEntry(patch.Arm, r.entrySite(s)); err != nil {
		return nil, refuse(p, addr, &ruleNoRoom, err)
	}
	return s, nil
}

// retireEntries discards the stub of an image that goes away.
func (r *registry) retireEntries(im *Module) {
	if stub := im.entries.stub; stub.size != 0 {
		r.garbage = append(r.garbage, garbage{site: &site{image: im}, blocks: []block{stub}})
		im.entries.stub = block{}
	}
}

// kprobe is a probe with the runtime that it is attached to.
type kprobe struct {
	r *registry
	*probe
}

func (p kprobe) setEnabled(on bool) error { return p.r.setEnabled(p.probe, on) }
func (p kprobe) close() error             { return p.r.unregister(p.probe) }
func (p kprobe) isEnabled() bool          { return p.enabled }
func (p kprobe) hitCount() uint64         { return p.r.counters.of(&p.r.target, p.probe) }
func (p kprobe) missCount() uint64        { return p.missed }
func (p kprobe) atEntry() *probe          { return p.probe }
