package runtime

import (
	"slices"
	"xol/machine"
)

// watching is a watchpoint with the runtime that it is attached to.
type watching struct {
	r *registry
	*watchpoint
}

func (r *registry) attachWatch(spec WatchProbe) (*Link, error) {
	if r.closed {
		return nil, refuse(spec, spec.Addr, &ruleClosed, machine.ErrClosed)
	}
	p := &watchpoint{WatchProbe: spec, link: new(Link)}
	p.CPUs = slices.Clone(spec.CPUs)
	if err := r.checkWatch(p); err != nil {
		return nil, err
	}
	if !p.Disabled {
		if err := r.takeSlots(p); err != nil {
			return nil, err
		}
	}
	p.enabled, p.link.attached = !p.Disabled, watching{r, p}
	r.watches.probes = append(r.watches.probes, p)
	return p.link, nil
}

func (p watching) isEnabled() bool   { return p.enabled }
func (p watching) hitCount() uint64  { return p.hits }
func (p watching) missCount() uint64 { return p.missed }
func (p watching) atEntry() *probe   { return new(probe) }
func (p watching) isWatching() bool  { return p.active }

// close has others that had to relinquish their slots get them back.
func (p watching) close() error {
	if p.closed {
		return p.check()
	}
	p.closed, p.enabled = true, false
	p.r.watches.probes = deleteFrom(p.r.watches.probes, p.watchpoint)
	if p.r.closed {
		return refuse(p, p.Addr, &ruleClosed, machine.ErrClosed)
	}
	return p.r.giveSlotsBack(p.watchpoint)
}

// check returns why nothing can be done to a watchpoint.
func (p watching) check() error {
	switch {
	case p.r.closed:
		return refuse(p, p.Addr, &ruleClosed, machine.ErrClosed)
	case p.closed:
		return refuse(p, p.Addr, &ruleUnregistered, nil)
	}
	return nil
}

// setEnabled returns a *RegisterError where there is no slot left.
func (p watching) setEnabled(on bool) error {
	if err := p.check(); err != nil {
		return err
	}
	switch {
	case !on:
		p.enabled = false
		return p.r.giveSlotsBack(p.watchpoint)
	case p.enabled:
		return nil
	}
	err := p.r.takeSlots(p.watchpoint)
	p.enabled = err == nil
	return err
}
