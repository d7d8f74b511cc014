package runtime

import (
	"fmt"
	"slices"
	"sort"

	"xol/classify"
	"xol/decode"
	"xol/optcheck"
	"xol/patch"
)

// ReturnProbe is a kretprobe: its handler runs when a function returns. The
// fields must not be changed while it is registered. A function that returns
// twice, or that pops its arguments, cannot have one: see ReturnError.
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

	entry  *Probe // nil while the probe is not registered
	free   []*instance
	made   int // instances that there are
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

// Returns returns how often the function returned from a call that was not
// missed or left alone.
func (p *ReturnProbe) Returns() uint64 { return p.hits }

// Entry returns the probe at the function's entry; nil where the return probe is
// not registered.
func (p *ReturnProbe) Entry() *Probe { return p.entry }

// ReturnContext is what the handlers of a return probe are called with. It is
// valid during the call. The instruction pointer of a Handler is To.
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
	probe *ReturnProbe
	entry *Probe // which the probe was registered with
	to    uint64 // where the call returns to: the trampoline, where another instance knows it
	sp    uint64 // the stack pointer at the entry
	data  []byte
}

// live reports whether the probe is still registered.
func (in *instance) live() bool { return in.probe.entry == in.entry }

// returns is the trampoline, and the calls that will return to it.
type returns struct {
	addr     uint64 // of the trampoline; 0 where there is none yet
	site     *site  // the instruction that returns to the real caller
	tasks    map[uint64]*task
	running  []*task         // by CPU
	contexts []ReturnContext // of the handlers that run, by CPU
}

// task is a sequence of calls.
type task struct {
	number uint64
	calls  []*instance // the latest last: stack pointers never rise
}

// task returns the task of a number.
func (s *returns) task(number uint64) *task {
	t := s.tasks[number]
	if t == nil {
		t = &task{number: number}
		s.tasks[number] = t
	}
	return t
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
	p.free, p.made, p.missed, p.hits = nil, 0, 0, 0
	if err := r.Register(entry); err != nil {
		return err
	}
	p.entry = entry
	return nil
}

// UnregisterReturn takes a return probe away. Calls that are going on return as
// if it had never been there.
func (r *Runtime) UnregisterReturn(p *ReturnProbe) error {
	entry := p.entry
	if entry == nil {
		return notRegistered(p.Symbol, p.Offset, p.Addr)
	}
	p.missed += entry.missed
	p.entry, p.free = nil, nil
	return r.Unregister(entry)
}

// EnableReturn and DisableReturn are Enable and Disable of the entry.
func (r *Runtime) EnableReturn(p *ReturnProbe) error { return r.setReturnEnabled(p, true) }

// DisableReturn has no more calls taken; those that are going on are handled.
func (r *Runtime) DisableReturn(p *ReturnProbe) error { return r.setReturnEnabled(p, false) }

func (r *Runtime) setReturnEnabled(p *ReturnProbe, on bool) error {
	if p.entry == nil {
		return notRegistered(p.Symbol, p.Offset, p.Addr)
	}
	return r.setEnabled(p.entry, on)
}

const minActive = 10

