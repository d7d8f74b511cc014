# Static markers with every form of operand that compilers write on amd64.

	.include "marker.inc"

	.text
	.globl	main
	.type	main, %function
main:
	marker	server, start
	marker	server, request, "8@%rdi -4@%esi 2@%dx -1@%cl 1@%ah 4@%r8d", requests
	marker	server, stack, "8@-8(%rbp) -4@112(%rsp) 8@(%rax) 1@(%rax,%rbx,4) -4@-4+16(,%rcx,8)"
	marker	server, static, "8@counters(%rip) -8@8+counters(%rip) 8@$counters -4@$-5 4@$0x10 8@%fs:-16"
	marker	server, float, "8f@%xmm0 4f@%xmm1 4f@-4(%rbp)", requests
	marker	other, unclear, "8@nowhere(%rip) 3@%eax"
	ret
	.size	main, . - main
