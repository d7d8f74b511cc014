package runtime

import (
	"slices"

	"xol/classify"
	"xol/machine"
	"xol/patch"
)

var ruleInEntry = classify.Rule{ID: "runtime/entry-site", Errno: classify.EILSEQ,
	Reason: "the address is inside a patchable entry, after its first byte",
	Remedy: "probe the function"}

// entries are the patchable function entries of an image. Probes there need no
// breakpoint: the site becomes a call.
type entries struct {
	sites []uint64       // sorted
	texts []machine.Part // what they were made in memory, sorted
	stub  piece          // what the sites call; its size is 0 where there is none yet
}

// prepareEntries makes what compilers left at the entries of an image's functions
// sites that do nothing, as kernels do before the text runs.
func (r *Runtime) prepareEntries(im *Image) error {
	sites, err := im.analysis.Image.EntrySites()
	if err != nil {
		return err
	}
	lead := uint64(r.isa.EntryLead())
	for _, addr := range sites {
		addr += im.bias
		text := make([]byte, lead+maxEntry)
		text = text[:r.readable(text, addr-lead)]
		ready, ok := r.isa.EntryText(text)
		if !ok {
			continue
		}
		if err := r.m.Write(addr-lead, ready); err != nil {
			return err
		}
		im.entries.texts = append(im.entries.texts, machine.Part{Addr: addr - lead, Code: ready})
		im.entries.sites = append(im.entries.sites, addr)
	}
	return nil
}

// maxEntry is at least the bytes of a site on any ISA.
const maxEntry = 8

// entrySize returns the bytes of a site.
func (r *Runtime) entrySize() uint64 {
	if r.isa.Align() == 1 {
		return uint64(r.isa.JumpLen())
	}
	return uint64(r.isa.Align())
}

// entryAt returns the entry site that a probe at addr goes to: one at addr, or
// behind it where the function starts there, and all that lies between are what
// functions start with.
func (r *Runtime) entryAt(im *Image, addr uint64) (site uint64, ok bool) {
	i, ok := slices.BinarySearch(im.entries.sites, addr)
	if ok || i == len(im.entries.sites) {
		return addr, ok
	}
	next := im.entries.sites[i]
	behind, ok := r.entryOf(im, addr)
	return next, ok && next <= behind+uint64(r.isa.EntryLead())
}

// placeEntry moves a probe of a function to its patchable entry, where it has
// one. A mirror function has to find the function's own registers: it runs behind
// the entry.
func (r *Runtime) placeEntry(p *probe, im *Image, addr uint64) (moved uint64, entry bool) {
	site, ok := r.entryAt(im, addr)
	if !ok {
		return addr, false
	}
	if p.mirror {
		return site + r.entrySize(), false
	}
	return site, true
}

// insideEntry reports whether addr is in a site, but not first.
func (r *Runtime) insideEntry(im *Image, addr uint64) bool {
	i, found := slices.BinarySearch(im.entries.sites, addr)
	return !found && i > 0 && addr-im.entries.sites[i-1] < r.entrySize()
}

// newEntry prepares a probe that is called.
func (r *Runtime) newEntry(p *probe, im *Image, addr uint64) (*site, error) {
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

// makeEntryStub makes what the sites of an image call, once.
func (r *Runtime) makeEntryStub(im *Image, s *site) error {
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

func (r *Runtime) entrySite(s *site) *patch.Site {
	stub := s.image.entries.stub
	return &patch.Site{
		Addr: s.addr, Original: s.original, Kernel: r.opt.Kernel,
		Detour: machine.Range{Lo: stub.addr, Hi: stub.addr + uint64(stub.size)},
	}
}

// patchEntry makes a site a call, or one that does nothing. The stub stays, so
// that nobody has to be waited for; while the text changes no CPU runs.
func (r *Runtime) patchEntry(s *site, op patch.Operation) error {
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

// entered handles the call that the stub makes for a site. Execution goes on
// behind the site, unless a handler has it go elsewhere.
func (r *Runtime) entered(cpu int) error {
	regs := r.m.CPU(cpu)
	frame := regs.Reg(r.convention.Args[1])
	ip := frame + uint64(r.field(r.file.PC).Offset)
	addr, err := r.m.ReadWord(ip)
	if err != nil {
		return err
	}
	next := addr + r.entrySize()
	s := r.sites[addr]
	if err := r.m.WriteWord(ip, next); err != nil || s == nil || !s.entry {
		return err
	}
	if to := r.runEntry(cpu, s, frame, next); to != next {
		return r.m.WriteWord(ip, to)
	}
	return r.failed
}

// runEntry runs the handlers of a site, and returns where execution goes on.
func (r *Runtime) runEntry(cpu int, s *site, frame, next uint64) uint64 {
	if r.cpus[cpu].current.status != Idle {
		r.miss(cpu, s, true)
		return next
	}
	r.cpus[cpu].current = hit{HitActive, s}
	r.observe(Transition{CPU: cpu, Addr: s.addr, Status: HitActive, Jump: true})
	c := r.context(cpu, frame, s.addr)
	if r.runPre(c, s) {
		r.observe(Transition{CPU: cpu, Addr: s.addr, Status: HitActive, Way: WayRedirect})
		next = c.Regs.ip
	} else if s.hasPost() {
		c.Regs.ip, c.Regs.moved = next, false
		r.enter(cpu, HitSSDone, s)
		r.runPostHandlers(c, s)
		next = c.Regs.ip
	}
	r.leave(cpu)
	return next
}

// retireEntries discards the stub of an image that goes away.
func (r *Runtime) retireEntries(im *Image) {
	if stub := im.entries.stub; stub.size != 0 {
		r.optimizer.garbage = append(r.optimizer.garbage, garbage{site: &site{image: im}, pieces: []piece{stub}})
		im.entries.stub = piece{}
	}
}
