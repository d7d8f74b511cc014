package runtime

import "xol/classify"

// attached is what a Link holds: a probe with its state.
type attached interface {
	setEnabled(on bool) error
	close() error
	isEnabled() bool
	hitCount() uint64
	missCount() uint64
	// atEntry returns the probe of an instruction that it is, or that it has at a
	// function's entry; one that is nowhere if there is none.
	atEntry() *probe
}

// Link is a probe that is attached. It is used by the goroutine that uses the runtime;
// handlers may call all of its methods. The zero Link, and nil, are a probe that is not
// attached.
type Link struct {
	attached attached
}

// nothing is what no probe is.
type nothing struct{}

func (nothing) setEnabled(bool) error { return refuse(nowhere, 0, &ruleUnregistered, nil) }

func (nothing) close() error { return refuse(nowhere, 0, &ruleUnregistered, nil) }

func (nothing) isEnabled() bool { return false }

func (nothing) hitCount() uint64 { return 0 }

func (nothing) missCount() uint64 { return 0 }

func (nothing) atEntry() *probe { return new(probe) }

// holds returns what the link holds.
func (l *Link) holds() attached {
	if l == nil || l.attached == nil {
		return nothing{}
	}
	return l.attached
}

// Close takes the probe out of the program. Its handlers are not called any more; what
// other CPUs are executing of it stays until they have left, and calls that a return
// probe has taken return as if it had never been there. The counts stay. Where the
// machine has been closed the probe is closed as well, and the error is ErrClosed.
func (l *Link) Close() error { return l.holds().close() }

// Enable has the handlers called again.
func (l *Link) Enable() error { return l.holds().setEnabled(true) }

// Disable has them called no longer; calls that a return probe has taken are still
// handled. The probe stays attached.
func (l *Link) Disable() error { return l.holds().setEnabled(false) }

// Enabled reports whether the probe is attached and enabled.
func (l *Link) Enabled() bool { return l.holds().isEnabled() }

// Hits returns how often the handlers ran or, of a Counter, how often it was counted: a
// Counter without handlers counts every execution, also those that others miss. Of a
// ReturnProbe it is how often the function returned from a call that was not missed or
// left alone, of a Uprobe the number of executions in all processes.
func (l *Link) Hits() uint64 { return l.holds().hitCount() }

// Nmissed returns how often the instruction was executed, the function called, or the
// data accessed without the handlers, because a handler, or another hit, was going on; of
// a ReturnProbe also because MaxActive calls were.
func (l *Link) Nmissed() uint64 { return l.holds().missCount() }

// Address returns where the probe is; 0 where it is closed. Of a ReturnProbe or Jprobe it
// is the probe at the function's entry, as below.
func (l *Link) Address() uint64 {
	if p := l.holds().atEntry(); p.site != nil {
		return p.site.addr
	}
	return 0
}

// Optimized reports whether the probe's breakpoint is a jump now.
//
// A jump that replaces several instructions is made only where one can be that traps
// at the start of each of them: what lands there in a way that the evidence does not
// foresee, as by an address that is computed from that of something else, is caught
// and goes on among the moved instructions. That takes a buffer at certain distances
// from the probe, most of them between 0.4 MB and 2 GB; where there is no room at any
// of them the breakpoint stays. What lands in the middle of an instruction has never
// run that instruction, and is not caught.
func (l *Link) Optimized() bool { return l.holds().atEntry().optimized() }

// Called reports whether the probe is at a patchable entry, which has become a
// call: there is no breakpoint.
func (l *Link) Called() bool { return l.holds().atEntry().called() }

// Boosted reports whether the copy of the instruction ends in a jump back.
func (l *Link) Boosted() bool { return l.holds().atEntry().boosted() }

// Gone reports whether the text of the probe has been unloaded.
func (l *Link) Gone() bool { return l.holds().atEntry().gone }

// Lost returns why a probe is not in the program, as a *RegisterError: the text has
// changed, so that there must not be one. When it changes again the probe may come back.
// nil where the probe is not lost.
func (l *Link) Lost() error {
	if p := l.holds().atEntry(); p.site != nil && p.site.lost != nil {
		return p.site.lost
	}
	return nil
}

// Watching reports whether a WatchProbe has its slots.
func (l *Link) Watching() bool {
	w, ok := l.holds().(interface{ isWatching() bool })
	return ok && w.isWatching()
}

// Verdict returns what the rules of uprobes say of a Uprobe: how Linux executes the
// instruction, and what goes wrong then. The runtime itself executes it rightly: a Hazard
// is a warning. The zero Verdict is that of all others.
func (l *Link) Verdict() classify.Verdict {
	if u, ok := l.holds().(interface{ verdict() classify.Verdict }); ok {
		return u.verdict()
	}
	return classify.Verdict{}
}
