/* Prints the fields of struct pt_regs as Linux's headers lay them out: name,
   offset and size in bytes. build.sh runs it for every ISA. */
#include <asm/ptrace.h>
#include <stddef.h>
#include <stdio.h>

#define FIELD(type, member, name) \
	printf("%s\t%zu\t%zu\n", name, offsetof(struct type, member), sizeof(((struct type *)0)->member))

static void array(const char *prefix, size_t offset, size_t size, int count)
{
	for (int i = 0; i < count; i++)
		printf("%s%d\t%zu\t%zu\n", prefix, i, offset + i * size, size);
}

#define ARRAY(type, member, prefix)                          \
	array(prefix, offsetof(struct type, member),         \
	      sizeof(((struct type *)0)->member[0]),         \
	      sizeof(((struct type *)0)->member) / sizeof(((struct type *)0)->member[0]))

int main(void)
{
#if defined(__x86_64__)
#define X(name) FIELD(pt_regs, name, #name)
	X(r15); X(r14); X(r13); X(r12); X(rbp); X(rbx); X(r11); X(r10); X(r9); X(r8);
	X(rax); X(rcx); X(rdx); X(rsi); X(rdi); X(orig_rax); X(rip); X(cs); X(eflags); X(rsp); X(ss);
#elif defined(__aarch64__)
#define X(name) FIELD(user_pt_regs, name, #name)
	ARRAY(user_pt_regs, regs, "x");
	X(sp); X(pc); X(pstate);
#else
#define X(name) FIELD(pt_regs, name, #name)
	ARRAY(pt_regs, gpr, "gpr");
	X(nip); X(msr); X(orig_gpr3); X(ctr); X(link); X(xer); X(ccr);
	X(softe); X(trap); X(dar); X(dsisr); X(result);
#endif
	return 0;
}
