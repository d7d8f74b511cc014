//go:build unicorn

#include <stdlib.h>
#include <string.h>
#include "watch.h"

enum {
	page_bits = 12,
	page_size = 1 << page_bits,
	longest_block = page_size + 15, // bytes; a block may go on into another page
	branches = 0x80, // beside a length
};

// What is known of the blocks that start in a page of code, and of the
// instructions in them, by their offset in units of the alignment.
struct xol_page {
	uint64_t number;
	uint32_t longest; // bytes of the longest block
	uint8_t *lengths; // of instructions
	struct {
		uint16_t bytes, instructions;
	} blocks[];
};

static size_t bucket(const struct xol_watch *w, uint64_t number)
{
	return number * 0x9e3779b97f4a7c15 >> (64 - w->bits);
}

static struct xol_page **slot(const struct xol_watch *w, uint64_t number)
{
	size_t i = bucket(w, number);

	while (w->pages[i] && w->pages[i]->number != number)
		i = (i + 1) & (((size_t)1 << w->bits) - 1);
	return &w->pages[i];
}

static struct xol_page *find(struct xol_watch *w, uint64_t address)
{
	uint64_t number = address >> page_bits;
	struct xol_page **recent = &w->recent[number % XOL_RECENT];

	if (!*recent || (*recent)->number != number)
		*recent = *slot(w, number);
	return *recent;
}

static bool grow(struct xol_watch *w)
{
	struct xol_page **old = w->pages;
	size_t n = (size_t)1 << w->bits;

	if (2 * w->used < n)
		return true;
	w->pages = calloc(2 * n, sizeof(*w->pages));
	if (!w->pages) {
		w->pages = old;
		return false;
	}
	w->bits++;
	for (size_t i = 0; i < n; i++)
		if (old[i])
			*slot(w, old[i]->number) = old[i];
	free(old);
	return true;
}

static struct xol_page *make(struct xol_watch *w, uint64_t address)
{
	struct xol_page *p = find(w, address);
	size_t n = page_size / w->align;

	if (p)
		return p;
	if (!grow(w))
		return NULL;
	p = calloc(1, sizeof(*p) + n * (sizeof(p->blocks[0]) + 1));
	if (!p)
		return NULL;
	p->number = address >> page_bits;
	p->lengths = (uint8_t *)&p->blocks[n];
	*slot(w, p->number) = p;
	w->used++;
	return p;
}

static size_t offset(const struct xol_watch *w, uint64_t address)
{
	return address % page_size >> w->shift;
}

static bool note_lengths(struct xol_watch *w, uint64_t address, const uint8_t *lengths, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct xol_page *p = make(w, address);

		if (!p)
			return false;
		p->lengths[offset(w, address)] = lengths[i];
		address += lengths[i] & ~branches;
	}
	return true;
}

bool xol_watch_allow(struct xol_watch *w, uint64_t address, uint64_t size, const uint8_t *lengths,
		     size_t count)
{
	struct xol_page *p = make(w, address);

	if (!p || !note_lengths(w, address, lengths, count))
		return false;
	if (size > longest_block)
		size = longest_block;
	p->blocks[offset(w, address)].bytes = size;
	p->blocks[offset(w, address)].instructions = count;
	if (p->longest < size)
		p->longest = size;
	return true;
}

static void forget_in(struct xol_watch *w, uint64_t number, uint64_t begin, uint64_t end)
{
	struct xol_page *p = *slot(w, number);
	uint64_t page = number << page_bits;
	uint64_t first, last;

	if (!p)
		return;
	first = begin > page + p->longest ? begin - p->longest : page;
	last = end - page < page_size ? end : page + page_size;
	for (uint64_t a = first & ~(uint64_t)(w->align - 1); a < last; a += w->align)
		p->blocks[offset(w, a)].bytes = 0;
}

void xol_watch_forget(struct xol_watch *w, uint64_t begin, uint64_t end)
{
	uint64_t number = begin >> page_bits;

	forget_in(w, number - 1, begin, number << page_bits);
	for (; number <= (end - 1) >> page_bits; number++)
		forget_in(w, number, begin, end);
}

void xol_watch_forget_all(struct xol_watch *w)
{
	for (size_t i = 0; i < (size_t)1 << w->bits; i++)
		if (w->pages[i])
			memset(w->pages[i]->blocks, 0, page_size / w->align * sizeof(w->pages[i]->blocks[0]));
}

static void stop_at(uc_engine *uc, struct xol_watch *w, uint32_t kind, uint64_t address, uint64_t size)
{
	w->stop->kind = kind;
	w->address = address;
	w->size = size;
	uc_emu_stop(uc);
}

