package runtime

import (
	"errors"
	"slices"

	"xol/decode"
	"xol/detour"
	"xol/machine"
	"xol/patch"
	"xol/relocate"
)

// optimizer turns breakpoints into jumps and back, in batches: each pass carries
// out one step of every plan, and waits with those that have to.
type optimizer struct {
	on      bool
	queue   []*site // that may be optimized
	active  []*site // with a plan under way
	garbage []garbage
	due     int // instructions until the next pass
}

// garbage is what a site had, until no CPU can be in it any more.
type garbage struct {
	site   *site
	pieces []piece
	count  uint64 // address of a count that old detour buffers of the site may change; 0: none
	all    bool   // the site itself is gone
}

// SetOptimization is the switch of jump optimization. Off, jumps become
// breakpoints again; on, breakpoints jumps.
func (r *Runtime) SetOptimization(on bool) {
	r.optimizer.on = on
	for _, s := range r.byAddress() {
		r.optimizer.consider(r, s)
	}
}

// Settle runs the optimizer until it has nothing left to do, or has to wait for
// CPUs to run on.
func (r *Runtime) Settle() error {
	if r.closed {
		return machine.ErrClosed
	}
	for r.optimizer.busy() {
		before := r.optimizer.work()
		if err := r.optimizer.pass(r); err != nil {
			return err
		}
		if r.optimizer.work() == before {
			break
		}
	}
	return nil
}

func (o *optimizer) busy() bool { return len(o.queue)+len(o.active)+len(o.garbage) > 0 }

// work is a number that changes whenever a pass gets on.
func (o *optimizer) work() int {
	n := 1000*len(o.queue) + 100*len(o.garbage) + 10*len(o.active)
	for _, s := range o.active {
		n -= s.jump.next
	}
	return n
}

// consider looks at a site after something has changed that it depends on, and
// at those whose region it is in.
func (o *optimizer) consider(r *Runtime, s *site) {
	o.considerOne(r, s)
	for _, n := range r.covering(s.addr) {
		o.considerOne(r, n)
	}
}

func (o *optimizer) considerOne(r *Runtime, s *site) {
	if s.entry {
		return
	}
	want := o.on && r.mayJump(s)
	switch {
	case want && s.jump.stage == jumpNone && !s.jump.queued:
		s.jump.queued = true
		o.queue = append(o.queue, s)
	case !want && s.jump.stage == jumpStands:
		o.unoptimize(r, s)
	case !want && s.jump.stage == jumpOptimizing:
		r.toBreakpoint(s)
	}
}

// mayJump reports whether a breakpoint may become a jump now.
func (r *Runtime) mayJump(s *site) bool {
	return s.armed && s.region.OK() && !s.jump.failed && s.enabled() && !s.hasPost() && !s.redirects() &&
		!r.neighbourInside(s) && (r.opt.Kernel || !s.crosses(int(s.region.Region))) &&
		!(r.watches.active > 0 && r.movesCall(s))
}

// movesCall reports whether there is a call among the instructions that a jump would
// move: where data are watched, its moved form accesses memory otherwise.
func (r *Runtime) movesCall(s *site) bool {
	insts := decode.Sweep(r.isa, nil, s.original[:s.region.Moved], s.addr)
	return slices.ContainsFunc(insts, func(inst decode.Inst) bool { return inst.IsCall() })
}

// neighbourInside reports whether another probe is armed inside the region.
func (r *Runtime) neighbourInside(s *site) bool {
	for at := s.addr + 1; at < s.addr+uint64(s.region.Region); at++ {
		if n := r.sites[at]; n != nil && n.armed {
			return true
		}
	}
	return false
}

