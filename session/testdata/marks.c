// A static marker with a semaphore, which is passed as long as somebody listens. At
// SIGTERM the program prints how often, and the semaphore.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t end;
static void on_term(int s) { end = 1; }

#ifdef LIBRARY
void passes(long *n);
#else
volatile unsigned short tick_semaphore __attribute__((section(".probes"), visibility("hidden")));

__attribute__((noinline)) void passes(long *n) {
	if (n[1]) {
		n[0] = tick_semaphore;
		return;
	}
	if (!tick_semaphore)
		return;
	__asm__ volatile(
		"990: nop\n"
		".pushsection .note.stapsdt,\"\",\"note\"\n"
		".balign 4\n"
		".4byte 992f-991f, 994f-993f, 3\n"
		"991: .asciz \"stapsdt\"\n"
		"992: .balign 4\n"
		"993: .8byte 990b, _.stapsdt.base, tick_semaphore\n"
		".asciz \"demo\"\n.asciz \"tick\"\n.asciz \"-8@%0\"\n"
		"994: .balign 4\n"
		".popsection\n"
		".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
		".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"
		"_.stapsdt.base: .space 1\n"
		".size _.stapsdt.base, 1\n"
		".popsection\n" ::"r"(n[0]));
	n[0]++;
}
#endif

#ifndef SHARED
int main(void) {
	long n[2] = {0, 0}, semaphore[2] = {0, 1};
	signal(SIGTERM, on_term);
	while (!end) {
		passes(n);
		usleep(100);
	}
	passes(semaphore);
	printf("%ld %ld\n", n[0], semaphore[0]);
	return 0;
}
#endif
