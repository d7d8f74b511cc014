// Calls a function by its name: so many times in a round, for so many rounds. It prints the
// nanoseconds per call of the fastest round, which is the one that least else went on in.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// What a function starts with decides what a breakpoint of the kernel costs: it emulates a
// push, has most others executed out of line, and may replace a NOP of 5 bytes by a call.
#define TARGET(name, text) \
	long name(long); \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" text "\n.size " #name ", .-" #name "\n");
#define FRAME "push %rbp\nmov %rsp, %rbp\nsub $16, %rsp\nlea 1(%rdi), %rax\nleave\nret"
TARGET(target, FRAME)
TARGET(stepped, "sub $8, %rsp\nlea 1(%rdi), %rax\nadd $8, %rsp\nret")
TARGET(nop5, ".byte 0x0f, 0x1f, 0x44, 0, 0\n" FRAME)

static struct { const char *name; long (*f)(long); } functions[] = {{"target", target}, {"stepped", stepped}, {"nop5", nop5}};

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
	if (argc < 4)
		return 2;
	long (*volatile f)(long) = 0, calls = atol(argv[2]), rounds = atol(argv[3]), x = 0;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(functions[i].name, argv[1]))
			f = functions[i].f;
	double best = 1e30;
	for (long r = 0; r < rounds; r++) {
		double start = now();
		for (long i = 0; i < calls; i++)
			x = f(x + i);
		double took = now() - start;
		if (took < best)
			best = took;
	}
	printf("%.3f\n", best / calls);
	return x == 1;
}