// pass is one pass.
func (o *optimizer) pass(r *Runtime) error {
	o.collect(r)
	o.active = slices.DeleteFunc(o.active, func(s *site) bool { return s.jump.plan == nil })
	for _, s := range o.active {
		if err := o.advance(r, s); err != nil {
			return err
		}
	}
	for _, s := range o.queue {
		if !s.jump.queued {
			continue
		}
		s.jump.queued = false
		if o.on && s.jump.stage == jumpNone && r.mayJump(s) {
			o.start(r, s)
		}
	}
	o.queue = o.queue[:0]
	return nil
}

// start prepares the detour buffer and the plan of a site.
func (o *optimizer) start(r *Runtime, s *site) {
	if err := r.makeDetour(s); err != nil {
		s.jump.failed = true
		return
	}
	o.begin(r, s, patch.Optimize, jumpOptimizing)
}

func (o *optimizer) unoptimize(r *Runtime, s *site) {
	o.begin(r, s, patch.Unoptimize, jumpUnoptimizing)
}

func (o *optimizer) begin(r *Runtime, s *site, op patch.Operation, stage jumpStage) {
	plan, err := r.isa.PlanPatch(op, r.patchSite(s))
	if err != nil {
		s.jump.failed = true
		return
	}
	s.jump.plan, s.jump.next, s.jump.stage = plan, 0, stage
	o.active = append(o.active, s)
}

func (r *Runtime) patchSite(s *site) *patch.Site {
	d := s.jump.detour
	return &patch.Site{
		Addr: s.addr, Original: s.original, Kernel: r.opt.Kernel,
		Detour: machine.Range{Lo: d.entry, Hi: d.addr + uint64(d.size)},
	}
}

// advance carries out the next step of a plan. A write that CPUs must not meet
// half done is carried out with its synchronization.
func (o *optimizer) advance(r *Runtime, s *site) error {
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
		o.finish(r, s)
	}
	return nil
}

func (o *optimizer) finish(r *Runtime, s *site) {
	s.jump.plan = nil
	if s.jump.stage == jumpOptimizing {
		s.jump.stage = jumpStands
		return
	}
	s.jump.stage = jumpNone
	o.discard(s)
	o.considerOne(r, s)
}

// discard has the detour buffer of a site released once nobody is in it.
func (o *optimizer) discard(s *site) {
	if b := s.jump.detour; b.size != 0 {
		o.garbage = append(o.garbage, garbage{site: s, pieces: []piece{b.piece}})
		s.jump.old, s.jump.detour = append(s.jump.old, b), buffer{}
	}
}

