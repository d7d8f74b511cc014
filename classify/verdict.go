// Package classify holds the verdict model: may a probe be put on an
// instruction, how would the instruction then be executed, and if not, why
// not and what to do instead. The rules that hold for every ISA are here, those
// of one ISA in arch/<isa>.
package classify

import (
	"iter"
	"strconv"
)

// Errno is a Linux error number; 0 means none.
type Errno uint16

// The numbers that the Linux profiles answer with [asm-generic/errno.h,
// include/linux/errno.h].
const (
	ENOENT        Errno = 2
	ESRCH         Errno = 3
	E2BIG         Errno = 7
	ENOEXEC       Errno = 8
	ENOMEM        Errno = 12
	EEXIST        Errno = 17
	ENODEV        Errno = 19
	EINVAL        Errno = 22
	ENOSPC        Errno = 28
	EILSEQ        Errno = 84
	EOPNOTSUPP    Errno = 95
	EADDRNOTAVAIL Errno = 99
	ENOTSUPP      Errno = 524 // kernel-internal
)

var errnoNames = map[Errno]string{
	ENOENT: "ENOENT", ESRCH: "ESRCH", E2BIG: "E2BIG", ENOEXEC: "ENOEXEC", ENOMEM: "ENOMEM", EEXIST: "EEXIST", ENODEV: "ENODEV", EINVAL: "EINVAL",
	ENOSPC: "ENOSPC", EILSEQ: "EILSEQ", EOPNOTSUPP: "EOPNOTSUPP", EADDRNOTAVAIL: "EADDRNOTAVAIL", ENOTSUPP: "ENOTSUPP",
}

// String returns the symbolic name.
func (e Errno) String() string {
	if s, ok := errnoNames[e]; ok {
		return s
	}
	return strconv.Itoa(int(e))
}

// Error makes the number an error, for errors.Is.
func (e Errno) Error() string { return e.String() }

// Rule is one reason to refuse a probe. Rules are constant tables.
type Rule struct {
	ID     string // stable: "amd64/int3"
	Errno  Errno  // what a Linux profile answers; 0 in the profile isa
	Reason string // one plain sentence
	Remedy string // what to do instead; empty where there is nothing
}

// Hazard is a way in which a kernel that accepts a probe then executes the
// instruction wrongly.
type Hazard struct {
	ID   string    // stable: "amd64/uprobe-vex-as-branch"
	Text string    // one plain sentence
	Seen []Version // the branches on which it was seen to happen
	Span Span      // the versions for which it is expected, from their sources
}

// Note is something that a kernel does with a probed instruction which changes
// nothing that the program computes, but which people ought to know.
type Note Hazard

// Notes is a set of notes.
type Notes uint8

// The notes, all of uprobes on x86-64.
const (
	NoteFirstByte  Notes = 1 << iota // the first byte stays changed
	NoteNOPOperand                   // the operand of a NOP stays changed
	NoteTrapNumber                   // a fault is reported with another trap number
	NoteIterations                   // every iteration counts as a hit
)

var notes = [...]Note{
	{
		ID:   "amd64/uprobe-first-byte-left",
		Text: "the kernel clears REX.B in its copy of the first byte and leaves it so in the program when the probe is removed; the bit has no effect on an operand that is relative to rip",
		Seen: []Version{Linux(5, 10), Linux(6, 1), Linux(6, 12), Linux(6, 16), Linux(6, 17), Linux(6, 18), Linux(6, 19), Linux(7, 0), Linux(7, 1), Linux(7, 2), Linux(7, 3)},
	},
	{
		ID:   "amd64/uprobe-nop-left",
		Text: "at the first hit the kernel turns this NOP of 10 bytes into a call, and restores only its first bytes when the probe is removed: it stays a NOP, with another operand",
		Seen: []Version{Linux(7, 2), Linux(7, 3)},
		Span: Span{Since: Linux(7, 2)},
	},
	{
		ID:   "amd64/uprobe-trap-number",
		Text: "an exception that the instruction raises on purpose comes from its copy: signal handlers are told the trap number of the thread's exception before",
		Seen: []Version{Linux(6, 18)},
	},
	{
		ID:   "amd64/uprobe-iterations",
		Text: "every iteration of a rep instruction is executed as a step of its own and counts as a hit",
		Seen: []Version{Linux(6, 18)},
	},
}

// All returns the notes of the set.
func (n Notes) All() iter.Seq[*Note] {
	return func(yield func(*Note) bool) {
		for i := range notes {
			if n>>i&1 != 0 && !yield(&notes[i]) {
				return
			}
		}
	}
}

// Exec says how a probed instruction is executed after the hit.
type Exec uint8

// The ways to execute.
const (
	ExecNone    Exec = iota // not probed
	ExecSlot                // a copy runs out of line
	ExecEmulate             // the probe mechanism does what the instruction does
	ExecFtrace              // the probe sits on an ftrace site: no breakpoint
)

var execNames = [...]string{"", "slot", "emulate", "ftrace"}

// String returns the name that the command line's JSON uses.
func (e Exec) String() string {
	if int(e) < len(execNames) {
		return execNames[e]
	}
	return "invalid"
}

// Fixups are what a probe mechanism repairs after the copy of an instruction has
// run [arch/x86/kernel/uprobes.c].
type Fixups uint8

// The fix-ups.
const (
	FixPC     Fixups = 1 << iota // move the program counter back to the original
	FixReturn                    // correct the return address that was saved
	FixFlags                     // the instruction loaded the flag that has it stepped
)

// Verdict is what one profile says about a probe at one address. The zero
// value says nothing; Exec is set in every verdict that allows the probe.
type Verdict struct {
	Rule   *Rule   // why the probe is refused; nil where it is not
	Hazard *Hazard // nil where the instruction is executed rightly
	// Emulator is what emulates the instruction, in the kernel's terms ("jcc",
	// "tbz_tbnz"); empty where nothing does. With ExecSlot, emulation is tried
	// first and the slot used where memory protection makes it fail.
	Emulator string
	Culprit  uint64 // address of what stands in the way; 0 where the rule speaks of the instruction itself
	MovedTo  uint64 // where the probe is really put; 0 means where it was asked for
	Instead  uint64 // an address near by that the same rules accept; 0 where none is known
	Exec     Exec
	Boost    bool // the copy may end in a jump back
	Boosted  bool // and does: a kernel with CONFIG_PREEMPTION never uses the boost
	// Depends says that a kernel decides while it boots, by the CPU, what
	// stands there: on another one the answer is another.
	Depends bool
	Fixups  Fixups
	// Scratch is the general register, by its number, through which the copy
	// addresses an operand relative to the program counter; 0 where there is
	// none. Register 0 is never used.
	Scratch uint8
	Notes   Notes
}

// OK reports whether the probe is allowed.
func (v *Verdict) OK() bool { return v.Rule == nil }

// Refuse returns the verdict that rule r forbids the probe.
func Refuse(r *Rule) Verdict { return Verdict{Rule: r} }
