package runtime

import (
	"errors"
	"slices"

	"xol/decode"
	"xol/machine"
	"xol/patch"
)

// optimizer turns breakpoints into jumps and back, in batches: each pass carries
// out one step of every plan, and waits with those that have to.
type optimizer struct {
	tasks
	optimizing bool    // the switch of jump optimization
	keepsCalls bool    // no call is moved: data are watched
	queue      []*site // that may be optimized
	planned    []*site // with a plan under way
	garbage    []garbage
	due        int    // instructions until the next pass
	done       uint64 // steps that passes have carried out: what Settle knows progress by
}

// garbage is what a site had, until no CPU can be in it any more.
type garbage struct {
	site   *site
	blocks []block
	count  uint64 // address of a count that old detour buffers of the site may change; 0: none
	all    bool   // the site itself is gone
}

// pending is how many sites wait for a plan, or for a step of theirs, and how many
// blocks for their end.
func (r *optimizer) pending() int {
	n := len(r.queue) + len(r.garbage)
	for _, s := range r.planned {
		if s.jump.plan != nil {
			n++
		}
	}
	return n
}

// consider looks at a site after something has changed that it depends on, and
// at those whose region it is in.
func (r *optimizer) consider(s *site) error {
	errs := []error{r.considerOne(s)}
	for _, n := range r.covering(s.addr) {
		errs = append(errs, r.considerOne(n))
	}
	return errors.Join(errs...)
}

func (r *optimizer) considerOne(s *site) error {
	if s.entry {
		return nil
	}
	want := r.optimizing && r.mayJump(s)
	switch {
	case want && s.state == siteArmed && !s.jump.queued:
		s.jump.queued = true
		r.queue = append(r.queue, s)
	case !want && s.state == siteOptimized:
		return r.begin(s, patch.Unoptimize, siteUnoptimize)
	case !want && s.state == siteOptimizing:
		return r.toBreakpoint(s)
	}
	return nil
}

// pass is one pass: what no CPU is in any more is released, each plan gets on by a step,
// and what waits gets a plan.
func (r *optimizer) pass() error {
	if err := r.collect(); err != nil {
		return err
	}
	r.planned = slices.DeleteFunc(r.planned, func(s *site) bool {
		s.jump.listed = s.jump.plan != nil
		return !s.jump.listed
	})
	for _, s := range r.planned {
		if err := r.advance(s); err != nil {
			return err
		}
	}
	queue := r.queue
	r.queue = nil
	for _, s := range queue {
		r.done++
		if !s.jump.queued {
			continue
		}
		s.jump.queued = false
		if r.optimizing && s.state == siteArmed && r.mayJump(s) {
			r.optimize(s)
		}
	}
	return nil
}

// optimize prepares the detour buffer and the plan of a site. Where there can be none,
// the breakpoint stays.
func (r *optimizer) optimize(s *site) {
	err := r.makeDetour(s)
	if err == nil {
		err = r.begin(s, patch.Optimize, siteOptimize)
	}
	s.jump.failed = err != nil
}

// begin begins a plan.
func (r *optimizer) begin(s *site, op patch.Operation, event siteEvent) error {
	plan, err := r.isa.PlanPatch(op, r.patchSite(s))
	if err != nil {
		return err
	}
	if s.jump.plan, s.jump.next = plan, 0; !s.jump.listed {
		s.jump.listed = true
		r.planned = append(r.planned, s)
	}
	return s.on(event)
}

// advance carries out the next step of a plan. A write that CPUs must not meet
// half done is carried out with its synchronization.
func (r *optimizer) advance(s *site) error {
	for s.jump.plan != nil && s.jump.next < len(s.jump.plan.Steps) {
		step := &s.jump.plan.Steps[s.jump.next]
		if step.Kind == patch.Quiesce && !r.quiet(step.Range) {
			return nil
		}
		if err := r.carryOut(s, step); err != nil {
			return err
		}
		s.jump.next++
		r.done++
		if !step.Alone {
			break
		}
	}
	if s.jump.plan != nil && s.jump.next == len(s.jump.plan.Steps) {
		return r.finishPlan(s)
	}
	return nil
}

func (r *optimizer) finishPlan(s *site) error {
	s.jump.plan = nil
	if err := s.on(siteFinish); err != nil || s.state == siteOptimized {
		return err
	}
	r.discard(s)
	return r.considerOne(s)
}

// discard has the detour buffer of a site released once no CPU is in it.
func (r *optimizer) discard(s *site) {
	if b := s.jump.detour; b.size != 0 {
		r.garbage = append(r.garbage, garbage{site: s, blocks: []block{b.block}})
		s.jump.old, s.jump.detour = append(s.jump.old, b), buffer{}
	}
}

