// Threads that call hot functions under a timer's signals, until SIGTERM. What they have
// computed is checked: exit status 0 says that nothing went wrong, and the numbers of calls
// are printed.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define THREADS 8

static volatile sig_atomic_t ticks, done;
static long calls[THREADS][8];

static void tick(int s) { (void)s; ticks++; }
static void end(int s) { (void)s; done = 1; }

#define HOT(n, body) __attribute__((noinline)) long hot##n(long x) { body; return x; }
HOT(0, x = x * 3 + 1)
HOT(1, x ^= x << 7; if (x & 1) x += 5)
HOT(2, for (int i = 0; i < 4; i++) x += i * x)
HOT(3, x = hot0(x) + hot1(x))
HOT(4, char b[32]; snprintf(b, sizeof b, "%lx", x); x = strtol(b, 0, 16) ^ 1)
HOT(5, switch (x & 7) { case 0: x += 1; break; case 1: x -= 2; break; case 2: x *= 3; break; case 3: x ^= 4; break; case 4: x = -x; break; default: x = ~x; })
HOT(6, x = x / ((x & 15) | 1))
HOT(7, void *p = malloc((x & 63) + 1); memset(p, 1, (x & 63) + 1); x += *(char *)p; free(p))

static long (*const hot[8])(long) = {hot0, hot1, hot2, hot3, hot4, hot5, hot6, hot7};

static long model(int n, long x) { // the same again, of which the compiler makes other code
	switch (n) {
	case 0: return x * 3 + 1;
	case 1: x ^= x << 7; return x & 1 ? x + 5 : x;
	case 2: for (int i = 0; i < 4; i++) x += i * x; return x;
	case 3: return model(0, x) + model(1, x);
	case 4: return (x < 0 ? x : x ^ 1);
	case 5: switch (x & 7) { case 0: return x + 1; case 1: return x - 2; case 2: return x * 3; case 3: return x ^ 4; case 4: return -x; default: return ~x; }
	case 6: return x / ((x & 15) | 1);
	default: return x + 1;
	}
}

static void *work(void *arg) {
	long t = (long)arg, x = t;
	for (unsigned i = 0; !done; i++) {
		int n = (i + t) % 8;
		x &= 0x7fffffff;
		long got = hot[n](x), want = model(n, x);
		calls[t][n]++;
		if (got != want) {
			fprintf(stderr, "hot%d(%lx) is %lx, want %lx\n", n, x, got, want);
			_exit(3);
		}
		x = got + i;
	}
	return 0;
}

int main(int argc, char **argv) {
	struct sigaction a = {.sa_handler = tick, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &a, 0);
	a.sa_handler = end;
	sigaction(SIGTERM, &a, 0);
	struct itimerval it = {{0, 1000}, {0, 1000}};
	if (argc < 2) // with an argument there are no signals
		setitimer(ITIMER_REAL, &it, 0);
	pthread_t th[THREADS];
	for (long i = 0; i < THREADS; i++)
		pthread_create(&th[i], 0, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(th[i], 0);
	for (int n = 0; n < 8; n++) {
		long sum = 0;
		for (int i = 0; i < THREADS; i++)
			sum += calls[i][n];
		printf("hot%d %ld\n", n, sum);
	}
	return 0;
}
