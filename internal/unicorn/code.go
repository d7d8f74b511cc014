//go:build unicorn

package unicorn

// #include "shim.h"
import "C"

import "unsafe"

// HookCode has f, which is the same for all, called before every execution
// of the instruction at addr, by a hook that is there for this instruction only.
// It must not call Go, and runs must not end for their budget: version 2.1.1 goes
// on wrongly from a block that has a hook. Nothing in the guest's memory shows a
// hook, and each makes all others slower: it is what probes are measured against.
func (e *Engine) HookCode(addr uint64, f func(addr uint64)) error {
	e.onCode = f
	if err := C.xol_hook_code(e.uc, C.uint64_t(addr), e.self()); err != 0 {
		return Error(err)
	}
	return nil
}

//export xolCode
func xolCode(self unsafe.Pointer, addr C.uint64_t) {
	e := (*Engine)(self)
	if e.stop.kind == C.XOL_STOP_NONE { // else the instruction is not executed
		e.onCode(uint64(addr))
	}
}

// ReadOne reads a register with the engine's number id, of at most 8 bytes.
func (e *Engine) ReadOne(id int32) (uint64, error) {
	v := &e.stop.early[0] // not on Go's heap
	if err := C.uc_reg_read(e.uc, C.int(id), unsafe.Pointer(v)); err != 0 {
		return 0, Error(err)
	}
	return uint64(*v), nil
}
