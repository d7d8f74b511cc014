package runtime

import (
	"bytes"
	"fmt"
	"slices"

	"xol/classify"
	"xol/decode"
	"xol/machine"
	"xol/optcheck"
	"xol/patch"
)

// ReturnProbe is a kretprobe: its handler runs when a function returns.
//
// The function returns to a trampoline. A call is found again by its task (see
// Runtime.SetTask) and by the stack pointer that it was made with, on whatever stack
// that is. A function that returns twice, or that pops its arguments, cannot have a
// return probe: see ReturnError. One that adds a little to its return address returns
// as far after the real one. One that puts another address there, or is left by a
// longjmp, goes where it says, and the Handler does not run: that call counts as going
// on until something else is seen to be at its place on the stack, and gives its room
// to a later call.
type ReturnProbe struct {
	// Symbol and Offset, or Addr, say which function: its entry.
	Symbol string
	Offset uint64
	Addr   uint64

	// Handler runs when the function has returned, before its caller goes on.
	Handler func(c *ReturnContext)
	// EntryHandler runs when the function is called. If it returns true, this
	// call is left alone.
	EntryHandler func(c *ReturnContext) (skip bool)
	// DataSize is the number of bytes that EntryHandler may keep for Handler,
	// for each call: 4096 at most.
	DataSize int
	// MaxActive is how many calls may be going on at a time; the others are
	// missed. It is max(10, 2 × CPUs) where it is 0 or less.
	MaxActive int
	// Disabled attaches the probe without arming it.
	Disabled bool
}

// returnProbe is a ReturnProbe that is attached.
type returnProbe struct {
	ReturnProbe
	entry    *probe
	function uint64 // the address that the probe names
	closed   bool
	free     []*instance
	made     int // instances that there are
	missed   uint64
	hits     uint64
}

func (p *returnProbe) setEnabled(on bool) error { return p.entry.setEnabled(on) }
func (p *returnProbe) isEnabled() bool          { return p.entry.enabled }
func (p *returnProbe) hitCount() uint64         { return p.hits }
func (p *returnProbe) missCount() uint64        { return p.missed + p.entry.missed }
func (p *returnProbe) atEntry() *probe          { return p.entry }

// close has calls that are going on return as if the probe had never been there.
func (p *returnProbe) close() error {
	p.closed, p.free = true, nil
	return p.entry.close()
}

// ReturnContext is what the handlers of a return probe are called with. It is
// valid during the call. The instruction pointer of a Handler is To.
type ReturnContext struct {
	*Context
	Function uint64 // its address, as the probe names it
	// Data is this call's own, from EntryHandler to Handler.
	Data []byte
	// To is the address that the function returns to.
	To uint64
}

// returns is the trampoline, and the calls that will return to it.
type returns struct {
	addr     uint64          // of the trampoline; 0 where there is none yet
	site     *site           // the instruction that returns to the real caller
	contexts []ReturnContext // of the handlers that run, by CPU
}

// maxDataSize is the most that Linux keeps for a call, in bytes
// [include/linux/kprobes.h, KRETPROBE_MAX_DATA_SIZE].
const maxDataSize = 4096

var ruleDataSize = classify.Rule{ID: "runtime/data-size", Errno: classify.E2BIG,
	Reason: "a return probe keeps 0 to 4096 bytes for a call",
	Remedy: "keep a number there, and the data elsewhere"}

var ruleNotEntry = classify.Rule{ID: "runtime/not-entry", Errno: classify.EINVAL,
	Reason: "a return probe has to be at a function's entry, where the return address is known",
	Remedy: "name the function without an offset"}

func (p ReturnProbe) attach(r *Runtime, l *Link) (attached, error) {
	entry := &probe{Probe: Probe{Symbol: p.Symbol, Offset: p.Offset, Addr: p.Addr, Disabled: p.Disabled}, link: l, returns: true}
	switch {
	case r.closed:
		return nil, refuse(entry, 0, &ruleClosed, machine.ErrClosed)
	case p.DataSize < 0 || p.DataSize > maxDataSize:
		return nil, refuse(entry, 0, &ruleDataSize, nil)
	}
	addr, im, err := r.resolve(entry)
	if err != nil {
		return nil, err
	}
	behind, ok := r.entryOf(im, addr)
	if !ok {
		return nil, refuse(entry, addr, &ruleNotEntry, nil)
	}
	if err := r.makeTrampoline(im); err != nil {
		return nil, refuse(entry, addr, &ruleNoRoom, err)
	}
	in := &returnProbe{ReturnProbe: p, entry: entry, function: addr}
	entry.Symbol, entry.Offset, entry.Addr = "", 0, behind
	entry.PreHandler = func(c *Context) bool { r.called(in, c); return false }
	return in, r.register(entry)
}

