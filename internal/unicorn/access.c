//go:build unicorn

#include "access.h"

static void on_access(uc_engine *uc, uc_mem_type type, uint64_t address, int size, int64_t value, void *data)
{
	struct xol_accesses *a = data;
	struct xol_access *r;

	if (!a->on || a->count++ >= XOL_ACCESS_ROOM)
		return;
	r = &a->list[a->count - 1];
	r->address = address;
	r->size = size;
	r->write = type == UC_MEM_WRITE;
	if (r->write && size <= XOL_ACCESS_BYTES)
		uc_mem_read(uc, address, r->old, size);
}

uc_err xol_accesses_observe(uc_engine *uc, struct xol_accesses *a, bool on)
{
	uc_hook hook = a->hook;

	if (on == (hook != 0))
		return UC_ERR_OK;
	a->hook = 0;
	if (!on)
		return uc_hook_del(uc, hook);
	return uc_hook_add(uc, &a->hook, UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, (void *)on_access, a, 1, 0);
}
