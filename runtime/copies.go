package runtime

import (
	"errors"
	"math/bits"

	"xol/classify"
	"xol/decode"
	"xol/detour"
	"xol/relocate"
)

// prepareStep makes the copy that an exception follows. What transfers control
// is interpreted where there is no exception after every instruction.
func (r *installer) prepareStep(s *site) (err error) {
	if r.opt.Stepping == StepBreakpoint && s.inst.IsBranch() {
		s.scratch = noScratch
		if !r.interprets(&s.inst) {
			return errNoExecution
		}
		return nil
	}
	if s.scratch != noScratch {
		if err = r.copyThrough(s); err == nil {
			return nil
		}
		s.scratch = noScratch
	}
	opt := relocate.Options{Form: relocate.Slot, Back: relocate.BackBreakpoint, Kernel: r.opt.Kernel}
	memory := s.inst.PCRel.Kind == decode.PCRelMemory
	dead := r.isa.DeadRegisters(&s.inst)
	if memory && dead != 0 { // the runtime keeps it: there may be no stack to keep it on
		s.scratch = bits.Len32(dead) - 1
		opt.Scratch, opt.Registers = relocate.ScratchGiven, 1<<s.scratch
	}
	s.step, err = r.copyWith(s, opt)
	if s.expanded = memory && s.step.end > uint32(s.inst.Len); !s.expanded {
		s.scratch = noScratch
	}
	return err
}

// copyInst fills a new block with the copy of the site's instruction.
func (r *installer) copyInst(s *site, back relocate.Back) (block, error) {
	return r.copyWith(s, relocate.Options{Form: relocate.Slot, Back: back, Kernel: r.opt.Kernel})
}

func (r *installer) copyWith(s *site, opt relocate.Options) (block, error) {
	var plan relocate.Plan
	if err := r.isa.Plan(&plan, []decode.Inst{s.inst}, opt); err != nil {
		return block{}, err
	}
	p, n, err := r.fill(s, plan.Max, func(dst []byte, at uint64) (int, error) { return r.isa.Encode(dst, &plan, at) })
	if err != nil {
		return block{}, err
	}
	p.end = uint32(n - len(r.isa.Breakpoint(r.opt.Kernel)))
	return p, nil
}

// copyThrough makes a copy that addresses its operand through the site's scratch
// register.
func (r *installer) copyThrough(s *site) (err error) {
	opt := relocate.Options{
		Form: relocate.Slot, Back: relocate.BackBreakpoint, Kernel: r.opt.Kernel,
		Reach: relocate.Far, Scratch: relocate.ScratchGiven, Registers: 1 << s.scratch,
	}
	s.step, err = r.copyWith(s, opt)
	s.expanded = err == nil
	return err
}

// chooseScratch has an operand relative to the instruction pointer addressed through a
// register that is restored after the copy, as uprobes do.
func (r *installer) chooseScratch(s *site, v *classify.Verdict) {
	if v.Scratch != 0 && s.inst.PCRel.Kind == decode.PCRelMemory {
		s.scratch = int(v.Scratch)
	}
}

// prepareBoost makes the copy that jumps back, after the first hit. There is
// none where a fault of the copy could not be told from one of the original.
func (r *installer) prepareBoost(s *site) {
	if s.expanded {
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

// makeDetour fills a detour buffer for the region of a site.
func (r *installer) makeDetour(s *site) error {
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
		if err == nil && imprecise(&plan) {
			err = errImprecise
		}
		return n, err
	}
	b := buffer{}
	var err error
	if inside := r.startsInside(s, insts); len(inside) > 0 {
		b.block, b.entry, err = r.fillTrapping(s, inside, plan.Max, encode)
	} else {
		b.block, _, err = r.fill(s, plan.Max, encode)
		b.entry = b.addr
	}
	if err != nil {
		return err
	}
	b.moved, b.steps = b.entry+uint64(plan.Parts.Moved), movedSteps(&plan)
	s.jump.detour = b
	return nil
}

// makeEntryStub makes what the sites of an image call, once.
func (r *installer) makeEntryStub(im *Module, s *site) error {
	if im.entries.stub.size != 0 {
		return nil
	}
	if err := r.makeStubs(im); err != nil {
		return err
	}
	size := len(r.isa.EntryStub(0, r.stubs.entryCall(), r.opt.Kernel))
	p, ok := r.allocate(&site{addr: s.addr, image: im, internal: true}, size)
	if !ok {
		return errNoRoom
	}
	if err := r.m.Write(p.addr, r.isa.EntryStub(p.addr, r.stubs.entryCall(), r.opt.Kernel)); err != nil {
		r.release(p)
		return err
	}
	im.entries.stub = p
	return nil
}

// imprecise reports whether one of the moved instructions accesses memory after
// others that the original does not have.
func imprecise(p *detour.Plan) bool {
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

func movedSteps(p *detour.Plan) []movedStep {
	steps := make([]movedStep, 0, len(p.Relocation.Steps)+1)
	for i := range p.Relocation.Steps {
		s := &p.Relocation.Steps[i]
		steps = append(steps, movedStep{uint16(s.Offset), uint16(s.Inst.Addr - p.From())})
	}
	return append(steps, movedStep{uint16(p.Parts.Back - p.Parts.Moved), uint16(p.Next() - p.From())})
}

var errImprecise = errors.New("runtime: a fault would find other registers than before the instruction")
