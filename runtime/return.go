package runtime

import (
	"fmt"

	"xol/classify"
	"xol/machine"
)

var ruleDataSize = classify.Rule{ID: "runtime/data-size", Errno: classify.E2BIG,
	Reason: "a return probe keeps 0 to 4096 bytes for a call",
	Remedy: "keep a number there, and the data elsewhere"}

var ruleNotEntry = classify.Rule{ID: "runtime/not-entry", Errno: classify.EINVAL,
	Reason: "a return probe has to be at a function's entry, where the return address is known",
	Remedy: "name the function without an offset"}

// kretprobe is a return probe with the runtime that it is attached to.
type kretprobe struct {
	r *registry
	*returnProbe
}

func (p kretprobe) setEnabled(on bool) error { return p.r.setEnabled(p.entry, on) }
func (p kretprobe) isEnabled() bool          { return p.entry.enabled }
func (p kretprobe) hitCount() uint64         { return p.hits }
func (p kretprobe) missCount() uint64        { return p.missed + p.entry.missed }
func (p kretprobe) atEntry() *probe          { return p.entry }

// close has calls that are going on return as if the probe had never been there.
func (p kretprobe) close() error {
	p.closed, p.free = true, nil
	return p.r.unregister(p.entry)
}

func (r *registry) attachReturn(p ReturnProbe, l *Link) (*Link, error) {
	entry := &probe{Probe: p.entryProbe(), link: l, returns: true}
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
	place, ok := r.entryOf(im, addr)
	if !ok {
		return nil, refuse(entry, addr, &ruleNotEntry, nil)
	}
	if err := r.makeTrampoline(im); err != nil {
		return nil, refuse(entry, addr, &ruleNoRoom, err)
	}
	in := &returnProbe{ReturnProbe: p, entry: entry, function: addr}
	l.attached = kretprobe{r, in}
	entry.Symbol, entry.Offset, entry.Addr = "", 0, place
	entry.PreHandler = func(c *Context) bool { r.called(in, c); return false }
	if err := r.register(entry); err != nil {
		return nil, err
	}
	return l, nil
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
