package runtime

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"xol/analyze"
	"xol/classify"
	"xol/image"
	"xol/machine"
)

// A probe is judged by what stands in memory, as kernels decode the text that runs,
// and not by the file: both may have changed it, the host and the program itself.
// When they do it under a probe, all that was made of the old text is made anew.

var (
	ruleTextEntry = classify.Rule{ID: "runtime/text-entry", Errno: classify.EILSEQ,
		Reason: "what the compiler left at the function's entry has been changed in memory",
		Remedy: "attach the probe anew: it becomes a breakpoint"}
)

var errNoFunction = errors.New("runtime: the address is in no function")

// function is a function whose text must not change unseen: it has sites, or is
// remembered as judged.
type function struct {
	machine.Range
	users int
	sites []*site // sorted by address
}

// watchText has changes of a function's text told, as often as it is called.
func (r *Runtime) watchText(im *Image, f *image.Function) (*function, error) {
	fn := im.functions[f.Addr]
	if fn == nil {
		fn = &function{Range: machine.Range{Lo: f.Addr + im.bias, Hi: f.End() + im.bias}}
		if err := r.m.Guard(fn.Range, true); err != nil {
			return nil, err
		}
		im.functions[f.Addr] = fn
	}
	fn.users++
	return fn, nil
}

func (r *Runtime) unwatchText(im *Image, fn *function) error {
	if fn.users--; fn.users > 0 {
		return nil
	}
	delete(im.functions, fn.Lo-im.bias)
	return r.m.Guard(fn.Range, false)
}

// judge returns the judged function that holds addr, as it stands in memory.
func (r *Runtime) judge(im *Image, addr uint64) (*analyze.Result, bool) {
	if j := im.judged; j != nil && addr-im.bias-j.Addr < uint64(len(j.Code)) {
		return j, j.Err == nil
	}
	f, ok := im.analysis.FunctionAt(addr - im.bias)
	if !ok || r.forgetJudged(im) != nil {
		return nil, false
	}
	if _, err := r.watchText(im, &f); err != nil {
		return nil, false
	}
	im.judged = im.analysis.Judge(f)
	if im.judged.Err == nil {
		if code := r.textOf(im, im.judged); !bytes.Equal(code, im.prepared(im.judged)) {
			im.judged = im.analysis.JudgeText(f, code)
		}
	}
	return im.judged, im.judged.Err == nil
}

// textOf returns the text of a judged function in memory; where there is none, as the
// file has it.
func (r *Runtime) textOf(im *Image, res *analyze.Result) []byte {
	code := bytes.Clone(res.Code)
	addr := res.Addr + im.bias
	if r.m.Read(code, addr) == nil {
		return code
	}
	for done := uint64(0); done < uint64(len(code)); {
		n := min(uint64(len(code))-done, pageSize-(addr+done)%pageSize)
		if r.m.Read(code[done:done+n], addr+done) != nil {
			copy(code[done:done+n], res.Code[done:])
		}
		done += n
	}
	return code
}

// forgetJudged has the next question about a function asked anew.
func (r *Runtime) forgetJudged(im *Image) error {
	if im.judged == nil {
		return nil
	}
	fn := im.functions[im.judged.Function.Addr]
	im.judged = nil
	return r.unwatchText(im, fn)
}

// prepared returns the file's text of a judged function, with the entries that the
// runtime has prepared in memory.
func (im *Image) prepared(res *analyze.Result) []byte {
	code, texts := res.Code, im.entries.texts
	first, _ := slices.BinarySearchFunc(texts, res.Addr+im.bias, func(t machine.Part, addr uint64) int { return cmp.Compare(t.Addr, addr) })
	for _, t := range texts[first:] {
		from := t.Addr - im.bias - res.Addr
		if from >= uint64(len(code)) {
			break
		}
		code = bytes.Clone(code)
		copy(code[from:], t.Code)
	}
	return code
}

// put makes s the site at its address.
func (r *Runtime) put(s *site) error {
	f, ok := s.image.analysis.FunctionAt(s.addr - s.image.bias)
	if !ok {
		return errNoFunction
	}
	fn, err := r.watchText(s.image, &f)
	if err != nil {
		return err
	}
	s.function = fn
	i, _ := slices.BinarySearchFunc(fn.sites, s, compareSites)
	fn.sites = slices.Insert(fn.sites, i, s)
	r.sites[s.addr] = s
	return nil
}

// displace takes a site from its address.
func (r *Runtime) displace(s *site) error {
	delete(r.sites, s.addr)
	if s.function == nil {
		return nil
	}
	s.function.sites = deleteFrom(s.function.sites, s)
	return r.unwatchText(s.image, s.function)
}

// stored is told what the program, or the host, has changed.
func (r *Runtime) stored(changed machine.Range) error {
	var errs []error
	for _, im := range r.images {
		for _, fn := range im.touched(changed) {
			errs = append(errs, r.review(im, fn))
		}
	}
	return errors.Join(errs...)
}

// touched returns the watched functions of an image that share bytes with a range.
func (im *Image) touched(changed machine.Range) (found []*function) {
	for _, fn := range im.functions {
		if fn.Lo < changed.Hi && changed.Lo < fn.Hi {
			found = append(found, fn)
		}
	}
	slices.SortFunc(found, func(a, b *function) int { return cmp.Compare(a.Lo, b.Lo) })
	return found
}

