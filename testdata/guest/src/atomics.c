#include "guest.h"

long add_many(long *sum, long times)
{
	long n = 0;

	for (; n < times; n++)
		__atomic_fetch_add(sum, 1, __ATOMIC_SEQ_CST);
	return n;
}

long add_locked(long *lock, long *sum, long times)
{
	long n = 0;

	for (; n < times; n++) {
		long none = 0;

		while (!__atomic_compare_exchange_n(lock, &none, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			none = 0;
		*(volatile long *)sum += 1;
		__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
	}
	return n;
}

void _start(void)
{
}
