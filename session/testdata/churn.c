// Threads that call 64 hot functions under a timer's signals, until SIGTERM; each result is
// compared with that of the same computation made elsewhere. "fork" as an argument has
// one more thread fork and spawn children all the time, which check as well; the path of a
// library has another one load and unload it. Exit status 0 says that nothing went wrong.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long word;

// What function n computes. The number of loops and the branches depend on x.
#define BODY(n, x) do { \
	x = x * (2 * n + 3) + n; \
	if (x & (n + 1)) \
		x ^= x >> (n % 13 + 1); \
	else \
		x += 77 * n; \
	for (word i = x & 3; i; i--) \
		x = x * 5 + i; \
} while (0)

#define FUNCTION __attribute__((noinline, noclone))

#ifdef LIBRARY

FUNCTION word stroll(word x) { BODY(9, x); return x; }
FUNCTION word stride(word x) { BODY(10, x); return stroll(x); }

#else

#define HOT(n) FUNCTION static word hot##n(word x) { BODY(n, x); return x; }
#define HOT4(a, b, c, d) HOT(a) HOT(b) HOT(c) HOT(d)
HOT4(0, 1, 2, 3) HOT4(4, 5, 6, 7) HOT4(8, 9, 10, 11) HOT4(12, 13, 14, 15)
HOT4(16, 17, 18, 19) HOT4(20, 21, 22, 23) HOT4(24, 25, 26, 27) HOT4(28, 29, 30, 31)
HOT4(32, 33, 34, 35) HOT4(36, 37, 38, 39) HOT4(40, 41, 42, 43) HOT4(44, 45, 46, 47)
HOT4(48, 49, 50, 51) HOT4(52, 53, 54, 55) HOT4(56, 57, 58, 59) HOT4(60, 61, 62, 63)

#define NAMES(a, b, c, d) hot##a, hot##b, hot##c, hot##d,
static word (*const hot[])(word) = {
	NAMES(0, 1, 2, 3) NAMES(4, 5, 6, 7) NAMES(8, 9, 10, 11) NAMES(12, 13, 14, 15)
	NAMES(16, 17, 18, 19) NAMES(20, 21, 22, 23) NAMES(24, 25, 26, 27) NAMES(28, 29, 30, 31)
	NAMES(32, 33, 34, 35) NAMES(36, 37, 38, 39) NAMES(40, 41, 42, 43) NAMES(44, 45, 46, 47)
	NAMES(48, 49, 50, 51) NAMES(52, 53, 54, 55) NAMES(56, 57, 58, 59) NAMES(60, 61, 62, 63)
};

FUNCTION static word model(word n, word x) { BODY(n, x); return x; }

// A function with an entry that another one jumps close to: there is room for a short jump
// only, to one in the padding before.
word hot_short(word), hot_shorter(word);
__asm__(".text\n.p2align 5\n.type hot_shorter, @function\nhot_shorter:\n"
	"lea 3(%rdi), %rax\njmp 1f\n.size hot_shorter, .-hot_shorter\n"
	".p2align 5\n.type hot_short, @function\nhot_short:\n"
	"mov %rdi, %rax\n1: lea 5(%rax), %rax\nret\n.size hot_short, .-hot_short\n");

static volatile sig_atomic_t ticks, done;
static long checks, forks, loads;

static void tick(int s) { (void)s; ticks++; }
static void end(int s) { (void)s; done = 1; }

static void wrong(const char *what, word n, word got) {
	fprintf(stderr, "%s %lu: %lx\n", what, n, got);
	_exit(3);
}

static word check(word n, word x) {
	word got = hot[n](x);
	if (got != model(n, x))
		wrong("hot", n, got);
	return got;
}

static void *work(void *arg) {
	word x = (word)arg;
	long n = 0;
	for (; !done; n++) {
		x = check((x ^ n) % 64, x) + n;
		if (hot_short(x) != x + 5 || hot_shorter(x) != x + 8)
			wrong("short", x, hot_short(x));
	}
	__atomic_add_fetch(&checks, n, __ATOMIC_SEQ_CST);
	return 0;
}

static void *fork_often(void *arg) {
	char *argv[] = {"true", 0};
	for (; !done; forks++) {
		pid_t pid = 0;
		int status = 0, want = 7;
		if (forks % 4 == 3) {
			want = 0;
			if (posix_spawn(&pid, "/bin/true", 0, 0, argv, environ))
				wrong("spawn", 0, 0);
		} else if (!(pid = fork())) {
			for (word n = 0; n < 64; n++)
				check(n, n * forks);
			_exit(7);
		}
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != want)
			wrong("child", pid, status);
	}
	return arg;
}

static void *load_often(void *path) {
	for (; !done; loads++) {
		void *lib = dlopen(path, RTLD_NOW);
		word (*stride)(word) = lib ? (word (*)(word))dlsym(lib, "stride") : 0;
		if (!stride)
			wrong(dlerror(), 0, 0);
		for (word x = 0; x < 50; x++)
			if (stride(x) != model(9, model(10, x)))
				wrong("library", x, stride(x));
		dlclose(lib);
	}
	return 0;
}

int main(int argc, char **argv) {
	struct sigaction a = {.sa_handler = tick, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &a, 0);
	a.sa_handler = end;
	sigaction(SIGTERM, &a, 0);
	struct itimerval it = {{0, 1000}, {0, 1000}};
	setitimer(ITIMER_REAL, &it, 0);
	pthread_t th[16];
	int n = 0;
	for (; n < 8; n++)
		pthread_create(&th[n], 0, work, (void *)(word)n);
	for (int i = 1; i < argc; i++, n++)
		if (!strcmp(argv[i], "fork"))
			pthread_create(&th[n], 0, fork_often, 0);
		else
			pthread_create(&th[n], 0, load_often, argv[i]);
	while (n--)
		pthread_join(th[n], 0);
	printf("%ld checks, %ld children, %ld loads, %d ticks\n", checks, forks, loads, (int)ticks);
	return 0;
}

#endif
