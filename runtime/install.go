package runtime

import (
	"errors"

	"xol/machine"
	"xol/patch"
)

// installer owns what CPUs execute: every write to text, and to copies that CPUs may be
// in, is one of its methods.
type installer struct{ areas }

// patch has CPUs execute code at addr. Nothing else writes to the program's text, or to
// code that a CPU may be in.
func (r *installer) patch(addr uint64, code []byte) error { return r.m.Patch(addr, code) }

// carryOut carries out a step of a plan.
func (r *installer) carryOut(s *site, step *patch.Step) error {
	switch step.Kind {
	case patch.Write:
		return r.patch(step.Addr, step.New)
	case patch.Redirect:
		s.jump.hits = step.Hits
	}
	return nil
}

// execute carries out a plan that needs no waiting.
func (r *installer) execute(s *site, op patch.Operation) error {
	plan, err := r.isa.PlanPatch(op, &patch.Site{Addr: s.addr, Original: s.original, Kernel: r.opt.Kernel})
	if err != nil {
		return err
	}
	for i := range plan.Steps {
		if err := r.carryOut(s, &plan.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *installer) entrySite(s *site) *patch.Site {
	stub := s.image.entries.stub
	return &patch.Site{
		Addr: s.addr, Original: s.original, Kernel: r.opt.Kernel,
		Detour: machine.Range{Lo: stub.addr, Hi: stub.addr + uint64(stub.size)},
	}
}

// patchEntry makes a site a call, or one that does nothing. The stub stays, so
// that no CPU has to be waited for; while the text changes no CPU runs.
func (r *installer) patchEntry(s *site, op patch.Operation) error {
	plan, err := r.isa.PlanEntry(op, r.entrySite(s))
	if err != nil {
		return err
	}
	for i := range plan.Steps {
		if err := r.carryOut(s, &plan.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *installer) patchSite(s *site) *patch.Site {
	d := s.jump.detour
	return &patch.Site{
		Addr: s.addr, Original: s.original, Kernel: r.opt.Kernel,
		Detour: machine.Range{Lo: d.entry, Hi: d.addr + uint64(d.size)},
	}
}

// withdraw has CPUs execute what is in memory at a site, at once.
func (r *installer) withdraw(s *site) error {
	size := len(r.isa.Breakpoint(r.opt.Kernel))
	if s.state.jumping() || s.entry {
		size = max(size, min(len(s.original), r.isa.JumpLen()))
	}
	s.jump.plan, s.jump.queued = nil, false
	code := r.buffer(size)
	if err := r.m.Read(code, s.addr); err != nil {
		return nil // it is not there any more
	}
	return r.patch(s.addr, code)
}

// close has CPUs that execute what was made of a site trap where an instruction of the
// program starts.
func (r *installer) close(s *site) error {
	var errs []error
	trap := func(addr uint64) { errs = append(errs, r.patch(addr, r.isa.Breakpoint(r.opt.Kernel))) }
	for _, p := range [...]block{s.step, s.boosted} {
		if p.size != 0 {
			trap(p.addr)
		}
	}
	for i := range s.jump.old {
		for _, step := range s.jump.old[i].steps {
			trap(s.jump.old[i].moved + uint64(step.moved))
		}
	}
	return errors.Join(errs...)
}

// reopen takes away what close has put into a block.
func (r *installer) reopen(p block) error {
	code := r.buffer(int(p.size))
	if err := r.m.Read(code, p.addr); err != nil {
		return err
	}
	return r.patch(p.addr, code)
}
