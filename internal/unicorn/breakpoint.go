//go:build unicorn

package unicorn

// #include "watch.h"
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// Early is how many registers a BreakpointHandler gets without reading them.
const Early = C.XOL_EARLY

// BreakpointHandler deals with a breakpoint while Go goes on. It gets the values
// of the registers that HandleBreakpoints named; of these it may set the first,
// the program counter. It may read and write registers, change code and call Go
// once more. Where it returns false, the breakpoint stops Go as any exception
// does.
type BreakpointHandler func(early *[Early]uint64) (handled bool)

// HandleBreakpoints has h called for every exception with that number. ids are
// the engine's numbers of registers, the first that of the program counter. The
// engine must be watched.
func (e *Engine) HandleBreakpoints(number uint32, ids [Early]int32, h BreakpointHandler) {
	e.onBreakpoint = h
	for i, id := range ids {
		e.stop.ids[i] = C.int(id)
	}
	e.stop.breakpoint = C.uint32_t(number)
	e.stop.handler = C.uintptr_t(e.self)
}

// xolBreakpoint keeps what a run inside the handler would change. A panic of the
// handler must not unwind the engine: Go goes on with it.
//
//export xolBreakpoint
func xolBreakpoint(self C.uintptr_t) (handled C.bool) {
	e := cgo.Handle(self).Value().(*Engine)
	kind, budget := e.stop.kind, e.watch.budget
	defer func() {
		if p := recover(); p != nil {
			e.panicked, handled = p, false
		}
	}()
	if !e.onBreakpoint((*[Early]uint64)(unsafe.Pointer(&e.stop.early))) {
		return false
	}
	if e.stop.kind != kind && !e.forgetStop() {
		return false
	}
	e.stop.kind, e.watch.budget = kind, budget
	return true
}

// forgetStop has the engine forget that a run inside the handler was stopped. Else
// it would stop the run around it as well. Only another run does that, here one
// that ends where it starts.
func (e *Engine) forgetStop() bool {
	e.watch.off = true
	defer func() { e.watch.off = false }()
	return C.uc_emu_start(e.uc, ExitAddress, 0, 0, 0) == C.UC_ERR_OK
}
