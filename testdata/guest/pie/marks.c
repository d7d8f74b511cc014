// What user programs have that others do not: a marker with a semaphore, a
// breakpoint and a system call of their own. Nothing here needs a library.

#include <stdint.h>

#if defined(__x86_64__)
#define NOP ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00"
#define TRAP "int3"
#define SYSCALL(result) asm volatile("syscall" : "=a"(result) : "a"(57) : "rcx", "r11", "memory")
#elif defined(__aarch64__)
#define NOP "nop"
#define TRAP "brk #1"
#define SYSCALL(result)                                  \
	do {                                             \
		register long x0 asm("x0");              \
		register long x8 asm("x8") = 220;        \
		asm volatile("svc #0" : "=r"(x0) : "r"(x8) : "memory"); \
		(result) = x0;                           \
	} while (0)
#else
#define NOP "nop"
#define TRAP "trap"
#define SYSCALL(result)                                  \
	do {                                             \
		register long r3 asm("r3");              \
		register long r0 asm("r0") = 120;        \
		asm volatile("sc" : "=r"(r3) : "r"(r0) : "memory", "cr0", "ctr"); \
		(result) = r3;                           \
	} while (0)
#endif

volatile uint16_t semaphore __attribute__((section(".probes"))) = 0;
volatile long calls = 1000;

// It keeps what it needs below the stack pointer, where the ABI has a red zone.
__attribute__((noinline)) long marked(long n)
{
	volatile long a = n, b = 3 * n;
	long sum = 0;

	for (long i = 0; i < n; i++) {
		asm volatile(".globl mark_site\nmark_site: " NOP);
		sum += a + b + (semaphore ? 1000000 : 0);
	}
	return sum;
}

__attribute__((noinline)) long count_call(long by)
{
	calls += by;
	return calls;
}

__attribute__((noinline)) long trapping(long n)
{
	asm volatile(".globl own_trap\nown_trap: " TRAP);
	return n + 1;
}

__attribute__((noinline)) long forking(long n)
{
	long result;

	SYSCALL(result);
	return n + result;
}

__attribute__((noinline)) long fork_twice(long n)
{
	return forking(n) + count_call(1);
}
