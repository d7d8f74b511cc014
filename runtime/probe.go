package runtime

import "fmt"

// Probe is a kprobe: where it is and what it does. The zero value of the others is fine.
type Probe struct {
	// Symbol or Addr says where: one of the two. Offset bytes are added.
	Symbol string
	Offset uint64
	Addr   uint64

	// PreHandler runs before the instruction. If it changes the instruction
	// pointer and returns true, the instruction is not executed, no
	// PostHandler runs, and execution goes on there.
	PreHandler func(c *Context) (redirected bool)
	// PostHandler runs after the instruction, and keeps it from being boosted
	// or optimized.
	PostHandler func(c *Context)
	// FaultHandler is called with a fault of the probed instruction while it
	// is executed out of line, and with one that a handler of this probe
	// causes. If it returns true the fault counts as handled: the instruction
	// is executed again.
	FaultHandler func(c *Context, f *Fault) (handled bool)
	// Redirects says that the PreHandler may change the instruction pointer:
	// such a probe is never optimized, since a change has no effect there.
	Redirects bool
	// Counter has hits counted in the guest's memory (see Link.Hits). Once it
	// is optimized and has no handlers, hits never leave the guest.
	Counter bool
	// Disabled attaches the probe without arming it.
	Disabled bool
}

// probe is a Probe that is attached, or that another kind of probe has at a function's
// entry.
type probe struct {
	Probe
	link    *Link
	site    *site
	returns bool   // the entry of a return probe
	mirror  bool   // the entry of a jprobe
	counter uint64 // address of the count
	hits    uint64
	missed  uint64
	enabled bool
	gone    bool
}

// place names where a probe is, as it was given.
func (p Probe) place() string {
	switch {
	case p.Symbol != "" && p.Offset != 0:
		return fmt.Sprintf("%s+%#x", p.Symbol, p.Offset)
	case p.Symbol != "":
		return p.Symbol
	}
	return fmt.Sprintf("%#x", p.Addr+p.Offset)
}
