// A program that changes an instruction of its own before it can be probed. It says when it
// has, and calls its functions when there is a line to read.
#include <stdio.h>
#include <sys/mman.h>

#define FUNCTION(name, text) \
	long name(long); \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" text "\n.size " #name ", .-" #name "\n");
FUNCTION(changed, "lea 1(%rdi), %rax\n.globl inside\ninside: add $2, %rax\nret")
FUNCTION(same, "lea 1(%rdi), %rax\nadd $2, %rax\nret")
extern char inside[];

int main(void) {
	char *page = (char *)((long)inside & -4096);
	mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
	inside[3] = 3; // is added, and not 2
	mprotect(page, 8192, PROT_READ | PROT_EXEC);
	puts("changed");
	fflush(stdout);
	getchar();
	long sum = 0;
	for (int i = 0; i < 100; i++)
		sum += changed(i) + same(i);
	printf("%ld\n", sum);
	return 0;
}
