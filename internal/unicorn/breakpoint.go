//go:build unicorn

package unicorn

// #include "watch.h"
import "C"

import "unsafe"

// Early is how many registers a Handler gets without reading them.
const Early = C.XOL_EARLY

// Handler deals with a breakpoint or a call while Go goes on. It gets the values of
// the registers that HandleBreakpoints named, of which the first is the program
// counter; that it may set. It may read and write other registers, change code and
// call Go once more. Where it returns false, Go stops as it does at any exception.
type Handler func(early *[Early]uint64) (handled bool)

// HandleBreakpoints has h called for every exception with that number. ids are the
// engine's numbers of registers, the first that of the program counter. The engine
// must be watched.
func (e *Engine) HandleBreakpoints(number uint32, ids [Early]int32, h Handler) {
	e.onBreakpoint = h
	for i, id := range ids {
		e.stop.ids[i] = C.int(id)
	}
	e.stop.breakpoint = C.uint32_t(number)
	e.stop.handler = e.self()
}

// HandleCalls has h called for every block that starts at an address in
// [begin, end), before its first instruction: that is how the guest calls the
// host. It takes less time than a breakpoint, for the engine does not leave the code
// unless h sets the program counter: where it calls Go or writes registers, it has
// to. HandleBreakpoints must come first.
func (e *Engine) HandleCalls(begin, end uint64, h Handler) {
	e.onCall = h
	e.stop.gates, e.stop.gates_size = C.uint64_t(begin), C.uint64_t(end-begin)
}

//export xolBreakpoint
func xolBreakpoint(self unsafe.Pointer) C.bool {
	e := (*Engine)(self)
	return C.bool(e.handle(e.onBreakpoint))
}

//export xolCall
func xolCall(self unsafe.Pointer) C.bool {
	e := (*Engine)(self)
	return C.bool(e.handle(e.onCall))
}

// handle keeps what a run inside the handler would change. A panic of the handler
// must not unwind the engine: Go goes on with it.
func (e *Engine) handle(h Handler) (handled bool) {
	kind, budget, last, next := e.stop.kind, e.watch.budget, e.watch.last, e.watch.next
	defer func() {
		if p := recover(); p != nil {
			e.panicked, handled = p, false
		}
	}()
	if !h((*[Early]uint64)(unsafe.Pointer(&e.stop.early))) {
		return false
	}
	if e.stop.kind != kind && !e.forgetStop() {
		return false
	}
	e.stop.kind, e.watch.budget, e.watch.last, e.watch.next = kind, budget, last, next
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
