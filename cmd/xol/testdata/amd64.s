# A program with one function for each kind of answer.

	.text

	.globl	main
	.type	main, @function
main:
	endbr64
	push	%rbp
	mov	%rsp, %rbp
	lea	message(%rip), %rdi
	call	vectors
	test	%eax, %eax
	jz	1f
	call	*%rax
1:	pop	%rbp
	ret
	.size	main, . - main

# Accepted by Linux's uprobes, and then taken for jcc, nop and call.
	.globl	vectors
	.type	vectors, @function
vectors:
	vpor	(%rdi), %xmm1, %xmm2
	vpshufd	$0x10, %xmm2, %xmm3
	vpsubsb	%xmm3, %xmm2, %xmm1
	vzeroupper
	ret
	.size	vectors, . - vectors

# Privileged, trapping, and no instruction at all.
	.globl	refused
	.type	refused, @function
refused:
	int3
	syscall
	hlt
	ud2
	.byte	0x06
	nop
	ret
	.size	refused, . - refused

# shape::area(int)
	.globl	_ZN5shape4areaEi
	.type	_ZN5shape4areaEi, @function
_ZN5shape4areaEi:
	imul	%edi, %edi
	mov	%edi, %eax
	ret
	.size	_ZN5shape4areaEi, . - _ZN5shape4areaEi

	.type	twin, @function
twin:
	xor	%eax, %eax
	ret
	.size	twin, . - twin

	.section .rodata
message:
	.asciz	"hello"