// review looks at the sites of a function whose text has changed.
func (r *Runtime) review(im *Image, fn *function) error {
	if j := im.judged; j != nil && j.Addr+im.bias == fn.Lo {
		if err := r.forgetJudged(im); err != nil {
			return err
		}
	}
	var errs []error
	for _, s := range slices.Clone(fn.sites) {
		if !r.stands(s) {
			errs = append(errs, r.replace(s))
		}
	}
	return errors.Join(errs...)
}

// stands reports whether a site is as it would be made now.
func (r *Runtime) stands(s *site) bool {
	if s.lost != nil {
		return false
	}
	now := make([]byte, len(s.original))
	if r.m.Read(now, s.addr) != nil || !bytes.Equal(now, s.original) {
		return false
	}
	if s.entry {
		return true
	}
	judged, _, refused := r.judgeSite(s.image, s.addr, nil)
	return refused == nil && judged == s.judgement
}

// replace makes anew what was made of old text. CPUs that execute some of it come back
// to the program where its next instruction starts.
func (r *Runtime) replace(s *site) error {
	var errs []error
	if s.armed {
		errs = append(errs, r.withdraw(s))
	}
	r.optimizer.discard(s)
	errs = append(errs, r.displace(s))
	now := r.remake(s)
	now.probes, now.origin = s.probes, s.origin
	for _, p := range now.probes {
		p.site = now
	}
	errs = append(errs, r.put(now), r.close(s))
	r.retire(s)
	return errors.Join(append(errs, r.settle(now))...)
}

// remake returns what stands at the place of a site now.
func (r *Runtime) remake(s *site) *site {
	lost := &site{addr: s.addr, image: s.image, entry: s.entry, boosting: boostNever}
	if s.entry {
		lost.lost = refuse(s.probes[0], s.addr, &ruleTextEntry, nil).(*RegisterError)
		return lost
	}
	now, err := r.newSite(s.probes[0], s.image, s.addr, nil)
	if err == nil {
		return now
	}
	if !errors.As(err, &lost.lost) {
		lost.lost = refuse(s.probes[0], s.addr, &ruleNotText, err).(*RegisterError)
	}
	return lost
}

// withdraw has CPUs execute what is in memory at a site, at once.
func (r *Runtime) withdraw(s *site) error {
	size := len(r.isa.Breakpoint(r.opt.Kernel))
	if s.jump.stage != jumpNone || s.entry {
		size = max(size, min(len(s.original), r.isa.JumpLen()))
	}
	s.jump.stage, s.jump.plan, s.jump.queued, s.armed = jumpNone, nil, false, false
	code := r.buffer(size)
	if err := r.m.Read(code, s.addr); err != nil {
		return nil // it is not there any more
	}
	return r.m.Patch(s.addr, code)
}

// close has CPUs that execute what was made of a site trap where an instruction of the
// program starts.
func (r *Runtime) close(s *site) error {
	s.closed = true
	var errs []error
	trap := func(addr uint64) { errs = append(errs, r.m.Patch(addr, r.isa.Breakpoint(r.opt.Kernel))) }
	for _, p := range [...]piece{s.step, s.boosted} {
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

// reopen takes away what close has put into a piece.
func (r *Runtime) reopen(p piece) {
	code := r.buffer(int(p.size))
	if r.m.Read(code, p.addr) == nil {
		_ = r.m.Patch(p.addr, code)
	}
}

// comeBack has a CPU that was about to execute old text at addr, in what was made of a
// site, execute what the program has there now.
func (r *Runtime) comeBack(cpu int, s *site, addr uint64) error {
	c := &r.cpus[cpu]
	at := r.originalOf(s, addr)
	if at != s.addr {
		r.m.CPU(cpu).SetReg(r.file.PC, at)
		return nil
	}
	if err := r.stopStepping(cpu); err != nil {
		return err
	}
	if c.current.site != s || !s.step.holds(addr) {
		return r.executePresent(cpu, s, c.current.status != Idle)
	}
	now := r.present(s)
	if now == nil {
		r.m.CPU(cpu).SetReg(r.file.PC, s.addr)
		r.leave(cpu)
		return nil
	}
	c.current.site = now
	return r.executeCopy(cpu, now)
}

// present returns the site that has taken the place of s, or s itself; nil where there
// is none.
func (r *Runtime) present(s *site) *site {
	if !s.closed {
		return s
	}
	if now := r.sites[s.addr]; now != nil && now.origin == s.origin && now.lost == nil {
		return now
	}
	return nil
}

// executePresent has the instruction at a site executed that is there now: a handler
// may have changed it.
func (r *Runtime) executePresent(cpu int, s *site, again bool) error {
	now := r.present(s)
	if now == nil {
		r.m.CPU(cpu).SetReg(r.file.PC, s.addr)
		if !again {
			r.leave(cpu)
		}
		return nil
	}
	if !again && r.cpus[cpu].current.site == s {
		r.cpus[cpu].current.site = now
	}
	return r.executeHit(cpu, now, again)
}
