# A function with a restartable sequence, as librseq has it: from 1 to 2. The kernel goes on
# at 4 where it was interrupted. The bytes before that are the signature.
# as -o sequence.o sequence.s && ld -pie --no-dynamic-linker -e start --build-id=none -z noseparate-code -o sequence.elf sequence.o
	.pushsection __rseq_cs, "aw"
	.balign	32
3:	.long	0, 0
	.quad	1f, 2f - 1f, 4f
	.popsection

	.text
	.globl	start
	.type	start, @function
start:
	lea	3b(%rip), %rax
	mov	%rax, 8(%rdi)
	push	%rax
1:	cmpl	$0, 4(%rdi)
	jne	4f
	addq	$1, (%rdx)
2:	xor	%eax, %eax
	ret
	.byte	0x0f, 0xb9, 0x3d
	.long	0x53053053
4:	mov	$1, %eax
	ret
	.size	start, . - start
