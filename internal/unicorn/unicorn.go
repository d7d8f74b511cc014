//go:build unicorn

package unicorn

/*
#cgo LDFLAGS: -lunicorn -lpthread -lm
#include <stdlib.h>
#include "shim.h"
#include "watch.h"
#include "access.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/cgo"
	"unsafe"

	"xol/machine"
)

// Arch is an ISA and byte order.
type Arch uint8

// The ISAs.
const (
	AMD64 Arch = iota
	ARM64
	PPC64
	PPC64LE
)

// setups are the engine's parameters, and its CPU models where the default is
// not the most capable. ppc64 has to keep the default: the engine takes any
// other choice for a 32-bit CPU. The byte order of ppc64le is a bit of MSR.
var setups = [...]struct {
	arch, mode, model C.int
}{
	AMD64:   {C.UC_ARCH_X86, C.UC_MODE_64, C.UC_CPU_X86_EPYC_ROME},
	ARM64:   {C.UC_ARCH_ARM64, 0, C.UC_CPU_ARM64_MAX},
	PPC64:   {C.UC_ARCH_PPC, C.UC_MODE_PPC64 | C.UC_MODE_BIG_ENDIAN, -1},
	PPC64LE: {C.UC_ARCH_PPC, C.UC_MODE_PPC64 | C.UC_MODE_BIG_ENDIAN, -1},
}

// The engine's permissions are the machine's.
var (
	_ = [1]struct{}{}[machine.PermRead-C.UC_PROT_READ]
	_ = [1]struct{}{}[machine.PermWrite-C.UC_PROT_WRITE]
	_ = [1]struct{}{}[machine.PermExec-C.UC_PROT_EXEC]
)

// Translate maps the page at a virtual address to a physical one. Where ok is
// false the access faults.
type Translate func(va uint64, a machine.Access) (pa uint64, p machine.Perm, ok bool)

// PageSize is the granularity of Translate and Map, in bytes.
const PageSize = 4096

// The address at which a run would end is never reached: one beside code that
// runs would have that code translated again at every start. The engine still
// translates it and what lies before it at every end.
const (
	exitAddress  = ExitAddress
	exitPhysical = 0x3f_ffff_f000
)

// ExitAddress ends Go where it is reached.
const ExitAddress = 0x7fff_0000_0000_0000

// Error is an error code of the engine.
type Error int

// The codes that callers tell apart.
const (
	ErrInvalid   Error = C.UC_ERR_INSN_INVALID
	ErrException Error = C.UC_ERR_EXCEPTION // no translation, or an exception that no handler took
)

func (e Error) Error() string { return "unicorn: " + C.GoString(C.uc_strerror(C.uc_err(e))) }

// ErrVersion: the library is older than 2.1.1.
var ErrVersion = errors.New("unicorn: library too old, want 2.1.1 or newer")

// Version returns the version of the library.
func Version() (major, minor, patch int) {
	v := uint(C.uc_version(nil, nil))
	return int(v >> 24), int(v >> 16 & 0xff), int(v >> 8 & 0xff)
}

// Engine is one emulated CPU. It must not be used by two goroutines at a time.
type Engine struct {
	uc        *C.uc_engine
	stop      *C.struct_xol_stop
	translate Translate
	alive     cgo.Handle           // an Engine that is not closed leaks
	pinned    runtime.Pinner       // where callbacks find it
	watch     *C.struct_xol_watch  // nil where nothing is watched
	refused   map[uint64]C.uc_hook // the hooks of instructions that must not run
	context   *C.uc_context
	accesses  *C.struct_xol_accesses // nil where they are not observed

	onCode       func(addr uint64)
	onBreakpoint Handler
	onCall       Handler
	panicked     any // what it panicked with
	depth        int // of Go inside handlers
	// translated is the most that the engine's buffer of translated code holds,
	// in bytes.
	translated int
}

// bufferSize is that of an engine's buffer of translated code, in bytes.
const bufferSize = 256 << 20

// Open returns a new engine that translates addresses by t.
func Open(a Arch, t Translate) (*Engine, error) {
	if major, minor, patch := Version(); major<<16|minor<<8|patch < 0x20101 {
		return nil, fmt.Errorf("%w (found %d.%d.%d)", ErrVersion, major, minor, patch)
	}
	e := &Engine{translate: t}
	e.stop = (*C.struct_xol_stop)(C.calloc(1, C.sizeof_struct_xol_stop))
	e.alive = cgo.NewHandle(e)
	e.pinned.Pin(e)
	s := setups[a]
	if err := C.xol_open(s.arch, s.mode, s.model, bufferSize, exitAddress, exitPhysical, e.stop, e.self(), &e.uc); err != 0 {
		e.release()
		return nil, Error(err)
	}
	return e, nil
}

// Close frees the engine.
func (e *Engine) Close() error {
	if e.uc == nil {
		return nil
	}
	if e.context != nil {
		C.uc_context_free(e.context)
		e.context = nil
	}
	err := C.uc_close(e.uc)
	e.uc = nil
	e.release()
	if err != 0 {
		return Error(err)
	}
	return nil
}

func (e *Engine) release() {
	if e.watch != nil {
		C.xol_watch_close(e.watch)
	}
	C.free(unsafe.Pointer(e.accesses))
	C.free(unsafe.Pointer(e.stop))
	e.pinned.Unpin()
	e.alive.Delete()
}

// self is what callbacks get. As a number, for cgo lets no pointer through to what
// holds pointers.
func (e *Engine) self() C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(e))) }

//export xolTranslate
func xolTranslate(self unsafe.Pointer, va C.uint64_t, kind C.int) (C.uint64_t, C.uint32_t, C.bool) {
	if va-(exitAddress-PageSize) < 2*PageSize {
		return exitPhysical, C.uint32_t(machine.PermRead | machine.PermExec), true
	}
	e := (*Engine)(self)
	access := machine.AccessRead
	switch kind {
	case C.UC_MEM_WRITE:
		access = machine.AccessWrite
	case C.UC_MEM_FETCH:
		access = machine.AccessFetch
	}
	// On arm64 the engine's own pages are smaller: it asks for parts of one.
	part := uint64(va) % PageSize
	pa, perm, ok := e.translate(uint64(va)-part, access)
	return C.uint64_t(pa + part), C.uint32_t(perm), C.bool(ok)
}

// Map makes host memory the physical memory at pa. mem must stay in place, be
// aligned to PageSize and outlive the engine: it is mapped, not from Go's heap.
// The last page below 1<<38 is the engine's own.
func (e *Engine) Map(pa uint64, mem []byte) error {
	err := C.uc_mem_map_ptr(e.uc, C.uint64_t(pa), C.size_t(len(mem)), C.UC_PROT_ALL, unsafe.Pointer(&mem[0]))
	if err != 0 {
		return Error(err)
	}
	return nil
}

// RemoveCache drops what was translated from the virtual addresses
// [begin, end), which must lie in one page. It has to follow every change of
// code by the host. What was allowed or refused there is forgotten as well.
func (e *Engine) RemoveCache(begin, end uint64) error {
	if e.watch != nil {
		if err := e.forget(begin, end); err != nil {
			return err
		}
	}
	return e.removeCache(begin, end)
}

func (e *Engine) removeCache(begin, end uint64) error {
	if err := C.xol_remove_cache(e.uc, C.uint64_t(begin), C.uint64_t(end)); err != 0 {
		return Error(err)
	}
	return nil
}

// FlushTLB drops all translations of addresses.
func (e *Engine) FlushTLB() error {
	if err := C.xol_flush_tlb(e.uc); err != 0 {
		return Error(err)
	}
	return nil
}

// Registers is a set of registers with memory for their values.
type Registers struct {
	regs   *C.struct_xol_regs
	values []byte
}

// registerSize holds the widest register that is read whole, in bytes.
const registerSize = 16

// NewRegisters returns memory for the registers with the engine's numbers ids.
func NewRegisters(ids []int32) *Registers {
	n := len(ids)
	r := (*C.struct_xol_regs)(C.calloc(1, C.sizeof_struct_xol_regs))
	r.count = C.int(n)
	r.ids = (*C.int)(C.calloc(C.size_t(n), C.sizeof_int))
	r.values = (*unsafe.Pointer)(C.calloc(C.size_t(n), C.size_t(unsafe.Sizeof(uintptr(0)))))
	block := C.calloc(C.size_t(n), registerSize)
	copy(unsafe.Slice((*int32)(unsafe.Pointer(r.ids)), n), ids)
	for i := range n {
		unsafe.Slice(r.values, n)[i] = unsafe.Add(block, i*registerSize)
	}
	return &Registers{r, unsafe.Slice((*byte)(block), n*registerSize)}
}

// Free frees the memory.
func (r *Registers) Free() {
	C.free(unsafe.Pointer(unsafe.SliceData(r.values)))
	C.free(unsafe.Pointer(r.regs.values))
	C.free(unsafe.Pointer(r.regs.ids))
	C.free(unsafe.Pointer(r.regs))
}

// Bytes returns the 16 bytes of memory of the i-th register, in the host's
// byte order. Narrower registers use the first bytes.
func (r *Registers) Bytes(i int) *[registerSize]byte {
	return (*[registerSize]byte)(r.values[i*registerSize:])
}

// Word returns the memory of the i-th register as one word.
func (r *Registers) Word(i int) *uint64 {
	return (*uint64)(unsafe.Pointer(&r.values[i*registerSize]))
}

// Stop is why a run ended inside its range.
type Stop uint8

// The reasons.
const (
	StopNone    Stop = C.XOL_STOP_NONE
	StopTrap    Stop = C.XOL_STOP_TRAP    // an exception, with its number
	StopInvalid Stop = C.XOL_STOP_INVALID // not an instruction for the engine
	StopSyscall Stop = C.XOL_STOP_SYSCALL // amd64 syscall
	StopSteps   Stop = C.XOL_STOP_STEPS   // all bursts are done, or the budget used up

	// Only where an Engine is watched:
	StopBlock     Stop = C.XOL_STOP_BLOCK     // a block that has not been allowed
	StopRefused   Stop = C.XOL_STOP_REFUSED   // an instruction that must not run
	StopTransfers Stop = C.XOL_STOP_TRANSFERS // no room to record another transfer
)

// Run writes the registers, executes instructions while the program counter is
// in [lo, hi), and reads the registers. pc is the engine's number of the program
// counter. The range is checked after every burst instructions, at most bursts
// times: code that may leave it to anywhere needs bursts of 1. An exception
// stops the run: number is the engine's.
func (e *Engine) Run(r *Registers, pc int32, lo, hi uint64, burst, bursts int) (stop Stop, number uint32, err error) {
	code := C.xol_run(e.uc, r.regs, e.stop, C.int(pc), C.uint64_t(lo), C.uint64_t(hi), C.size_t(burst), C.size_t(bursts))
	if code != 0 {
		err = Error(code)
	}
	return Stop(e.stop.kind), uint32(e.stop.number), err
}

// Left returns how many bursts the last Run, which began at least one, had left.
func (e *Engine) Left() int { return int(e.stop.left) }
