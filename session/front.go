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
	plan(m *mapped) ([]*instrument.Layout, error)
	// installed tells what has become of a layout, the last one that plan returned first.
	installed(i *installed) error
	// hit tells of a thread at a gate, which waits for the return. mem is the memory as the
	// program has it.
	hit(h *gateHit, mem machine.Memory) error
	// corrected tells by what counts are wrong.
	corrected(c instrument.Correction) error
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

// installed is a layout that has been put into a process, or could not be.
type installed struct {
	Index int // among those that plan returned
	Err   *sentError
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