// take returns an instance for a call; nil where as many calls are going on as
// may be.
func (p *ReturnProbe) take(cpus int) *instance {
	if n := len(p.free); n > 0 {
		in := p.free[n-1]
		p.free = p.free[:n-1]
		return in
	}
	most := p.MaxActive
	if most <= 0 {
		most = max(minActive, 2*cpus)
	}
	if p.made >= most {
		return nil
	}
	p.made++
	return &instance{data: make([]byte, max(p.DataSize, 0))}
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

// SetTask says which task a CPU runs from now on: calls return in the task that
// made them. A CPU starts with a task of its own, whose number is its own.
func (r *Runtime) SetTask(cpu int, task uint64) { r.returns.running[cpu] = r.returns.task(task) }

// TaskExit is called when a task ends: the calls that it was in never return.
func (r *Runtime) TaskExit(task uint64) {
	t := r.returns.tasks[task]
	if t == nil {
		return
	}
	for _, in := range t.calls {
		in.recycle()
	}
	t.calls = nil
	if !slices.Contains(r.returns.running, t) {
		delete(r.returns.tasks, task)
	}
}

// Depth returns how many calls of functions with return probes are going on in a
// task.
func (r *Runtime) Depth(task uint64) int {
	if t := r.returns.tasks[task]; t != nil {
		return len(t.calls)
	}
	return 0
}

// recycle gives an instance back to its probe.
func (in *instance) recycle() {
	if in.live() {
		clear(in.data)
		in.probe.free = append(in.probe.free, in)
	}
}

// called handles a call of a probed function: it will return to the trampoline.
func (r *Runtime) called(p *ReturnProbe, c *Context) {
	t, sp := r.returns.running[c.CPU], c.Regs.SP()
	to := c.Regs.returnAddress(sp)
	t.dropSkipped(sp)
	if to != r.returns.addr {
		r.dropReplaced(t, sp, c.Probe)
	}
	in := p.take(len(r.cpus))
	if in == nil {
		p.missed++
		return
	}
	in.probe, in.entry, in.to, in.sp = p, c.Probe, to, sp
	skip := p.EntryHandler != nil && p.EntryHandler(r.returnContext(c, in, r.realReturn(t, sp, to)))
	if skip || !in.live() {
		in.recycle()
		return
	}
	t.calls = append(t.calls, in)
	c.Regs.setReturnAddress(sp, r.returns.addr)
}

// returnContext returns what a handler is called with.
func (r *Runtime) returnContext(c *Context, in *instance, to uint64) *ReturnContext {
	rc := &r.returns.contexts[c.CPU]
	*rc = ReturnContext{Context: c, Return: in.probe, Data: in.data, To: to}
	return rc
}

// dropSkipped recycles the calls that a longjmp left behind: their frames are
// below the stack pointer.
func (t *task) dropSkipped(sp uint64) {
	n := len(t.calls)
	for n > 0 && t.calls[n-1].sp < sp {
		n--
		t.calls[n].recycle()
	}
	t.calls = t.calls[:n]
}

// dropReplaced recycles the calls that a longjmp left behind at the very stack
// pointer of a new call that does not return to the trampoline. Where return
// addresses are on the stack, that of the new call has replaced theirs. Else
// such a call may be going on, of a function without a frame, but not one of the
// same function.
func (r *Runtime) dropReplaced(t *task, sp uint64, entry *Probe) {
	onStack := r.convention.Link < 0
	for i := len(t.calls) - 1; i >= 0 && t.calls[i].sp == sp; i-- {
		if t.calls[i].to == r.returns.addr || !onStack && t.calls[i].entry.Addr != entry.Addr {
			continue
		}
		end := i + 1
		for end < len(t.calls) && t.calls[end].to == r.returns.addr && t.calls[end].sp == sp {
			end++
		}
		for _, in := range t.calls[i:end] {
			in.recycle()
		}
		t.calls = slices.Delete(t.calls, i, end)
	}
}

// returned handles a return to the trampoline: the handlers of all calls that
// end here run, and the real caller is returned to.
func (r *Runtime) returned(c *Context) bool {
	t, sp := r.returns.running[c.CPU], c.Regs.SP()
	t.dropSkipped(sp)
	first := len(t.calls) - 1
	for first >= 0 && t.calls[first].sp == sp && t.calls[first].to == r.returns.addr {
		first--
	}
	if first < 0 || t.calls[first].sp != sp {
		r.failed = &ReturnError{CPU: c.CPU, SP: sp}
		return false
	}
	to := t.calls[first].to
	c.Regs.setReturnAddress(sp, to)
	c.Regs.ip = to
	for n := len(t.calls) - 1; n >= first; n = len(t.calls) - 1 {
		in := t.calls[n]
		t.calls = t.calls[:n]
		if in.live() {
			r.runReturn(c, in, to)
		}
		in.recycle()
	}
	return false
}

func (r *Runtime) runReturn(c *Context, in *instance, to uint64) {
	p := in.probe
	p.hits++
	if p.Handler == nil {
		return
	}
	c.Probe = in.entry
	p.Handler(r.returnContext(c, in, to))
}

// realReturn returns where a call with the stack pointer sp, or with sp in its
// frame, really returns to, if its return address is the trampoline.
func (r *Runtime) realReturn(t *task, sp, addr uint64) uint64 {
	if addr != r.returns.addr || addr == 0 {
		return addr
	}
	calls := t.calls
	n := sort.Search(len(calls), func(i int) bool { return calls[i].sp < sp })
	for n--; n >= 0; n-- {
		if calls[n].to != r.returns.addr {
			return calls[n].to
		}
	}
	return addr
}

// RealReturnAddress returns what a stack walk of a task should report for the
// return address addr: never the trampoline. The word at is in the frame of the
// function that returns there, between the stack pointer that the function was
// called with and the one that it calls others with: on amd64 and arm64 the word
// that holds the return address, on ppc64 the one that the back chain leads to.
// In a function that has saved nothing yet it is the stack pointer.
func (r *Runtime) RealReturnAddress(task, at, addr uint64) uint64 {
	if t := r.returns.tasks[task]; t != nil {
		return r.realReturn(t, at, addr)
	}
	return addr
}

// ReturnError says that a program returned to the trampoline though no call is
// going on that would: a function with a return probe returns twice, as setjmp
// does, or changes the stack of its caller.
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
