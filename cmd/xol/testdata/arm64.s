// A program with what probes meet on arm64.

	.arch	armv8.5-a
	.text

	.globl	main
	.type	main, %function
main:
	paciasp
	stp	x29, x30, [sp, #-16]!
	adrp	x0, message
	add	x0, x0, :lo12:message
	ldr	x1, literal
	bl	increment
	cbz	w0, 1f
	blraaz	x0
1:	ldp	x29, x30, [sp], #16
	retaa
	.size	main, . - main
	.p2align 3
literal:
	.quad	42

// Between the load and the store no probe may be hit.
	.globl	increment
	.type	increment, %function
increment:
	ldaxr	w1, [x0]
	add	w1, w1, #1
	stlxr	w2, w1, [x0]
	cbnz	w2, increment
	ret
	.size	increment, . - increment

	.globl	refused
	.type	refused, %function
refused:
	svc	#0
	brk	#1
	msr	daifset, #2
	.inst	0x00000000
	prfm	pldl1keep, literal
	ldr	q0, literal
	ret
	.size	refused, . - refused

	.section .rodata
message:
	.asciz	"hello"
