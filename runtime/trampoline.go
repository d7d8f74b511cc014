package runtime

import (
	"bytes"
	"slices"

	"xol/optcheck"
	"xol/patch"
)

// makeTrampoline makes the trampoline, once: a return instruction with a probe
// of the runtime's own. Its breakpoint is the classic trampoline; as a jump to a
// detour buffer, which saves the registers, calls out and restores them, it is
// the boosted one.
func (r *registry) makeTrampoline(im *Module) error {
	if r.returns.addr != 0 {
		return nil
	}
	if err := r.makeStubs(im); err != nil {
		return err
	}
	prefix := r.isa.TrampolinePrefix()
	addr := r.stubs.page + trampolineOffset
	entry, offset := r.isa.TrampolineEntry()
	if err := r.m.Write(addr+offset, entry); err != nil {
		return err
	}
	text := append(slices.Clone(prefix), r.isa.ReturnInst()...)
	size := max(len(r.isa.ReturnInst()), r.isa.JumpLen())
	text = append(text, bytes.Repeat(r.isa.Breakpoint(r.opt.Kernel), size)[:size]...)
	if err := r.m.Write(addr, text); err != nil {
		return err
	}
	s := &site{
		addr: addr + uint64(len(prefix)), image: im, internal: true, boosting: boostNever,
		original:  text[len(prefix):][:size],
		judgement: judgement{region: optcheck.Verdict{Region: uint8(size), Moved: uint8(len(r.isa.ReturnInst()))}},
	}
	if err := r.isa.Decode(&s.inst, s.original, s.addr); err != nil {
		return err
	}
	s.probes = []*probe{{Probe: Probe{Addr: s.addr, PreHandler: r.returned}, enabled: true, site: s}}
	if err := r.prepareStep(s); err != nil {
		return err
	}
	r.sites[s.addr] = s
	r.returns.addr, r.returns.site = addr+offset, s
	r.returns.contexts = make([]ReturnContext, len(r.cpus))
	if err := r.execute(s, patch.Arm); err != nil {
		return err
	}
	if err := s.on(siteArm); err != nil {
		return err
	}
	return r.boostTrampoline()
}

// boostTrampoline makes the trampoline's breakpoint a jump, unless the classic
// one is asked for. No CPU is there yet.
func (r *registry) boostTrampoline() error {
	s := r.returns.site
	if r.opt.ClassicTrampoline {
		return nil
	}
	if err := r.makeDetour(s); err != nil {
		return err
	}
	if err := r.begin(s, patch.Optimize, siteOptimize); err != nil {
		return err
	}
	if err := r.finishNow(s); err != nil {
		return err
	}
	return r.finishPlan(s)
}
