// Watching what an engine executes: every block is shown to the host before it
// runs for the first time, instructions are counted, and transfers recorded.

#ifndef XOL_UNICORN_WATCH_H
#define XOL_UNICORN_WATCH_H

#include "shim.h"

// A transfer of control that is not to the next instruction.
struct xol_transfer {
	uint64_t from, to;
};

#define XOL_RECENT 64

struct xol_watch {
	struct xol_stop *stop;
	bool off; // the code that runs is the host's own
	bool each; // instructions are counted one by one
	uc_hook counting; // the hook that does it
	uint32_t align, shift; // of instructions: align is 1 << shift

	uint64_t budget; // instructions that may still start
	uint64_t address, size; // of the block or instruction that stopped the run

	struct xol_page **pages; // a hash table of 1 << bits pages, by number
	struct xol_page *recent[XOL_RECENT]; // found last, by the low bits of the number
	unsigned bits;
	size_t used;

	bool trace;
	uint64_t last, next; // the last instruction, and the one after it
	struct xol_transfer *transfers;
	size_t count, room;
};

uc_err xol_watch_open(uc_engine *uc, struct xol_watch *w);

// Has instructions counted one by one, or by blocks, in code that is translated from
// now on.
uc_err xol_watch_each(uc_engine *uc, struct xol_watch *w, bool on);

void xol_watch_close(struct xol_watch *w);

// Notes that the block at address may run, size bytes long as the engine has it.
// The lengths are those of its instructions as far as they are to be counted; 0x80
// is added where execution may go elsewhere.
bool xol_watch_allow(struct xol_watch *w, uint64_t address, uint64_t size, const uint8_t *lengths,
		     size_t count);

// Forgets the blocks that have bytes in [begin, end).
void xol_watch_forget(struct xol_watch *w, uint64_t begin, uint64_t end);

// Forgets all blocks.
void xol_watch_forget_all(struct xol_watch *w);

// Has runs stop before the instruction at address.
uc_err xol_watch_refuse(uc_engine *uc, struct xol_watch *w, uint64_t address, uc_hook *hook);

// Executes from pc until something stops it. The registers are written before,
// where write is set, and read after.
uc_err xol_go(uc_engine *uc, struct xol_regs *regs, bool write, struct xol_stop *stop, uint64_t pc);

#endif
