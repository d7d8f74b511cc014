// Recording what memory an engine accesses.

#ifndef XOL_UNICORN_ACCESS_H
#define XOL_UNICORN_ACCESS_H

#include <stdbool.h>
#include "shim.h"

enum { XOL_ACCESS_BYTES = 16, XOL_ACCESS_ROOM = 256 };

// An access, in the order in which an instruction makes them. The address is
// physical.
struct xol_access {
	uint64_t address;
	uint32_t size; // bytes
	uint32_t write; // 0 or 1
	uint8_t old[XOL_ACCESS_BYTES]; // what a write replaces
};

struct xol_accesses {
	bool on;
	uc_hook hook; // 0 where there is none
	uint32_t count; // may exceed the room: the others are not there
	struct xol_access list[XOL_ACCESS_ROOM];
};

// Has code that is translated from now on show its accesses, or not.
uc_err xol_accesses_observe(uc_engine *uc, struct xol_accesses *a, bool on);

#endif
