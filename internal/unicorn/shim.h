// The C half of the binding: uc_ctl is variadic and hooks are C functions, so
// both need a wrapper that cgo can call or take the address of.

#ifndef XOL_UNICORN_SHIM_H
#define XOL_UNICORN_SHIM_H

#include <stdint.h>
#include <unicorn/unicorn.h>

// How many registers the handler of a breakpoint or call gets without asking.
#define XOL_EARLY 3

// Why the last run ended early. The engine's own error does not say which
// exception it was.
struct xol_stop {
	uint32_t kind; // enum xol_stop_kind
	uint32_t number; // of the exception
	size_t left; // of the bursts of xol_run

	uintptr_t handler; // of breakpoints and calls; 0 where breakpoints stop the run as well
	uint32_t breakpoint; // the number of their exception
	uint64_t gates, gates_size; // where calls of the host go
	int ids[XOL_EARLY]; // of the registers that the handler gets: the first is the program counter
	uint64_t early[XOL_EARLY]; // their values
};

enum xol_stop_kind {
	XOL_STOP_NONE,
	XOL_STOP_TRAP,
	XOL_STOP_INVALID,
	XOL_STOP_SYSCALL,
	XOL_STOP_STEPS,
	XOL_STOP_BLOCK, // a block that has not been allowed
	XOL_STOP_REFUSED,
	XOL_STOP_TRANSFERS, // no room for another
};

// A set of registers, and host memory for their values.
struct xol_regs {
	int count;
	int *ids;
	void **values;
};

uc_err xol_open(int arch, int mode, int cpu_model, uint32_t buffer_size, uint64_t exit_address,
		uint64_t exit_physical, struct xol_stop *stop, uintptr_t handle, uc_engine **out);
uc_err xol_run(uc_engine *uc, struct xol_regs *regs, struct xol_stop *stop,
	       int pc_id, uint64_t lo, uint64_t hi, size_t burst,
	       size_t bursts);
void xol_called(uc_engine *uc, struct xol_stop *stop, uint64_t address);
uc_err xol_hook_code(uc_engine *uc, uint64_t address, uintptr_t handle);
uc_err xol_remove_cache(uc_engine *uc, uint64_t begin, uint64_t end);
uc_err xol_flush_tlb(uc_engine *uc);
uc_err xol_flush_blocks(uc_engine *uc);

#endif
