// Calls a function as often as the argument says, and prints nanoseconds per call.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile long sink;

__attribute__((noinline)) long target(long x) {
	if (x & 1)
		return x + sink;
	return x ^ 0x55;
}

int main(int argc, char **argv) {
	long n = argc > 1 ? atol(argv[1]) : 0, x = 0;
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (long i = 0; i < n; i++)
		x = target(x + i);
	clock_gettime(CLOCK_MONOTONIC, &b);
	sink = x;
	printf("%.3f\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / n);
	return 0;
}
