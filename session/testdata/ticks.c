// It loads libraries and then looks at the clock ten thousand times a second. At SIGUSR1 it
// prints the longest time between two looks since the last, in microseconds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t end, begin;

static void on_term(int s) { end = 1; }
static void on_usr1(int s) { begin = 1; }

static long long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
	signal(SIGTERM, on_term);
	signal(SIGUSR1, on_usr1);
	for (int i = 1; i < argc; i++)
		if (!dlopen(argv[i], RTLD_NOW)) {
			puts(dlerror());
			return 1;
		}
	puts("ready");
	fflush(stdout);
	long long longest = 0;
	for (long long last = now(), t; !end; last = t) {
		nanosleep(&(struct timespec){0, 100000}, 0);
		t = now();
		if (t - last > longest)
			longest = t - last;
		if (begin) {
			printf("%lld\n", longest / 1000);
			fflush(stdout);
			begin = longest = 0;
			t = now();
		}
	}
	return 0;
}
