package runtime

import (
	"fmt"
	"slices"

	"xol/classify"
	"xol/decode"
	"xol/optcheck"
	"xol/patch"
)

// ReturnProbe is a kretprobe: its handler runs when a function returns. The
// fields must not be changed while it is registered.
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
	// for each call.
	DataSize int
	// MaxActive is how many calls may be going on at a time; the others are
	// missed. It is max(10, 2 × CPUs) where it is 0 or less.
	MaxActive int
	// Disabled registers the probe without arming it.
	Disabled bool

	entry  *Probe
	free   []*instance
	missed uint64
	hits   uint64
}

// Nmissed returns how many calls were missed because MaxActive were going on,
// or because a handler, or another hit, was.
func (p *ReturnProbe) Nmissed() uint64 {
	n := p.missed
	if p.entry != nil {
		n += p.entry.missed
	}
	return n
}

// Returns returns how often the function returned to a caller that a call had
// been seen of.
func (p *ReturnProbe) Returns() uint64 { return p.hits }

// ReturnContext is what the handlers of a return probe are called with.
type ReturnContext struct {
	*Context
	Return *ReturnProbe
	// Data is this call's own, from EntryHandler to Handler.
	Data []byte
	// To is the address that the function returns to.
	To uint64
}

// instance is a call of a probed function that is going on.
type instance struct {
	probe *ReturnProbe // nil once it is unregistered
	to    uint64       // where the call returns to: the trampoline, where another instance knows it
	sp    uint64       // the stack pointer at the entry
	data  []byte
}

// returns is the trampoline, and the calls that will return to it.
type returns struct {
	addr  uint64                 // of the trampoline; 0 where there is none yet
	site  *site                  // the instruction that returns to the real caller
	calls map[uint64][]*instance // by task, the latest call last
	tasks []uint64               // of the CPUs
}

var ruleNotEntry = classify.Rule{ID: "runtime/not-entry", Errno: classify.EINVAL,
	Reason: "a return probe has to be at a function's entry, where the return address is known",
	Remedy: "name the function without an offset"}

