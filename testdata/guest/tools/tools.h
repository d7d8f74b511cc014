// What the tools share: system calls, and what a library would have.

typedef unsigned long word;

#define NOINLINE __attribute__((noinline, noclone))

// System calls [arch/*/entry/syscalls of Linux]. An error is a negative number.
#if defined(__x86_64__)
enum { WRITE = 1, MMAP = 9, BRK = 12, EXIT = 60 };

static long call(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;

	__asm__ volatile("syscall" : "+a"(n) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return n;
}
#elif defined(__aarch64__)
enum { WRITE = 64, MMAP = 222, BRK = 214, EXIT = 93 };

static long call(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}
#elif defined(__powerpc64__)
enum { WRITE = 4, MMAP = 90, BRK = 45, EXIT = 1 };

static long call(long n, long a, long b, long c, long d, long e, long f)
{
	register long r0 __asm__("r0") = n, r3 __asm__("r3") = a, r4 __asm__("r4") = b, r5 __asm__("r5") = c;
	register long r6 __asm__("r6") = d, r7 __asm__("r7") = e, r8 __asm__("r8") = f;

	// An error is positive, with the summary overflow set.
	__asm__ volatile("sc\n\tbns+ 1f\n\tneg 3,3\n1:"
		: "+r"(r0), "+r"(r3), "+r"(r4), "+r"(r5), "+r"(r6), "+r"(r7), "+r"(r8)
		:: "r9", "r10", "r11", "r12", "cr0", "ctr", "memory");
	return r3;
}
#endif

enum { PROT_READ = 1, PROT_WRITE = 2, MAP_PRIVATE = 2, MAP_ANONYMOUS = 0x20, MAP_STACK = 0x20000 };