// entryOf returns the address of the first instruction of the function that
// starts at addr that may be replaced: the landing pad, and what leads from the
// global entry point to the local one, stay.
func (r *Runtime) entryOf(im *Image, addr uint64) (uint64, bool) {
	res, ok := r.judge(im, addr)
	if !ok {
		return 0, false
	}
	addr -= im.bias
	entry := res.Function.Addr
	local := entry + res.Function.LocalEntry
	i, start := decode.Find(res.Insts, local)
	if !start {
		return 0, false
	}
	behind := local
	if r.isa.OnlyLandingPad(&res.Insts[i]) && i+1 < len(res.Insts) {
		behind = res.Insts[i+1].Addr
	}
	return behind + im.bias, addr == entry || addr == local || addr == behind
}

// called handles a call of a probed function: it will return to the trampoline.
func (r *Runtime) called(p *returnProbe, c *Context) {
	t, sp := r.cpus[c.CPU].task, c.Regs.SP()
	to := c.Regs.returnAddress(sp)
	r.skip(t, sp)
	if to != r.returns.addr {
		r.dropReplaced(t, sp, c.probe)
	} else {
		t.revive(sp)
	}
	in := r.take(t, p, !c.called)
	if in == nil {
		p.missed++
		return
	}
	in.probe, in.to, in.sp, in.skipped, in.first = p, to, sp, false, !c.called
	in.start = r.cpus[c.CPU].started
	if p.EntryHandler != nil && r.skips(c, in, r.realReturn(t, sp, to)) || !in.live() {
		in.recycle()
		return
	}
	c.called = true
	t.insert(in)
	c.Regs.setReturnAddress(sp, r.returns.addr)
}

// skips asks the EntryHandler whether a call is left alone. One that panics has the
// call missed.
func (r *Runtime) skips(c *Context, in *instance, to uint64) (skip bool) {
	answered, fixed := false, c.Regs.fixed
	c.Regs.fixed = true
	defer func() {
		c.Regs.fixed = fixed
		if !answered {
			in.probe.missed++
			in.recycle()
		}
	}()
	skip = in.probe.EntryHandler(r.returnContext(c, in, to))
	answered = true
	return skip
}

// returnContext returns what a handler is called with.
func (r *Runtime) returnContext(c *Context, in *instance, to uint64) *ReturnContext {
	rc := &r.returns.contexts[c.CPU]
	*rc = ReturnContext{Context: c, Function: in.probe.function, Data: in.data, To: to}
	return rc
}

// returned handles a return to the trampoline: the handlers of all calls that
// end here run, and the real caller is returned to.
func (r *Runtime) returned(c *Context) bool {
	r.endCalls(c, c.Regs.SP(), 0)
	return false
}

// returnedFurther handles a return to an address near the trampoline: the function
// has added to its return address.
func (r *Runtime) returnedFurther(cpu int, addr uint64) error {
	sp := r.m.CPU(cpu).Reg(r.file.SP)
	if r.convention.Link < 0 {
		sp -= wordSize // of the address that is no longer on the stack
	}
	r.enter(cpu, HitActive, r.returns.site)
	c := r.context(cpu, 0, addr)
	r.endCalls(c, sp, addr-r.returns.addr)
	r.m.CPU(cpu).SetReg(r.file.PC, c.Regs.ip)
	r.leave(cpu)
	return r.failed
}

// endCalls has the calls return that were made with a stack pointer, to an address
// further than that they came from.
func (r *Runtime) endCalls(c *Context, sp, further uint64) {
	t := r.cpus[c.CPU].task
	r.skip(t, sp)
	to, ok := r.callerOf(t, sp)
	if !ok {
		r.failed = &ReturnError{CPU: c.CPU, SP: sp}
		return
	}
	to += further
	c.Regs.setReturnAddress(sp, to)
	c.Regs.ip, c.Regs.fixed = to, true
	r.runReturns(c, t, sp, to)
}

