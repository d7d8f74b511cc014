// Calls that take a known time, in several threads; recursion; and calls of which some are
// left by longjmp, and so never return.
#include <pthread.h>
#include <setjmp.h>
#include <time.h>

__attribute__((noinline)) int nap(long ns) {
	struct timespec t = {0, ns};
	nanosleep(&t, 0);
	return ns & 1;
}

__attribute__((noinline)) long depth(long n) {
	volatile long sum = n;
	if (n > 0)
		sum += depth(n - 1);
	return sum + 1;
}

static jmp_buf out;

__attribute__((noinline)) int left(int n) {
	volatile int v = n;
	if (v % 2)
		longjmp(out, 1);
	return v;
}

static void *work(void *arg) {
	for (int i = 0; i < 10; i++)
		nap(1000000);
	for (int i = 0; i < 10; i++)
		depth(9);
	return arg;
}

int main(void) {
	pthread_t th[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&th[i], 0, work, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(th[i], 0);
	for (volatile int i = 0; i < 40; i++)
		if (!setjmp(out))
			left(i);
	return 0;
}
