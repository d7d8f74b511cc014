// Package matrix is the table of what happens to kprobes in their life: one list
// of cases, each carried out on an emulated machine of every ISA and in every
// way that a probed instruction may be executed. A case checks what the program
// computes and which states the CPUs go through. It needs the Unicorn engine:
// without the build tag unicorn there are names only.
package matrix

// Mode is the way that the instructions of a case's probes are executed.
type Mode uint8

// The modes.
const (
	SteppedBreakpoint Mode = iota // a copy with a breakpoint after it
	SteppedTrap                   // a copy, under the ISA's single-step exception
	Boosted                       // a copy that jumps back
	Optimized                     // a jump to a detour buffer
	Emulated                      // no copy: the runtime does what the instruction does
)

var modeNames = [...]string{"stepped-breakpoint", "stepped-trap", "boosted", "optimized", "emulated"}

// String returns the mode's name.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "invalid"
}

// Modes returns all modes.
func Modes() []Mode {
	return []Mode{SteppedBreakpoint, SteppedTrap, Boosted, Optimized, Emulated}
}

// Outcome is what came of a case.
type Outcome uint8

// The outcomes.
const (
	Pass Outcome = iota
	Fail
	NotApplicable // the case makes no sense in the mode, or on the ISA
)

var outcomeNames = [...]string{"pass", "fail", "n/a"}

// String returns the outcome's name.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "invalid"
}

// Result is a field of the matrix.
type Result struct {
	Case    string
	Target  string // the ISA
	Mode    Mode
	Outcome Outcome
	Reason  string // what went wrong, or why the case is not applicable
}