// runReturns ends the calls with a stack pointer that return together, the latest
// first. Where a handler panics, those that it leaves are missed.
func (r *Runtime) runReturns(c *Context, t *task, sp, to uint64) {
	var in *instance
	defer func() {
		for in != nil {
			chained := in.to == r.returns.addr
			in.recycle()
			if in = nil; chained {
				in = t.pop(sp)
			}
			if in != nil && in.live() {
				in.probe.missed++
			}
		}
	}()
	for chained := true; chained; {
		if in = t.pop(sp); in == nil {
			break // a handler has ended the task
		}
		if in.live() {
			r.runReturn(c, in, to)
		}
		chained = in.to == r.returns.addr
		in.recycle()
		in = nil
	}
}

// nearTrampoline reports whether an address is one that a return to the trampoline
// may lead to where the function has added to it.
func (r *Runtime) nearTrampoline(addr uint64) bool {
	return r.returns.addr != 0 && r.stubs.holds(addr) && addr >= r.stubs.page+trampolineOffset
}

func (r *Runtime) runReturn(c *Context, in *instance, to uint64) {
	p := in.probe
	p.hits++
	if p.Handler == nil {
		return
	}
	c.probe, c.Link = in.probe.entry, in.probe.entry.link
	p.Handler(r.returnContext(c, in, to))
}

// RealReturnAddress returns what a stack walk of a task should report for the
// return address addr: never the trampoline. The word at is in the frame of the
// function that returns there, between the stack pointer that the function was
// called with and the one that it calls others with: on amd64 and arm64 the word
// that holds the return address, on ppc64 the one that the back chain leads to.
// In a function that has saved nothing yet it is the stack pointer.
func (r *Runtime) RealReturnAddress(task, at, addr uint64) uint64 {
	if t := r.tasks[task]; t != nil {
		return r.realReturn(t, at, addr)
	}
	return addr
}

// ReturnError says that a program returned to the trampoline though no call is
// going on that would: a function with a return probe returns twice, as setjmp
// does, or changes the stack of its caller. The task cannot go on; Linux sends it
// SIGILL. Others can, when the host has called TaskExit for it.
type ReturnError struct {
	CPU int
	SP  uint64
}

func (e *ReturnError) Error() string {
	return fmt.Sprintf("runtime: CPU %d: return to the trampoline of return probes without a call, with the stack at %#x", e.CPU, e.SP)
}

// makeTrampoline makes the trampoline, once: a return instruction with a probe
// of the runtime's own. Its breakpoint is the classic trampoline; as a jump to a
// detour buffer, which saves the registers, calls out and restores them, it is
// the boosted one.
func (r *Runtime) makeTrampoline(im *Image) error {
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
	s.probes = []*probe{{Probe: Probe{Addr: s.addr, PreHandler: r.returned}, home: r, enabled: true, site: s}}
	if err := r.prepareStep(s); err != nil {
		return err
	}
	r.sites[s.addr] = s
	r.returns.addr, r.returns.site = addr+offset, s
	r.returns.contexts = make([]ReturnContext, len(r.cpus))
	if err := r.execute(s, patch.Arm); err != nil {
		return err
	}
	s.armed = true
	return r.boostTrampoline()
}

// boostTrampoline makes the trampoline's breakpoint a jump, unless the classic
// one is asked for. Nobody is there yet.
func (r *Runtime) boostTrampoline() error {
	s := r.returns.site
	if r.opt.ClassicTrampoline {
		return nil
	}
	if err := r.makeDetour(s); err != nil {
		return err
	}
	plan, err := r.isa.PlanPatch(patch.Optimize, r.patchSite(s))
	if err != nil {
		return err
	}
	for i := range plan.Steps {
		if err := r.carryOut(s, &plan.Steps[i]); err != nil {
			return err
		}
	}
	s.jump.stage = jumpStands
	return nil
}

// returnAddress returns what stands where the return address does, when the
// stack pointer is sp: the trampoline, perhaps.
func (g *Regs) returnAddress(sp uint64) uint64 {
	if link := g.r.convention.Link; link >= 0 {
		return g.get(link)
	}
	v, _ := g.r.m.ReadWord(sp)
	return v
}

func (g *Regs) setReturnAddress(sp, addr uint64) {
	if link := g.r.convention.Link; link >= 0 {
		g.set(link, addr)
		return
	}
	_ = g.r.m.WriteWord(sp, addr)
}
