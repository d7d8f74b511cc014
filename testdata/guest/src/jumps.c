// Returns that skip callers: by functions as a library has them, and by the
// compiler's own.

#include "guest.h"

typedef uint64_t context[32];

int save_context(context c) __attribute__((returns_twice));
void restore_context(context c, int result) __attribute__((noreturn));

static __attribute__((noinline)) long dig(context c, long depth, long value)
{
	if (depth == 0)
		restore_context(c, value % 7 + 1);
	return dig(c, depth - 1, value + depth) + 1;
}

long unwind(long depth, long value)
{
	context c;
	volatile long rounds = 0;
	int r = save_context(c);

	if (r != 0)
		rounds += r;
	if (rounds < 10)
		dig(c, depth, value + rounds);
	return rounds * 100 + r;
}

static __attribute__((noinline)) long dig_builtin(void **place, long depth)
{
	if (depth == 0)
		__builtin_longjmp(place, 1);
	return dig_builtin(place, depth - 1) + 1;
}

long unwind_builtin(long depth, long value)
{
	void *place[5];
	volatile long result = value;

	if (__builtin_setjmp(place)) {
		result += depth;
		if (result < value + 3 * depth)
			dig_builtin(place, depth);
		return result;
	}
	dig_builtin(place, depth);
	return -1;
}
