// save_context and restore_context: setjmp and longjmp for integer code.

#if defined(__x86_64__)
	.text
	.globl save_context, restore_context
	.type save_context, @function
	.type restore_context, @function
save_context:
	movq	(%rsp), %rdx
	leaq	8(%rsp), %rcx
	movq	%rbx, (%rdi)
	movq	%rbp, 8(%rdi)
	movq	%r12, 16(%rdi)
	movq	%r13, 24(%rdi)
	movq	%r14, 32(%rdi)
	movq	%r15, 40(%rdi)
	movq	%rcx, 48(%rdi)
	movq	%rdx, 56(%rdi)
	xorl	%eax, %eax
	ret
	.size save_context, . - save_context
restore_context:
	movl	%esi, %eax
	movq	(%rdi), %rbx
	movq	8(%rdi), %rbp
	movq	16(%rdi), %r12
	movq	24(%rdi), %r13
	movq	32(%rdi), %r14
	movq	40(%rdi), %r15
	movq	48(%rdi), %rsp
	jmp	*56(%rdi)
	.size restore_context, . - restore_context

#elif defined(__aarch64__)
	.text
	.globl save_context, restore_context
	.type save_context, @function
	.type restore_context, @function
save_context:
	stp	x19, x20, [x0]
	stp	x21, x22, [x0, #16]
	stp	x23, x24, [x0, #32]
	stp	x25, x26, [x0, #48]
	stp	x27, x28, [x0, #64]
	stp	x29, x30, [x0, #80]
	mov	x1, sp
	str	x1, [x0, #96]
	mov	w0, #0
	ret
	.size save_context, . - save_context
restore_context:
	ldp	x19, x20, [x0]
	ldp	x21, x22, [x0, #16]
	ldp	x23, x24, [x0, #32]
	ldp	x25, x26, [x0, #48]
	ldp	x27, x28, [x0, #64]
	ldp	x29, x30, [x0, #80]
	ldr	x2, [x0, #96]
	mov	sp, x2
	mov	w0, w1
	ret
	.size restore_context, . - restore_context

#elif defined(__powerpc64__)
#if _CALL_ELF == 2
#define FUNCTION(name) .globl name; .type name, @function; name: .localentry name, 1
#define END(name) .size name, . - name
#else
#define FUNCTION(name) .globl name; .section ".opd","aw"; .balign 8; \
	name: .quad .L.name, .TOC.@tocbase, 0; .type name, @function; .text; .L.name:
#define END(name) .size name, . - .L.name
#endif
	.text
	FUNCTION(save_context)
	mflr	0
	mfcr	5
	std	0, 0(3)
	std	1, 8(3)
	std	2, 16(3)
	std	5, 24(3)
	.irp	n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	std	\n, 32 + 8 * (\n - 14)(3)
	.endr
	li	3, 0
	blr
	END(save_context)
	FUNCTION(restore_context)
	ld	0, 0(3)
	ld	1, 8(3)
	ld	2, 16(3)
	ld	5, 24(3)
	.irp	n, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	ld	\n, 32 + 8 * (\n - 14)(3)
	.endr
	mtlr	0
	mtcr	5
	mr	3, 4
	blr
	END(restore_context)
#endif

	.section .note.GNU-stack, "", %progbits
