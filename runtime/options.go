package runtime

import (
	"xol/kernel"
	"xol/machine"
)

// Stepping is how the copy of a probed instruction is executed in its slot.
type Stepping uint8

const (
	// StepBreakpoint puts a breakpoint after the copy, as kernels do since
	// 5.13; instructions that transfer control are interpreted.
	StepBreakpoint Stepping = iota
	// StepTrap uses the ISA's single-step exception: the trap flag of amd64,
	// MSR[SE] of ppc64.
	StepTrap
)

var steppingNames = [...]string{"breakpoint", "trap"}

// String returns the way in a word.
func (s Stepping) String() string {
	if int(s) < len(steppingNames) {
		return steppingNames[s]
	}
	return "invalid"
}

// Options say what a Runtime is like. The zero value is fine.
type Options struct {
	Stepping   Stepping
	NoBoost    bool // copies always end in a breakpoint
	NoOptimize bool // breakpoints never become jumps (see SetOptimization)
	// Kernel says that the program is a kernel: its breakpoints and detour
	// buffers are those of kernel mode.
	Kernel bool
	// Pass is the number of instructions between two passes of the optimizer;
	// 10,000 where it is 0.
	Pass int
	// Blacklist is text that must not be probed.
	Blacklist []machine.Range
	// Reserved are addresses that the runtime's own areas have to stay out of, though
	// the machine has no memory there: what the host will give the program, where it
	// is touched first. The addresses of the images are reserved anyway.
	Reserved []machine.Range
	// ClassicTrampoline has functions with return probes return to a
	// breakpoint. Else they return to code that calls out, which costs no
	// exception.
	ClassicTrampoline bool
	// EntryProbes makes patchable function entries, which the compiler has left
	// and tables name, the runtime's own: when an image is loaded, before
	// its text runs, calls there become NOPs. A probe of such a function has no
	// breakpoint; its site becomes a call while the probe is enabled.
	EntryProbes bool
	// Profile names the rules of a kernel version, such as linux-6.12: what that
	// kernel refuses is refused, with its error number; a probe stands where it
	// would put it, after a landing pad for one; and only what it would boost or
	// make a jump may become that. Empty means isa, and with Uprobes the uprobes of
	// Linux 6.12.
	Profile string
	// KernelFacts are what is known of that kernel, beside what the file of a kernel
	// tells; the options of the zero value are Debian's.
	KernelFacts kernel.Facts
	// Uprobes makes the probes those of user programs: the rules of uprobes of
	// a kernel version decide where they may be, copies are not boosted, and
	// breakpoints do not become jumps, but for OptimizeNops.
	Uprobes bool
	// OptimizeNops has breakpoints on NOPs as long as a jump become jumps, with
	// Uprobes. The buffer that they jump to keeps the red zone below the
	// stack pointer, which a call in the NOP's place would write to.
	OptimizeNops bool
	// Observe, where it is not nil, is told every change of a CPU's state.
	Observe func(Transition)
}

const defaultPass = 10_000

// OptionError says which of the Options a runtime cannot have.
type OptionError struct {
	Option string
	Reason string
	Err    error // the cause, where there is one
}

func (e *OptionError) Error() string {
	text := "runtime: Options." + e.Option + ": " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// check returns an *OptionError for what the machine cannot do.
func (o *Options) check(m machine.Machine) error {
	switch {
	case o.Pass < 0:
		return &OptionError{Option: "Pass", Reason: "there is at least one instruction between two passes; 0 stands for 10,000"}
	case int(o.Stepping) >= len(steppingNames):
		return &OptionError{Option: "Stepping", Reason: "neither StepBreakpoint nor StepTrap"}
	case o.Stepping == StepTrap && m.NumCPU() > 0:
		c := m.CPU(0)
		if err := c.SingleStep(true); err != nil {
			return &OptionError{Option: "Stepping", Reason: "the machine cannot single-step: use StepBreakpoint", Err: err}
		}
		return c.SingleStep(false)
	}
	return nil
}
