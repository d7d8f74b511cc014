//go:build unicorn

package unicorn

/*
#include <stdlib.h>
#include "watch.h"
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Transfer is a transfer of control that is not to the next instruction.
type Transfer struct{ From, To uint64 }

// transferRoom is the number of transfers that are recorded until Go returns.
const transferRoom = 4096

var errMemory = errors.New("unicorn: out of memory")

// Watch has Go stop before every block that has not been allowed, and count
// the instructions that start: one by one or, which is faster, all those of a
// block where it starts. It must come before anything runs, and once. align is
// that of instructions, in bytes. A watched Engine must not use Run: with a
// number of instructions to run, the engine would drop all that it translated.
func (e *Engine) Watch(align int, everyInstruction bool) error {
	w := (*C.struct_xol_watch)(C.calloc(1, C.sizeof_struct_xol_watch))
	e.watch, e.refused = w, map[uint64]C.uc_hook{}
	w.stop, w.align, w.room = e.stop, C.uint32_t(align), transferRoom
	if err := C.xol_watch_open(e.uc, w); err != 0 {
		return Error(err)
	}
	return e.CountEach(everyInstruction)
}

// CountEach has Go count instructions one by one, or those of a block at once, in
// code that is translated from now on. What has been translated is for the caller to
// remove.
func (e *Engine) CountEach(on bool) error {
	if err := C.xol_watch_each(e.uc, e.watch, C.bool(on)); err != 0 {
		return Error(err)
	}
	return nil
}

// Allow lets the block at addr run, which is size bytes long to the engine and
// starts with instructions of these lengths, with Branches added where they may go
// elsewhere. Where a refused one follows, they end before it.
func (e *Engine) Allow(addr, size uint64, lengths []uint8) error {
	e.translated += blockCost + instructionCost*len(lengths)
	if !C.xol_watch_allow(e.watch, C.uint64_t(addr), C.uint64_t(size), (*C.uint8_t)(unsafe.SliceData(lengths)), C.size_t(len(lengths))) {
		return errMemory
	}
	return nil
}

// Branches is added to the lengths of instructions that do not always go on to the
// next one. A trace takes any other that runs again for one that is repeated.
const Branches = 0x80

// Refuse has Go stop before the instruction at addr from now on.
func (e *Engine) Refuse(addr uint64) error {
	if _, ok := e.refused[addr]; ok {
		return nil
	}
	var hook C.uc_hook
	if err := C.xol_watch_refuse(e.uc, e.watch, C.uint64_t(addr), &hook); err != 0 {
		return Error(err)
	}
	e.refused[addr] = hook
	return e.removeCache(addr, addr+1)
}

// forget forgets what was allowed or refused in [begin, end).
func (e *Engine) forget(begin, end uint64) error {
	C.xol_watch_forget(e.watch, C.uint64_t(begin), C.uint64_t(end))
	for addr, hook := range e.refused {
		if addr >= end || addr+maxInstruction <= begin {
			continue
		}
		if err := C.uc_hook_del(e.uc, hook); err != 0 {
			return Error(err)
		}
		delete(e.refused, addr)
	}
	return nil
}

// maxInstruction is the length of the longest instruction, in bytes.
const maxInstruction = 15

// Go executes from pc until something stops it: ExitAddress, an exception, or
// what is watched. It starts at most budget instructions. The registers are
// written before, where write is set, and read after.
func (e *Engine) Go(r *Registers, write bool, pc, budget uint64) (stop Stop, number uint32, err error) {
	if err := e.makeRoom(); err != nil {
		return 0, 0, err
	}
	e.watch.budget = C.uint64_t(budget)
	e.depth++
	defer func() { e.depth-- }()
	code := C.xol_go(e.uc, r.regs, C.bool(write), e.stop, C.uint64_t(pc))
	if code != 0 {
		err = Error(code)
	}
	if p := e.panicked; p != nil {
		e.panicked = nil
		panic(p)
	}
	return Stop(e.stop.kind), uint32(e.stop.number), err
}

// What the engine translates is counted at more than it takes, in bytes: it
// cannot be asked, and crashes where its buffer is full. What it drops leaves no
// room there. The block at ExitAddress is translated anew in every run.
const (
	blockCost       = 512
	instructionCost = 512
	mostTranslated  = bufferSize / 2
	mostInHandler   = bufferSize * 7 / 8
)

// ErrRoom: a handler runs more code than the engine has room for.
var ErrRoom = errors.New("unicorn: no room for the code that a handler runs")

// makeRoom has the engine start with an empty buffer before it is full. Inside a
// handler it must not: the engine is in the midst of what the buffer holds.
func (e *Engine) makeRoom() error {
	e.translated += blockCost
	switch {
	case e.depth > 0 && e.translated < mostInHandler, e.translated < mostTranslated:
		return nil
	case e.depth > 0:
		return ErrRoom
	}
	e.translated = 0
	C.xol_watch_forget_all(e.watch)
	if err := C.xol_flush_blocks(e.uc); err != 0 {
		return Error(err)
	}
	return nil
}

// Budget returns what Go left of its budget.
func (e *Engine) Budget() uint64 { return uint64(e.watch.budget) }

// Block returns the block or instruction before which Go stopped. The size
// of a block is in bytes.
func (e *Engine) Block() (addr, size uint64) { return uint64(e.watch.address), uint64(e.watch.size) }

// GoUnwatched is Go for code of the host's own, which ends in a trap.
func (e *Engine) GoUnwatched(r *Registers, pc uint64) (stop Stop, number uint32, err error) {
	handler := e.stop.handler
	e.watch.off, e.stop.handler = true, 0
	defer func() { e.watch.off, e.stop.handler = false, handler }()
	return e.Go(r, true, pc, 0)
}

// Trace has transfers recorded, or not. It needs a Watch of every instruction.
func (e *Engine) Trace(on bool) { e.watch.trace = C.bool(on) }

// Jumped notes that the host has the program go on elsewhere than after the
// instruction at from.
func (e *Engine) Jumped(from uint64) { e.watch.last, e.watch.next = C.uint64_t(from), 0 }

// Transfers returns the recorded transfers, in the order in which they happened.
// The slice is valid until the next run.
func (e *Engine) Transfers() []Transfer {
	recorded := unsafe.Slice((*Transfer)(unsafe.Pointer(e.watch.transfers)), int(e.watch.count))
	e.watch.count = 0
	return recorded
}

// Write sets the engine's registers.
func (e *Engine) Write(r *Registers) error {
	if err := C.uc_reg_write_batch(e.uc, r.regs.ids, r.regs.values, r.regs.count); err != 0 {
		return Error(err)
	}
	return nil
}

// Read reads the engine's registers.
func (e *Engine) Read(r *Registers) error {
	if err := C.uc_reg_read_batch(e.uc, r.regs.ids, r.regs.values, r.regs.count); err != 0 {
		return Error(err)
	}
	return nil
}

// Context returns the state of the engine's CPU as it lies in its memory, which
// differs from version to version. What is changed there takes effect with
// SetContext. The slice is valid until Close.
func (e *Engine) Context() ([]byte, error) {
	if e.context == nil {
		if err := C.uc_context_alloc(e.uc, &e.context); err != 0 {
			return nil, Error(err)
		}
	}
	if err := C.uc_context_save(e.uc, e.context); err != 0 {
		return nil, Error(err)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(e.context)), int(C.uc_context_size(e.uc))), nil
}

// SetContext sets the state that Context returned.
func (e *Engine) SetContext() error {
	if err := C.uc_context_restore(e.uc, e.context); err != 0 {
		return Error(err)
	}
	return nil
}
