//go:build unicorn

#include "shim.h"
#ifdef __GLIBC__ // which the headers there tell
#include <malloc.h>
#endif
#include "_cgo_export.h"

// Reads what the handler gets, from the register at index first on.
static bool read_early(uc_engine *uc, struct xol_stop *stop, int first)
{
	for (int i = first; i < XOL_EARLY; i++)
		if (uc_reg_read(uc, stop->ids[i], &stop->early[i]))
			return false;
	return true;
}

static bool write_pc(uc_engine *uc, struct xol_stop *stop)
{
	return !uc_reg_write(uc, stop->ids[0], &stop->early[0]);
}

// Lets the host deal with a breakpoint while the run goes on.
static bool handled(uc_engine *uc, struct xol_stop *stop)
{
	return read_early(uc, stop, 0) && xolBreakpoint((void *)stop->handler) && write_pc(uc, stop);
}

// Lets the host deal with a call. To write the program counter leaves the block.
void xol_called(uc_engine *uc, struct xol_stop *stop, uint64_t address)
{
	stop->early[0] = address;
	if (read_early(uc, stop, 1) && xolCall((void *)stop->handler) &&
	    (stop->early[0] == address || write_pc(uc, stop)))
		return;
	stop->kind = XOL_STOP_TRAP;
	stop->number = stop->breakpoint;
	uc_emu_stop(uc);
}

static void on_trap(uc_engine *uc, uint32_t number, void *data)
{
	struct xol_stop *stop = data;

	if (stop->kind != XOL_STOP_NONE) { // after what has stopped the run
		uc_emu_stop(uc);
		return;
	}
	if (stop->handler && number == stop->breakpoint && handled(uc, stop))
		return;
	stop->kind = XOL_STOP_TRAP;
	stop->number = number;
	uc_emu_stop(uc);
}

static bool on_invalid(uc_engine *uc, void *data)
{
	struct xol_stop *stop = data;

	stop->kind = XOL_STOP_INVALID;
	return false;
}

static void on_syscall(uc_engine *uc, void *data)
{
	struct xol_stop *stop = data;

	stop->kind = XOL_STOP_SYSCALL;
	uc_emu_stop(uc);
}

static bool on_tlb_fill(uc_engine *uc, uint64_t va, uc_mem_type type,
			uc_tlb_entry *entry, void *data)
{
	struct xolTranslate_return r = xolTranslate(data, va, type);

	entry->paddr = r.r0;
	entry->perms = r.r1;
	return r.r2;
}

static uc_err add_hooks(uc_engine *uc, int arch, struct xol_stop *stop,
			uintptr_t handle)
{
	uc_hook hook;
	uc_err err;

	err = uc_hook_add(uc, &hook, UC_HOOK_TLB_FILL, (void *)on_tlb_fill,
			  (void *)handle, 1, 0);
	if (!err)
		err = uc_hook_add(uc, &hook, UC_HOOK_INTR, (void *)on_trap, stop, 1, 0);
	if (!err)
		err = uc_hook_add(uc, &hook, UC_HOOK_INSN_INVALID,
				  (void *)on_invalid, stop, 1, 0);
	if (!err && arch == UC_ARCH_X86)
		err = uc_hook_add(uc, &hook, UC_HOOK_INSN, (void *)on_syscall,
				  stop, 1, 0, UC_X86_INS_SYSCALL);
	return err;
}

// An engine takes half a megabyte for its table of translations, and leaves some
// bytes of others for good when it closes. On glibc's heap those keep the next
// engine from using the room again: it has to be mapped.
static void keep_off_heap(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
#endif
}

uc_err xol_open(int arch, int mode, int cpu_model, uint32_t buffer_size, uint64_t exit_address,
		uint64_t exit_physical, struct xol_stop *stop, uintptr_t handle, uc_engine **out)
{
	uc_engine *uc;
	uc_err err;

	keep_off_heap();
	err = uc_open(arch, mode, &uc);
	if (err)
		return err;
	if (cpu_model >= 0)
		err = uc_ctl_set_cpu_model(uc, cpu_model);
	if (!err)
		err = uc_ctl_set_tcg_buffer_size(uc, buffer_size);
	if (!err)
		err = uc_ctl_tlb_mode(uc, UC_TLB_VIRTUAL);
	if (!err)
		err = uc_ctl_exits_enable(uc);
	if (!err)
		err = uc_ctl_set_exits(uc, &exit_address, 1);
	if (!err)
		err = uc_mem_map(uc, exit_physical, 4096, UC_PROT_ALL);
	if (!err)
		err = add_hooks(uc, arch, stop, handle);
	if (err) {
		uc_close(uc);
		return err;
	}
	*out = uc;
	return UC_ERR_OK;
}

static uc_err run_inside(uc_engine *uc, struct xol_stop *stop, int pc_id,
			 uint64_t lo, uint64_t hi, size_t burst, size_t bursts)
{
	uint64_t pc;
	uc_err err;

	for (;;) {
		err = uc_reg_read(uc, pc_id, &pc);
		if (err)
			return err;
		if (stop->kind != XOL_STOP_NONE || pc - lo >= hi - lo)
			return UC_ERR_OK;
		if (bursts-- == 0) {
			stop->kind = XOL_STOP_STEPS;
			return UC_ERR_OK;
		}
		stop->left = bursts;
		err = uc_emu_start(uc, pc, 0, 0, burst);
		if (err)
			return err;
	}
}

uc_err xol_run(uc_engine *uc, struct xol_regs *regs, struct xol_stop *stop,
	       int pc_id, uint64_t lo, uint64_t hi, size_t burst,
	       size_t bursts)
{
	uc_err err, read_err;

	stop->kind = XOL_STOP_NONE;
	err = uc_reg_write_batch(uc, regs->ids, regs->values, regs->count);
	if (err)
		return err;
	err = run_inside(uc, stop, pc_id, lo, hi, burst, bursts);
	read_err = uc_reg_read_batch(uc, regs->ids, regs->values, regs->count);
	return err ? err : read_err;
}

static void on_code(uc_engine *uc, uint64_t address, uint32_t size, void *data)
{
	xolCode(data, address);
}

uc_err xol_hook_code(uc_engine *uc, uint64_t address, uintptr_t handle)
{
	uc_hook hook;

	return uc_hook_add(uc, &hook, UC_HOOK_CODE, (void *)on_code, (void *)handle, address, address);
}

uc_err xol_remove_cache(uc_engine *uc, uint64_t begin, uint64_t end)
{
	return uc_ctl_remove_cache(uc, begin, end);
}

uc_err xol_flush_tlb(uc_engine *uc)
{
	return uc_ctl_flush_tlb(uc);
}

uc_err xol_flush_blocks(uc_engine *uc)
{
	return uc_ctl_flush_tb(uc);
}
