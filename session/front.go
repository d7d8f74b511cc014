//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"syscall"
	"time"

	"xol/instrument"
	"xol/machine"
	"xol/process"
)

// The tracer's side of a session does what it is told, and knows how to take it back. The
// other side, its front, opens files, plans and counts. They may be two processes: what
// passes between them are plain values.

// front is what the tracer's side asks.
type front interface {
	// plan returns what is to be put into a process that has mapped files. The process
	// waits for it.
	plan(m *mapped) ([]placement, error)
	// installed tells what has become of a placement.
	installed(i *installed) error
	// gone tells that no process has a placement any more.
	gone(g *gonePlacement) error
	// hit tells of a thread at a gate, which waits for the return. mem is the memory as the
	// program has it.
	hit(h *gateHit, mem machine.Memory) error
	// stopped tells how long a process was stopped at most until now.
	stopped(longest time.Duration) error
	// corrected tells by what counts are wrong.
	corrected(c *corrected) error
	// exited tells of the end of a process.
	exited(pid int, status syscall.WaitStatus) error
}

// mapped is a process that has mapped files which have not been looked at.
type mapped struct {
	PID   int
	First bool // the first of them is the program
	New   []process.Mapping
	All   []process.Mapping
}

// placement is a layout that is wanted in a process.
type placement struct {
	Number int                // of the placement
	File   int                // that it is for: the index in mapped.New
	Layout int                // the number of the layout
	New    *instrument.Layout // the layout, where it is told for the first time
	Delta  uint64             // what addresses in the process are above those of the layout
	// Semaphores are to be raised as long as it is there.
	Semaphores []uint64
}

// corrected is by what counts of a layout are wrong.
type corrected struct {
	Layout int
	instrument.Correction
}

// gonePlacement is a placement that no process has any more.
type gonePlacement struct {
	Number   int
	Unmapped bool // its text has gone, and not the last process
}

// installed is a placement that has been put into a process, or could not be.
type installed struct {
	Number int
	Err    *sentError
	// Other are the copies, as indexes in Layout.Copies, that are left out: the text in
	// memory is not the file's there.
	Other []int
	// Counters is the file of the counters' memory, as the tracer's side has it open; -1
	// where nothing is counted.
	Counters int
}

// gateHit is a thread at a gate.
type gateHit struct {
	PID, TID int
	Number   int // of the gate
	Time     time.Time
	// Addr is the original address of the instruction, Registers the thread's.
	Addr      uint64
	Registers machine.State
}
