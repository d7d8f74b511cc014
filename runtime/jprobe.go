package runtime

import (
	"slices"

	"xol/classify"
	"xol/machine"
)

// Jprobe shows the arguments of a function to a function of the guest that has
// the same signature.
type Jprobe struct {
	// Symbol and Offset, or Addr, say which function: its entry.
	Symbol string
	Offset uint64
	Addr   uint64
	// Mirror is called with the function's arguments before the function,
	// on the same stack. It ends by a jump or call to Runtime.JprobeReturn, or
	// by its own return. Whatever it does to registers and to its arguments on
	// the stack is undone. Probes that it hits count as missed. If it faults
	// the run ends. Where the context of the run ends meanwhile, the function goes
	// on without the rest of it when the program runs again.
	Mirror machine.Function
	// Disabled attaches the probe without arming it.
	Disabled bool
}

// argumentArea is how many bytes of the stack from its pointer on are restored
// after the mirror function: the return address and the arguments.
const argumentArea = 512

var ruleJprobe = classify.Rule{ID: "runtime/jprobe", Errno: classify.EEXIST,
	Reason: "a function can have one jprobe only",
	Remedy: "close the other one, or attach a Probe, of which there may be any number"}

func (p Jprobe) entryProbe() Probe {
	return Probe{Symbol: p.Symbol, Offset: p.Offset, Addr: p.Addr, Disabled: p.Disabled, Redirects: true}
}

func (p Jprobe) place() string { return p.entryProbe().place() }

func (r *Runtime) attachJprobe(p Jprobe) (*Link, error) {
	entry := &probe{Probe: p.entryProbe(), link: new(Link), mirror: true}
	if r.closed {
		return nil, refuse(entry, 0, &ruleClosed, machine.ErrClosed)
	}
	addr, im, err := r.resolve(entry)
	if err != nil {
		return nil, err
	}
	place, ok := r.entryOf(im, addr)
	if !ok {
		return nil, refuse(entry, addr, &ruleNotEntry, nil)
	}
	place, _ = r.placeEntry(entry, im, place)
	if s := r.sites[place]; s != nil && slices.ContainsFunc(s.probes, func(q *probe) bool { return q.mirror }) {
		return nil, refuse(entry, addr, &ruleJprobe, nil)
	}
	if err := r.makeStubs(im); err != nil {
		return nil, refuse(entry, addr, &ruleNoRoom, err)
	}
	entry.Symbol, entry.Offset, entry.Addr = "", 0, place
	entry.PreHandler = func(c *Context) bool {
		if err := r.runMirror(c.CPU, p.Mirror); err != nil && r.ctx.Err() == nil {
			r.fail(c.CPU, err)
		}
		return false
	}
	if err := r.register(entry); err != nil {
		return nil, err
	}
	entry.link.attached = kprobe{&r.registry, entry}
	return entry.link, nil
}

// JprobeReturn returns the address that a mirror function ends at; 0 where no
// jprobe has been attached.
func (r *Runtime) JprobeReturn() uint64 {
	if r.stubs.page == 0 {
		return 0
	}
	return r.stubs.mirrorEnd()
}

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
