// Package session puts probes into real programs, follows them, and takes all back.
//
// A Session starts a program or attaches to one. For each file that a process maps, the
// caller chooses places; they are planned by package instrument, and carried out with all
// threads of the process stopped, through package process. Counts are made by the program
// itself, in memory that it shares with the session, and go on without any stop; where a
// breakpoint is needed, the tracer moves the thread on.
package session

import (
	"os"
	"sync/atomic"
	"time"

	"xol/analyze"
	"xol/classify"
	"xol/image"
	"xol/machine"
)

// Action is what a probe does.
type Action uint8

// The actions.
const (
	Count Action = iota // counts its hits, in the program
	Trace               // tells Options.Hit of each hit, with the thread stopped
	Time                // measures calls of a function, in the program
)

// Probe is wanted at a place of a file.
type Probe struct {
	Addr uint64 // in the addresses of the file
	// Return puts it at the returns of the function whose entry Addr is.
	Return bool
	Action Action
	// Semaphore is the address, in the file, of a 2-byte counter that is 1 higher while the
	// probe is there, as static markers have it; 0 for none.
	Semaphore uint64
	Symbol    string // for people, as is Offset
	Offset    uint64
	Data      any // the caller's own
}

// Module is a file that a process has mapped to execute it.
type Module struct {
	Path     string // as the process has it
	Image    *image.Image
	Analysis *analyze.Analysis
	Bias     uint64 // what addresses in the process are above those in the file
	Program  bool   // it is the program itself, not a library
	PID      int

	registers *machine.File
}

// Options choose what a session does.
type Options struct {
	// Select returns the probes that are wanted in a module. It is asked once for each
	// file of each program: when that is started or attached to, executes another program,
	// or loads a library. Where two programs want the same in a library, but for Data, they
	// share its Placed.
	Select func(m *Module) ([]Probe, error)
	// Hit is told of the hits of Trace probes.
	Hit func(h *Hit)
	// Follow has children of the program probed as well.
	Follow bool
	// DryRun changes nothing: Placed tells what would be done. A program that is started
	// is killed when its libraries are there, before it does anything.
	DryRun bool
	// Guard is the command of a process that calls Guard: it traces the program, and takes
	// everything back if this process dies. nil: this process traces it.
	Guard []string
}

// Command is a program to start.
type Command struct {
	Path string
	Args []string // with the name of the program
	Env  []string // nil: that of this process
	Dir  string   // empty: that of this process
	// Files are standard input, output, error, and further ones. nil: those three of this
	// process.
	Files []*os.File
}

// Hit is a thread that has come to a Trace probe.
type Hit struct {
	Placed    *Placed
	Registers machine.Registers
	Memory    machine.Memory
	Time      time.Time
	PID, TID  int
}

// Way is how execution comes to a probe.
type Way uint8

// The ways.
const (
	None       Way = iota // it is refused
	Jump                  // by a jump
	Breakpoint            // by a breakpoint, which stops the thread
)

var wayNames = [...]string{"none", "jump", "breakpoint"}

// String returns the way in a word.
func (w Way) String() string {
	if int(w) < len(wayNames) {
		return wayNames[w]
	}
	return "invalid"
}

// Placed is what has become of a probe.
type Placed struct {
	Module  *Module // the first one of that file
	Probe   Probe
	Way     Way
	Refused *classify.Rule // nil where it is not
	Err     error          // another reason that it is not there

	index int
	timer int   // of those in its file
	laid  *laid // where it has come to be last; nil where it has not

	// Where it is counted, in all processes.
	counts []countRef
	timers []countRef    // of histograms
	told   atomic.Uint64 // hits that Options.Hit was told of
}

// Summary adds a session up.
type Summary struct {
	Probes, Jumps, Breakpoints int
	Refused                    map[string]int // by rule id, or "memory", "text"
	Hits                       uint64
	// Missed are returns of Time probes that were not measured: the calls had begun before
	// the probe was there, another function had jumped into this one, or too many other
	// calls were open: of 4,096, some are likely to be missed.
	Missed uint64
	// Lost are probes whose text has been unmapped, and not mapped again.
	Lost uint64
	// LongestStop is how long all threads of a process were stopped at a time, at most.
	LongestStop time.Duration
}
