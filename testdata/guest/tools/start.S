// Where the program starts, switches of stacks, and functions that change where they
// return to.
//
//	void *switch_stack(void **from, void *to, void *value);
//
// saves what a function has to keep below the stack pointer, the stack pointer in
// *from, and goes on where the stack to was left, with value as the result there.
//
//	void *first_stack(void *top, void (*f)(void *));
//
// returns what to is for a stack that ends at top and has never run: f is called with
// the first value.
//
//	long returns_further(long x);	// past the instruction after the call
//	long returns_elsewhere(long x);	// to another place in its caller

#if defined(__x86_64__)
#define FUNCTION(name) .globl name; .type name, @function; .balign 16; name:
#define END(name) .size name, . - name
	.text
FUNCTION(_start)
	xorl	%ebp, %ebp
	movq	%rsp, %rdi
	andq	$-16, %rsp
	call	begin
	hlt
END(_start)
FUNCTION(switch_stack)
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	movq	%rdx, %rax
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
END(switch_stack)
FUNCTION(first_stack)
	leaq	begin_stack(%rip), %rax
	movq	%rax, -16(%rdi)
	movq	%rsi, -32(%rdi)		// rbx
	leaq	-64(%rdi), %rax
	ret
END(first_stack)
FUNCTION(begin_stack)
	movq	%rax, %rdi
	xorl	%ebp, %ebp
	call	*%rbx
	hlt
END(begin_stack)
FUNCTION(returns_further)
	addq	$3, (%rsp)
	leaq	1(%rdi), %rax
	ret
END(returns_further)
FUNCTION(calls_further)
	subq	$8, %rsp
	call	returns_further
	.byte 0x48, 0xff, 0xc0		// incq %rax, which is passed
	nop
	addq	$8, %rsp
	ret
END(calls_further)
FUNCTION(returns_elsewhere)
	leaq	elsewhere(%rip), %rax
	movq	%rax, (%rsp)
	leaq	2(%rdi), %rax
	ret
END(returns_elsewhere)
FUNCTION(calls_elsewhere)
	subq	$8, %rsp
	call	returns_elsewhere
	hlt
elsewhere:
	addq	$8, %rsp
	ret
END(calls_elsewhere)

#elif defined(__aarch64__)
#define FUNCTION(name) .globl name; .type name, @function; .balign 16; name:
#define END(name) .size name, . - name
	.text
FUNCTION(_start)
	mov	x29, #0
	mov	x30, #0
	mov	x0, sp
	bl	begin
	brk	#1
END(_start)
FUNCTION(switch_stack)
	stp	x29, x30, [sp, #-96]!
	stp	x19, x20, [sp, #16]
	stp	x21, x22, [sp, #32]
	stp	x23, x24, [sp, #48]
	stp	x25, x26, [sp, #64]
	stp	x27, x28, [sp, #80]
	mov	x3, sp
	str	x3, [x0]
	mov	sp, x1
	mov	x0, x2
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	x23, x24, [sp, #48]
	ldp	x25, x26, [sp, #64]
	ldp	x27, x28, [sp, #80]
	ldp	x29, x30, [sp], #96
	ret
END(switch_stack)
FUNCTION(first_stack)
	sub	x0, x0, #96
	adr	x2, begin_stack
	stp	xzr, x2, [x0]
	str	x1, [x0, #16]		// x19
	ret
END(first_stack)
FUNCTION(begin_stack)
	mov	x30, #0
	blr	x19
	brk	#1
END(begin_stack)
FUNCTION(returns_further)
	add	x30, x30, #4
	add	x0, x0, #1
	ret
END(returns_further)
FUNCTION(calls_further)
	str	x30, [sp, #-16]!
	bl	returns_further
	add	x0, x0, #5
	ldr	x30, [sp], #16
	ret
END(calls_further)
FUNCTION(returns_elsewhere)
	adr	x30, elsewhere
	add	x0, x0, #2
	ret
END(returns_elsewhere)
FUNCTION(calls_elsewhere)
	str	x30, [sp, #-16]!
	bl	returns_elsewhere
	brk	#1
elsewhere:
	ldr	x30, [sp], #16
	ret
END(calls_elsewhere)

#elif defined(__powerpc64__)
#if _CALL_ELF == 2
	.abiversion 2
#define FUNCTION(name) .globl name; .type name, @function; .balign 16; name: \
	0: addis 2, 12, (.TOC. - 0b)@ha; addi 2, 2, (.TOC. - 0b)@l; .localentry name, . - name
#define END(name) .size name, . - name
#define CODE(name) name
#else
#define FUNCTION(name) .globl name; .section ".opd","aw"; .balign 8; \
	name: .quad .L.name, .TOC.@tocbase, 0; .type name, @function; .text; .balign 16; .L.name:
#define END(name) .size name, . - .L.name
#define CODE(name) .L.name
#endif
#define SAVED 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	.text
FUNCTION(_start)
	mr	3, 1
	clrrdi	1, 1, 4
	li	0, 0
	stdu	0, -128(1)
	mtlr	0
	bl	begin
	nop
	trap
END(_start)
FUNCTION(switch_stack)
	mflr	0
	mfcr	6
	std	0, 16(1)
	std	6, 8(1)
	stdu	1, -256(1)
	.irp	n, SAVED
	std	\n, 96 + 8 * (\n - 14)(1)
	.endr
	std	1, 0(3)
	mr	1, 4
	mr	3, 5
	.irp	n, SAVED
	ld	\n, 96 + 8 * (\n - 14)(1)
	.endr
	addi	1, 1, 256
	ld	0, 16(1)
	ld	6, 8(1)
	mtlr	0
	mtcr	6
	blr
END(switch_stack)
FUNCTION(first_stack)
	mflr	0
	bcl	20, 31, 1f
1:	mflr	5
	mtlr	0
	addi	5, 5, begin_stack - 1b
	addi	6, 3, -128
	li	0, 0
	std	0, 0(6)
	std	5, 16(6)
	std	0, 8(6)
	addi	3, 6, -256
	std	6, 0(3)
	std	4, 96(3)		// r14
	blr
END(first_stack)
begin_stack:
	mr	12, 14
#if _CALL_ELF != 2
	ld	2, 8(12)
	ld	12, 0(12)
#endif
	mtctr	12
	bctrl
	trap
FUNCTION(returns_further)
	mflr	11
	addi	11, 11, 4
	mtlr	11
	addi	3, 3, 1
	blr
END(returns_further)
FUNCTION(calls_further)
	mflr	0
	std	0, 16(1)
	stdu	1, -112(1)
	bl	CODE(returns_further)
	addi	3, 3, 5
	addi	1, 1, 112
	ld	0, 16(1)
	mtlr	0
	blr
END(calls_further)
FUNCTION(returns_elsewhere)
	bcl	20, 31, 1f
1:	mflr	11
	addi	11, 11, elsewhere - 1b
	mtlr	11
	addi	3, 3, 2
	blr
END(returns_elsewhere)
FUNCTION(calls_elsewhere)
	mflr	0
	std	0, 16(1)
	stdu	1, -112(1)
	bl	CODE(returns_elsewhere)
	trap
elsewhere:
	addi	1, 1, 112
	ld	0, 16(1)
	mtlr	0
	blr
END(calls_elsewhere)
#endif

	.section .note.GNU-stack, "", %progbits