// collect releases what no CPU is in any more.
func (r *optimizer) collect() error {
	var errs []error
	r.garbage = slices.DeleteFunc(r.garbage, func(g garbage) bool {
		counts := g.count != 0 && len(g.site.jump.old) > 0
		if counts || g.all && r.handled(g.site) || slices.ContainsFunc(g.blocks, r.occupied) {
			return false
		}
		r.done++
		if g.count != 0 {
			r.counters.giveBack(g.count)
		}
		for _, p := range g.blocks {
			if g.site.state == siteReplaced && p.size != 0 {
				errs = append(errs, r.reopen(p))
			}
			r.release(p)
			old := &g.site.jump.old
			*old = slices.DeleteFunc(*old, func(b buffer) bool { return b.addr == p.addr })
		}
		return true
	})
	return errors.Join(errs...)
}

// SetOptimization is the switch of jump optimization. Off, jumps become
// breakpoints again; on, breakpoints jumps.
func (r *optimizer) SetOptimization(on bool) error {
	if r.closed {
		return machine.ErrClosed
	}
	r.optimizing = on
	var errs []error
	for _, s := range r.byAddress() {
		errs = append(errs, r.consider(s))
	}
	return errors.Join(errs...)
}

// Settle runs the optimizer until it has nothing left to do, or has to wait for
// CPUs to run on.
func (r *optimizer) Settle() error {
	if r.closed {
		return machine.ErrClosed
	}
	for r.pending() > 0 {
		before := r.done
		if err := r.pass(); err != nil {
			return err
		}
		if r.done == before {
			break
		}
	}
	return nil
}

// mayJump reports whether a breakpoint may become a jump now.
func (r *optimizer) mayJump(s *site) bool {
	return s.state.armed() && s.region.OK() && !s.jump.failed && s.enabled() && !s.hasPost() && !s.redirects() &&
		!r.neighbourInside(s) && (r.opt.Kernel || !s.crosses(int(s.region.Region))) &&
		!(r.keepsCalls && r.movesCall(s))
}

// movesCall reports whether there is a call among the instructions that a jump would
// move: where data are watched, its moved form accesses memory otherwise.
func (r *optimizer) movesCall(s *site) bool {
	insts := decode.Sweep(r.isa, nil, s.original[:s.region.Moved], s.addr)
	return slices.ContainsFunc(insts, func(inst decode.Inst) bool { return inst.IsCall() })
}

// neighbourInside reports whether another probe is armed inside the region.
func (r *optimizer) neighbourInside(s *site) bool {
	for at := s.addr + 1; at < s.addr+uint64(s.region.Region); at++ {
		if n := r.sites[at]; n != nil && n.state.armed() {
			return true
		}
	}
	return false
}

// toBreakpoint makes the text of a site a breakpoint at once, wherever it is on
// its way.
func (r *optimizer) toBreakpoint(s *site) error {
	s.jump.queued = false
	if s.state == siteOptimized {
		if err := r.begin(s, patch.Unoptimize, siteUnoptimize); err != nil {
			return err
		}
	}
	var err error
	switch s.state {
	default:
		return nil
	case siteUnoptimizing:
		err = r.finishNow(s)
	case siteOptimizing:
		breakpoint := r.isa.Breakpoint(r.opt.Kernel) // the jump may stand already
		err = errors.Join(r.patch(s.addr, breakpoint), r.patch(s.addr+uint64(len(breakpoint)), s.original[len(breakpoint):]))
		s.jump.hits = patch.HitSlot
	}
	s.jump.plan = nil
	r.discard(s)
	return errors.Join(err, s.on(siteRevert))
}

// finishNow carries out what is left of a plan, without waiting: what waits are the
// blocks that are discarded.
func (r *optimizer) finishNow(s *site) error {
	for ; s.jump.next < len(s.jump.plan.Steps); s.jump.next++ {
		if err := r.carryOut(s, &s.jump.plan.Steps[s.jump.next]); err != nil {
			return err
		}
	}
	return nil
}

// retire discards all that a site has.
func (r *optimizer) retire(s *site) {
	r.garbage = append(r.garbage,
		garbage{site: s, blocks: []block{s.step, s.boosted, s.jump.detour.block}, all: true})
}

// retireCount takes the count of a probe, which keeps its value in Hits.
func (r *optimizer) retireCount(p *probe, s *site) {
	p.hits = r.counters.of(&r.target, p)
	r.garbage = append(r.garbage, garbage{site: s, count: p.counter})
	p.counter = 0
}

// uncover has the original text stand at addr, where a jump covers it.
func (r *optimizer) uncover(addr uint64) error {
	var errs []error
	for _, s := range r.covering(addr) {
		if s.state.jumping() {
			errs = append(errs, r.toBreakpoint(s), r.considerOne(s))
		}
	}
	return errors.Join(errs...)
}
