package runtime

import (
	"slices"

	"xol/classify"
	"xol/machine"
)

// Jprobe shows the arguments of a function to a function of the guest that has
// the same signature. The fields must not be changed while it is registered.
type Jprobe struct {
	// Symbol and Offset, or Addr, say which function: its entry.
	Symbol string
	Offset uint64
	Addr   uint64
	// Mirror is called with the function's arguments in front of the function,
	// on the same stack. It ends by a jump or call to Runtime.JprobeReturn, or
	// by its own return. Whatever it does to registers and to its arguments on
	// the stack is undone. Probes that it hits count as missed. If it faults
	// the run ends. Where the context of the run ends meanwhile, the function goes
	// on without the rest of it when the program runs again.
	Mirror machine.Function
	// Disabled registers the probe without arming it.
	Disabled bool

	entry  *Probe // nil while the jprobe is not registered
	hits   uint64 // of entries that are gone
	missed uint64
}

// argumentArea is how many bytes of the stack from its pointer on are restored
// behind the mirror function: the return address and the arguments.
const argumentArea = 512

var ruleJprobe = classify.Rule{ID: "runtime/jprobe", Errno: classify.EEXIST,
	Reason: "a function can have one jprobe only",
	Remedy: "unregister the other one, or register a Probe, of which there may be any number"}

// RegisterJprobe puts a jprobe on a function. It returns a *RegisterError.
func (r *Runtime) RegisterJprobe(p *Jprobe) error {
	if p == nil {
		return refuse(nil, 0, &ruleNil, nil)
	}
	entry := &Probe{Symbol: p.Symbol, Offset: p.Offset, Addr: p.Addr, Disabled: p.Disabled, Redirects: true, mirror: true}
	switch {
	case r.closed:
		return refuse(entry, 0, &ruleClosed, machine.ErrClosed)
	case p.entry != nil:
		return refuse(entry, 0, &ruleRegistered, nil)
	}
	addr, im, err := r.resolve(entry)
	if err != nil {
		return err
	}
	behind, ok := r.entryOf(im, addr)
	if !ok {
		return refuse(entry, addr, &ruleNotEntry, nil)
	}
	behind, _ = r.placeEntry(entry, im, behind)
	if s := r.sites[behind]; s != nil && slices.ContainsFunc(s.probes, func(q *Probe) bool { return q.mirror }) {
		return refuse(entry, addr, &ruleJprobe, nil)
	}
	if err := r.makeStubs(im); err != nil {
		return refuse(entry, addr, &ruleNoRoom, err)
	}
	entry.Symbol, entry.Offset, entry.Addr = "", 0, behind
	entry.PreHandler = func(c *Context) bool {
		if err := r.runMirror(c.CPU, p.Mirror); err != nil && r.ctx.Err() == nil {
			r.fail(c.CPU, err)
		}
		return false
	}
	if err := r.Register(entry); err != nil {
		return err
	}
	p.entry, p.missed = entry, 0
	return nil
}

// UnregisterJprobe takes a jprobe away.
func (r *Runtime) UnregisterJprobe(p *Jprobe) error {
	switch {
	case p == nil:
		return refuse(nil, 0, &ruleNil, nil)
	case p.entry == nil:
		return r.checkOwn(&Probe{Symbol: p.Symbol, Offset: p.Offset, Addr: p.Addr})
	}
	entry := p.entry
	if err := r.checkOwn(entry); err != nil {
		return err
	}
	p.hits, p.missed = p.Hits(), p.Nmissed()
	p.entry = nil
	return r.Unregister(entry)
}

// JprobeReturn returns the address that a mirror function ends at; 0 where no
// jprobe has been registered.
func (r *Runtime) JprobeReturn() uint64 {
	if r.stubs.page == 0 {
		return 0
	}
	return r.stubs.mirrorEnd()
}

// Nmissed returns how often the function was called without its mirror.
func (p *Jprobe) Nmissed() uint64 {
	if p.entry == nil {
		return p.missed
	}
	return p.missed + p.entry.missed
}

// Hits returns how often the mirror function ran.
func (p *Jprobe) Hits() uint64 {
	if p.entry == nil {
		return p.hits
	}
	return p.hits + p.entry.hits
}

// Entry returns the probe in front of the function; nil where the jprobe is not
// registered.
func (p *Jprobe) Entry() *Probe { return p.entry }

// runMirror runs a mirror function on a CPU that stands at a function's entry,
// and restores what it changed.
func (r *Runtime) runMirror(cpu int, f machine.Function) error {
	restore, done := r.nest(cpu), false
	defer func() { restore(done) }()
	c := r.m.CPU(cpu)
	stack, sp := make([]byte, argumentArea), c.Reg(r.file.SP)
	stack = stack[:r.readable(stack, sp)]
	defer func() { _ = r.m.Write(sp, stack) }()
	r.enterMirror(c, f)
	err := r.runAlone(cpu, nestedBudget, r.stubs.mirrorEnd())
	done = err == nil
	return err
}

// enterMirror has a CPU go on at a mirror function, which returns to its end.
func (r *Runtime) enterMirror(c machine.CPU, f machine.Function) {
	conv := r.convention
	if conv.Link >= 0 {
		c.SetReg(conv.Link, r.stubs.mirrorEnd())
	} else {
		_ = r.m.WriteWord(c.Reg(r.file.SP), r.stubs.mirrorEnd())
	}
	if conv.Entry >= 0 {
		c.SetReg(conv.Entry, f.Entry)
	}
	if conv.TOC >= 0 && f.TOC != 0 {
		c.SetReg(conv.TOC, f.TOC)
		c.SetReg(conv.Env, f.Env)
	}
	c.SetReg(r.file.PC, f.Entry)
}

// readable reads as much of dst as there is memory for from addr on, and returns
// how much that is.
func (r *Runtime) readable(dst []byte, addr uint64) int {
	n := min(uint64(len(dst)), pageSize-addr%pageSize)
	if r.m.Read(dst[:n], addr) != nil {
		return 0
	}
	if n < uint64(len(dst)) && r.m.Read(dst[n:], addr+n) == nil {
		return len(dst)
	}
	return int(n)
}
