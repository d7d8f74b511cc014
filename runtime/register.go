package runtime

import (
	"errors"
	"math/bits"
	"slices"

	"xol/decode"
	"xol/machine"
	"xol/patch"
	"xol/relocate"
)

// register puts a probe into the program.
func (r *Runtime) register(p *probe) error {
	p.home = r
	if r.closed {
		return refuse(p, 0, &ruleClosed, machine.ErrClosed)
	}
	addr, im, err := r.resolve(p)
	if err != nil {
		return err
	}
	if p.Counter {
		if p.counter, err = r.counters.take(r); err != nil {
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
	r.toBreakpoint(s)
	s.probes = append(slices.Clip(s.probes), p)
	if err := r.settle(s); err != nil {
		return errors.Join(refuse(p, addr, &ruleNotText, err), r.unregister(p))
	}
	return nil
}

// siteFor returns the site of a probe at addr, which it makes where there is none.
func (r *Runtime) siteFor(p *probe, im *Image, addr uint64) (*site, error) {
	answer := r.askKernel(im, addr)
	if answer.rule != nil {
		return nil, refuse(p, addr, answer.rule, nil)
	}
	addr, entry := r.placeEntry(p, im, answer.addr)
	if s := r.sites[addr]; s != nil {
		if s.lost != nil {
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
func (r *Runtime) unregister(p *probe) error {
	if err := r.checkOwn(p); err != nil {
		return err
	}
	s := p.site
	p.site, p.enabled, p.gone = nil, false, false
	if r.closed {
		s.probes = slices.DeleteFunc(slices.Clone(s.probes), func(q *probe) bool { return q == p })
		return refuse(p, s.addr, &ruleClosed, machine.ErrClosed)
	}
	if !s.gone {
		r.toBreakpoint(s)
	}
	if p.counter != 0 {
		r.retireCount(p, s)
	}
	s.probes = slices.DeleteFunc(slices.Clone(s.probes), func(q *probe) bool { return q == p })
	if len(s.probes) > 0 {
		return r.settle(s)
	}
	if s.gone {
		r.gone = deleteFrom(r.gone, s)
		return nil
	}
	err := r.disarm(s)
	r.displace(s)
	r.retire(s)
	return err
}

// checkOwn returns why nothing can be done to a probe.
func (r *Runtime) checkOwn(p *probe) error {
	switch {
	case p.site == nil && r.closed:
		return refuse(p, 0, &ruleClosed, machine.ErrClosed)
	case p.site == nil:
		return refuse(p, 0, &ruleUnregistered, nil)
	}
	return nil
}

func (r *Runtime) setEnabled(p *probe, on bool) error {
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
	r.toBreakpoint(p.site)
	return r.settle(p.site)
}

// SetArmed is the global switch: off, no probe is hit, and each keeps its own
// state.
func (r *Runtime) SetArmed(on bool) error {
	if r.closed {
		return machine.ErrClosed
	}
	r.armed = on
	var errs []error
	for _, s := range r.byAddress() {
		errs = append(errs, r.settle(s))
	}
	return errors.Join(errs...)
}

// resolve finds the address that a probe names.
func (r *Runtime) resolve(p *probe) (uint64, *Image, error) {
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
func (r *Runtime) resolveSymbol(p *probe) (uint64, *Image, error) {
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

// owns reports whether addr is in memory of the runtime's own.
func (r *Runtime) owns(addr uint64) bool {
	return r.slots.holding(addr) != nil || r.stubs.holds(addr) || r.counters.holds(addr)
}

// newSite checks that addr may be probed and prepares the execution of its
// instruction. The kernel's answer is nil where it has not been asked.
func (r *Runtime) newSite(p *probe, im *Image, addr uint64, kernel *kernelAnswer) (*site, error) {
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

// prepareStep makes the copy that an exception follows. What transfers control
// is interpreted where there is no exception behind every instruction.
func (r *Runtime) prepareStep(s *site) (err error) {
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
	if s.several = memory && s.step.end > uint32(s.inst.Len); !s.several {
		s.scratch = noScratch
	}
	return err
}

// interprets reports whether the ISA knows what inst does. It is tried where
// there is no memory, and registers that are nobody's.
func (r *Runtime) interprets(inst *decode.Inst) bool {
	regs := nobody{r.file, r.file.NewState()}
	regs.SetReg(r.file.PC, inst.Addr)
	done, err := r.isa.Interpret(inst, regs, nobody{})
	return done || err != nil
}

// nobody has registers, but no memory.
type nobody struct {
	file  *machine.File
	state machine.State
}

func (n nobody) Reg(i int) uint64              { return n.file.Word(n.state, i) }
func (n nobody) SetReg(i int, v uint64)        { n.file.SetWord(n.state, i, v) }
func (nobody) Read([]byte, uint64) error       { return errNoExecution }
func (nobody) Write(uint64, []byte) error      { return errNoExecution }
func (nobody) ReadWord(uint64) (uint64, error) { return 0, errNoExecution }
func (nobody) WriteWord(uint64, uint64) error  { return errNoExecution }

func (r *Runtime) refusePreparation(p *probe, s *site, err error) error {
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

// decodeAt decodes the instruction at addr.
func (r *Runtime) decodeAt(inst *decode.Inst, addr uint64) error {
	var code [decode.MaxLen]byte
	for n := len(code); n > 0; n-- {
		if r.m.Read(code[:n], addr) == nil {
			return r.isa.Decode(inst, code[:n], addr)
		}
	}
	return errNoExecution
}

// settle arms or disarms the site as its probes and the global switch have it,
// and lets the optimizer look at it and at its neighbours.
func (r *Runtime) settle(s *site) error {
	if s.gone {
		return nil
	}
	want := r.armed && s.enabled() && s.lost == nil
	if want != s.armed {
		if !want {
			return r.disarm(s)
		}
		if err := r.arm(s); err != nil {
			return err
		}
	}
	r.optimizer.consider(r, s)
	return nil
}

func (r *Runtime) arm(s *site) (err error) {
	if s.entry {
		err = r.patchEntry(s, patch.Arm)
		s.armed = err == nil
		return err
	}
	for _, n := range r.covering(s.addr) {
		r.toBreakpoint(n)
	}
	err = r.execute(s, patch.Arm)
	s.armed = err == nil
	return err
}

func (r *Runtime) disarm(s *site) error {
	if !s.armed {
		return nil
	}
	if s.entry {
		s.armed = false
		return r.patchEntry(s, patch.Disarm)
	}
	r.toBreakpoint(s)
	err := r.execute(s, patch.Disarm)
	s.armed = false
	for _, n := range r.covering(s.addr) {
		r.optimizer.consider(r, n)
	}
	return err
}

// execute carries out a plan that needs no waiting.
func (r *Runtime) execute(s *site, op patch.Operation) error {
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

func (r *Runtime) carryOut(s *site, step *patch.Step) error {
	switch step.Kind {
	case patch.Write:
		return r.m.Patch(step.Addr, step.New)
	case patch.Redirect:
		s.jump.hits = step.Hits
	}
	return nil
}

// covering returns the sites whose region has addr inside, but not first.
func (r *Runtime) covering(addr uint64) []*site {
	const longest = 2 * decode.MaxLen
	var found []*site
	for back := uint64(1); back < longest && back <= addr; back++ {
		if s := r.sites[addr-back]; s != nil && back < uint64(s.region.Region) {
			found = append(found, s)
		}
	}
	return found
}

// forget has the probes of a site gone with their text.
func (r *Runtime) forget(s *site) {
	s.gone, s.armed = true, false
	s.jump.stage, s.jump.plan = jumpNone, nil
	r.optimizer.discard(s)
	for _, p := range s.probes {
		p.gone, p.enabled = true, false
	}
	r.displace(s)
	r.gone = append(r.gone, s)
	r.retire(s)
}

var errNoExecution = errors.New("runtime: the instruction cannot be executed")
