//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"xol/instrument"
	"xol/machine"
)

// counters are counts in memory that a process and its children share with us.
type counters struct {
	machine.Range
	words []byte // of the memory
	// fixed are corrections, which the tracer makes where a thread leaves a copy or comes
	// into it.
	mutex sync.Mutex
	fixed map[fixKey]int64
}

// fixKey is a part of a run, by its counter and steps.
type fixKey struct {
	counter     uint64
	first, last int
}

// correct notes by what counts are wrong.
func (c *counters) correct(fix instrument.Correction) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.fixed[fixKey{fix.Counter, fix.First, fix.Last}] += fix.N
}

// openCounters maps the memory of counters. The file is closed.
func openCounters(r machine.Range, f *os.File) (*counters, error) {
	defer f.Close()
	words, err := unix.Mmap(int(f.Fd()), 0, int(r.Hi-r.Lo), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return &counters{Range: r, words: words, fixed: map[fixKey]int64{}}, nil
}

// word returns the word at an address of the process.
func (c *counters) word(addr uint64) *uint64 {
	return (*uint64)(unsafe.Pointer(&c.words[addr-c.Lo]))
}

// count returns how often a step of the run with a counter has been executed.
func (c *counters) count(addr uint64, step int) uint64 {
	n := atomic.LoadUint64(c.word(addr))
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for key, fix := range c.fixed {
		if key.counter == addr && key.first <= step && step <= key.last {
			n += uint64(fix)
		}
	}
	return n
}
