//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package session

import (
	"os"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"xol/instrument"
	"xol/machine"
)

// counters are counts in memory that a process and its children share with us.
type counters []byte

// openCounters maps the memory of counters. The file is closed.
func openCounters(size uint64, f *os.File) (counters, error) {
	defer f.Close()
	words, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return words, nil
}

// load returns the word at an offset.
func (c counters) load(off uint64) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&c[off])))
}

// tally is what all processes that have a layout have counted.
type tally struct {
	machine.Range                  // of the counters, in the layout
	live          map[int]counters // by the number of the placement
	ended         []uint64         // counts of processes that are gone; nil of none
	// fixed are corrections of counters, which the tracer makes where a thread leaves a
	// copy or comes into it.
	fixed map[uint64][]instrument.Correction
}

// end adds up what a placement has counted that no process has any more.
func (t *tally) end(number int) error {
	c := t.live[number]
	if c == nil {
		return nil
	}
	delete(t.live, number)
	if t.ended == nil {
		t.ended = make([]uint64, len(c)/counterSize)
	}
	for i := range t.ended {
		t.ended[i] += c.load(counterSize * uint64(i))
	}
	return os.NewSyscallError("munmap", unix.Munmap(c))
}

// counterSize is that of a counter in bytes.
const counterSize = 8

// word returns the sum of the words at an address of the layout.
func (t *tally) word(addr uint64) (n uint64) {
	off := addr - t.Lo
	if t.ended != nil {
		n = t.ended[off/counterSize]
	}
	for _, c := range t.live {
		n += c.load(off)
	}
	return n
}

// count returns how often a step of the run with a counter has been executed.
func (t *tally) count(addr uint64, step int) uint64 {
	n := t.word(addr)
	for _, fix := range t.fixed[addr] {
		if fix.First <= step && step <= fix.Last {
			n += uint64(fix.N)
		}
	}
	return n
}

// correct notes by what counts are wrong.
func (t *tally) correct(fix *instrument.Correction) {
	list := t.fixed[fix.Counter]
	i := slices.IndexFunc(list, func(f instrument.Correction) bool { return f.First == fix.First && f.Last == fix.Last })
	if i >= 0 {
		list[i].N += fix.N
		return
	}
	t.fixed[fix.Counter] = append(list, *fix)
}
