package runtime

import (
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
	due        int // instructions until the next pass
}

// garbage is what a site had, until no CPU can be in it any more.
type garbage struct {
	site   *site
	pieces []piece
	count  uint64 // address of a count that old detour buffers of the site may change; 0: none
	all    bool   // the site itself is gone
}

func (r *optimizer) busy() bool { return len(r.queue)+len(r.planned)+len(r.garbage) > 0 }

// work is a number that changes whenever a pass gets on.
func (r *optimizer) work() int {
	n := 1000*len(r.queue) + 100*len(r.garbage) + 10*len(r.planned)
	for _, s := range r.planned {
		n -= s.jump.next
	}
	return n
}

// consider looks at a site after something has changed that it depends on, and
// at those whose region it is in.
func (r *optimizer) consider(s *site) {
	r.considerOne(s)
	for _, n := range r.covering(s.addr) {
		r.considerOne(n)
	}
}

func (r *optimizer) considerOne(s *site) {
	if s.entry {
		return
	}
	want := r.optimizing && r.mayJump(s)
	switch {
	case want && s.jump.stage == jumpNone && !s.jump.queued:
		s.jump.queued = true
		r.queue = append(r.queue, s)
	case !want && s.jump.stage == jumpStands:
		r.unoptimize(s)
	case !want && s.jump.stage == jumpOptimizing:
		r.toBreakpoint(s)
	}
}

// pass is one pass.
func (r *optimizer) pass() error {
	r.collect()
	r.planned = slices.DeleteFunc(r.planned, func(s *site) bool { return s.jump.plan == nil })
	for _, s := range r.planned {
		if err := r.advance(s); err != nil {
			return err
		}
	}
	for _, s := range r.queue {
		if !s.jump.queued {
			continue
		}
		s.jump.queued = false
		if r.optimizing && s.jump.stage == jumpNone && r.mayJump(s) {
			r.start(s)
		}
	}
	r.queue = r.queue[:0]
	return nil
}

// start prepares the detour buffer and the plan of a site.
func (r *optimizer) start(s *site) {
	if err := r.makeDetour(s); err != nil {
		s.jump.failed = true
		return
	}
	r.begin(s, patch.Optimize, jumpOptimizing)
}

func (r *optimizer) unoptimize(s *site) {
	r.begin(s, patch.Unoptimize, jumpUnoptimizing)
}

func (r *optimizer) begin(s *site, op patch.Operation, stage jumpStage) {
	plan, err := r.isa.PlanPatch(op, r.patchSite(s))
	if err != nil {
		s.jump.failed = true
		return
	}
	s.jump.plan, s.jump.next, s.jump.stage = plan, 0, stage
	r.planned = append(r.planned, s)
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
		if !step.Alone {
			break
		}
	}
	if s.jump.plan != nil && s.jump.next == len(s.jump.plan.Steps) {
		r.finish(s)
	}
	return nil
}

func (r *optimizer) finish(s *site) {
	s.jump.plan = nil
	if s.jump.stage == jumpOptimizing {
		s.jump.stage = jumpStands
		return
	}
	s.jump.stage = jumpNone
	r.discard(s)
	r.considerOne(s)
}

// discard has the detour buffer of a site released once nobody is in it.
func (r *optimizer) discard(s *site) {
	if b := s.jump.detour; b.size != 0 {
		r.garbage = append(r.garbage, garbage{site: s, pieces: []piece{b.piece}})
		s.jump.old, s.jump.detour = append(s.jump.old, b), buffer{}
	}
}

// collect releases what no CPU is in any more.
func (r *optimizer) collect() {
	r.garbage = slices.DeleteFunc(r.garbage, func(g garbage) bool {
		counts := g.count != 0 && len(g.site.jump.old) > 0
		if counts || g.all && r.handled(g.site) || slices.ContainsFunc(g.pieces, r.occupied) {
			return false
		}
		if g.count != 0 {
			r.counters.giveBack(g.count)
		}
		for _, p := range g.pieces {
			if g.site.closed && p.size != 0 {
				r.reopen(p)
			}
			r.release(p)
			old := &g.site.jump.old
			*old = slices.DeleteFunc(*old, func(b buffer) bool { return b.addr == p.addr })
		}
		return true
	})
}

// SetOptimization is the switch of jump optimization. Off, jumps become
// breakpoints again; on, breakpoints jumps.
func (r *optimizer) SetOptimization(on bool) {
	r.optimizing = on
	for _, s := range r.byAddress() {
		r.consider(s)
	}
}

// Settle runs the optimizer until it has nothing left to do, or has to wait for
// CPUs to run on.
func (r *optimizer) Settle() error {
	if r.closed {
		return machine.ErrClosed
	}
	for r.busy() {
		before := r.work()
		if err := r.pass(); err != nil {
			return err
		}
		if r.work() == before {
			break
		}
	}
	return nil
}

// mayJump reports whether a breakpoint may become a jump now.
func (r *optimizer) mayJump(s *site) bool {
	return s.armed && s.region.OK() && !s.jump.failed && s.enabled() && !s.hasPost() && !s.redirects() &&
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
		if n := r.sites[at]; n != nil && n.armed {
			return true
		}
	}
	return false
}

// toBreakpoint makes the text of a site a breakpoint at once, wherever it is on
// its way.
func (r *optimizer) toBreakpoint(s *site) {
	s.jump.queued = false
	switch s.jump.stage {
	case jumpNone:
		return
	case jumpStands:
		r.unoptimize(s)
		r.hurry(s)
	case jumpUnoptimizing:
		r.hurry(s)
	case jumpOptimizing:
		breakpoint := r.isa.Breakpoint(r.opt.Kernel) // the jump may stand already
		_ = r.m.Patch(s.addr, breakpoint)
		_ = r.m.Patch(s.addr+uint64(len(breakpoint)), s.original[len(breakpoint):])
		s.jump.hits = patch.HitSlot
	}
	s.jump.stage, s.jump.plan = jumpNone, nil
	r.discard(s)
}

// hurry carries out what is left of a plan, without waiting: what waits are the
// pieces that are discarded.
func (r *optimizer) hurry(s *site) {
	for s.jump.plan != nil && s.jump.next < len(s.jump.plan.Steps) {
		_ = r.carryOut(s, &s.jump.plan.Steps[s.jump.next])
		s.jump.next++
	}
}

// retire discards all that a site has.
func (r *optimizer) retire(s *site) {
	r.garbage = append(r.garbage,
		garbage{site: s, pieces: []piece{s.step, s.boosted, s.jump.detour.piece}, all: true})
}

// retireCount takes the count of a probe, which keeps its value in Hits.
func (r *optimizer) retireCount(p *probe, s *site) {
	p.hits = r.counters.of(&r.target, p)
	r.garbage = append(r.garbage, garbage{site: s, count: p.counter})
	p.counter = 0
}

// uncover has the original text stand at addr, where a jump covers it.
func (r *optimizer) uncover(addr uint64) {
	for _, s := range r.covering(addr) {
		if s.jump.stage != jumpNone {
			r.toBreakpoint(s)
			r.considerOne(s)
		}
	}
}
