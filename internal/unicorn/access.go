//go:build unicorn

package unicorn

/*
#include <stdlib.h>
#include "access.h"
*/
import "C"

import (
	"errors"
	"unsafe"
)

// MemoryAccess is an access to the engine's memory.
type MemoryAccess struct {
	Addr  uint64 // physical
	Size  uint32 // bytes
	Write uint32 // 0 or 1
	Old   [16]byte
}

// ErrAccesses: more was accessed than there is room to record.
var ErrAccesses = errors.New("unicorn: an instruction accesses too much memory")

// ObserveAccesses has accesses to memory shown to RecordAccesses, by code that is
// translated from now on, which costs time at each, or no longer. What has been
// translated is for the caller to remove.
func (e *Engine) ObserveAccesses(on bool) error {
	if e.accesses == nil {
		e.accesses = (*C.struct_xol_accesses)(C.calloc(1, C.sizeof_struct_xol_accesses))
	}
	if err := C.xol_accesses_observe(e.uc, e.accesses, C.bool(on)); err != 0 {
		return Error(err)
	}
	return nil
}

// RecordAccesses starts a new record, or ends it.
func (e *Engine) RecordAccesses(on bool) {
	e.accesses.on = C.bool(on)
	if on {
		e.accesses.count = 0
	}
}

// Accesses returns the record, in order. The slice is valid until the next one.
// It returns ErrAccesses where something is missing.
func (e *Engine) Accesses() ([]MemoryAccess, error) {
	n := int(e.accesses.count)
	if n > C.XOL_ACCESS_ROOM {
		return nil, ErrAccesses
	}
	return unsafe.Slice((*MemoryAccess)(unsafe.Pointer(&e.accesses.list)), n), nil
}
