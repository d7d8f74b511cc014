// Calls of every kind: recursion, tail calls, callbacks from a library, pointers, computed
// jumps, string instructions, a function without a frame, signals, longjmp, and the ends of
// a program. What it does is the same in each run.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION __attribute__((noinline, noclone))

static volatile long sum;
static jmp_buf back;

FUNCTION static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

FUNCTION static long even(long n);
FUNCTION static long odd(long n) { return n == 0 ? 0 : even(n - 1); } // tail calls
FUNCTION static long even(long n) { return n == 0 ? 1 : odd(n - 1); }

FUNCTION static long leaf(long x) { return x + 1; }
FUNCTION static long conditional(long x) { // a jump to another function, if x is odd
	if (x & 1)
		return leaf(x);
	return x;
}

__attribute__((cold)) FUNCTION static long rare(long x) { return x > 8 ? x : x + 2; }
FUNCTION static long parted(long x) { // some of its ends are in a part of it
	if (x == 7)
		return rare(x);
	if (x > 8) {
		rare(x);
		return -1;
	}
	return x * 3;
}

FUNCTION static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

FUNCTION static long dispatch(long x) {
	switch (x % 7) {
	case 0: return x + 3;
	case 1: return x * 5;
	case 2: return leaf(x);
	case 3: return x ^ 0x55;
	case 4: return -x;
	case 5: return fib(x % 5);
	default: return x;
	}
}

FUNCTION static long threaded(const char *code) { // computed jumps
	static const void *const to[] = {&&add, &&sub, &&twice, &&end};
	long v = 1;
	goto *to[*code++ - '0'];
add: v += 3; goto *to[*code++ - '0'];
sub: v -= 1; goto *to[*code++ - '0'];
twice: v *= 2; goto *to[*code++ - '0'];
end: return v;
}

FUNCTION static void deep(int n) {
	if (n == 0)
		longjmp(back, 1);
	deep(n - 1);
	sum++; // so that the call is one
}

FUNCTION static void caught(int s) { sum += s; }

FUNCTION static void copy(char *to, const char *from, size_t n) {
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

__attribute__((constructor)) FUNCTION static void before(void) { sum++; }
__attribute__((destructor)) FUNCTION static void after(void) { sum--; }
FUNCTION static void at_exit(void) { printf("%ld\n", sum); }

static long (*volatile pointers[])(long) = {fib, odd, even, leaf, conditional, dispatch, parted};

int main(int argc, char **argv) {
	int numbers[200];
	char text[64];
	long rounds = argc > 1 ? atol(argv[1]) : 1;
	atexit(at_exit);
	signal(SIGUSR1, caught);
	for (long r = 0; r < rounds; r++) {
		for (int i = 0; i < 200; i++)
			numbers[i] = i * 7919 % 211;
		qsort(numbers, 200, sizeof *numbers, compare);
		sum += numbers[100];
		for (long i = 0; i < 84; i++)
			sum += pointers[i % 7](i % 12);
		sum += threaded("0120213");
		if (setjmp(back) == 0)
			deep(10);
		raise(SIGUSR1);
		copy(text, "a string of thirty bytes......", 31);
		sum += strlen(text);
	}
	return 0;
}