// RegisterReturn puts a return probe on a function. It returns a
// *RegisterError.
func (r *Runtime) RegisterReturn(p *ReturnProbe) error {
	entry := &Probe{Symbol: p.Symbol, Offset: p.Offset, Addr: p.Addr, Disabled: p.Disabled, owner: p}
	if p.entry != nil {
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
	if err := r.makeTrampoline(im); err != nil {
		return refuse(entry, addr, &ruleNoRoom, err)
	}
	entry.Symbol, entry.Offset, entry.Addr = "", 0, behind
	entry.PreHandler = func(c *Context) bool { r.called(p, c); return false }
	p.free = newInstances(p, r.m.NumCPU())
	p.missed, p.hits = 0, 0
	if err := r.Register(entry); err != nil {
		return err
	}
	p.entry = entry
	return nil
}

// UnregisterReturn takes a return probe away. Calls that are going on return as
// if it had never been there.
func (r *Runtime) UnregisterReturn(p *ReturnProbe) error {
	if p.entry == nil {
		return refuse(&Probe{Symbol: p.Symbol, Offset: p.Offset, Addr: p.Addr}, 0, &ruleUnregistered, nil)
	}
	for _, calls := range r.returns.calls {
		for _, in := range calls {
			if in.probe == p {
				in.probe = nil
			}
		}
	}
	p.missed += p.entry.missed
	entry := p.entry
	p.entry, p.free = nil, nil
	return r.Unregister(entry)
}

// EnableReturn and DisableReturn are Enable and Disable of the entry.
func (r *Runtime) EnableReturn(p *ReturnProbe) error { return r.setReturnEnabled(p, true) }

// DisableReturn has no more calls taken; those that are going on are handled.
func (r *Runtime) DisableReturn(p *ReturnProbe) error { return r.setReturnEnabled(p, false) }

func (r *Runtime) setReturnEnabled(p *ReturnProbe, on bool) error {
	if p.entry == nil {
		return refuse(&Probe{Symbol: p.Symbol, Offset: p.Offset, Addr: p.Addr}, 0, &ruleUnregistered, nil)
	}
	return r.setEnabled(p.entry, on)
}

const minActive = 10

func newInstances(p *ReturnProbe, cpus int) []*instance {
	n := p.MaxActive
	if n <= 0 {
		n = max(minActive, 2*cpus)
	}
	list := make([]*instance, n)
	for i := range list {
		list[i] = &instance{data: make([]byte, p.DataSize)}
	}
	return list
}

// entryOf returns the address of the first instruction of the function that
// starts at addr that may be replaced: the landing pad, and what leads from the
// global entry point to the local one, stay.
func (r *Runtime) entryOf(im *Image, addr uint64) (uint64, bool) {
	res, ok := im.judge(addr)
	if !ok {
		return 0, false
	}
	entry := res.Function.Addr
	local := entry + res.Function.LocalEntry
	i, start := decode.Find(res.Insts, local)
	if !start {
		return 0, false
	}
	behind := local
	if res.Insts[i].Has(decode.LandingPad) && res.Insts[i].Flow == decode.FlowNone && i+1 < len(res.Insts) {
		behind = res.Insts[i+1].Addr
	}
	return behind, addr == entry || addr == local || addr == behind
}

// SetTask says which task a CPU runs from now on: calls return in the task that
// made them. A CPU starts with a task of its own, whose number is its own.
func (r *Runtime) SetTask(cpu int, task uint64) { r.returns.tasks[cpu] = task }

// TaskExit is called when a task ends: the calls that it was in never return.
func (r *Runtime) TaskExit(task uint64) {
	for _, in := range r.returns.calls[task] {
		in.recycle()
	}
	delete(r.returns.calls, task)
}

// Depth returns how many calls of functions with return probes are going on in a
// task.
func (r *Runtime) Depth(task uint64) int { return len(r.returns.calls[task]) }

// recycle gives an instance back to its probe.
func (in *instance) recycle() {
	p := in.probe
	if p == nil {
		return
	}
	in.probe = nil
	clear(in.data)
	p.free = append(p.free, in)
}

// called handles a call of a probed function: it will return to the trampoline.
func (r *Runtime) called(p *ReturnProbe, c *Context) {
	task := r.returns.tasks[c.CPU]
	sp := c.Regs.SP()
	r.dropSkipped(task, sp)
	n := len(p.free)
	if n == 0 {
		p.missed++
		return
	}
	in := p.free[n-1]
	*in = instance{probe: p, to: c.Regs.returnAddress(), sp: sp, data: in.data}
	if p.EntryHandler != nil {
		rc := ReturnContext{Context: c, Return: p, Data: in.data, To: c.Regs.ReturnAddress()}
		if p.EntryHandler(&rc) {
			clear(in.data)
			return
		}
	}
	p.free = p.free[:n-1]
	r.returns.calls[task] = append(r.returns.calls[task], in)
	c.Regs.setReturnAddress(r.returns.addr)
}

// dropSkipped recycles the calls that a longjmp left behind: their frames are
// below the stack pointer.
func (r *Runtime) dropSkipped(task, sp uint64) {
	calls := r.returns.calls[task]
	n := len(calls)
	for n > 0 && calls[n-1].sp < sp {
		n--
		calls[n].recycle()
	}
	r.returns.calls[task] = calls[:n]
}

// returned handles a return to the trampoline: the handlers of all calls that
// end here run, and the real caller is returned to.
func (r *Runtime) returned(c *Context) bool {
	task := r.returns.tasks[c.CPU]
	r.dropSkipped(task, c.Regs.SP())
	for {
		calls := r.returns.calls[task]
		n := len(calls)
		if n == 0 {
			r.failed = &ReturnError{CPU: c.CPU, SP: c.Regs.SP()}
			return false
		}
		in := calls[n-1]
		r.returns.calls[task] = calls[:n-1]
		if p := in.probe; p != nil {
			p.hits++
			if p.Handler != nil {
				to, _ := r.realReturn(task, in.sp, in.to)
				p.Handler(&ReturnContext{Context: c, Return: p, Data: in.data, To: to})
			}
		}
		to := in.to
		in.recycle()
		if to != r.returns.addr {
			c.Regs.setReturnAddress(to)
			return false
		}
	}
}

// realReturn returns where a call whose frame is at sp really returns to, if
// its return address is the trampoline.
func (r *Runtime) realReturn(task, sp, addr uint64) (uint64, bool) {
	if addr != r.returns.addr || addr == 0 {
		return addr, true
	}
	for _, in := range slices.Backward(r.returns.calls[task]) {
		if in.sp >= sp && in.to != r.returns.addr {
			return in.to, true
		}
	}
	return addr, false
}

// RealReturnAddress returns what a stack walk of a task should report for the
// return address addr that it found in the frame that starts at sp: never the
// trampoline.
func (r *Runtime) RealReturnAddress(task, sp, addr uint64) uint64 {
	to, _ := r.realReturn(task, sp, addr)
	return to
}

// ReturnError says that a program returned to the trampoline though no call is
// going on that would: a function that returns twice, as setjmp does, has a
// return probe.
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
	text := append(slices.Clone(prefix), r.isa.ReturnInst()...)
	size := max(len(r.isa.ReturnInst()), r.isa.JumpLen())
	text = append(text, make([]byte, size)...)
	if err := r.m.Write(addr, text); err != nil {
		return err
	}
	s := &site{
		addr: addr + uint64(len(prefix)), image: im, internal: true, boost: boostNever,
		original: text[len(prefix):][:size],
		region:   optcheck.Verdict{Region: uint8(size), Moved: uint8(len(r.isa.ReturnInst()))},
	}
	if err := r.isa.Decode(&s.inst, s.original, s.addr); err != nil {
		return err
	}
	s.probes = []*Probe{{Addr: s.addr, PreHandler: r.returned, enabled: true, site: s}}
	if err := r.prepareStep(s); err != nil {
		return err
	}
	r.sites[s.addr] = s
	r.returns.addr, r.returns.site = addr, s
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

// returnAddress returns what stands where the return address does: the
// trampoline, perhaps.
func (g *Regs) returnAddress() uint64 {
	if link := g.r.convention.Link; link >= 0 {
		return g.get(link)
	}
	v, _ := g.r.m.ReadWord(g.SP())
	return v
}

func (g *Regs) setReturnAddress(addr uint64) {
	if link := g.r.convention.Link; link >= 0 {
		g.set(link, addr)
		return
	}
	_ = g.r.m.WriteWord(g.SP(), addr)
}
