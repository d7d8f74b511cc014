// Calls a function with a tracepoint of LTTng-UST in it: ROUNDS times CALLS. It prints the
// nanoseconds per call of the fastest round.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "ust_event.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline, noipa)) static long target(long x) {
	lttng_ust_tracepoint(xol_peers, hit, x);
	return x + 1;
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
	if (argc < 3)
		return 2;
	long calls = atol(argv[1]), rounds = atol(argv[2]), x = 0;
	double best = 1e30;
	for (long r = 0; r < rounds; r++) {
		double start = now();
		for (long i = 0; i < calls; i++)
			x = target(x + i);
		double took = now() - start;
		if (took < best)
			best = took;
	}
	printf("%.3f\n", best / calls);
	return x == 1;
}