// toBreakpoint makes the text of a site a breakpoint at once, wherever it is on
// its way.
func (r *Runtime) toBreakpoint(s *site) {
	s.jump.queued = false
	switch s.jump.stage {
	case jumpNone:
		return
	case jumpStands:
		r.optimizer.unoptimize(r, s)
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
	r.optimizer.discard(s)
}

// hurry carries out what is left of a plan, without waiting: what waits are the
// pieces that are discarded.
func (r *Runtime) hurry(s *site) {
	for s.jump.plan != nil && s.jump.next < len(s.jump.plan.Steps) {
		_ = r.carryOut(s, &s.jump.plan.Steps[s.jump.next])
		s.jump.next++
	}
}

// makeDetour fills a detour buffer for the region of a site.
func (r *Runtime) makeDetour(s *site) error {
	if err := r.makeStubs(s.image); err != nil {
		return err
	}
	code := s.original[:s.region.Moved]
	insts := decode.Sweep(r.isa, nil, code, s.addr)
	opt := detour.Options{
		Kernel: r.opt.Kernel, Callback: r.stubs.hostCall(), Probe: s.addr,
		Dead: uint64(s.region.Region - s.region.Moved),
	}
	if p := s.counter(); p != nil {
		opt.Count = p.counter
	}
	var plan detour.Plan
	if err := r.isa.PlanDetour(&plan, insts, opt); err != nil {
		return err
	}
	encode := func(dst []byte, at uint64) (int, error) {
		n, err := r.isa.EncodeDetour(dst, &plan, at)
		if err == nil && several(&plan) {
			err = errImprecise
		}
		return n, err
	}
	b := buffer{}
	var err error
	if inside := r.startsInside(s, insts); len(inside) > 0 {
		b.piece, b.entry, err = r.fillTrapping(s, inside, plan.Max, encode)
	} else {
		b.piece, _, err = r.fill(s, plan.Max, encode)
		b.entry = b.addr
	}
	if err != nil {
		return err
	}
	b.moved, b.steps = b.entry+uint64(plan.Parts.Moved), movedSteps(&plan)
	s.jump.detour = b
	return nil
}

var errImprecise = errors.New("runtime: a fault would find other registers than in front of the instruction")

// several reports whether one of the moved instructions accesses memory behind
// others that the original does not have.
func several(p *detour.Plan) bool {
	steps := p.Relocation.Steps
	for i := range steps {
		end := p.Parts.Back - p.Parts.Moved
		if i+1 < len(steps) {
			end = int(steps[i+1].Offset)
		}
		inst := &steps[i].Inst
		if inst.PCRel.Kind == decode.PCRelMemory && end-int(steps[i].Offset) > int(inst.Len) {
			return true
		}
	}
	return false
}

// movedStep is an instruction of a region, or what is behind them, in bytes from the
// start of the moved instructions and of the original ones.
type movedStep struct{ moved, original uint16 }

func movedSteps(p *detour.Plan) []movedStep {
	steps := make([]movedStep, 0, len(p.Relocation.Steps)+1)
	for i := range p.Relocation.Steps {
		s := &p.Relocation.Steps[i]
		steps = append(steps, movedStep{s.Offset, uint16(s.Inst.Addr - p.From())})
	}
	return append(steps, movedStep{uint16(p.Parts.Back - p.Parts.Moved), uint16(p.Next() - p.From())})
}

// prepareBoost makes the copy that jumps back, behind the first hit. There is
// none where a fault of the copy could not be told from one of the original.
func (r *Runtime) prepareBoost(s *site) {
	if s.several {
		s.boosting = boostNever
		return
	}
	p, err := r.copyInst(s, relocate.BackJump)
	if err != nil {
		s.boosting = boostNever
		return
	}
	s.boosted, s.boosting = p, boostReady
}

// retire discards all that a site has.
func (r *Runtime) retire(s *site) {
	r.optimizer.garbage = append(r.optimizer.garbage,
		garbage{site: s, pieces: []piece{s.step, s.boosted, s.jump.detour.piece}, all: true})
}

// retireCount takes the count of a probe, which keeps its value in Hits.
func (r *Runtime) retireCount(p *probe, s *site) {
	p.hits = p.hitCount()
	r.optimizer.garbage = append(r.optimizer.garbage, garbage{site: s, count: p.counter})
	p.counter = 0
}

// collect releases what no CPU is in any more.
func (o *optimizer) collect(r *Runtime) {
	o.garbage = slices.DeleteFunc(o.garbage, func(g garbage) bool {
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

// handled reports whether a task is in a hit of the site.
func (r *Runtime) handled(s *site) bool {
	return r.anyActivity(func(a *activity) bool { return a.holds(s) })
}

// occupied reports whether a task is in a piece, or in what a detour buffer
// calls.
func (r *Runtime) occupied(p piece) bool {
	return r.anyAt(func(pc uint64) bool { return p.holds(pc) || r.stubs.holds(pc) })
}

// quiet reports whether no task is in a range, nor on its way there from a copy
// of an instruction in front of it or in it.
func (r *Runtime) quiet(lo machine.Range) bool {
	near := func(s *site) bool { return s != nil && s.addr+decode.MaxLen >= lo.Lo && s.addr < lo.Hi }
	if r.anyAt(func(pc uint64) bool { return lo.Holds(pc) || r.stubs.holds(pc) || near(r.slots.owner(pc)) }) {
		return false
	}
	return !r.anyActivity(func(a *activity) bool { return near(a.current.site) || near(a.outer.site) })
}
