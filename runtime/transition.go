package runtime

// Status is what a CPU does with a probe, as the control block of kprobes has
// it.
type Status uint8

const (
	// Idle: no probe is being handled.
	Idle Status = iota
	// HitActive: the handlers before the instruction run.
	HitActive
	// HitSS: the instruction is executed out of line.
	HitSS
	// Reenter: an instruction that was hit inside a hit is executed out of
	// line, without handlers.
	Reenter
	// HitSSDone: the handlers after the instruction run.
	HitSSDone
)

var statusNames = [...]string{"idle", "active", "ss", "reenter", "ssdone"}

// String returns the status in a word.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "invalid"
}

// Method is how the instruction of a hit is executed.
type Method uint8

const (
	MethodNone     Method = iota
	MethodStep            // in the slot, up to an exception after it
	MethodBoost           // in the slot, which jumps back
	MethodEmulate         // interpreted
	MethodDetour          // among the moved instructions of a detour buffer
	MethodRedirect        // not at all: a handler changed the instruction pointer
)

var methodNames = [...]string{"", "step", "boost", "emulate", "detour", "redirect"}

// String returns the method in a word; empty for none.
func (m Method) String() string {
	if int(m) < len(methodNames) {
		return methodNames[m]
	}
	return "invalid"
}

// Transition is a change of a CPU's state.
type Transition struct {
	CPU    int
	Addr   uint64 // of the probe
	Status Status
	Method Method // where the execution of the instruction begins
	Missed bool   // the hit was inside another one, and no handler runs
	Jump   bool   // the hit came through a jump, not a breakpoint
}