// Returns the page of a block that may run; stops before any other.
static struct xol_page *enter(uc_engine *uc, struct xol_watch *w, uint64_t address, uint32_t size)
{
	struct xol_page *p;

	if (w->off || w->stop->kind != XOL_STOP_NONE)
		return NULL;
	p = find(w, address);
	if (size > longest_block) // the engine does not know it
		size = 1;
	if (p && p->blocks[offset(w, address)].bytes >= size)
		return p;
	stop_at(uc, w, XOL_STOP_BLOCK, address, size);
	return NULL;
}

static void call(uc_engine *uc, struct xol_watch *w, uint64_t address)
{
	if (address - w->stop->gates < w->stop->gates_size)
		xol_called(uc, w->stop, address);
}

// Where instructions are not counted one by one, a block counts when it starts.
static void on_block(uc_engine *uc, uint64_t address, uint32_t size, void *data)
{
	struct xol_watch *w = data;
	struct xol_page *p = enter(uc, w, address, size);
	uint64_t n;

	if (!p || w->each)
		return;
	n = p->blocks[offset(w, address)].instructions;
	if (w->budget == 0) {
		stop_at(uc, w, XOL_STOP_STEPS, address, size);
		return;
	}
	w->budget -= n < w->budget ? n : w->budget;
	call(uc, w, address);
}

// A string instruction that is repeated does not go elsewhere.
static bool record(struct xol_watch *w, uint64_t address)
{
	struct xol_page *p = find(w, address);
	uint8_t length = p ? p->lengths[offset(w, address)] : 0;

	if (address != w->next && (address != w->last || length & branches)) {
		if (w->count == w->room)
			return false;
		w->transfers[w->count++] = (struct xol_transfer){ w->last, address };
	}
	w->last = address;
	w->next = address + (length & ~branches);
	return true;
}

static void on_code(uc_engine *uc, uint64_t address, uint32_t size, void *data)
{
	struct xol_watch *w = data;

	if (w->off || w->stop->kind != XOL_STOP_NONE)
		return;
	if (w->budget == 0) {
		stop_at(uc, w, XOL_STOP_STEPS, address, size);
		return;
	}
	if (w->trace && !record(w, address)) {
		stop_at(uc, w, XOL_STOP_TRANSFERS, address, size);
		return;
	}
	w->budget--;
	call(uc, w, address);
}

static void on_refused(uc_engine *uc, uint64_t address, uint32_t size, void *data)
{
	struct xol_watch *w = data;

	if (!w->off && w->stop->kind == XOL_STOP_NONE)
		stop_at(uc, w, XOL_STOP_REFUSED, address, size);
}

uc_err xol_watch_open(uc_engine *uc, struct xol_watch *w)
{
	uc_hook hook;

	w->shift = __builtin_ctz(w->align);
	w->bits = 6;
	w->pages = calloc((size_t)1 << w->bits, sizeof(*w->pages));
	w->transfers = calloc(w->room, sizeof(*w->transfers));
	if (!w->pages || !w->transfers)
		return UC_ERR_NOMEM;
	return uc_hook_add(uc, &hook, UC_HOOK_BLOCK, (void *)on_block, w, 1, 0);
}

uc_err xol_watch_each(uc_engine *uc, struct xol_watch *w, bool on)
{
	uc_err err;

	if (w->each == on)
		return UC_ERR_OK;
	err = on ? uc_hook_add(uc, &w->counting, UC_HOOK_CODE, (void *)on_code, w, 1, 0)
		 : uc_hook_del(uc, w->counting);
	if (!err)
		w->each = on;
	return err;
}

void xol_watch_close(struct xol_watch *w)
{
	if (w->pages)
		for (size_t i = 0; i < (size_t)1 << w->bits; i++)
			free(w->pages[i]);
	free(w->pages);
	free(w->transfers);
	free(w);
}

uc_err xol_watch_refuse(uc_engine *uc, struct xol_watch *w, uint64_t address, uc_hook *hook)
{
	return uc_hook_add(uc, hook, UC_HOOK_CODE, (void *)on_refused, w, address, address);
}

uc_err xol_go(uc_engine *uc, struct xol_regs *regs, bool write, struct xol_stop *stop, uint64_t pc)
{
	uc_err err = UC_ERR_OK, read_err;

	stop->kind = XOL_STOP_NONE;
	if (write)
		err = uc_reg_write_batch(uc, regs->ids, regs->values, regs->count);
	if (err)
		return err;
	err = uc_emu_start(uc, pc, 0, 0, 0);
	read_err = uc_reg_read_batch(uc, regs->ids, regs->values, regs->count);
	return err ? err : read_err;
}
